package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/eventstore"
)

// reserve writes everything up to and including the reservation, under the
// budget's checks, before the provider is called (M2, M16). A refusal comes back as
// another move: one that ends the walk is in the log already, written by the same
// commit in the reservation's place.
func (w *walker) reserve(ctx context.Context, move walk.Move) (refused *refusal, err error) {
	if w.claim != nil && !w.claim.held {
		return w.reserveUnderKey(ctx, move)
	}
	return w.append(ctx, move, false)
}

// refusal is what became of a call that a limit refused.
type refusal struct {
	move walk.Move
	// written says that move's Say is in the log.
	written bool
}

// again reports whether the same route is reserved once more: it keeps what its circuit
// let pass.
func (r *refusal) again(c *walk.Call) bool {
	next := r.move.Call
	return next != nil && next.Rung.Index == c.Rung.Index && next.Key == c.Key
}

// append is one try at a reservation, with or without the claim of a key.
func (w *walker) append(ctx context.Context, move walk.Move, withClaim bool) (refused *refusal, err error) {
	now := w.g.Now()
	// The log decides as often as it has to, and maybe after this caller has left: the
	// machine itself is told once, of what was written.
	group := []eventstore.Append{{
		Shard: w.shard, Stream: w.stream, Expected: w.version, Meta: w.meta(),
		Events: w.encode(move.Say), Checks: move.Call.Checks, Deltas: move.Call.Deltas,
	}}
	if len(move.Call.Checks) > 0 { // who is under no limit is refused by none
		ifRefused := w.machine.IfRefused(move.Say, now)
		group[0].Refuse = func(r budget.Refusal) ([]eventstore.Event, []budget.Delta) {
			if budget.MovesOn(r.Check.Scope) {
				return nil, nil // nothing is over yet, so nothing is written
			}
			instead := ifRefused(r).Say
			return w.encode(instead), effects(instead)
		}
	}
	if withClaim {
		group = append(group, w.taken(move.Call.Checks))
	}
	results, err := w.g.Log.AppendAll(ctx, group)
	if err != nil {
		return nil, err
	}
	if r := results[0].Refusal; r != nil {
		written := !budget.MovesOn(r.Check.Scope)
		if written {
			w.version = results[0].Version
		}
		return &refusal{move: w.machine.Refused(*r, move.Say, now), written: written}, nil
	}
	w.version = results[0].Version
	if withClaim {
		w.claim.held, w.claim.version = true, results[1].Version
	}
	w.noteStandings(results[0].Standings)
	return nil, nil
}

func effects(say []event.Event) []budget.Delta {
	var deltas []budget.Delta
	for _, e := range say {
		deltas = append(deltas, budget.Effects(e)...)
	}
	return deltas
}

// Limits of writing an end.
const (
	// settleWait is how long a caller waits for its settlement (M17).
	settleWait = 2 * time.Second
	// settlePatience is how long a settlement is tried after its caller was let go:
	// longer than a database takes to fail over.
	settlePatience = 60 * time.Second
	settleRetry    = 100 * time.Millisecond
)

// close writes the end of a request. Its context outlives the client: money that
// was spent is written down whoever is still listening. When the log is away for
// longer than settleWait the caller is let go with an error, never with a complete
// answer, and the writing goes on in the background. code is how the request
// failed, empty for one that was served.
func (w *walker) close(ctx context.Context, code string, say ...event.Event) error {
	group := []eventstore.Append{{
		Shard: w.shard, Stream: w.stream, Expected: w.version, Meta: w.meta(),
		Events: w.encode(say), Deltas: effects(say), Priority: eventstore.Settlement,
	}}
	if w.claim != nil && w.claim.held {
		group = append(group, w.given(code))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWait)
	defer cancel()
	err := w.g.write(ctx, group)
	if w.claim != nil {
		w.claim.completed = err == nil && code == ""
	}
	if err == nil || w.version == 0 {
		// Nothing of this request is in the log: there is nothing to settle.
		return err
	}
	w.g.closing.Go(func() { w.writeLate(group) })
	return err
}

// writeLate goes on writing an end whose caller was let go.
func (w *walker) writeLate(group []eventstore.Append) {
	ctx, cancel := context.WithTimeout(context.Background(), settlePatience)
	defer cancel()
	if err := w.g.write(ctx, group); err != nil {
		w.g.Logger.Error("settlement given up", "request_id", w.id, "error", err)
	}
}

// write appends until it is known to be in the log. Writing the same decision
// again is safe: the stream's version lets only one of them in, and finding it
// taken by an append of the same length is finding it done (I5).
func (g *Gateway) write(ctx context.Context, group []eventstore.Append) error {
	unknown := false
	for {
		_, err := g.Log.AppendAll(ctx, group)
		conflict, isConflict := errors.AsType[*eventstore.ConflictError](err)
		switch {
		case err == nil:
			return nil
		case isConflict && unknown && conflict.Actual == endOf(group, conflict.Stream):
			return nil
		case isConflict, errors.Is(err, eventstore.ErrInvalid), errors.Is(err, eventstore.ErrClosed):
			return err
		}
		unknown = unknown || errors.Is(err, eventstore.ErrOutcomeUnknown)
		timer := time.NewTimer(settleRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// endOf is the version that a stream has once the group is in the log.
func endOf(group []eventstore.Append, stream string) int64 {
	for _, a := range group {
		if a.Stream == stream {
			return a.Expected + int64(len(a.Events))
		}
	}
	return -1
}

// resolveUnknown gives back a reservation that may or may not have been written:
// nobody was called, so it settles at nothing. What became of it is awaited first: a
// refusal that was written in its place holds nothing, and may well be as long.
func (w *walker) resolveUnknown(move walk.Move, unknown error) {
	say := w.machine.Abandon(move.Call.Reserved, w.g.Now())
	reserved := w.version + int64(len(move.Say))
	group := []eventstore.Append{{
		Shard: w.shard, Stream: w.stream, Expected: reserved, Meta: w.meta(),
		Events: w.encode(say), Deltas: effects(say), Priority: eventstore.Settlement,
	}}
	if w.claim != nil {
		if !w.claim.held {
			w.claim.version++
		}
		group = append(group, w.given(string(request.CodeGatewayUnavailable)))
	}
	stream := w.stream
	w.g.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), settlePatience)
		defer cancel()
		there, err := w.g.isReserved(ctx, stream, reserved, unknown)
		if err == nil && there {
			err = w.g.write(ctx, group)
		}
		if _, neverWritten := errors.AsType[*eventstore.ConflictError](err); err != nil && !neverWritten {
			w.g.Logger.Error("reservation of unknown outcome not given back", "request_id", w.id, "error", err)
		}
	})
}

// isReserved tells whether a reservation of unknown outcome stands in its stream at a
// version.
func (g *Gateway) isReserved(ctx context.Context, stream string, version int64, unknown error) (bool, error) {
	results, err := eventstore.Await(ctx, unknown)
	switch {
	case err == nil:
		return results[0].Refusal == nil, nil
	case !errors.Is(err, eventstore.ErrOutcomeUnknown):
		return false, nil // nothing was written
	}
	for {
		recorded, err := g.Log.ReadStream(ctx, stream, version, 1)
		if err == nil {
			return len(recorded) == 1 && recorded[0].Type == event.Name(request.AttemptReserved{}), nil
		}
		timer := time.NewTimer(settleRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, err
		case <-timer.C:
		}
	}
}
