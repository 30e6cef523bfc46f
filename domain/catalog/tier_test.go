package catalog_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// A manual tier decides, else the system's, else the default one, which is there
// without configuration; one that a newer catalog lost counts as the default.
//
// Rules: L4.
func TestWeightOfAnOrganization_L4(t *testing.T) {
	o := catalog.Objects{
		Tiers: []catalog.Tier{{Name: "gold", Weight: 3}, {Name: "free", Weight: 0.25}},
		Tenants: []catalog.Tenant{
			{ID: "manual", Tier: "gold", SystemTier: "free"},
			{ID: "system", SystemTier: "free"},
			{ID: "plain"},
			{ID: "named", Tier: catalog.DefaultTier},
			{ID: "lost", Tier: "gone", SystemTier: "gold"},
		},
	}
	heavier := o
	heavier.Tiers = append(heavier.Tiers[:2:2], catalog.Tier{Name: catalog.DefaultTier, Weight: 2})
	for _, c := range []struct {
		tenant          string
		weight, weight2 float64
	}{
		{"manual", 3, 3}, {"system", 0.25, 0.25}, {"plain", 1, 2}, {"named", 1, 2}, {"lost", 1, 2}, {"nobody", 1, 2},
	} {
		if got := catalog.NewSnapshot(o).Weight(c.tenant); got != c.weight {
			t.Errorf("%s: %v, want %v", c.tenant, got, c.weight)
		}
		if got := catalog.NewSnapshot(heavier).Weight(c.tenant); got != c.weight2 {
			t.Errorf("%s with another default: %v, want %v", c.tenant, got, c.weight2)
		}
	}
}
