package walk

import (
	"slices"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/promotion"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// A promotion pays for attempts on its own models alone: what another model serves in
// their place is that model's (M10). Where its allowances do not cover an attempt the
// same rung is reserved again without it; a request that may only be free stops there
// instead.

// ungiven is a side of a model's promotion whose allowance has refused.
type ungiven struct {
	model string
	side  promotion.Side
}

// offer is what a promotion gives away of an attempt on a rung.
func (m *Machine) offer(r *Rung, now time.Time) promotion.Offer {
	if !promotable(r) {
		return promotion.Offer{}
	}
	return m.offerOf(r.Model, now)
}

// promotable reports whether a promotion may pay for a rung. A customer's own key is the
// customer's money, and what stands in for it at a surcharge was agreed on at its price
// (M12).
func promotable(r *Rung) bool { return r.owner() == request.Operator && r.Surcharge == nil }

func (m *Machine) offerOf(model string, now time.Time) promotion.Offer {
	var without []promotion.Side
	for _, u := range m.ungiven {
		if u.model == model {
			without = append(without, u.side)
		}
	}
	return promotion.OfferFor(m.req.Admitted.Tenant, m.req.Promotions, model, m.req.Admitted.FreeOnly, without, now)
}

// notFree reports whether a rung cannot serve a request that may only be free: no
// promotion may pay for it, or none gives its model away.
func (m *Machine) notFree(r *Rung) bool {
	if !m.req.Admitted.FreeOnly {
		return false
	}
	if !promotable(r) {
		return true
	}
	for i := range m.req.Promotions {
		if p := &m.req.Promotions[i]; p.Gives(r.Model) && promotion.Complete(p) {
			return false
		}
	}
	return true
}

// nothingFree reports whether a request that may only be free has no promotion of its
// model to be free by: what another model's gives away is not for it.
func (m *Machine) nothingFree(now time.Time) bool {
	a := &m.req.Admitted
	return a.FreeOnly && !promotion.Complete(promotion.Running(m.req.Promotions, a.CanonicalModel, now))
}

// noAllowance is the refusal of a request for which there is none.
func noAllowance() request.Refusal {
	return request.Refusal{Code: string(request.CodeInsufficientQuota), Scope: promotion.Scope}
}

// payingItself is told that a promotion's allowance refused a reservation: the same rung
// is reserved again without what that allowance is for.
func (m *Machine) payingItself(r budget.Refusal, unsaid []event.Event, now time.Time) Move {
	again := m.current().reserved
	m.attempts = m.attempts[:len(m.attempts)-1]
	m.said = withoutCall(unsaid)
	m.ungiven = append(m.ungiven, ungiven{model: again.Model, side: promotion.SideOf(r.Check)})
	return m.call(&m.rungs[m.cursor], again.ProviderKey, again.Kind, now)
}

// withOffer adds what a promotion gives away to what an attempt holds. An attempt that
// is free altogether asks no budget of money.
func (f *funding) withOffer(o promotion.Offer, worst money.WorstSplit) {
	if o.Nothing() {
		return
	}
	f.offer = o.Recorded()
	f.takes = o.Takes(worst)
	if o.Free == (money.Free{Input: true, CachedInput: true, Output: true}) {
		f.checks = slices.DeleteFunc(f.checks, func(c budget.Check) bool { return c.Unit == catalog.USD && c.Ask == 0 })
	}
	f.checks = append(f.checks, o.Checks(worst)...)
}

// proveAllowance is the proof of M9 for a request that may only be free: before the
// first call of another model, the allowance of the model that was asked for must have
// covered it. It is asked for and nothing is taken.
func (m *Machine) proveAllowance(now time.Time) ([]budget.Check, error) {
	var least *money.WorstSplit
	offer := m.offerOf(m.req.Admitted.CanonicalModel, now)
	for i := range m.rungs {
		root := &m.rungs[i]
		if !root.Root || root.Deployment == nil || !promotable(root) || !root.Deployment.Prices.Known() {
			continue
		}
		e := m.req.Admitted.Estimate
		e.MaxOutputTokens = OutputCeiling(root.Deployment, m.req.OutputTokens)
		worst, err := m.worstSplit(root.Deployment, e, offer.Free)
		if err != nil {
			return nil, err
		}
		if least == nil || worst.Input.Cost+worst.Output.Cost < least.Input.Cost+least.Output.Cost {
			least = &worst
		}
	}
	if least == nil {
		return nil, nil
	}
	return offer.Checks(*least), nil
}

// given is what a settlement does to a promotion's allowances. Nothing was given away by
// an attempt that served nothing, whatever it cost.
func given(a *attempt, s request.AttemptSettled) []request.Take {
	taken := a.reserved.Takes
	switch {
	case s.Promotion == nil:
		return nil
	case a.failed != nil:
		return promotion.Return(taken, money.Given{}, money.Given{})
	case s.Basis == usage.BasisUnknown:
		return promotion.Keep(taken)
	}
	split, err := a.reserved.Prices.Split(s.Usage, s.Promotion.Free)
	if err != nil {
		return promotion.Keep(taken)
	}
	return promotion.Return(taken, split.Input, split.Output)
}
