package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/eventstore/pgserver"
)

// figure is a line of eventstore/logbench that has a target.
type figure struct {
	// name begins the line, and pattern finds the figure behind it.
	name    string
	pattern string
	what    string
	target  float64
	least   bool
	format  string
}

var logFigures = []figure{
	{"lane, 64 callers", `(\d+) appends/s`, "the log alone, 64 callers on one counter, appends/s", 15_000, true, "%.0f"},
	{"lane / one each", `([\d.]+) x`, "the same against one transaction each", 20, true, "%.1f"},
	{"several / one", `([\d.]+) x`, "four processes against one, appends/s", 1.0, true, "%.2f"},
	{"several / one", `p50 ([\d.]+) x`, "four processes against one, p50", 2, false, "%.2f"},
	{"replay", `(\d+) events/s`, "replay, events/s", 250_000, true, "%.0f"},
	{"walks under twelve limits", `(\d+) reservations/s`, "64 callers under 12 limits, reservations/s", 3_000, true, "%.0f"},
	{"walks under twelve limits", `p99 +([\d.]+)ms`, "the same, p99 in ms", 20, false, "%.1f"},
	{"twelve limits, long / short", `p50 ([\d.]+) x`, "the same on 10 million events against few, p50", 1.2, false, "%.2f"},
	{"long / empty", `p50 ([\d.]+) x`, "appends on 10 million events against an empty log, p50", 1.2, false, "%.2f"},
}

// measureLog runs the log's own benchmark, on both cores as a database usually is.
func measureLog(ctx context.Context, o options, r *report) error {
	postgres, err := pgserver.Find(ctx, pgserver.Options{Durable: true})
	if err != nil {
		return err
	}
	fmt.Println()
	var out bytes.Buffer
	// taskset: this process, and so what it starts, has been put on one core.
	cmd := exec.CommandContext(ctx, "taskset", "-c", fmt.Sprintf("%d,%d", loadCore, gatewayCore),
		"go", "run", "./eventstore/logbench", "-url", postgres.URL(""), "-long", strconv.Itoa(o.longLog))
	cmd.Stdout, cmd.Stderr = io.MultiWriter(os.Stdout, &out), os.Stderr
	err = cmd.Run()
	for _, f := range logFigures {
		if value, ok := f.find(out.String()); ok && f.least {
			r.atLeast(f.what, f.target, value, f.format)
		} else if ok {
			r.atMost(f.what, f.target, value, f.format)
		}
	}
	return errors.Join(err, postgres.Stop(context.WithoutCancel(ctx)))
}

func (f figure) find(text string) (float64, bool) {
	pattern := regexp.MustCompile(f.pattern)
	found, ok := 0.0, false
	for line := range strings.Lines(text) {
		rest, is := strings.CutPrefix(line, f.name)
		if !is {
			continue
		}
		if m := pattern.FindStringSubmatch(rest); m != nil {
			value, err := strconv.ParseFloat(m[1], 64)
			// Where a line comes twice, the second is the warm one.
			found, ok = value, err == nil
		}
	}
	return found, ok
}
