package walk

import (
	"slices"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Rungs at a surcharge are the operator's, behind an organization's own (M12). They are
// engaged by the failure of those alone: not by a request that an own rung could never
// have served, nor by one whose key is rejected or out of funds, which stays the
// organization's own affair (W6).

// noteOwn remembers that an own rung failed or was found unwell, by the failure that
// its provider is to blame for. A class that no circuit counts is nobody's outage: the
// model's refusal, an input that is too long.
func (m *Machine) noteOwn(r *Rung, c failure.Class) {
	if r.owner() != request.Workspace || failure.Of(c).Health == failure.NoHealth || customersOwn(c) {
		return
	}
	if !slices.Contains(m.ownFailed, r.Model) {
		m.ownFailed = append(m.ownFailed, r.Model)
	}
}

// customersOwn reports whether a failure of an own rung is its credential's (W6).
func customersOwn(c failure.Class) bool {
	return ownedBy(request.Workspace, failure.Failure{Class: c}).Class == failure.CustomerCredential
}

// engaged reports whether a rung may be called as far as its surcharge goes. One
// without may always.
func (m *Machine) engaged(r *Rung) bool {
	return r.Surcharge == nil || slices.Contains(m.ownFailed, r.Model)
}

// engageable reports whether a rung may yet be engaged: some own rung of its model can
// serve the request, and so can fail at it.
func (m *Machine) engageable(r *Rung) bool {
	return m.engaged(r) || slices.ContainsFunc(m.rungs, func(own Rung) bool {
		if own.Model != r.Model || own.owner() != request.Workspace || !m.callable(&own) {
			return false
		}
		reason, _ := m.unfit(&own)
		return reason == ""
	})
}

// notEngaged is what is recorded of a rung at a surcharge that was not called.
func notEngaged() (request.SkipReason, map[string]string) {
	return request.SkipSurchargeNotEnabled, map[string]string{"because": "no_own_route_failed"}
}

// withSurcharge is a rung's worst case with its surcharge, which is held too (M2).
func (r *Rung) withSurcharge(worst money.NanoUSD) (money.NanoUSD, error) {
	with, err := request.Amounts{List: worst, Charge: worst}.WithSurcharge(r.Surcharge)
	return with.Charge, err
}
