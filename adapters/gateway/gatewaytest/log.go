package gatewaytest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
)

// Moves says what the log has of the only request, one word an event.
func (l *Log) Moves(t *testing.T) []string {
	t.Helper()
	var words []string
	var life request.Life
	for _, e := range l.Events(t) {
		if err := life.Apply(e); err != nil {
			t.Fatalf("the log holds an impossible life: %v", err)
		}
		word := event.Name(e)
		switch e := e.(type) {
		case request.AttemptReserved:
			word += " " + string(e.Kind)
		case request.AttemptFailed:
			word += " " + string(e.Failure)
		case request.AttemptSettled:
			word += " " + string(e.Basis)
		case request.RequestFinalized:
			word += " " + string(e.Outcome)
		}
		words = append(words, word)
	}
	return words
}

// Log is a Log that keeps its promises without a database.
type Log struct {
	mu      sync.Mutex
	Streams map[string][]eventstore.Event
	// Book is the counters. What an append records is as old as its events.
	Book    *budget.Book
	Commits int
	// Fail, when set, is asked before each append.
	Fail func(a eventstore.Append) error
	// Entered, when set, gets every append before it is written.
	Entered func(a eventstore.Append)
	// Admitted, when set, runs after the checks of a reservation have let it pass.
	Admitted func()
}

// NewLog is an empty log.
func NewLog() *Log {
	return &Log{Streams: map[string][]eventstore.Event{}, Book: budget.NewBook()}
}

// AppendAll writes a group or nothing.
func (l *Log) AppendAll(_ context.Context, group []eventstore.Append) ([]eventstore.Result, error) {
	for _, a := range group {
		if l.Entered != nil {
			l.Entered(a)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range group {
		if l.Fail != nil {
			if err := l.Fail(a); err != nil {
				return nil, err
			}
		}
		have := int64(len(l.Streams[a.Stream]))
		if a.Expected != eventstore.AnyVersion && a.Expected != have {
			return nil, &eventstore.ConflictError{Stream: a.Stream, Expected: a.Expected, Actual: have}
		}
	}
	l.Commits++
	now := group[0].Events[0].At
	before := l.Book.At(now)
	results := make([]eventstore.Result, len(group))
	for i, a := range group {
		results[i].Refusal = budget.Decide(before, a.Checks)
	}
	written := make([][]eventstore.Event, len(group))
	deltas := make([][]budget.Delta, len(group))
	for i, a := range group {
		written[i], deltas[i] = a.Events, a.Deltas
		if r := results[i].Refusal; r != nil {
			if written[i], deltas[i] = a.Refuse(*r); len(written[i]) == 0 {
				return results, nil
			}
		}
	}
	if len(group[0].Checks) > 0 && results[0].Refusal == nil && l.Admitted != nil {
		l.Admitted()
	}
	for i, a := range group {
		l.Streams[a.Stream] = append(l.Streams[a.Stream], written[i]...)
		l.Book.Apply(deltas[i], now)
		results[i].Version = int64(len(l.Streams[a.Stream]))
		if results[i].Refusal == nil {
			results[i].Standings = budget.Standings(before, l.Book.At(now), a.Checks)
		}
	}
	return results, nil
}

// ReadStream reads one stream back.
func (l *Log) ReadStream(_ context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []eventstore.Recorded
	for i, e := range l.Streams[stream] {
		if int64(i+1) < fromVersion || len(list) == limit {
			continue
		}
		list = append(list, eventstore.Recorded{Event: e, Stream: stream, StreamVersion: int64(i + 1)})
	}
	return list, nil
}

// Names are the streams that the log has, in no order.
func (l *Log) Names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.Streams))
}

// Events decodes the only request's events.
func (l *Log) Events(t *testing.T) []event.Event {
	t.Helper()
	l.mu.Lock()
	requests := 0
	for name := range l.Streams {
		if strings.HasPrefix(name, requestStreams) {
			requests++
		}
	}
	l.mu.Unlock()
	if requests > 1 {
		t.Fatal("more than one request in the log")
	}
	return l.Streamed(t, requestStreams)
}

// requestStreams begins the names of requests' streams.
const requestStreams = "request/"

// Streamed decodes the events of all streams whose name begins so.
func (l *Log) Streamed(t *testing.T, prefix string) []event.Event {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []event.Event
	for name, stored := range l.Streams {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for _, s := range stored {
			e, err := event.Decode(s.Type, s.Version, s.Data)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, e)
		}
	}
	return list
}

// NothingHeld checks that every hold was given back.
func (l *Log) NothingHeld(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, c := range l.Book.Counters {
		if c.Held != 0 {
			t.Errorf("%s still holds %d", key, c.Held)
		}
	}
}

// Open counts the requests that are admitted and not closed. A life that may not be
// fails the test.
func (l *Log) Open(t *testing.T) int {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	open := 0
	for name, stored := range l.Streams {
		if !strings.HasPrefix(name, "request/") {
			continue
		}
		var life request.Life
		for _, s := range stored {
			e, err := event.Decode(s.Type, s.Version, s.Data)
			if err == nil {
				err = life.Apply(e)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if life.Phase != request.Closed {
			open++
		}
	}
	return open
}
