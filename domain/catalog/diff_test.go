package catalog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Each edit is written as the events that say what was done, and as nothing else.
//
// Rules: C1.
func TestDiffSaysWhatWasDone_C1(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*catalog.Objects)
		want []string
	}{
		"nothing":   {func(*catalog.Objects) {}, nil},
		"a price":   {func(o *catalog.Objects) { o.Deployments[0].Prices.Input = rate("4") }, []string{"change deployment/a@east PriceSet"}},
		"a context": {func(o *catalog.Objects) { o.Deployments[0].Context.Total = 9 }, []string{"change deployment/a@east DeploymentDefined"}},
		"a chain (one event, C2)": {
			func(o *catalog.Objects) { o.Models[1].Chain = o.Models[1].Chain[:1] },
			[]string{"change chain/operator/b ChainReplaced"},
		},
		"a policy":       {func(o *catalog.Objects) { o.Models[1].Policy.MaxAttempts = 3 }, []string{"change model/b PolicyChanged"}},
		"an exact model": {func(o *catalog.Objects) { o.Models[1].ExactModel = "b2" }, []string{"change model/b ModelDefined"}},
		"a surcharge":    {func(o *catalog.Objects) { o.Models[1].Surcharge = rate("5") }, []string{"change model/b ModelDefined"}},
		"a certification": {
			func(o *catalog.Objects) { o.Models[1].Equivalence.Evidence = "sha256:02" },
			[]string{"change model/b EquivalenceCertified"},
		},
		"no certification": {func(o *catalog.Objects) { o.Models[1].Equivalence = nil }, []string{"change model/b EquivalenceWithdrawn"}},
		"another period is another budget": {
			func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Per = catalog.PerDay },
			[]string{"create budget/acme/organization/usd/day BudgetSet", "remove budget/acme/organization/usd/month BudgetRemoved"},
		},
		"a limit": {
			func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "1" },
			[]string{"change budget/acme/organization/usd/month BudgetSet"},
		},
		"a provider": {func(o *catalog.Objects) { o.Providers[0].Region = "x" }, []string{"change provider/east ProviderDefined"}},
		"a class":    {func(o *catalog.Objects) { o.Classes = nil }, []string{"remove class/assistant ClassRemoved"}},
		"a tenant leaves with all it has, last": {
			func(o *catalog.Objects) { o.Tenants = o.Tenants[1:] },
			[]string{
				"remove budget/acme/organization/usd/month BudgetRemoved",
				"remove budget/acme/organization/requests/minute BudgetRemoved",
				"remove tenant/acme/routing_rule/best RoutingRuleRemoved",
				"remove tenant/acme/alias/fast AliasRemoved",
				"remove tenant/acme TenantRemoved",
			},
		},
		"a model goes before its deployments": {
			func(o *catalog.Objects) {
				o.Models = o.Models[:1]
				o.Deployments = o.Deployments[:3]
			},
			[]string{
				"remove chain/operator/b ChainReplaced", "remove model/b ModelRemoved",
				"remove deployment/b@west DeploymentRemoved",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := fixture()
			c.edit(&o)
			var got []string
			for _, change := range catalog.Diff(folded(history(t, fixture())), o) {
				for _, e := range change.Events {
					got = append(got, fmt.Sprintf("%s %s %s", change.Action, change.Stream, typeName(e)))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func typeName(e any) string { return fmt.Sprintf("%T", e)[len("catalog."):] }

// A change carries the revision it was decided on, over removals too (C3, C4).
func TestDiffCarriesRevisions_C3_C4(t *testing.T) {
	without := fixture()
	without.Classes = nil
	state := folded(history(t, fixture(), without))
	changes := catalog.Diff(state, fixture())
	i := slices.IndexFunc(changes, func(c catalog.ObjectChange) bool { return c.Stream == "class/assistant" })
	if len(changes) != 1 || i != 0 || changes[0].Action != catalog.Create || changes[0].Revision != 2 {
		t.Errorf("changes = %+v", changes)
	}
}
