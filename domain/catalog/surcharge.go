package catalog

import (
	"slices"

	"github.com/shopspring/decimal"
)

// SkipSurchargeNotEnabled is an operator's rung that an organization's chain names
// behind rungs of its own, where the model asks for a surcharge and the organization
// has not agreed to one (M12).
const SkipSurchargeNotEnabled = "surcharge_not_enabled"

const (
	// maxSurchargePercent is ten times the list price; more is a slip of the pen.
	maxSurchargePercent = 1000
	// maxSurchargeFractionDigits of a percentage, as many as are calculated with.
	maxSurchargeFractionDigits = 6
)

func (v *validation) surcharge(path string, percent *decimal.Decimal) {
	switch {
	case percent == nil:
	case !fits(*percent, 4, maxSurchargeFractionDigits):
		v.fail(path, "a percentage has at most 4 digits before the point and %d after it", maxSurchargeFractionDigits)
	case percent.IsNegative() || percent.GreaterThan(decimal.NewFromInt(maxSurchargePercent)):
		v.fail(path, "%s is not between 0 and %d percent", percent, maxSurchargePercent)
	}
}

// ownChain is an organization's own chain in the order in which it is called, and the
// operator's rungs that follow at a surcharge (M12). of is the operator's model, own
// the same model with the organization's chain.
//
// Where the model offers no surcharge, or the chain names no connection, the chain is
// what was written. Otherwise an operator's rung behind a connection is the fallback
// that the offer is about: with the organization's word it follows at the surcharge,
// with the rest of the operator's own rungs, behind everything that the organization
// wrote; without, it stays where it is and is skipped. One in front of every
// connection is no fallback from them, and is called as it was written.
func (x *expansion) ownChain(of, own *Model) (chain, surcharged []Rung) {
	from := firstOwn(own.Chain)
	if of.Surcharge == nil || from == len(own.Chain) || !x.surcharge {
		return own.Chain, nil
	}
	chain = slices.Clone(own.Chain[:from])
	for _, r := range own.Chain[from:] {
		if r.Deployment != "" {
			surcharged = append(surcharged, r)
		} else {
			chain = append(chain, r)
		}
	}
	for _, r := range of.Chain {
		if r.Deployment != "" && !slices.Contains(own.Chain, r) {
			surcharged = append(surcharged, r)
		}
	}
	return chain, surcharged
}

// firstOwn is the place of a chain's first connection, or its length.
func firstOwn(chain []Rung) int {
	if i := slices.IndexFunc(chain, func(r Rung) bool { return r.Connection != "" }); i >= 0 {
		return i
	}
	return len(chain)
}

// surchargedFrom is the place behind which the operator's rungs of an organization's own
// chain are at a surcharge, and whether the organization agreed to one.
func (o Objects) surchargedFrom(tenant, model string, chain []Rung) (from int, agreed bool) {
	m, _ := find(o.Models, ObjectID{Kind: KindModel, Name: model})
	if tenant == "" || m.Surcharge == nil {
		return len(chain), false
	}
	t, _ := find(o.Tenants, ObjectID{Kind: KindTenant, Name: tenant})
	return firstOwn(chain), t.SurchargeFallback
}

// addSurcharged lays out the rungs that follow an organization's own at a surcharge,
// as a stage of their own: nothing moves one of them before a rung that was written.
func (x *expansion) addSurcharged(m *Model, rungs []Rung) error {
	var stage []Candidate
	for _, rung := range rungs {
		c, err := x.examine(m, rung)
		if err != nil {
			return err
		}
		c = x.reach(c, m)
		c.Surcharge = m.Surcharge
		stage = append(stage, c)
	}
	x.add(m, stage)
	return nil
}
