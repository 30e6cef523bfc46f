// Package explain says in sentences why a request went where it went, from what
// was recorded when it was decided (X5). It guesses nothing: where an input of a
// decision is not in the log, the sentence does without it.
package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// Line is one sentence and the moment it is about.
type Line struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Circuits tells what was known of a circuit at a past moment; "" when nothing is.
type Circuits func(stream string, at time.Time) string

// Request explains one request's events, from the first on.
func Request(stream []eventstore.Recorded, circuits Circuits) ([]Line, error) {
	t := teller{circuits: circuits, reserved: map[int]request.AttemptReserved{}}
	for _, rec := range stream {
		e, err := event.Decode(rec.Type, rec.Version, rec.Data)
		if err != nil {
			return nil, projections.At(rec, err)
		}
		t.at = projections.ObservedAt(rec)
		t.tell(e)
	}
	return t.lines, nil
}

// teller remembers what later sentences refer to.
type teller struct {
	circuits Circuits
	at       time.Time
	lines    []Line
	admitted request.RequestAdmitted
	reserved map[int]request.AttemptReserved
}

func (t *teller) say(format string, args ...any) {
	t.lines = append(t.lines, Line{At: t.at, Text: fmt.Sprintf(format, args...)})
}

func (t *teller) tell(e event.Event) {
	switch e := e.(type) {
	case request.RequestAdmitted:
		t.admitted = e
		t.say("%s asked for %q%s, planned at %d input tokens. It may make %d attempts within %s.%s",
			e.Tenant, e.RequestedModel, standsFor(e), e.Estimate.InputTokens, e.MaxAttempts, milliseconds(e.DeadlineMS), freeOnly(e))
	case request.RequestRefused:
		t.say("The request was refused before anybody was called: %s.", refusal(e.Refusal))
		for _, s := range e.Skipped {
			t.skipped(s)
		}
	case request.RouteSkipped:
		t.skipped(e)
	case request.AttemptReserved:
		t.reserved[e.Attempt] = e
		t.say("Attempt %d goes to %s: %s. %s is held for it.%s%s", e.Attempt, e.Deployment, t.why(e), usd(e.Reserved), pays(e.Promotion), selected(e.Selection))
	case request.AttemptFailed:
		t.failed(e)
	case request.AttemptThrottled:
		t.say("%s said \"not now\" (status %d)%s.", t.deployment(e.Attempt), e.Status, asked(e.RetryAfterMS, e.RetrySource))
	case request.ThrottleDecided:
		t.say("%s", throttle(e))
	case request.AttemptCommitted:
		t.say("Attempt %d committed with its first %s after %s: from here on no other answer could start.",
			e.Attempt, e.FirstOutput, milliseconds(e.TTFTMS))
	case request.AttemptSettled:
		t.settled(e)
	case request.ReservationOverrun:
		t.say("It used %s more than was held; that is counted in full.", usd(e.Overrun))
	case request.LimitObserved:
		t.say("The limit %s only observes. It would have refused: %s.", e.Budget, refusal(e.Refusal))
	case request.ModelChanged:
		t.say("The walk moved from model %s to %s, which the chain allows.", e.From, e.To)
	case request.RequestFinalized:
		t.finalized(e)
	}
}

func standsFor(e request.RequestAdmitted) string {
	if e.CanonicalModel == "" || e.CanonicalModel == e.RequestedModel {
		return ""
	}
	return fmt.Sprintf(", which stands for %s", e.CanonicalModel)
}

// why is the reason of an attempt, by its kind.
func (t *teller) why(e request.AttemptReserved) string {
	switch e.Kind {
	case request.KindFirst:
		return "it is the first usable route of the plan"
	case request.KindRetry:
		return "the failure allows one more call of the same route"
	case request.KindRedial:
		return "the pause after its throttle is over"
	case request.KindKeyRotation:
		return fmt.Sprintf("the failure was its key's, and key %s of the same pool was untried", e.ProviderKey)
	case request.KindFailover:
		return "the failure was the route's before, and this is the next route of the same model"
	case request.KindModelChange:
		return "no route of the model before was left, and the chain names this model next"
	case request.KindSurcharge:
		return fmt.Sprintf("the organization's own routes failed, and it agreed to the operator's at %s percent on top of the list price", percent(e))
	case request.KindProbe:
		return "its circuit is half open, and this call is its one probe"
	case request.KindLastResort:
		return "circuits alone kept every route shut, and a model never fails on that alone"
	}
	return string(e.Kind)
}

// selected says what else decided on a route's turn.
func selected(s request.Selection) string {
	if s == request.HouseAccountExhausted {
		return " Its account is known to be out of funds, so that it stands behind every better-funded route of its group."
	}
	return ""
}

func percent(e request.AttemptReserved) string {
	if e.SurchargePercent == nil {
		return "some" // of a kind without its percentage: nothing that is written today
	}
	return e.SurchargePercent.String()
}

func freeOnly(e request.RequestAdmitted) string {
	if !e.FreeOnly {
		return ""
	}
	return " It may only be free of charge."
}

// pays says what a promotion pays of an attempt.
func pays(p *request.Gift) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf(" Promotion %s pays its %s.", p.ID, p.Free)
}

func (t *teller) deployment(attempt int) string {
	if r, ok := t.reserved[attempt]; ok {
		return r.Deployment
	}
	return fmt.Sprintf("attempt %d", attempt)
}

func (t *teller) skipped(s request.RouteSkipped) {
	text := fmt.Sprintf("Route %d (%s) was not called: %s.", s.Rung, place(s), skipReason(s))
	if history := t.history(s.Detail["stream"]); history != "" {
		text += " " + history
	}
	t.say("%s", text)
}

func (t *teller) history(stream string) string {
	if stream == "" || t.circuits == nil {
		return ""
	}
	return t.circuits(stream, t.at)
}

func place(s request.RouteSkipped) string {
	if s.Provider == "" {
		return s.Model
	}
	return s.Provider
}

// skipReason says a reason and the inputs that were recorded with it.
func skipReason(s request.RouteSkipped) string {
	d := s.Detail
	switch s.Reason {
	case request.SkipBreakerOpen:
		return fmt.Sprintf("the circuit of its %s was open until %s", d["circuit"], d["until"])
	case request.SkipThrottleWindow:
		return fmt.Sprintf("it had been throttled and asked to be left alone until %s", d["until"])
	case request.SkipCredentialOpen:
		return fmt.Sprintf("the circuit of its credential was open until %s", d["until"])
	case request.SkipCapabilityMissing:
		return fmt.Sprintf("it lacks the capability %q, which the request needs", d["capability"])
	case request.SkipContextTooSmall:
		return fmt.Sprintf("the request does not fit its declared window %q", d["window"])
	case request.SkipPriceUnknown:
		return "its price is not known, so its cost could not be bounded"
	case request.SkipCredentialMissing:
		return "this worker holds no credential for it"
	case request.SkipBaseURLRefused:
		return "its base URL leads into the own network, and no operator has opened that host"
	case request.SkipKeyParked:
		return fmt.Sprintf("its key %s is parked, as a throttle asked", d["key"])
	case request.SkipNotSameModel:
		return "it is another model, which the caller forbade"
	case request.SkipUnresolved:
		return "its position in the chain names nothing that exists"
	case request.SkipSurchargeNotEnabled:
		if d["because"] != "" {
			return "it costs a surcharge, and no own route of the organization failed that its provider is to blame for"
		}
		return "it follows the organization's own routes at a surcharge, which the organization has not agreed to"
	case request.SkipModelAlreadyVisited:
		return "its model had been visited already"
	case request.SkipRateLimit, request.SkipDeploymentBudget:
		return fmt.Sprintf("its limit %s of %s had %s in use", d["budget"], counted(d["limit"], d["unit"]), counted(d["used"], d["unit"]))
	case request.SkipNotFree:
		return "nothing makes it free of charge, and the request may only be that"
	}
	return strings.ReplaceAll(string(s.Reason), "_", " ")
}

func (t *teller) failed(e request.AttemptFailed) {
	text := fmt.Sprintf("%s failed after %s with %s", t.deployment(e.Attempt), milliseconds(e.DurationMS), e.Failure)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	text += asked(e.RetryAfterMS, e.RetrySource) + ": " + consequence(e.Failure) + "."
	if e.Failure == failure.BaseURLRefused {
		text += " Its base URL resolved into the own network, and no operator has opened that host: nothing was sent."
	}
	if e.PossiblyBilled {
		text += " The provider may have done and billed the work."
	}
	t.say("%s", text)
}

// consequence reads the class's row of the table.
func consequence(c failure.Class) string {
	traits := failure.Of(c)
	switch {
	case traits.Move == failure.Stop:
		return "no other route may answer that"
	case traits.Move == failure.AnotherIfLarger:
		return "only a route with a larger window may answer that"
	case traits.Move == failure.AnotherIfOptedIn:
		return "another route may answer that only where the model's policy says so"
	case traits.SameRoute:
		return "the same route may be called once more, and then another"
	default:
		return "another route may answer, this one is not called again"
	}
}

func throttle(e request.ThrottleDecided) string {
	inputs := fmt.Sprintf("mode %s, cache estimate %.2f", e.Mode, e.Estimate)
	if e.Threshold != nil {
		inputs += fmt.Sprintf(", threshold %.2f", *e.Threshold)
	}
	switch e.Decision {
	case request.ThrottleReturned:
		return fmt.Sprintf("The throttle was returned to the caller (%s).", inputs)
	case request.ThrottleBackoff:
		return fmt.Sprintf("The walk waits %s and calls the same route again (%s, %d redials allowed).", milliseconds(e.DelayMS), inputs, e.Allowance)
	case request.ThrottleFailoverCold:
		return fmt.Sprintf("The walk moved on: too little of the prompt is cached there to wait for (%s).", inputs)
	}
	return fmt.Sprintf("The walk moved on (%s).", inputs)
}

func (t *teller) settled(e request.AttemptSettled) {
	switch e.Basis {
	case "unknown":
		t.say("Attempt %d settled at nothing, because its usage is unknown; its worst case was %s.", e.Attempt, usd(e.Reserved))
	default:
		surcharge := ""
		if e.Surcharge != 0 {
			surcharge = fmt.Sprintf(", of which %s is the surcharge", usd(e.Surcharge))
		}
		t.say("Attempt %d settled on %s usage: %s charged%s%s.", e.Attempt, e.Basis, usd(e.Charge), surcharge, subsidized(e))
	}
}

func subsidized(e request.AttemptSettled) string {
	if e.Promotion == nil {
		return ""
	}
	return fmt.Sprintf(", %s paid by promotion %s", usd(e.Subsidy), e.Promotion.ID)
}

func (t *teller) finalized(e request.RequestFinalized) {
	text := fmt.Sprintf("The request ended as %s after %s and %d attempts", e.Outcome, milliseconds(e.DurationMS), e.Attempts)
	switch {
	case e.Refusal != nil:
		text += ": " + refusal(*e.Refusal)
	case e.Exhausted != "":
		text += fmt.Sprintf(" (%s, %s)", e.Code, strings.ReplaceAll(e.Exhausted, "_", " "))
	case e.Code != "":
		text += fmt.Sprintf(" (%s)", e.Code)
	}
	t.say("%s.", text)
}

func refusal(r request.Refusal) string {
	switch {
	case r.Scope == budget.ScopePromotion && r.Limit == 0:
		return r.Code + ", because nothing makes it free of charge"
	case r.Limit == 0:
		return r.Code // by no limit
	case r.Code == string(request.CodeContextLengthExceeded):
		return fmt.Sprintf("%s, because it needs %d tokens and the largest window takes %d", r.Code, r.Used, r.Limit)
	case r.Scope == budget.ScopePromotion && r.Unit == string(catalog.Tokens):
		return fmt.Sprintf("%s, because the promotion's allowance of %d tokens%s had %d in use", r.Code, r.Limit, per(r), r.Used)
	case r.Unit == string(catalog.Tokens) || r.Unit == string(catalog.Requests):
		return fmt.Sprintf("%s, because the %s limit of %d %s%s had %d in use", r.Code, r.Scope, r.Limit, r.Unit, per(r), r.Used)
	}
	return fmt.Sprintf("%s, because the %s budget of %s%s had %s in use", r.Code, r.Scope,
		usd(money.NanoUSD(r.Limit)), per(r), usd(money.NanoUSD(r.Used)))
}

// counted is an amount of a limit's unit, as a skip records it.
func counted(n, unit string) string {
	if unit != "nanousd" {
		return n + " " + unit
	}
	amount, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		return n + " nano-USD"
	}
	return usd(money.NanoUSD(amount))
}

// per says a limit's period; older refusals name none.
func per(r request.Refusal) string {
	switch r.Per {
	case "":
		return ""
	case string(catalog.Total):
		return " in total"
	}
	return " per " + r.Per
}

func asked(ms int64, source string) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf(", asking for %s (%s)", milliseconds(ms), source)
}

func milliseconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func usd(n money.NanoUSD) string { return n.USD().String() + " USD" }
