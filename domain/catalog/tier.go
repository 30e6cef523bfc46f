package catalog

import "math"

// Tier is an organization's weight where organizations share a route's capacity (L4).
type Tier struct {
	Name string `json:"name"`
	// Weight is what the tier's organizations count against others: at 3 one of them has
	// three times the share of one at 1.
	Weight float64 `json:"weight"`
}

// DefaultTier is the tier of an organization that has none. It exists from the start,
// with DefaultTierWeight, and may be given another weight.
const (
	DefaultTier       = "standard"
	DefaultTierWeight = 1
)

// maxTierWeight bounds how far apart organizations may be: past it the lightest
// would never be let in beside the heaviest.
const maxTierWeight = 1000

// Weight is what an organization counts in fair sharing: by its manual tier, else by
// the one the system gave it, else by the default tier (L4). Never zero.
func (s *Snapshot) Weight(tenant string) float64 {
	t := s.tenants[tenant]
	if t == nil {
		return s.weightOf(DefaultTier)
	}
	for _, name := range []string{t.Tier, t.SystemTier} {
		if name != "" {
			return s.weightOf(name)
		}
	}
	return s.weightOf(DefaultTier)
}

// weightOf is a tier's weight; one that is gone counts as the default.
func (s *Snapshot) weightOf(tier string) float64 {
	for _, name := range []string{tier, DefaultTier} {
		if weight, ok := s.tiers[name]; ok {
			return weight
		}
	}
	return DefaultTierWeight
}

// TierDefined creates or replaces a tier. Stream tier/<name>.
type TierDefined struct {
	Tier Tier `json:"tier"`
}

// TierRemoved takes a tier away.
type TierRemoved struct {
	Tier string `json:"tier"`
}

func (v *validation) tier(path string, t Tier) {
	v.id(path+".name", t.Name)
	v.once(path+".name", "tier", t.Name, v.tiers)
	if math.IsNaN(t.Weight) || t.Weight <= 0 || t.Weight > maxTierWeight {
		v.fail(path+".weight", "%v is not above 0 and at most %d", t.Weight, maxTierWeight)
	}
}

// tierOf checks that an organization is in a tier that there is.
func (v *validation) tierOf(path, name string) {
	if name != "" && name != DefaultTier && !v.tiers[name] {
		v.fail(path, "tier %s does not exist", shown(name))
	}
}
