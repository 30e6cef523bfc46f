// Package audit checks that every request in the log lived a life that is possible:
// the invariants of a stream (one opening, one end, attempts numbered without gaps
// and settled once, no attempt after the commit, nothing held at the end). That
// the read models are what the log adds up to is checked by making them again.
//
// request.Life is the judge of what may follow what; here it is asked about events
// that are stored already, together with what they did to the budget counters.
package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// Violation is an event, or the lack of one, that must not be.
type Violation struct {
	Stream   string `json:"stream"`
	Shard    int16  `json:"shard"`
	Position int64  `json:"position"`
	Reason   string `json:"reason"`
}

// Stream checks one request's events, from its first on. That it has not ended is
// no violation; only a whole log tells whether it should have.
func Stream(events []eventstore.Recorded) []Violation {
	l := newLife()
	var found []Violation
	for _, rec := range events {
		found = append(found, l.observe(rec)...)
	}
	return found
}

// life is what has been seen of one request.
type life struct {
	request.Life
	holds map[budget.Key]budget.Counter
	last  eventstore.Recorded
	// due is when an end may be expected.
	due time.Time
}

func newLife() *life { return &life{holds: map[budget.Key]budget.Counter{}} }

// observe takes the next event and says what is wrong with it. An impossible event
// is not folded, so that what follows is judged by what could have been.
func (l *life) observe(rec eventstore.Recorded) (found []Violation) {
	complain := func(format string, args ...any) {
		found = append(found, Violation{
			Stream: rec.Stream, Shard: rec.Shard, Position: rec.Position, Reason: fmt.Sprintf(format, args...),
		})
	}
	if want := l.last.StreamVersion + 1; rec.StreamVersion != want {
		complain("stream version %d, want %d", rec.StreamVersion, want)
	}
	l.last = rec
	e, err := projections.Decode(rec)
	if err != nil {
		complain("%v", err)
		return found
	}
	if err := l.Apply(e); err != nil {
		complain("%v", err)
		return found
	}
	if admitted, ok := e.(request.RequestAdmitted); ok {
		l.due = projections.ObservedAt(rec).Add(time.Duration(admitted.DeadlineMS) * time.Millisecond)
	}
	budget.Apply(l.holds, budget.Effects(e))
	for key, c := range l.holds {
		switch {
		case c.Held < 0:
			complain("%s is held at %d", key, c.Held)
		case l.Phase == request.Closed && c.Held != l.metered(key):
			complain("%s is still held at %d when the request ends", key, c.Held)
		}
	}
	return found
}

// metered is what unresolved meter holds keep on a counter: the one thing that may be
// held after the end (invariant 5, D2).
func (l *life) metered(key budget.Key) (held int64) {
	for i := range l.Attempts {
		if hold := l.Attempts[i].MeterHold; hold != nil {
			for _, take := range hold.Takes {
				if budget.Key(take.Key) == key {
					held += take.Held
				}
			}
		}
	}
	return held
}

// graceAfterDeadline is how long after its deadline an open request may wait to be
// ended by another worker: orphan_after, and as much again for the one that does it.
const graceAfterDeadline = 3 * time.Minute

// overdue reports a request that nobody ended although its time is over: its worker
// is not alive, or it would have.
func (l *life) overdue(now time.Time) (Violation, bool) {
	if l.Phase != request.Open || now.Before(l.due.Add(graceAfterDeadline)) {
		return Violation{}, false
	}
	return Violation{
		Stream: l.last.Stream, Shard: l.last.Shard, Position: l.last.Position,
		Reason: "open although its deadline was " + l.due.UTC().Format(time.RFC3339),
	}, true
}

func (l *life) closed() bool { return l.Phase == request.Closed }

func isRequest(stream string) bool { return strings.HasPrefix(stream, "request/") }
