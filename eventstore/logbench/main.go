// Command logbench measures the log: appends through the lane against one
// transaction each, several processes against one, a long log against an empty
// one, and replay. It makes and drops databases on the server at -url.
//
//	go run ./eventstore/logbench -url postgres://postgres@127.0.0.1:5432/postgres
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// options are the flags; a child process gets them back as JSON.
type options struct {
	URL       string
	Callers   int
	Seconds   float64
	Procs     int
	Long      int
	Replay    int
	Counters  int
	LaneConns int
	Child     bool
	Run       string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "logbench:", err)
		os.Exit(1)
	}
}

func run() error {
	var o options
	flag.StringVar(&o.URL, "url", os.Getenv("SLUICE_TEST_DATABASE_URL"), "PostgreSQL to measure on; databases are made and dropped there")
	flag.IntVar(&o.Callers, "callers", 64, "concurrent callers, in all processes together")
	flag.Float64Var(&o.Seconds, "seconds", 4, "length of each measurement")
	flag.IntVar(&o.Procs, "procs", 4, "processes to compare with one")
	flag.IntVar(&o.Long, "long", 0, "events of the long log to compare appends with, 0 to leave out (10000000 takes minutes and gigabytes)")
	flag.IntVar(&o.Replay, "replay", 1_000_000, "events to replay")
	flag.IntVar(&o.Counters, "counters", 1, "budget counters; 1 is the hot one")
	flag.IntVar(&o.LaneConns, "lane-conns", 0, "connections per lane, 0 for the default")
	flag.BoolVar(&o.Child, "child", false, "internal: one of several processes")
	flag.StringVar(&o.Run, "run", "lane,each,procs,replay,limits,long", "what to measure")
	flag.Parse()
	if o.Child {
		return child(o)
	}
	return measure(context.Background(), o)
}

// child waits for a line on stdin, so that all processes start together, works
// and reports on stdout.
func child(o options) error {
	w, err := prepareLane(context.Background(), o)
	if err != nil {
		return err
	}
	defer w.close()
	fmt.Println("ready")
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return err
	}
	r, err := w.work(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// children runs the lane in n processes at once with the callers shared out.
func children(ctx context.Context, o options, n int) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	type proc struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *json.Decoder
		raw io.Reader
	}
	procs := make([]proc, n)
	for i := range procs {
		cmd := exec.CommandContext(ctx, self, "-child", "-url", o.URL,
			"-callers", strconv.Itoa(o.Callers/n), "-seconds", fmt.Sprint(o.Seconds),
			"-counters", strconv.Itoa(o.Counters), "-lane-conns", strconv.Itoa(o.LaneConns))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return result{}, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return result{}, err
		}
		if err := cmd.Start(); err != nil {
			return result{}, err
		}
		defer cmd.Wait()
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			return result{}, err
		}
		procs[i] = proc{cmd: cmd, in: in, raw: out, out: json.NewDecoder(out)}
	}
	for _, p := range procs {
		if _, err := p.in.Write([]byte("\n")); err != nil {
			return result{}, err
		}
	}
	var all result
	for _, p := range procs {
		var r result
		if err := p.out.Decode(&r); err != nil {
			return result{}, err
		}
		all.add(r)
	}
	return all, nil
}

func (o options) duration() time.Duration { return time.Duration(o.Seconds * float64(time.Second)) }
