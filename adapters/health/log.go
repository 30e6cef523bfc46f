package health

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
)

// Log is what the registry needs of the event store.
type Log interface {
	Append(ctx context.Context, a eventstore.Append) (eventstore.Result, error)
}

const (
	// maxTransitions waiting to be written. Transitions are rare: so many together
	// mean that the log is away.
	maxTransitions = 1024
	// retryAfter is the pause before an append is tried again.
	retryAfter = time.Second
	// flushFor is how long Run goes on writing after its context has ended.
	flushFor = 2 * time.Second
	// sweepEvery is how often idle circuits are looked for: a provider that was
	// removed while its circuit was open must not be listed for ever.
	sweepEvery = time.Minute
)

// transition is a circuit's change on its way to the log.
type transition struct {
	stream string
	event  event.Event
	at     time.Time
}

// note queues a change. A full queue loses the record of the change, which is
// counted, and never the change: a log that is away must not keep routes from
// opening and closing.
func (r *Registry) note(n circuit.Name, c circuit.Change, now time.Time) {
	e := c.Event(n)
	if e == nil {
		return
	}
	select {
	case r.transitions <- transition{n.Stream(), e, now}:
	default:
		r.unwritten.Add(1)
	}
}

// Unwritten counts the transitions that are missing from the log.
func (r *Registry) Unwritten() int64 { return r.unwritten.Load() }

// Untracked counts the claims and outcomes of routes that are not remembered
// because there are too many.
func (r *Registry) Untracked() int64 { return r.untracked.Load() }

// Run writes transitions to the log and drops idle circuits until ctx ends; then
// it writes what is left, briefly.
func (r *Registry) Run(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case t := <-r.transitions:
			if !r.write(ctx, t) {
				r.flush(ctx, t)
				return
			}
		case now := <-sweep.C:
			r.mu.Lock()
			r.evict(now)
			r.mu.Unlock()
		case <-ctx.Done():
			r.flush(ctx)
			return
		}
	}
}

// flush writes what waits when the worker stops, behind what was in hand. The log
// may be away then too: what it does not take in time is counted.
func (r *Registry) flush(ctx context.Context, inHand ...transition) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushFor)
	defer cancel()
	for _, t := range inHand {
		r.lose(t, r.write(ctx, t))
	}
	for {
		select {
		case t := <-r.transitions:
			r.lose(t, r.write(ctx, t))
		default:
			return
		}
	}
}

// lose counts a transition that was not written.
func (r *Registry) lose(t transition, written bool) {
	if !written {
		r.unwritten.Add(1)
		r.config.Logger.Warn("a circuit's transition was not written", "stream", t.stream, "type", event.Name(t.event))
	}
}

// write appends one transition, again and again while the log is away: the ones
// behind it wait in the queue. Written twice it says the same. It is false when ctx
// ended first; a transition that the log can never take is passed over.
func (r *Registry) write(ctx context.Context, t transition) bool {
	if r.config.Log == nil {
		return true
	}
	enc := event.Encode(t.event)
	a := eventstore.Append{
		Stream: t.stream, Expected: eventstore.AnyVersion,
		Events: []eventstore.Event{{Type: enc.Type, Version: enc.Version, At: t.at, Data: enc.Data}},
		Meta:   eventstore.Meta{Worker: r.config.Worker, Actor: "circuits"},
	}
	for {
		_, err := r.config.Log.Append(ctx, a)
		switch {
		case err == nil:
			return true
		case errors.Is(err, eventstore.ErrInvalid), errors.Is(err, eventstore.ErrClosed):
			r.lose(t, false)
			return true
		case !pause(ctx, retryAfter):
			return false
		}
	}
}

// pause waits, and is false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
