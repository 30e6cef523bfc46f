// Package catalog keeps the configuration that a worker serves from: it reads the
// configuration events, folds them, and swaps a new immutable snapshot in with
// one assignment (C11).
//
// It is no table: configuration is small and alone in its partition of the log,
// so every worker reads all of it when it starts and then only what is new.
package catalog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

const (
	// Shard holds all configuration: it is read whole by every worker, and an apply
	// that touches several objects is one transaction.
	Shard int16 = 0
	// Poll is the longest that a change stays unseen (C11).
	Poll = 15 * time.Second
	// retryAfter is how soon a failed refresh is tried again.
	retryAfter = time.Second
	// pageEvents bounds what one read brings into memory.
	pageEvents = 5000
)

// Log is what is needed of the event store.
type Log interface {
	// ReadConfig returns the configuration events of a shard that follow a position,
	// in order; none means that there are no more for now.
	ReadConfig(ctx context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error)
}

// Live is the catalog of a running worker. Current is safe from any goroutine and
// takes no lock.
type Live struct {
	log     Log
	current atomic.Pointer[catalog.Snapshot]

	mu     sync.Mutex // refreshes take turns; guards all below
	state  *catalog.State
	status Status
}

// Status is what readiness and metrics say about the catalog.
type Status struct {
	// SnapshotID and Position are those of the snapshot in use; empty before the
	// first.
	SnapshotID string
	Position   int64
	// CheckedAt is when the log was last read to its end; Age is how long ago.
	CheckedAt time.Time
	Age       time.Duration
	// Err is why the last refresh failed; nil after a good one. The last good
	// snapshot stays in use.
	Err error
	// PassedOver counts events that this release cannot read (C15).
	PassedOver map[catalog.Unknown]int64
}

// New is a catalog that has read nothing yet: Current is nil until the first
// Refresh, and a worker that cannot know answers 503, never 401 (A2).
func New(log Log) *Live {
	return &Live{log: log, state: catalog.NewState()}
}

// Current is the snapshot in use, nil before the first.
func (l *Live) Current() *catalog.Snapshot { return l.current.Load() }

// Status describes the snapshot in use.
func (l *Live) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	status := l.status
	if !status.CheckedAt.IsZero() {
		status.Age = time.Since(status.CheckedAt)
	}
	return status
}

// Refresh reads what is new and swaps the snapshot if anything is. On an error
// the last good snapshot stays, and the next Refresh goes on from there.
func (l *Live) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh(ctx)
}

// Read refreshes and lends the state, which is what a command decides on, for as
// long as fn runs. fn must be quick and keep nothing of it: refreshes wait.
func (l *Live) Read(ctx context.Context, fn func(*catalog.State) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(ctx); err != nil {
		return err
	}
	return fn(l.state)
}

func (l *Live) refresh(ctx context.Context) error {
	err := follow(ctx, l.log, l.state)
	l.status.Err = err
	if err != nil {
		return err
	}
	l.status.CheckedAt = time.Now()
	if last := l.current.Load(); last == nil || last.Position != l.state.Position() {
		snapshot := l.state.Snapshot()
		l.status.SnapshotID, l.status.Position = snapshot.ID, snapshot.Position
		l.status.PassedOver = l.state.PassedOver()
		l.current.Store(snapshot)
	}
	return nil
}

// Run keeps the catalog fresh until ctx ends: at once, on every wake, and after
// Poll at the latest, because a wake may be lost. It returns nil when ctx ends.
func (l *Live) Run(ctx context.Context, wake <-chan struct{}) error {
	for {
		wait := Poll
		if err := l.Refresh(ctx); err != nil {
			wait = retryAfter
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case _, open := <-wake:
			if !open {
				wake = nil
			}
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Read folds all configuration there is: the state that a command decides on.
func Read(ctx context.Context, log Log) (*catalog.State, error) {
	state := catalog.NewState()
	if err := follow(ctx, log, state); err != nil {
		return nil, err
	}
	return state, nil
}

// follow folds every configuration event after the state's position into it. The
// state is a true prefix of the log at every return.
func follow(ctx context.Context, log Log, state *catalog.State) error {
	for {
		page, err := log.ReadConfig(ctx, Shard, state.Position(), pageEvents)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for _, rec := range page {
			if rec.Position <= state.Position() {
				return projections.At(rec, errOrder)
			}
			e, err := decode(rec)
			if err != nil {
				return projections.At(rec, err)
			}
			state.Fold(catalog.Recorded{
				Stream: rec.Stream, Version: rec.StreamVersion, Position: rec.Position,
				At: rec.RecordedAt, Event: e,
			})
		}
	}
}

// errOrder would be a broken log; without the check, one that repeats itself would
// be read for ever.
var errOrder = errors.New("configuration events are not in order")

// decode reads one event. One that this release does not know is passed over,
// visibly: the rest of the configuration still holds (C15).
func decode(rec eventstore.Recorded) (event.Event, error) {
	e, err := event.Decode(rec.Type, rec.Version, rec.Data)
	if unknown, ok := errors.AsType[*event.UnknownTypeError](err); ok {
		return catalog.Unknown{Type: unknown.Type, Version: unknown.Version}, nil
	}
	return e, err
}
