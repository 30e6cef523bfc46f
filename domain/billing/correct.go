package billing

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// Correction is a price correction with its place in the log.
type Correction struct {
	Position int64
	catalog.PriceCorrected
}

// Covers reports whether the correction is about an attempt that was settled on the
// deployment at the time.
func (c Correction) Covers(deployment string, settled time.Time) bool {
	return c.Deployment == deployment && !settled.Before(c.From) && settled.Before(c.To)
}

// Entry is one of an attempt's entries in the ledger.
type Entry struct {
	// Correction is the position of the price correction that made it; 0 is the
	// settlement itself.
	Correction int64
	// Amounts are what the settlement says, or by how much the correction changes what
	// stood before it.
	Amounts request.Amounts
}

// Entries are what an attempt's settlement and the corrections of its price come to:
// the settlement first, then a difference for each correction that makes one. In sum
// they are what the newest correction says. corrections are in the order of the log;
// those that do not cover the attempt are passed over.
func Entries(s request.AttemptSettled, at time.Time, corrections []Correction) []Entry {
	entries := []Entry{{Amounts: s.Amounts}}
	stands := s.Amounts
	for _, c := range corrections {
		if !c.Covers(s.Deployment, at) {
			continue
		}
		if now := Reprice(s, c.Prices); now != stands {
			entries = append(entries, Entry{Correction: c.Position, Amounts: now.Sub(stands)})
			stands = now
		}
	}
	return entries
}

// Reprice is a settlement's amounts under other rates, from its own usage (M15). It
// changes what the attempt cost and not who bears it: a share that was subsidized or
// added stays that share, and what was not charged is not charged now. What nobody
// knows stays unknown (M6), and usage that cannot be priced keeps its amounts.
func Reprice(s request.AttemptSettled, rates money.Prices) request.Amounts {
	if s.Basis == usage.BasisUnknown || !rates.Known() {
		return s.Amounts
	}
	split, err := rates.Split(s.Usage, s.Promotion.Frees())
	if err != nil {
		return s.Amounts
	}
	list := split.List
	if s.Promotion != nil && !s.Waived {
		// What was free stays free, of the parts that it was free of (M10).
		return request.Amounts{List: list, Charge: split.Charge, ProviderCost: list, Subsidy: split.Subsidy}
	}
	if s.List == 0 {
		// Priced at nothing before, which has no shares.
		now := request.Amounts{List: list, Charge: list, ProviderCost: list}
		if s.Waived || s.CredentialOwner == request.Workspace {
			now.Charge = 0
		}
		return surcharged(s, now)
	}
	now := request.Amounts{List: list}
	was := s.Amounts
	if s.SurchargePercent != nil {
		// Its surcharge is a percentage of the list cost, and not a share that was rounded.
		was.Charge, was.Surcharge = was.Charge-was.Surcharge, 0
	}
	for _, part := range []struct {
		was money.NanoUSD
		to  *money.NanoUSD
	}{
		{was.Charge, &now.Charge},
		{was.ProviderCost, &now.ProviderCost},
		{was.Subsidy, &now.Subsidy},
		{was.Surcharge, &now.Surcharge},
	} {
		if *part.to, err = part.was.Scale(list, s.List); err != nil {
			return s.Amounts
		}
	}
	return surcharged(s, now)
}

// surcharged adds the surcharge that the attempt was made at, unless nothing of it is
// charged at all (M12).
func surcharged(s request.AttemptSettled, now request.Amounts) request.Amounts {
	if s.Waived {
		return now
	}
	with, err := now.WithSurcharge(s.SurchargePercent)
	if err != nil {
		return s.Amounts
	}
	return with
}
