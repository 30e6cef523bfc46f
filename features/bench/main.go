// Command bench measures what the product promises of speed and memory, as ratios
// within one run: the same load against the fake provider directly and through
// `sluice serve`, in turns, so that a slow moment of the machine meets both. The
// gateway and its PostgreSQL share one core; the load generator and the provider
// have the other. Both commits of a request are durable (fsync is on), and all
// requests meet one organization's budget.
//
//	make bench
//	go run ./features/bench -full
//
// Absolute figures of one machine say little about another; the last column of the
// table at the end is what to look at. It needs Linux, for /proc and taskset.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	sluice  string
	rounds  int
	phase   time.Duration
	only    string
	longLog int
}

// wants reports whether a part is to be measured.
func (o options) wants(part string) bool {
	return o.only == "" || strings.Contains(","+o.only+",", ","+part+",")
}

// parts are what -only names.
const parts = "closed, open, streams, chunk, memory, log"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o options
	flag.StringVar(&o.sluice, "sluice", "bin/sluice", "the program to measure")
	full := flag.Bool("full", false, "more and longer rounds, and a log of 10 million events (about 15 minutes)")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds of each comparison (default 3, full 5)")
	flag.DurationVar(&o.phase, "phase", 0, "length of one measurement (default 3s, full 8s)")
	flag.StringVar(&o.only, "only", "", "measure only these, separated by commas: "+parts)
	flag.Parse()
	set := func(quick, long int) int {
		if *full {
			return long
		}
		return quick
	}
	if o.rounds <= 0 {
		o.rounds = set(3, 5)
	}
	if o.phase <= 0 {
		o.phase = time.Duration(set(3, 8)) * time.Second
	}
	o.longLog = set(0, 10_000_000)

	w, err := openWorld(ctx, o.sluice)
	if err != nil {
		return err
	}
	r := &report{}
	w.describe(os.Stdout)
	err = measure(ctx, o, w, r)
	err = errors.Join(err, w.close())
	if err == nil && o.wants("log") {
		err = measureLog(ctx, o, r)
	}
	r.print(os.Stdout)
	return err
}
