package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// maxRequestEvents bounds what is read of one request.
const maxRequestEvents = 2048

// follower prints one line for every request that ends, as dev shows it. It reads
// the log, not the worker: what it shows is what was written.
type follower struct {
	log *eventstore.Store
	out io.Writer
	// trailOf is a command that shows a request's whole trail.
	trailOf func(id string) string
	// from is where the log ended before anything was served.
	from int64
}

func newFollower(ctx context.Context, log *eventstore.Store, out io.Writer, trailOf func(string) string) (*follower, error) {
	head, err := log.Head(ctx, 0)
	return &follower{log: log, out: out, trailOf: trailOf, from: head.Position}, err
}

// run follows the log until ctx ends.
func (f *follower) run(ctx context.Context) error {
	err := f.log.Subscribe(ctx, 0, f.from, f.show, eventstore.SubscribeOptions{})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (f *follower) show(ctx context.Context, batch []eventstore.Recorded) error {
	for _, rec := range batch {
		if rec.Type != "request_finalized" && rec.Type != "request_refused" {
			continue
		}
		events, err := f.log.ReadStream(ctx, rec.Stream, 1, maxRequestEvents)
		if err != nil {
			return err
		}
		row, err := requests.Fold(requests.Row{}, events...)
		if err != nil {
			// Written by another release. A line on a screen is no reason to stop.
			fmt.Fprintf(f.out, "%s cannot be shown: %v\n", rec.Stream, err)
			continue
		}
		paint := newPaint(f.out)
		fmt.Fprintf(f.out, "%s\n  %s\n", requestLine(paint, row), paint.dim("trail: "+f.trailOf(row.ID.String())))
	}
	return nil
}

// requestLine is a request in one line.
func requestLine(p paint, row requests.Row) string {
	parts := []string{"request " + row.ID.String(), row.RequestedModel}
	if row.Provider != "" {
		parts[1] = row.RequestedModel + " -> " + row.CanonicalModel + "@" + row.Provider
	}
	parts = append(parts, plural(int(row.Attempts), "attempt"), paintOutcome(p, row))
	if row.Outcome != request.Refused {
		parts = append(parts, row.Charge.USD().StringFixed(6)+" USD")
	}
	if row.DurationMS != nil {
		parts = append(parts, fmt.Sprintf("%d ms", *row.DurationMS))
	}
	return strings.Join(parts, "  ")
}

func paintOutcome(p paint, row requests.Row) string {
	text := string(row.Outcome)
	if row.Code != "" {
		text += " (" + row.Code + ")"
	}
	if row.Outcome == request.Completed {
		return p.green(text)
	}
	return p.yellow(text)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
