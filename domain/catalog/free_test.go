package catalog_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// A name that ends in :free is the name before it, free or not at all; a name that is
// somebody's own means itself.
//
// Rules: M10, N1, N13.
func TestFreeNames_M10_N1_N13(t *testing.T) {
	o := withPromotion()
	acme := &o.Tenants[0]
	acme.Promotions[0].Models = []string{"a"}
	acme.Aliases = append(acme.Aliases, catalog.Alias{Name: "mine:free", Pin: "b"})
	acme.RoutingRules = append(acme.RoutingRules, catalog.RoutingRule{Match: "ruled:free", Chain: []string{"b"}})
	b := o.Models[1]
	b.Slug, b.Chain = "real:free", []catalog.Rung{{Deployment: "b@east"}}
	alone := b
	alone.Slug = "alone"
	o.Models = append(o.Models, b, alone)
	if problems := catalog.Validate(o); len(problems) > 0 {
		t.Fatalf("%+v", problems)
	}
	snap := snapshotOf(t, o)
	only := func(models ...string) *catalog.Key { return &catalog.Key{Tenant: "acme", Models: models} }
	for _, c := range []struct {
		name  string
		class string
		key   *catalog.Key
		model string
		free  bool
	}{
		{"a", "", nil, "a", false},
		{"a:free", "", nil, "a", true},
		{"best:free", "", nil, "a", true},
		{"b:free", "", nil, "b", true}, // its chain leads to a, which is given away
		{"assistant:free", "", nil, "a", true},
		{"class/assistant:free", "", nil, "a", true},
		{"nothing:free", "assistant", nil, "a", true},
		{"mine:free", "", nil, "b", false},
		{"ruled:free", "", nil, "b", false},
		{"real:free", "", nil, "real:free", false},
		{"alone:free", "", nil, "", false}, // nothing of it is given away
		{"nothing:free", "", nil, "", false},
		{"a:free:free", "", nil, "", false},
		{":free", "", nil, "", false},
		{"a:free", "", only("a"), "a", true},
		{"a:free", "", only("a:free"), "a", true},
		{"a", "", only("a:free"), "", false},
		{"b:free", "", only("a"), "", false},
		{"real:free", "", only("real"), "", false}, // another model than "real" would be
	} {
		plan, err := snap.Resolve(catalog.Ask{Tenant: "acme", Name: c.name, Class: c.class, Key: c.key})
		if c.model == "" {
			missing, isMissing := errors.AsType[*catalog.NotFoundError](err)
			confined, isConfined := errors.AsType[*catalog.ConfinedError](err)
			if !isMissing && !isConfined || isMissing && missing.Name != c.name || isConfined && confined.Name != c.name {
				t.Errorf("%s: %s, %v", c.name, shape(plan), err)
			}
			continue
		}
		if err != nil || plan.CanonicalModel != c.model || plan.FreeOnly != c.free || plan.RequestedModel != c.name {
			t.Errorf("%s (%s): %+v, %v", c.name, c.class, plan, err)
		}
	}
	key := only("a:free", "alone:free", "real:free", "nothing:free")
	var seen []string
	for _, m := range snap.Visible(key) {
		seen = append(seen, m.Slug)
	}
	if want := []string{"a:free", "real:free"}; !slices.Equal(seen, want) {
		t.Errorf("a confined key sees %v, want %v", seen, want)
	}
	if _, err := snap.Resolve(catalog.Ask{Tenant: "zeta", Name: "a:free"}); err == nil {
		t.Error("another organization's promotion makes a name")
	}
}
