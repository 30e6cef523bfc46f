package gateway

import (
	"context"
	"errors"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/idempotency"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/eventstore"
)

// claim is this request's hold on an idempotency key. It is written in the same
// commits as the request's own events: a key that is claimed and a request that
// runs under it are one fact, and a keyed request costs no commit more.
type claim struct {
	stream  string
	body    string
	version int64
	// held is set once the claim is in the log, completed once its answer's
	// settlement is.
	held, completed bool
}

// errKeyTaken is a claim that another worker holds or held.
var errKeyTaken = errors.New("gateway: the idempotency key is taken")

// taken is the claim's part of a reservation's commit. Where the budget refuses,
// nothing runs under the key, and it is released by the commit that claims it.
func (w *walker) taken(checks []budget.Check) eventstore.Append {
	c := w.claim
	claimed := idempotency.KeyClaimed{Request: w.id, Body: c.body}
	return eventstore.Append{
		Shard: w.shard, Stream: c.stream, Expected: c.version, Meta: w.meta(),
		Events: w.encode([]event.Event{claimed}), Checks: checks,
		Refuse: func(r budget.Refusal) ([]eventstore.Event, []budget.Delta) {
			if budget.MovesOn(r.Check.Scope) {
				return nil, nil
			}
			return w.encode([]event.Event{claimed, idempotency.KeyReleased{Request: w.id}}), nil
		},
	}
}

// given is the claim's part of the commit that closes the request.
func (w *walker) given(code string) eventstore.Append {
	var end event.Event = idempotency.KeyCompleted{Request: w.id}
	if code != "" {
		end = idempotency.KeyAbandoned{Request: w.id, Code: code}
	}
	return eventstore.Append{
		Shard: w.shard, Stream: w.claim.stream, Expected: w.claim.version, Meta: w.meta(),
		Events: w.encode([]event.Event{end}), Priority: eventstore.Settlement,
	}
}

// maxClaimEvents bounds what is read of one key: each refused try adds two.
const maxClaimEvents = 10_000

// lookAt reads a key that could not be claimed. It is free when every try so far
// was refused before anything ran; the walk then claims it at its new version.
func (w *walker) lookAt(ctx context.Context) error {
	recorded, err := w.g.Log.ReadStream(ctx, w.claim.stream, 0, maxClaimEvents)
	if err != nil {
		return err
	}
	var c idempotency.Claim
	for _, r := range recorded {
		e, err := event.Decode(r.Type, r.Version, r.Data)
		if err != nil {
			return err
		}
		c.Apply(e)
	}
	if c.State != idempotency.Free {
		return &keyTakenError{sameBody: c.Body == w.claim.body}
	}
	w.claim.version = c.Version
	return nil
}

// keyTakenError is a key under which another request runs or ran.
type keyTakenError struct{ sameBody bool }

func (e *keyTakenError) Error() string        { return errKeyTaken.Error() }
func (e *keyTakenError) Is(target error) bool { return target == errKeyTaken }

// keyTaken answers a caller whose key is taken elsewhere: this worker does not hold
// the answer, and it never runs the request a second time (I3).
func (w *walker) keyTaken(e *keyTakenError) *Outcome {
	code := apierror.IdempotencyConflict
	if e.sameBody {
		code = apierror.IdempotencyReplayUnavailable
	}
	return w.failed(apierror.New(code))
}

// reserveUnderKey reserves and claims in one commit. A claim that is taken is
// looked at once: two tries, because the second finds the version that the first
// has read, and whoever overtakes it then is running the request.
func (w *walker) reserveUnderKey(ctx context.Context, move walk.Move) (*refusal, error) {
	for try := 0; ; try++ {
		refused, err := w.append(ctx, move, true)
		conflict, isConflict := errors.AsType[*eventstore.ConflictError](err)
		if !isConflict || conflict.Stream != w.claim.stream {
			return refused, err
		}
		if err := w.lookAt(ctx); err != nil {
			return nil, err
		}
		if try == 1 {
			return nil, &keyTakenError{sameBody: true}
		}
	}
}
