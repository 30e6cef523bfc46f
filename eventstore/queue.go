package eventstore

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// pending is one append, encoded and checked before it queues: nothing slow is
// left to do under the shard's lock.
type pending struct {
	stream   string
	born     time.Time
	expected int64
	events   int16
	body     string
	meta     string
	checks   []budget.Check
	deltas   []budget.Delta
	refuse   func(budget.Refusal) ([]Event, []budget.Delta)
}

// entry is one call waiting for the lane: its appends are written all or none.
type entry struct {
	appends  []pending
	priority Priority
	events   int
	bytes    int
	state    atomic.Int32
	// done has room for the one answer, so that the lane never waits for a caller.
	done chan outcome
}

type outcome struct {
	results []Result
	err     error
}

const (
	stateQueued int32 = iota
	stateTaken
	stateWithdrawn
)

// take claims the entry for a batch; false if its caller has given up.
func (e *entry) take() bool { return e.state.CompareAndSwap(stateQueued, stateTaken) }

// withdraw takes the entry back from the queue; false if it may be written already.
func (e *entry) withdraw() bool { return e.state.CompareAndSwap(stateQueued, stateWithdrawn) }

func (e *entry) answer(o outcome) { e.done <- o }

// limits bound a queue or a batch, by events and by bytes.
type limits struct{ events, bytes int }

func (l limits) fits(events, bytes int) bool { return events <= l.events && bytes <= l.bytes }

// queue holds what waits for the lane. It is bounded, and the last part of it is
// open to settlements only: overload must not lose the price of work already done.
type queue struct {
	all, admission limits

	mu      sync.Mutex
	waiting [2][]*entry // by priority
	events  int
	bytes   int
	closed  bool
	// ready holds a token while something waits or the queue is closed.
	ready chan struct{}
}

func newQueue(all limits) *queue {
	return &queue{
		all: all,
		// A quarter is kept: enough for every request in flight to settle while
		// nothing new is let in.
		admission: limits{events: all.events * 3 / 4, bytes: all.bytes * 3 / 4},
		ready:     make(chan struct{}, 1),
	}
}

// maxAloneEvents bounds one entry, which may be larger than the queue where nothing else
// waits: a configuration is applied at once, and one of 10,000 deployments, each with a
// model of its own, has 40,000 events.
const maxAloneEvents = 64 << 10

// put queues e or says at once why not: ErrOverloaded, ErrClosed, *TooLargeError.
func (q *queue) put(e *entry) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	room := q.admission
	if e.priority == Settlement {
		room = q.all
	}
	switch {
	case e.events > maxAloneEvents || e.bytes > q.all.bytes:
		return &TooLargeError{Events: e.events}
	case q.events == 0: // larger than the room or not, it keeps nobody out
	case !room.fits(q.events+e.events, q.bytes+e.bytes):
		return ErrOverloaded
	}
	q.waiting[e.priority] = append(q.waiting[e.priority], e)
	q.events += e.events
	q.bytes += e.bytes
	q.signal()
	return nil
}

// next takes a batch without waiting; empty if nothing waits.
func (q *queue) next(batch limits) []*entry {
	return q.takeIf(nil, batch, func(*entry) bool { return true })
}

// takeIf adds to taken, settlements first, what waits, fits and is wanted. What is
// not wanted keeps its place.
func (q *queue) takeIf(taken []*entry, batch limits, want func(*entry) bool) []*entry {
	events, bytes := 0, 0
	for _, e := range taken {
		events += e.events
		bytes += e.bytes
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range []Priority{Settlement, Admission} {
		full := false
		q.waiting[p] = slices.DeleteFunc(q.waiting[p], func(e *entry) bool {
			// One entry larger than a batch is a batch of its own.
			full = full || (len(taken) > 0 && !batch.fits(events+e.events, bytes+e.bytes))
			if full || !want(e) {
				return false
			}
			if e.take() {
				taken = append(taken, e)
				events += e.events
				bytes += e.bytes
			}
			q.events -= e.events
			q.bytes -= e.bytes
			return true
		})
	}
	if len(q.waiting[Settlement])+len(q.waiting[Admission]) > 0 || q.closed {
		q.signal()
	}
	return taken
}

// drop forgets a withdrawn entry, so that its room is free again at once.
func (q *queue) drop(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting[e.priority], e); i >= 0 {
		q.waiting[e.priority] = slices.Delete(q.waiting[e.priority], i, i+1)
		q.events -= e.events
		q.bytes -= e.bytes
	}
}

// close refuses new entries; what waits is still handed out. A closed queue with
// nothing waiting is the lane's sign to stop.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) finished() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.waiting[Settlement])+len(q.waiting[Admission]) == 0
}

// signal needs mu.
func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
