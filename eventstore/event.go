package eventstore

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// AnyVersion as Append.Expected appends whatever the stream's version is.
const AnyVersion int64 = -1

// Event is one fact, as stored.
type Event struct {
	// Type is a literal snake_case name, never a Go type name (E8).
	Type string
	// Version is the version of the type's shape, from 1.
	Version int
	// At is when it was observed, to the microsecond; the zero time if the moment
	// does not matter (E12).
	At time.Time
	// Data is one JSON object.
	Data []byte
}

// Meta says who wrote and why (E12). It is one per append.
type Meta struct {
	Worker      string `json:"worker,omitempty"`
	Actor       string `json:"actor,omitempty"`
	Causation   string `json:"causation,omitempty"`
	Correlation string `json:"correlation,omitempty"`
}

// Priority decides who is turned away first when the queue fills.
type Priority int8

const (
	// Admission opens new work.
	Admission Priority = iota
	// Settlement closes work that was paid for. Room is kept for it, and it is
	// written first.
	Settlement
)

// Append is what one decision wants to say: one row of the log (D17).
type Append struct {
	Shard  int16
	Stream string
	// Expected is the stream's version the decision was made on: 0 if the stream
	// must not exist, AnyVersion for whatever is there.
	Expected int64
	Events   []Event
	Meta     Meta
	// Checks must all pass before anything of the append is taken (R10).
	Checks []budget.Check
	// Deltas are what the events do to the shard's counters.
	Deltas []budget.Delta
	// Refuse says what is written instead when a check fails. It runs under the
	// shard's lock and possibly more than once: pure and quick. Nil, or no events
	// returned, writes nothing; Result.Refusal tells the caller either way.
	Refuse   func(budget.Refusal) ([]Event, []budget.Delta)
	Priority Priority
}

// Result tells what became of an Append.
type Result struct {
	// Position and Version are those of the last event written; zero if nothing was.
	Position, Version int64
	// Refusal is the check that failed, nil if all passed.
	Refusal *budget.Refusal
	// Standings are where the limits of the checks stand now, in their order; nil where
	// one failed.
	Standings []budget.Standing
}

// Recorded is an event read from the log.
type Recorded struct {
	Event
	Shard int16
	// Position is the event's own, gapless per shard, from 1.
	Position int64
	Stream   string
	// StreamVersion is gapless per stream, from 1.
	StreamVersion int64
	// RecordedAt is when the batch was written, by the database's clock.
	RecordedAt time.Time
	Meta       Meta
	// Decoded is what a reader that was ahead has made of the event; nil if nobody was.
	// Nobody may change it.
	Decoded any
}
