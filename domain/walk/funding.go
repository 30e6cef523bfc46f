package walk

import (
	"slices"
	"strconv"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/promotion"
	"github.com/sluice-gateway/sluice/domain/request"
)

// funding is what a platform-funded attempt holds, and under which limits (M2, R8). A
// customer's own key is the customer's money and takes nothing here (R1).
type funding struct {
	worst  money.NanoUSD
	limits []budget.Limit
	checks []budget.Check
	// offer is what a promotion pays of it, nil for nothing, and takes what that takes.
	offer *request.Gift
	takes []request.Take
}

// fund works out what an attempt on a rung holds.
func (m *Machine) fund(r *Rung, e request.Estimate, now time.Time) (funding, error) {
	if r.owner() == request.Workspace {
		return funding{}, nil
	}
	offer := m.offer(r, now)
	worst, err := m.worstSplit(r.Deployment, e, offer.Free)
	if err == nil {
		worst.Charge, err = r.withSurcharge(worst.Charge)
	}
	if err != nil {
		return funding{}, err
	}
	limits, err := budget.Limits(m.subject(r), m.req.Budgets, now)
	if err != nil {
		return funding{}, err
	}
	checks, err := m.proveRoot(r, masked(budget.Checks(limits, int64(worst.Charge)), r), now)
	f := funding{worst: worst.Charge, limits: limits, checks: checks}
	f.withOffer(offer, worst)
	return f, err
}

// masked marks the checks that name a deployment which callers do not see (X1).
func masked(checks []budget.Check, r *Rung) []budget.Check {
	for i := range checks {
		checks[i].Masked = r.Deployment.Masked && checks[i].Scope == catalog.ScopeDeployment
	}
	return checks
}

// worstCase is the most that one attempt on a deployment can cost.
func (m *Machine) worstCase(d *catalog.Deployment, e request.Estimate) (money.NanoUSD, error) {
	worst, err := m.worstSplit(d, e, money.Free{})
	return worst.Charge, err
}

// worstSplit is the most that one attempt on a deployment can cost, and give away.
func (m *Machine) worstSplit(d *catalog.Deployment, e request.Estimate, free money.Free) (money.WorstSplit, error) {
	return d.Prices.WorstSplit(e.InputTokens, e.MaxOutputTokens*m.choices(), m.req.Media, free)
}

// choices is how many answers one attempt may bill: a provider's output ceiling holds
// for each of them.
func (m *Machine) choices() int64 { return int64(max(m.req.Choices, 1)) }

// subject is whom and what an attempt on a rung is counted under. The model that was
// asked for counts beside the one that is called (M8).
func (m *Machine) subject(r *Rung) budget.Subject {
	a := &m.req.Admitted
	return budget.Subject{
		Tenant: a.Tenant, Key: a.Key, Team: a.Team, Identity: a.Identity,
		Root: a.CanonicalModel, Model: r.Model, Pool: r.ExactModel, Deployment: r.Deployment.ID,
	}
}

// proveRoot makes the checks of a call to another model show that the model that was
// asked for could have been paid as well, before the first such call (M9): skipping a
// route proves nothing about the caller's funds. It is an evaluation of the same
// counters and takes nothing, so a walk may begin on the other model.
func (m *Machine) proveRoot(r *Rung, checks []budget.Check, now time.Time) ([]budget.Check, error) {
	if r.Root || slices.ContainsFunc(m.attempts, m.fundedRoot) {
		return checks, nil
	}
	if m.req.Admitted.FreeOnly {
		proof, err := m.proveAllowance(now)
		return append(checks, proof...), err
	}
	if len(checks) == 0 {
		return checks, nil
	}
	var ask int64
	for i := range m.rungs {
		root := &m.rungs[i]
		if !root.Root || root.Deployment == nil || !root.Deployment.Prices.Known() {
			continue
		}
		e := m.req.Admitted.Estimate
		e.MaxOutputTokens = OutputCeiling(root.Deployment, m.req.OutputTokens)
		worst, err := m.worstCase(root.Deployment, e)
		if err != nil {
			return nil, err
		}
		// The cheapest way would have done.
		if ask == 0 || int64(worst) < ask {
			ask = int64(worst)
		}
	}
	root := m.subject(r)
	root.Model, root.Pool, root.Deployment = root.Root, "", ""
	limits, err := budget.Limits(root, m.req.Budgets, now)
	return budget.AskAtLeast(checks, limits, ask), err
}

// fundedRoot: a reservation on the platform's account for the model that was asked for
// is the proof itself.
func (m *Machine) fundedRoot(a attempt) bool {
	return m.rungs[a.rung].Root && a.reserved.CredentialOwner == request.Operator
}

// Refused is told when a limit refused a reservation, before anything was written: what
// the call would have said is taken back. A limit of one route lets the walk go on;
// any other ends it, and the refusal is said instead: its Say replaces the call's (M13).
func (m *Machine) Refused(r budget.Refusal, unsaid []event.Event, now time.Time) Move {
	rung := &m.rungs[m.cursor]
	if r.Check.Scope == promotion.Scope && !m.req.Admitted.FreeOnly {
		return m.payingItself(r, unsaid, now)
	}
	m.attempts = m.attempts[:len(m.attempts)-1]
	refusal := refusalOf(r)
	if budget.MovesOn(r.Check.Scope) && r.Check.Scope != promotion.Scope {
		m.said = withoutCall(unsaid)
		m.limited = &refusal
		m.noteWayOn(r.Resets, now)
		m.skip(rung, limitSkip(r.Check), detailOf(refusal, r.Check.Budget))
		m.leave()
		return m.advance(now)
	}
	if len(m.attempts) == 0 {
		return m.refuseAll(refusal)
	}
	// Earlier attempts have said things that still hold.
	m.said = withoutCall(unsaid)
	return m.finish(m.answerOf(refusal), request.Refused, now, "")
}

// IfRefused is what Refused would answer, before anything is known: the log may ask more
// than once, and after its caller has left. It may be called by any goroutine and
// changes nothing.
func (m *Machine) IfRefused(unsaid []event.Event, now time.Time) func(budget.Refusal) Move {
	as := m.copied()
	return func(r budget.Refusal) Move { return as.copied().Refused(r, slices.Clone(unsaid), now) }
}

// copied is a machine whose moves leave this one alone.
func (m *Machine) copied() *Machine {
	c := *m
	c.attempts = slices.Clone(m.attempts)
	c.said, c.skips, c.candidates, c.passed = slices.Clip(m.said), slices.Clip(m.skips), slices.Clip(m.candidates), slices.Clip(m.passed)
	return &c
}

// refuseAll turns a request away that nobody was called for.
func (m *Machine) refuseAll(r request.Refusal) Move {
	m.said = nil
	return m.refuse(r, m.skips)
}

// withoutCall takes back the reservation, the last of what was to be said, and the
// change of model that goes with it.
func withoutCall(unsaid []event.Event) []event.Event {
	unsaid = unsaid[:len(unsaid)-1]
	if n := len(unsaid); n > 0 {
		if _, changed := unsaid[n-1].(request.ModelChanged); changed {
			unsaid = unsaid[:n-1]
		}
	}
	return unsaid
}

// limitSkip names a route's own limit in the words of the trail.
func limitSkip(c budget.Check) request.SkipReason {
	if c.Unit == catalog.USD {
		return request.SkipDeploymentBudget
	}
	return request.SkipRateLimit
}

func detailOf(r request.Refusal, id string) map[string]string {
	detail := map[string]string{
		"budget": id, "scope": r.Scope, "unit": r.Unit,
		"limit": strconv.FormatInt(r.Limit, 10), "used": strconv.FormatInt(r.Used, 10),
	}
	if r.Resets != "" {
		detail["resets_at"] = r.Resets
	}
	return detail
}

// refusalOf says a failed check in the words of the log. Windows of requests and tokens
// move by themselves; money and totals do not (W5).
func refusalOf(r budget.Refusal) request.Refusal {
	c := r.Check
	out := request.Refusal{
		Code: string(request.CodeInsufficientQuota), Scope: c.Scope, Of: c.Of, Masked: c.Masked, Limit: c.Limit, Used: r.Used, Unit: c.UnitName(),
		Per: string(c.Per),
	}
	if c.Unit != catalog.USD && c.Scope != promotion.Scope && (budget.Trails(c.Key) || !c.Resets.IsZero()) {
		out.Code = string(request.CodeRateLimitExceeded)
	}
	if !r.Resets.IsZero() {
		out.Resets = r.Resets.UTC().Format(time.RFC3339Nano)
	}
	return out
}

// Admitted is told where the limits stand after a reservation was written: what only
// observation let pass is on record with the next commit (R9).
func (m *Machine) Admitted(standings []budget.Standing) {
	for _, s := range standings {
		if !s.Exceeded {
			continue
		}
		refusal := refusalOf(budget.Refusal{Check: s.Check, Used: s.Used, Resets: s.Resets})
		m.say(request.LimitObserved{Attempt: len(m.attempts), Budget: s.Check.Budget, Refusal: refusal})
	}
}

// returned is what a settlement does to the windows of requests and tokens: the tokens
// that were held go back, and those that were used take their place, a cached one as
// its part (R2, R3).
func (m *Machine) returned(a *attempt, s request.AttemptSettled, now time.Time) []request.Take {
	if len(a.reserved.Takes) == 0 {
		return nil
	}
	limits, err := budget.Limits(m.subject(&m.rungs[a.rung]), m.req.Budgets, now)
	if err != nil {
		limits = nil // they could be read when the attempt was reserved
	}
	used := a.reserved.Prices.WindowParts(s.Usage)
	if f := a.failed; f != nil && f.Class == failure.ClientCancelled && f.PossiblyBilled && !s.Usage.Usable() {
		// Whoever hangs up before the first output has sent the input all the same. It
		// counts as planned, or a limit of tokens would be no limit for them.
		used = a.reserved.Estimate.InputTokens * money.PartsPerToken
	}
	return budget.Return(a.reserved.Takes, limits, used)
}
