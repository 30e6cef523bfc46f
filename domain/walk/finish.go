package walk

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Answer is what the caller gets instead of a model's answer: our code, and what
// the edge needs to say it in the caller's dialect. Its zero value is a served
// request.
type Answer struct {
	Code      request.Code
	Retryable bool
	// RetryAfter is the soonest way on, 0 when none is known (W20).
	RetryAfter time.Duration
	Refusal    *request.Refusal
	// Relay is the provider's word to the caller about the caller's own request (D7).
	Relay *failure.Relay
	// Attempts lists every candidate in order (W16).
	Attempts []Summary
	// Lacking is the capability, or the window, that every route lacks: the reason of a
	// refusal before any attempt (A4, A5).
	Lacking string
	// AllOpen is set when circuits alone kept every candidate from being called.
	AllOpen bool
}

// Summary is one candidate of the envelope: never a provider's text (W16).
type Summary struct {
	Provider string        `json:"provider,omitempty"`
	Model    string        `json:"model"`
	Failure  failure.Class `json:"failure"`
	Status   int           `json:"status,omitempty"`
}

// refuse is the whole life of a request that nobody was called for.
func (m *Machine) refuse(r request.Refusal, skips []request.RouteSkipped) Move {
	a := m.req.Admitted
	m.done = true
	answer := m.answerOf(r)
	for _, s := range skips {
		answer.Lacking = cmp.Or(answer.Lacking, s.Detail["capability"], s.Detail["window"])
	}
	return Move{
		Say: []event.Event{request.RequestRefused{
			Tenant: a.Tenant, Key: a.Key, Dialect: a.Dialect, RequestedModel: a.RequestedModel,
			Snapshot: a.Snapshot, ClientRequestID: a.ClientRequestID, Refusal: r, Skipped: skips,
		}},
		Finish: &Finish{Answer: answer},
	}
}

func (m *Machine) answerOf(r request.Refusal) Answer {
	code := request.Code(r.Code)
	return Answer{Code: code, Retryable: code == request.CodeRateLimitExceeded, Refusal: &r, Attempts: m.candidates}
}

// exhausted ends a walk that ran out of rungs, attempts or circuits: one envelope,
// under the code of the last decisive failure (W16, W21).
func (m *Machine) exhausted(now time.Time, why string) Move {
	if m.limited != nil && len(m.attempts) == 0 {
		// The routes that were not shut have limits of their own, and those refused (M13).
		return m.refuseAll(*m.limited)
	}
	answer := Answer{Code: m.exhaustedCode(), Retryable: true, Attempts: m.candidates, RetryAfter: m.longestRetry.After}
	if answer.RetryAfter == 0 {
		answer.RetryAfter = m.wayOn
	}
	answer.AllOpen = len(m.attempts) == 0
	if why == "" && m.onlyRefused() {
		// Every link was turned down (N11), some of them no sooner than when they were
		// dialled. Asking again changes nothing: an operator has to.
		answer.Code, answer.Retryable, answer.RetryAfter = request.CodeNoRouteAllowed, false, 0
	}
	return m.finish(answer, request.Failed, now, why)
}

func (m *Machine) exhaustedCode() request.Code {
	if len(m.attempts) == 0 {
		if m.onlyThrottled() {
			return request.CodeProviderThrottled
		}
		return request.CodeUpstreamExhausted
	}
	throttles := 0
	for i := range m.attempts {
		if m.attempts[i].failed.Class == failure.Throttled {
			throttles++
		}
	}
	switch m.current().failed.Class {
	case failure.Throttled:
		if throttles == len(m.attempts) {
			return request.CodeProviderThrottled
		}
	case failure.EmptyCompletion:
		return request.CodeEmptyCompletion
	case failure.StreamTruncated:
		return request.CodeUpstreamTruncated
	}
	return request.CodeUpstreamExhausted
}

// onlyRefused reports whether nobody was reached because none of the routes may be:
// each call led into the own network, and no circuit kept another from being tried.
func (m *Machine) onlyRefused() bool {
	for i := range m.attempts {
		if m.attempts[i].failed.Class != failure.BaseURLRefused {
			return false
		}
	}
	return len(m.attempts) > 0 && !slices.ContainsFunc(m.skips, func(s request.RouteSkipped) bool { return forHealth(s.Reason) })
}

// onlyThrottled reports whether nobody was called because every provider had asked
// not to be.
func (m *Machine) onlyThrottled() bool {
	throttled := false
	for _, s := range m.skips {
		if forHealth(s.Reason) && s.Reason != request.SkipThrottleWindow {
			return false
		}
		throttled = throttled || s.Reason == request.SkipThrottleWindow
	}
	return throttled
}

// list notes a candidate for the envelope, in the order in which they are met (W16).
func (m *Machine) list(masked bool, s Summary) {
	if masked {
		s.Provider = ""
	}
	m.candidates = append(m.candidates, s)
}

// finish closes the request, once.
func (m *Machine) finish(a Answer, o request.Outcome, now time.Time, why string) Move {
	m.done = true
	f := m.finalized(o, now)
	f.Code, f.Exhausted, f.Refusal = string(a.Code), why, a.Refusal
	m.say(f)
	return Move{Say: m.spoken(), Finish: &Finish{Answer: a}}
}

func (m *Machine) finalized(o request.Outcome, now time.Time) request.RequestFinalized {
	begun := m.req.Deadline.Add(-time.Duration(m.req.Admitted.DeadlineMS) * time.Millisecond)
	f := request.RequestFinalized{
		Outcome: o, Attempts: len(m.attempts), FallbackDepth: m.lastDepth(), DurationMS: ms(now.Sub(begun)),
	}
	return f
}

// Interrupted is told that the client left or time ran out while no attempt was
// running: during a pause or between two calls.
func (m *Machine) Interrupted(c failure.Class, now time.Time) Move {
	return m.stop(failure.Failure{Class: c}, now)
}

// Completed is told that the answer is whole. Commit, settlement and finalization
// travel together, and the last byte waits for them (M17).
func (m *Machine) Completed(r Report, now time.Time) Move {
	return m.served(r, true, request.Completed, "", now)
}

// Broken is told that the answer broke after its first output: it ends truthfully,
// settled at what was delivered, and no other may start (S2, S3, S6).
func (m *Machine) Broken(f failure.Failure, r Report, now time.Time) Move {
	outcome := request.Truncated
	if f.Class == failure.ClientCancelled {
		outcome = request.ClientCancelled
	}
	return m.served(r, false, outcome, f.Class, now)
}

func (m *Machine) served(r Report, whole bool, o request.Outcome, failed failure.Class, now time.Time) Move {
	a := m.current()
	m.say(request.AttemptCommitted{Attempt: a.reserved.Attempt, FirstOutput: r.FirstOutput, TTFTMS: ms(r.TTFT)})
	m.settleServed(a, r, whole, failed, now)
	f := m.finalized(o, now)
	ttft := ms(r.TTFT)
	f.TTFTMS, f.CanonicalModel = &ttft, a.reserved.Model
	answer := Answer{}
	switch o {
	case request.Truncated:
		answer = Answer{Code: request.CodeUpstreamTruncated, Retryable: true}
	case request.ClientCancelled:
		answer = Answer{Code: request.CodeClientCancelled}
	}
	f.Code = string(answer.Code)
	m.say(f)
	m.done = true
	return Move{Say: m.spoken(), Finish: &Finish{Answer: answer, ChargeNanoUSD: int64(m.charged)}}
}

// lastDepth is the depth of the last candidate that was called, which is what the
// reply says too; 0 when nobody was.
func (m *Machine) lastDepth() int {
	if len(m.attempts) == 0 {
		return 0
	}
	return m.current().reserved.FallbackDepth
}

// Abandon gives back a reservation that may have been written although nobody was
// called for it: it settles at nothing and closes the request.
func (m *Machine) Abandon(res request.AttemptReserved, now time.Time) []event.Event {
	a := &attempt{reserved: res, rung: m.cursor, begun: now}
	side := &Machine{req: m.req, rungs: m.rungs, attempts: append(m.attempts[:len(m.attempts):len(m.attempts)], *a)}
	f := failure.Failure{Class: failure.ConnectError, Code: "never_sent"}
	side.attempts = side.attempts[:res.Attempt]
	side.current().failed = &f
	side.say(request.AttemptFailed{Attempt: res.Attempt, Failure: f.Class, Code: f.Code})
	side.settleFailed(side.current(), f, Report{}, now)
	return side.finish(Answer{Code: request.CodeGatewayUnavailable}, request.Failed, now, "").Say
}
