package walk

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// Report is what an attempt's driver saw of its answer.
type Report struct {
	Usage usage.Usage
	// FirstOutput names the kind of the first semantic output; empty before it.
	FirstOutput string
	TTFT        time.Duration
	// DeliveredTokens is the output counted from what was delivered, for an answer
	// that ended without a usage report (S6).
	DeliveredTokens int64
	// Headers is true once the provider had begun to answer.
	Headers bool
}

// settleFailed settles an attempt that served nothing (M5): at zero, with the
// reservation released. Where the provider may have done the work the zero is
// charged, but what it cost is unknown, never known-as-zero (D2, D3).
func (m *Machine) settleFailed(a *attempt, f failure.Failure, r Report, now time.Time) {
	s := m.settlementOf(a)
	s.Basis, s.Usage = usage.BasisReported, usage.Usage{Input: usage.Of(0), Output: usage.Of(0)}
	switch {
	case r.Usage.Usable():
		// An answer that nobody got, such as a refusal that was taken elsewhere: the
		// provider bills it, the customer is not charged (M7).
		s.Usage = r.Usage
		s.Amounts, s.Basis = price(a.reserved, r.Usage, s.Basis)
		s.Charge, s.Subsidy, s.Surcharge, s.Waived = 0, 0, 0, true
	case f.PossiblyBilled:
		s.Basis, s.Usage = usage.BasisUnknown, r.Usage
	}
	m.settle(a, s, now)
	m.say(request.ReservationReleased{Attempt: a.reserved.Attempt, Released: a.reserved.Reserved})
}

// settleServed settles an attempt that delivered output, whole or not.
func (m *Machine) settleServed(a *attempt, r Report, whole bool, failed failure.Class, now time.Time) {
	s := m.settlementOf(a)
	s.DurationMS, s.Failure = ms(now.Sub(a.begun)), failed
	s.Usage, s.Basis = settlementUsage(a.reserved, r, whole, m.req.FloorTokens)
	if s.Basis != usage.BasisUnknown {
		s.Amounts, s.Basis = price(a.reserved, s.Usage, s.Basis)
	}
	m.settle(a, s, now)
	if s.Basis == usage.BasisUnknown && s.CredentialOwner == request.Operator {
		// Nothing is charged for what nobody knows, but the tokens stay taken: a provider
		// that never reports would otherwise be free of every limit (D2, R2). They are the
		// input that was planned with and the output that was delivered: the most that it
		// might have put out would shut a window for a day.
		tokens := a.reserved.Estimate.InputTokens + r.DeliveredTokens
		m.say(request.MeterHoldPlaced{
			Attempt: s.Attempt, Tenant: s.Tenant, Key: s.Key, Model: s.Model,
			Tokens: tokens, Takes: budget.HoldOn(a.reserved.Takes, tokens),
		})
	}
	if over := s.Charge - a.reserved.Reserved; over > 0 {
		m.say(request.ReservationOverrun{Attempt: a.reserved.Attempt, Overrun: over})
	}
}

// settlementUsage picks what an answer is settled on. A report always wins. One
// that is missing leaves a whole answer unknown (M4), and a broken one counted
// from what was delivered (S6).
func settlementUsage(res request.AttemptReserved, r Report, whole bool, inputTokens int64) (usage.Usage, usage.Basis) {
	switch {
	case r.Usage.Usable():
		return r.Usage, usage.BasisReported
	case whole || r.DeliveredTokens == 0:
		return r.Usage, usage.BasisUnknown
	default:
		counted := usage.Usage{Input: usage.Of(inputTokens), Output: usage.Of(r.DeliveredTokens)}
		return counted, usage.BasisEstimated
	}
}

// price turns usage into the five amounts (M7), at the prices that were fixed when
// the attempt was reserved (M4).
func price(res request.AttemptReserved, u usage.Usage, basis usage.Basis) (request.Amounts, usage.Basis) {
	if !res.Prices.Known() {
		// A customer's own key may be called without a price of ours.
		return request.Amounts{}, basis
	}
	split, err := res.Prices.Split(u, res.Promotion.Frees())
	switch {
	case err != nil:
		return request.Amounts{}, usage.BasisUnknown
	case !split.Exact:
		basis = usage.BasisEstimated
	}
	with, err := amounts(res.CredentialOwner, split).WithSurcharge(res.SurchargePercent)
	if err != nil {
		return request.Amounts{}, usage.BasisUnknown
	}
	return with, basis
}

// amounts splits a cost by who holds the credential: a customer's own key is
// charged nothing and still costs its owner (M7). What a promotion pays costs the
// provider's price all the same (M10).
func amounts(owner request.Owner, s money.Split) request.Amounts {
	a := request.Amounts{List: s.List, Charge: s.Charge, ProviderCost: s.List, Subsidy: s.Subsidy}
	if owner == request.Workspace {
		a.Charge = 0
	}
	return a
}

func (m *Machine) settlementOf(a *attempt) request.AttemptSettled {
	res := a.reserved
	return request.AttemptSettled{
		Attempt: res.Attempt, Tenant: res.Tenant, Key: m.req.Admitted.Key, Provider: res.Provider,
		Model: res.Model, Deployment: res.Deployment, CredentialOwner: res.CredentialOwner,
		FallbackKind: res.FallbackKind, Masked: res.Masked, Reserved: res.Reserved, Holds: res.Holds,
		Promotion: res.Promotion, SurchargePercent: res.SurchargePercent,
	}
}

// settle says a settlement, once: a repeated or late call changes nothing (I5).
func (m *Machine) settle(a *attempt, s request.AttemptSettled, now time.Time) {
	if a.settled {
		return
	}
	s.Takes = append(m.returned(a, s, now), given(a, s)...)
	a.settled = true
	m.charged += s.Charge
	m.say(s)
}
