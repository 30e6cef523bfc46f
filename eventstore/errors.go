package eventstore

import (
	"errors"
	"fmt"
)

var (
	// ErrOverloaded: the queue is full. Nothing was written; answer 503.
	ErrOverloaded = errors.New("eventstore: append queue is full")
	// ErrUnavailable: the database could not be reached or refused the whole batch.
	// Nothing was written.
	ErrUnavailable = errors.New("eventstore: the log is unavailable, nothing was written")
	// ErrOutcomeUnknown: the connection was lost around the commit and the question
	// could not be settled in time, or the caller gave up while its append was being
	// written. It may or may not be in the log: read the stream, or append again
	// with the same expected version.
	ErrOutcomeUnknown = errors.New("eventstore: outcome of the append is unknown")
	// ErrClosed: the store is closing. Nothing was written.
	ErrClosed = errors.New("eventstore: closed, nothing was written")
	// ErrInvalid: the append can never be written: a malformed stream, type or body.
	ErrInvalid = errors.New("eventstore: invalid append")
	// ErrCorrupt: a stored row cannot be read as what it must be.
	ErrCorrupt = errors.New("eventstore: corrupt row")
)

// ConflictError says that the stream was not at the expected version (E2).
// Nothing was written.
type ConflictError struct {
	Stream           string
	Expected, Actual int64
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("eventstore: %s is at version %d, not %d", e.Stream, e.Actual, e.Expected)
}

// TooLargeError says that appends are more than can be written at once, which no later
// try changes: an ErrInvalid. Nothing was written.
type TooLargeError struct {
	// Events is how many there are.
	Events int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("eventstore: %d events are too many or too long to be written at once; at most %d", e.Events, maxAloneEvents)
}

func (e *TooLargeError) Unwrap() error { return ErrInvalid }

// GapError says that a reader did not find the position after its last one. It
// stops: going on would lose events (E3).
type GapError struct {
	Shard      int16
	Want, Have int64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("eventstore: shard %d: position %d follows, want %d", e.Shard, e.Have, e.Want)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
