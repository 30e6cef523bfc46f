package budget

import (
	"strings"
	"time"
)

// Window is how much of a trailing key counts: what was settled less than Length ago.
//
// Beside the counter stand its marks: how much it had settled when a moment came. What
// was settled since a mark is a subtraction, so that a check reads two rows however
// much there was (R5). Requests are marked at every moment that has any: with a limit
// of L, the L-th most recent dispatch is inside the window or it is not, exactly (R1).
// Tokens are marked once a Granule: a minute of them is at most a second too long, an
// hour a minute.
type Window struct {
	Length  time.Duration
	Granule time.Duration
}

// Reach is how far back a mark may lie and count.
func (w Window) Reach() time.Duration { return w.Length + w.Granule }

// Mark is where the mark of a moment stands.
func (w Window) Mark(at time.Time) time.Time {
	if w.Granule == 0 {
		return at
	}
	return at.Truncate(w.Granule)
}

// trailing ends the key of a counter that is read through a window.
const trailing = "/trailing"

// windows are those of the trailing keys, by unit and period.
var windows = map[string]Window{
	"requests/minute": {Length: time.Minute},
	"requests/hour":   {Length: time.Hour, Granule: time.Second},
	"tokens/minute":   {Length: time.Minute, Granule: time.Second},
	"tokens/hour":     {Length: time.Hour, Granule: time.Minute},
}

// MaxReach is the longest Reach: older marks are of no use to anyone.
const MaxReach = time.Hour + time.Minute

// WindowOf is the window of a trailing key. Other keys have their window in their name.
func WindowOf(k Key) (Window, bool) {
	name, ok := strings.CutSuffix(string(k), trailing)
	if !ok {
		return Window{}, false
	}
	period := strings.LastIndexByte(name, '/')
	if period < 0 {
		return Window{}, false
	}
	unit := strings.LastIndexByte(name[:period], '/')
	w, ok := windows[name[unit+1:]]
	return w, ok
}

// Mark is how much a trailing counter had settled when a moment came.
type Mark struct {
	At      time.Time
	Settled int64
}

// Book is counters with their marks: what a fold of the log keeps to come to the same
// windows as the live tables (E4).
type Book struct {
	Counters map[Key]Counter
	marks    map[Key][]Mark
}

// NewBook is an empty book.
func NewBook() *Book {
	return &Book{Counters: map[Key]Counter{}, marks: map[Key][]Mark{}}
}

// Apply adds what an event that was recorded at a time did.
func (b *Book) Apply(deltas []Delta, recorded time.Time) {
	for _, d := range deltas {
		w, ok := WindowOf(d.Key)
		if !ok || d.Settled == 0 {
			continue
		}
		marks, at := b.marks[d.Key], w.Mark(recorded)
		if n := len(marks); n == 0 || marks[n-1].At.Before(at) {
			b.marks[d.Key] = append(passed(marks, recorded.Add(-w.Reach())), Mark{At: at, Settled: b.Counters[d.Key].Settled})
		}
	}
	Apply(b.Counters, deltas)
}

// passed drops the marks that have left the window.
func passed(marks []Mark, cutoff time.Time) []Mark {
	n := 0
	for n < len(marks) && !marks[n].At.After(cutoff) {
		n++
	}
	return marks[n:]
}

// Marks are a key's marks that are in its window at a moment.
func (b *Book) Marks(k Key, now time.Time) []Mark {
	w, _ := WindowOf(k)
	return passed(b.marks[k], now.Add(-w.Reach()))
}

// At are the counters as they are read at a moment: trailing ones through their window.
func (b *Book) At(now time.Time) map[Key]Counter {
	at := make(map[Key]Counter, len(b.Counters))
	for k, c := range b.Counters {
		if _, ok := WindowOf(k); ok {
			c = Through(c, b.Marks(k, now))
		}
		at[k] = c
	}
	return at
}

// Asked are the counters that checks ask about, as they are read at a moment.
func (b *Book) Asked(checks []Check, now time.Time) map[Key]Counter {
	at := make(map[Key]Counter, len(checks))
	for i := range checks {
		for _, k := range [2]Key{checks[i].Key, checks[i].HeldKey} {
			if c, known := b.Counters[k]; known {
				if Trails(k) {
					c = Through(c, b.Marks(k, now))
				}
				at[k] = c
			}
		}
	}
	return at
}

// Open notes in counters that were read for a decision when what was just settled came
// into an empty window.
func Open(counters map[Key]Counter, deltas []Delta, at time.Time) {
	for _, d := range deltas {
		if w, ok := WindowOf(d.Key); ok && d.Settled != 0 && counters[d.Key].Oldest.IsZero() {
			c := counters[d.Key]
			c.Oldest = w.Mark(at)
			counters[d.Key] = c
		}
	}
}

// Through is a trailing counter seen through the marks in its window, oldest first.
func Through(c Counter, inWindow []Mark) Counter {
	c.Passed, c.Oldest = c.Settled, time.Time{}
	if len(inWindow) > 0 {
		c.Passed, c.Oldest = inWindow[0].Settled, inWindow[0].At
	}
	return c
}
