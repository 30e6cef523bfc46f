package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

const (
	connections = 64
	perSecond   = 300
	// manyConnections is where the resident memory is bounded.
	manyConnections = 256
	// heldStreams are open at once to see what one costs.
	heldStreams = 512
	// settle is for what a phase leaves behind: projections that catch up, memory
	// that goes back.
	settle = 500 * time.Millisecond
)

// cost is the time on a core that a phase took, by whom.
type cost struct {
	gateway, postgres, foreign time.Duration
}

// spent is what everything has cost so far.
func (w *world) spent() cost {
	ours := cpu(os.Getpid()) + cpu(w.provider.Process.Pid)
	c := cost{gateway: cpu(w.serve.Process.Pid), postgres: familyCPU(w.postmaster)}
	c.foreign = machineCPU() - ours - c.gateway - c.postgres
	return c
}

func (c cost) minus(before cost) cost {
	return cost{c.gateway - before.gateway, c.postgres - before.postgres, c.foreign - before.foreign}
}

// phase runs a load and says in one line what it saw.
func (w *world) phase(label string, t target, load func(target) (*sample, error)) (*sample, error) {
	time.Sleep(settle)
	before := w.spent()
	s, err := load(t)
	if err != nil {
		return nil, err
	}
	s.cost = w.spent().minus(before)
	n := time.Duration(max(1, s.requests))
	fmt.Printf("%-8s %-8s %7.0f/s   p50 %8s  p95 %8s  p99 %8s   cpu a request: gateway %5s postgres %5s   foreign %.2f cores\n",
		label, t.name, s.rate(), ms(s.quantile(.5)), ms(s.quantile(.95)), ms(s.quantile(.99)),
		(s.cost.gateway / n).Round(time.Microsecond), (s.cost.postgres / n).Round(time.Microsecond), s.cost.foreign.Seconds()/s.took.Seconds())
	return s, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2fms", float64(d)/1e6) }

// pair is one comparison of a round.
type pair struct{ direct, gateway *sample }

// compare takes turns, as many rounds as asked for.
func (w *world) compare(ctx context.Context, label, model string, rounds int, load func(target) (*sample, error)) ([]pair, error) {
	var pairs []pair
	for range rounds {
		direct, err := w.phase(label, w.direct(model), load)
		if err != nil {
			return nil, err
		}
		gateway, err := w.phase(label, w.gateway(model), load)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		pairs = append(pairs, pair{direct, gateway})
	}
	return pairs, nil
}

// median of what each round says.
func median[T any, V cmp.Ordered](rounds []T, of func(T) V) V {
	values := make([]V, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func share(p pair) float64 { return p.gateway.rate() / p.direct.rate() }

// coreTime is what a request took of the one core, PostgreSQL included.
func coreTime(p pair) float64 {
	return float64((p.gateway.cost.gateway + p.gateway.cost.postgres).Microseconds()) / float64(p.gateway.requests)
}

func added(q float64) func(pair) float64 {
	return func(p pair) float64 { return float64(p.gateway.quantile(q)-p.direct.quantile(q)) / 1e6 }
}

// measure does all that needs the world.
func measure(ctx context.Context, o options, w *world, r *report) error {
	for _, part := range []struct {
		name string
		run  func(context.Context, options, *world, *report) error
	}{
		{"closed", measureClosed},
		{"open", measureOpen},
		{"streams", measureStreams},
		{"chunk", measureChunk},
		{"memory", measureMemory},
	} {
		if !o.wants(part.name) {
			continue
		}
		if err := part.run(ctx, o, w, r); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// warm fills pools, caches and plans before the clock starts.
func warm(ctx context.Context, w *world, model string, stream bool) error {
	for _, t := range []target{w.direct(model), w.gateway(model)} {
		if _, err := closed(ctx, t, connections, stream, time.Second); err != nil {
			return err
		}
	}
	return nil
}

func measureClosed(ctx context.Context, o options, w *world, r *report) error {
	if err := warm(ctx, w, "whole", false); err != nil {
		return err
	}
	pairs, err := w.compare(ctx, "closed", "whole", o.rounds, func(t target) (*sample, error) {
		return closed(ctx, t, connections, false, o.phase)
	})
	if err != nil {
		return err
	}
	r.atLeast("requests at 64 connections, 20 ms provider, share of direct", 0.60, median(pairs, share), "%.2f")
	r.note("  core time of a request, gateway and PostgreSQL", fmt.Sprintf("%.0f us", median(pairs, coreTime)))
	return nil
}

func measureOpen(ctx context.Context, o options, w *world, r *report) error {
	if err := warm(ctx, w, "whole", false); err != nil {
		return err
	}
	pairs, err := w.compare(ctx, "open", "whole", o.rounds, func(t target) (*sample, error) {
		return open(ctx, t, perSecond, o.phase)
	})
	if err != nil {
		return err
	}
	r.atMost("added p50 at 300 requests/s, ms", 2.5, median(pairs, added(.5)), "%.2f")
	r.atMost("added p99 at 300 requests/s, ms", 25, median(pairs, added(.99)), "%.2f")
	r.note("  core time of a request, gateway and PostgreSQL", fmt.Sprintf("%.0f us", median(pairs, coreTime)))
	return nil
}

func measureStreams(ctx context.Context, o options, w *world, r *report) error {
	if err := warm(ctx, w, "burst", true); err != nil {
		return err
	}
	pairs, err := w.compare(ctx, "streams", "burst", o.rounds, func(t target) (*sample, error) {
		return closed(ctx, t, connections, true, o.phase)
	})
	if err != nil {
		return err
	}
	r.atLeast("streams of 50 chunks at 64 connections, share of direct", 0.70, median(pairs, share), "%.2f")
	r.note("  core time of a stream, gateway and PostgreSQL", fmt.Sprintf("%.0f us", median(pairs, coreTime)))
	return nil
}

// measureChunk compares long streams with short ones: what the 200 chunks more
// cost is what a chunk costs. Chunks that come without a pause show what the
// gateway does with them. 5 ms apart, each is a read, a write and two wake-ups of
// its own, which costs any program that passes it on most of the figure: hence no
// target.
func measureChunk(ctx context.Context, o options, w *world, r *report) error {
	figures := map[string]float64{}
	for _, pace := range []string{"burst", "paced"} {
		var each []float64
		for range o.rounds {
			cost, err := w.chunkCost(ctx, o, pace)
			if err != nil {
				return err
			}
			each = append(each, cost)
		}
		figures[pace] = median(each, func(v float64) float64 { return v })
	}
	r.atMost("a chunk of a stream, us of CPU in the gateway", 10, figures["burst"], "%.1f")
	r.note("  chunks 5 ms apart", fmt.Sprintf("%.1f", figures["paced"]))
	return nil
}

// chunkCost is in microseconds.
func (w *world) chunkCost(ctx context.Context, o options, pace string) (float64, error) {
	const more = 250 - 50 // words of the models
	var perStream [2]float64
	for i, model := range []string{pace, pace + "-long"} {
		s, err := w.phase("chunk", w.gateway(model), func(t target) (*sample, error) {
			return closed(ctx, t, connections/2, true, o.phase)
		})
		if err != nil {
			return 0, err
		}
		perStream[i] = float64(s.cost.gateway.Microseconds()) / float64(max(1, s.requests))
	}
	return (perStream[1] - perStream[0]) / more, nil
}

// measureMemory needs fresh workers: what earlier loads left in the heap would hide
// what comes. How much of it was about to be collected differs from one to the
// next, so that the median of several says more than one.
func measureMemory(ctx context.Context, o options, w *world, r *report) error {
	var peaks, streams []float64
	for range o.rounds {
		peak, err := w.peakMemory(ctx, o)
		if err != nil {
			return err
		}
		stream, err := w.streamMemory(ctx)
		if err != nil {
			return err
		}
		peaks, streams = append(peaks, peak), append(streams, stream)
	}
	middle := func(v float64) float64 { return v }
	r.atMost("resident memory at 256 connections, at most, MB", 100, median(peaks, middle), "%.0f")
	r.atMost("resident memory of an open stream, KiB", 64, median(streams, middle), "%.0f")
	return nil
}

// peakMemory is the most that is resident while many connections are busy, in MB.
func (w *world) peakMemory(ctx context.Context, o options) (float64, error) {
	if err := w.restartGateway(ctx); err != nil {
		return 0, err
	}
	if _, err := w.phase("memory", w.gateway("whole"), func(t target) (*sample, error) {
		return closed(ctx, t, manyConnections, false, o.phase)
	}); err != nil {
		return 0, err
	}
	peak, err := memory(w.serve.Process.Pid, "VmHWM")
	return float64(peak) / 1e6, err
}

// streamMemory is what an open stream adds to what is resident, in KiB.
func (w *world) streamMemory(ctx context.Context) (float64, error) {
	if err := w.restartGateway(ctx); err != nil {
		return 0, err
	}
	pid := w.serve.Process.Pid
	if _, err := closed(ctx, w.gateway("whole"), 4, false, time.Second); err != nil {
		return 0, err
	}
	before, err := memory(pid, "VmRSS")
	if err != nil {
		return 0, err
	}
	release, err := hold(w.gateway("silent"), heldStreams)
	if err != nil {
		return 0, err
	}
	defer release()
	time.Sleep(settle)
	after, err := memory(pid, "VmRSS")
	return float64(after-before) / heldStreams / 1024, err
}
