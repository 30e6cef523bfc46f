package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
)

// Projection is one read model. It has no state of its own: what it knows stands
// in its tables, which its migration lists in projection_tables.
type Projection interface {
	// Name is what `sluice rebuild NAME` and the checkpoint call it.
	Name() string
	// Version is raised whenever Apply would make other rows of the same log. A
	// live view of another version is not written to; it waits for a rebuild.
	Version() int
	// Types are the events it wants; the others are skipped undecoded.
	Types() []string
	// Money reports whether it adds up money. Such a projection stops, visibly, at
	// an event this release cannot read; the others pass over it (C15, E8).
	Money() bool
	// Apply folds a batch, in the order of the log, into its tables. Table names are
	// unqualified: the same code fills the live tables and a rebuild's. An event it
	// cannot fold is an *EventError; everything before that event is then applied
	// without it.
	Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error
}

// Foreseeing is a projection whose rows also depend on configuration that stands later
// in the log than what makes them: a bill, once rebuilt, has prices that were corrected
// after the attempts were settled. A view is told of it once, when it is made anew, and
// keeps to it: the live one takes in nothing new until it is rebuilt (M15), and is
// verified by what it was told itself (E4).
type Foreseeing interface {
	Projection
	// Newest is the position of the newest such event in the log; 0 for none.
	Newest(ctx context.Context, log Log) (int64, error)
	// Foresee tells the empty tables of a view what stands in the log up to a position.
	Foresee(ctx context.Context, tx pgx.Tx, log Log, upTo int64) error
	// Foreseen is up to where a view was told; 0 for nothing.
	Foreseen(ctx context.Context, tx pgx.Tx) (int64, error)
}

// Log is what projections need of the event store.
type Log interface {
	// ReadAll returns the events of a shard that follow a position, in order and
	// without gaps, and fewer than limit only at the end.
	ReadAll(ctx context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error)
	// ReadConfig returns the configuration events of a shard that follow a position, in
	// order; none means that there are no more for now.
	ReadConfig(ctx context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error)
	// Head is the end of a shard's log; its position is 0 for an empty shard.
	Head(ctx context.Context, shard int16) (eventstore.Head, error)
}

// EventError is an event that a projection cannot fold. It stops that projection
// there and no other.
type EventError struct {
	Shard    int16
	Position int64
	Type     string
	Err      error
}

func (e *EventError) Error() string {
	return fmt.Sprintf("shard %d position %d (%s): %v", e.Shard, e.Position, e.Type, e.Err)
}

func (e *EventError) Unwrap() error { return e.Err }

// At wraps an error with the place of the event it is about; nil stays nil.
func At(rec eventstore.Recorded, err error) error {
	if err == nil {
		return nil
	}
	return &EventError{Shard: rec.Shard, Position: rec.Position, Type: rec.Type, Err: err}
}

// ObservedAt is when an event happened: as its worker saw it, or, for an event whose
// moment did not matter to the worker, when it was written. Both stand in the log,
// so that a rebuild sees the same.
func ObservedAt(rec eventstore.Recorded) time.Time {
	if rec.At.IsZero() {
		return rec.RecordedAt
	}
	return rec.At
}

// Decode reads an event of the log in its newest version; the error says where it
// stands.
func Decode(rec eventstore.Recorded) (event.Event, error) {
	if rec.Decoded != nil {
		return rec.Decoded, nil
	}
	e, err := event.Decode(rec.Type, rec.Version, rec.Data)
	return e, At(rec, err)
}
