// Package holds lets go of meter holds that nobody could resolve: the tokens of an
// attempt whose usage never arrived are held for a day and no longer (D2).
package holds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/holds"
)

const (
	// DefaultTTL is meter_hold_ttl: longer than a provider takes to report, and than any
	// window of tokens but the month's.
	DefaultTTL = 24 * time.Hour
	// every is how often holds are looked at: what they are compared with is a day.
	every = time.Minute
	// sweepHolds bounds one look; the next goes on.
	sweepHolds = 100
	// maxStream is more events than a request can have.
	maxStream = 10_000
)

// Log is what is needed of the event store.
type Log interface {
	Append(ctx context.Context, a eventstore.Append) (eventstore.Result, error)
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
}

// Reconciler resolves holds by their age. Every worker may run one: the stream's version
// lets only one of them say it.
type Reconciler struct {
	Log Log
	// Held is where the holds are read.
	Held holds.Querier
	// ShardOf tells which part of the log holds an organization.
	ShardOf func(tenant string) int16
	// TTL is DefaultTTL but in tests.
	TTL    time.Duration
	Worker string
	Now    func() time.Time
	Logger *slog.Logger
}

// Run sweeps until ctx ends.
func (r *Reconciler) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n, err := r.Sweep(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			r.Logger.Warn("meter holds were not all resolved", "error", err)
		case n > 0:
			r.Logger.Info("meter holds resolved by age", "holds", n)
		}
	}
}

// Sweep resolves the oldest holds that are older than the TTL and returns how many. One
// that cannot be resolved does not keep the others from it.
func (r *Reconciler) Sweep(ctx context.Context) (resolved int, err error) {
	old, err := holds.Oldest(ctx, r.Held, r.Now().Add(-r.TTL), sweepHolds)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, h := range old {
		done, err := r.resolve(ctx, h)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("request %s: %w", h.RequestID, err))
		case done:
			resolved++
		}
	}
	return resolved, errors.Join(failed...)
}

// resolve says that a hold has ended, if its request's own events say that it has not.
func (r *Reconciler) resolve(ctx context.Context, h holds.Hold) (bool, error) {
	stream := "request/" + h.RequestID.String()
	events, err := r.Log.ReadStream(ctx, stream, 1, maxStream)
	if err != nil {
		return false, err
	}
	var life request.Life
	for _, rec := range events {
		e, err := projections.Decode(rec)
		if err != nil {
			return false, err
		}
		if err := life.Apply(e); err != nil {
			return false, err
		}
	}
	if h.Attempt < 1 || h.Attempt > len(life.Attempts) || life.Attempts[h.Attempt-1].MeterHold == nil {
		return false, nil // resolved by somebody else, and the view does not know yet
	}
	resolved := request.MeterHoldResolved{
		Attempt: h.Attempt, By: request.ByAge, Takes: budget.LetGo(life.Attempts[h.Attempt-1].MeterHold.Takes),
	}
	encoded := event.Encode(resolved)
	_, err = r.Log.Append(ctx, eventstore.Append{
		Shard: r.ShardOf(h.Tenant), Stream: stream, Expected: int64(len(events)), Meta: eventstore.Meta{Worker: r.Worker},
		Events: []eventstore.Event{{
			Type: encoded.Type, Version: encoded.Version, At: r.Now().UTC(), Data: encoded.Data,
		}},
		Deltas:   budget.Effects(resolved),
		Priority: eventstore.Settlement,
	})
	if _, overtaken := errors.AsType[*eventstore.ConflictError](err); overtaken {
		return false, nil
	}
	return err == nil, err
}
