package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/eventstore"
)

// walker carries one request. It belongs to one goroutine at a time: the
// handler's, and after the commit the stream writer's.
type walker struct {
	g       *Gateway
	in      Incoming
	req     *dialect.Request
	machine *walk.Machine

	id     string
	stream string
	shard  int16
	// version is the request's stream version in the log.
	version int64
	facts   Facts
	// claim is set when the caller sent an idempotency key.
	claim *claim
	// inputTokens is the admission's estimate, for a stream that must begin with a
	// number before the provider has given one (P11).
	inputTokens int64
	// leave gives the admission slot back; it is kept up to the first reservation.
	leave func()
}

// run obeys the walk until the answer begins or the request ends.
func (w *walker) run(ctx context.Context) *Outcome {
	move := w.machine.Start(w.g.Now())
	for {
		switch {
		case move.Finish != nil:
			return w.finish(ctx, move)
		case move.Wait != nil:
			move = w.wait(ctx, move.Wait.For)
		case move.Call != nil:
			next, out := w.call(ctx, move)
			if out != nil {
				return out
			}
			move = next
		}
	}
}

// call makes a reservation durable and then the attempt. It gives the next move,
// or the outcome when the answer has begun.
func (w *walker) call(ctx context.Context, move walk.Move) (walk.Move, *Outcome) {
	refused, err := w.reserve(ctx, move)
	if err != nil || refused != nil && !refused.again(move.Call) {
		// Nobody is called: a probe that the claim took goes back, or an organization
		// without budget could keep a recovered route shut (H1).
		w.g.Health.Observe(&move.Call.Rung, move.Call.Key, w.caller(), &failure.Failure{Class: failure.QuotaExceeded}, w.g.Now())
	}
	if taken, ok := errors.AsType[*keyTakenError](err); ok {
		return walk.Move{}, w.keyTaken(taken)
	}
	if err != nil {
		return w.unwritten(move, err), nil
	}
	switch {
	case refused != nil && refused.written:
		return walk.Move{}, w.failed(w.errorOf(refused.move.Finish.Answer))
	case refused != nil:
		return refused.move, nil
	}
	w.leave()
	w.noteFacts(move.Call.Reserved)
	return w.attempt(ctx, move.Call)
}

// unwritten is a reservation that is not in the log, or may not be.
func (w *walker) unwritten(move walk.Move, err error) walk.Move {
	if errors.Is(err, eventstore.ErrOutcomeUnknown) {
		w.resolveUnknown(move, err)
	}
	return w.machine.Unwritten(move.Say, w.g.Now())
}

// wait is a pause of the walk's that the client may end by leaving.
func (w *walker) wait(ctx context.Context, d time.Duration) walk.Move {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return w.machine.Waited(w.g.Now())
	case <-ctx.Done():
		return w.machine.Interrupted(failure.ClientCancelled, w.g.Now())
	}
}

// finish closes a request that was not served.
func (w *walker) finish(ctx context.Context, move walk.Move) *Outcome {
	if len(move.Say) > 0 {
		if err := w.close(ctx, string(move.Finish.Answer.Code), move.Say...); err != nil {
			return w.unavailable()
		}
	}
	return w.failed(w.errorOf(move.Finish.Answer))
}

func (w *walker) failed(e *apierror.Error) *Outcome {
	e.RequestID = w.id
	if w.claim != nil && w.claim.held {
		// The key is closed for good: coming back under it can only be told so (I2).
		e.Retryable = false
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = w.wayOn(e)
	}
	return &Outcome{RequestID: w.id, Facts: w.facts, Err: e, Gone: e.Code == request.CodeClientCancelled}
}

// The soonest way on where the walk knows none (W20).
const (
	// retryStoreAfter: long enough for a database to fail over, short enough to be
	// back soon.
	retryStoreAfter = 2 * time.Second
	// retryRouteAfter is how long a circuit stays open by default (H1), and a throttle
	// window without a Retry-After (H2).
	retryRouteAfter = 30 * time.Second
	// retryConfigAfter is how soon a change of configuration is felt (C11).
	retryConfigAfter = 15 * time.Second
)

// wayOn is when coming back may help: every 429 and 503 of ours says it (W20).
func (w *walker) wayOn(e *apierror.Error) time.Duration {
	status := e.HTTPStatus()
	switch {
	case status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable:
		return 0
	case e.Code == apierror.GatewayUnavailable:
		return retryStoreAfter
	case !e.ResetsAt.IsZero():
		return max(e.ResetsAt.Sub(w.g.Now()), time.Second)
	case e.Code == apierror.ProviderThrottled, e.Code == apierror.UpstreamExhausted:
		return retryRouteAfter
	default:
		return retryConfigAfter
	}
}

// noteFacts keeps what the reply headers tell of the attempt that is being made.
func (w *walker) noteFacts(r request.AttemptReserved) {
	w.facts = Facts{
		Limits: w.facts.Limits, Attempts: r.Attempt, FallbackDepth: r.FallbackDepth, Provider: r.Provider,
		CanonicalModel: r.Model, FallbackKind: string(r.FallbackKind),
	}
	if r.Masked {
		w.facts.Provider = ""
	}
}

// errorOf says a walk's answer in the words of the edge.
func (w *walker) errorOf(a walk.Answer) *apierror.Error {
	e := apierror.New(a.Code)
	e.Retryable = a.Retryable
	e.RetryAfter, e.Relay = a.RetryAfter, a.Relay
	if a.AllOpen && a.Code == request.CodeUpstreamExhausted {
		// Nobody was called: the circuits say that coming back later may help.
		e.Status = http.StatusServiceUnavailable
	}
	e.Message = cmp.Or(lacking(a), notFree(a.Refusal))
	for _, s := range a.Attempts {
		e.Attempts = append(e.Attempts, apierror.Attempt{
			Provider: s.Provider, Model: s.Model, Failure: string(s.Failure), Status: s.Status,
		})
	}
	if r := a.Refusal; r != nil {
		e.Scope = r.Scope
		if r.Unit != "" {
			e.Limit, e.Used, e.Unit = &r.Limit, &r.Used, r.Unit
		}
		e.ResetsAt, _ = time.Parse(time.RFC3339, r.Resets)
	}
	return e
}

// notFree says why a request that may only be free was not served (M10).
func notFree(r *request.Refusal) string {
	switch {
	case r == nil || r.Scope != budget.ScopePromotion:
		return ""
	case r.Limit == 0:
		return "No promotion makes this model free of charge now."
	}
	return "The promotion's free allowance does not cover the longest answer that this request may get. " +
		"Ask for less output, come back when the allowance is renewed, or ask for the model under its plain name."
}

// lacking says what every route lacks, where that is the reason of a refusal; empty
// leaves the code's own words (A4, A5, A9).
func lacking(a walk.Answer) string {
	switch {
	case a.Lacking == "":
		return ""
	case a.Code == request.CodeCapabilityUnavailable:
		return fmt.Sprintf("No route of this model supports %q, which the request needs.", a.Lacking)
	case a.Code == request.CodeContextLengthExceeded:
		return fmt.Sprintf("The request does not fit the declared window %q of any route of this model.", a.Lacking)
	}
	return ""
}

// encode turns what the walk says into what the log stores, observed now.
func (w *walker) encode(say []event.Event) []eventstore.Event {
	now := w.g.Now()
	events := make([]eventstore.Event, len(say))
	for i, e := range say {
		enc := event.Encode(e)
		events[i] = eventstore.Event{Type: enc.Type, Version: enc.Version, At: now, Data: enc.Data}
	}
	return events
}

func (w *walker) meta() eventstore.Meta {
	return eventstore.Meta{Worker: w.g.Worker, Actor: "key/" + w.in.Key.ID, Correlation: w.in.Controls.Correlation}
}
