package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// withOverride is the fixture with a chain of acme's own for model b.
func withOverride(chain ...catalog.Rung) catalog.Objects {
	o := fixture()
	i := slices.IndexFunc(o.Tenants, func(t catalog.Tenant) bool { return t.ID == "acme" })
	o.Tenants[i].Chains = []catalog.TenantChain{{Model: "b", Chain: chain}}
	return o
}

func served(t *testing.T, o catalog.Objects, tenant, name string) string {
	t.Helper()
	plan, err := catalog.NewSnapshot(o.Canonical()).Resolve(catalog.Ask{Tenant: tenant, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, s := range plan.Stages {
		for _, r := range s.Rungs {
			words = append(words, strings.TrimSpace(r.Rung.Deployment+r.Rung.Model+" "+r.Skip))
		}
	}
	return strings.Join(words, ", ")
}

// An organization's own chain takes the place of the operator's, for it alone, also
// where another model refers to it; one that names nothing that is there serves
// nothing and never the inherited one (C4, C6).
func TestOwnChain_C4_C6(t *testing.T) {
	o := withOverride(catalog.Rung{Deployment: "b@west"})
	if problems := catalog.Validate(o); len(problems) > 0 {
		t.Fatalf("%+v", problems)
	}
	o.Tenants = append(o.Tenants, catalog.Tenant{ID: "other"})
	own, inherited := served(t, o, "acme", "b"), served(t, o, "other", "b")
	if own != "b@west" || own == inherited {
		t.Errorf("acme is served by %q, another by %q", own, inherited)
	}
	if got := served(t, o, "acme", "a"); got != "a@east, b@west, a@west" {
		t.Errorf("through a reference: %q", got)
	}
	if got := served(t, withOverride(catalog.Rung{Deployment: "gone"}), "acme", "b"); got != "gone unresolved" {
		t.Errorf("an unusable chain of its own: %q", got)
	}
}

// It is held to the rules of every chain (N15, N16).
func TestOwnChainIsValidated_N15_N16(t *testing.T) {
	for _, c := range []struct {
		chain []catalog.Rung
		says  string
	}{
		{nil, "is empty"},
		{[]catalog.Rung{{Model: "a"}}, "only after a deployment"},
		{[]catalog.Rung{{Deployment: "a@east"}}, "serves exact model"},
		{[]catalog.Rung{{Deployment: "b@west"}, {Deployment: "b@west"}}, "twice"},
	} {
		problems := catalog.Validate(withOverride(c.chain...))
		if !slices.ContainsFunc(problems, func(p catalog.Problem) bool {
			return strings.HasPrefix(p.Path, "tenants[0].chains[0]") && strings.Contains(p.Reason, c.says)
		}) {
			t.Errorf("%+v: %+v", c.chain, problems)
		}
	}
	o := withOverride(catalog.Rung{Deployment: "b@west"})
	o.Tenants[0].ID = catalog.OperatorChain
	if problems := catalog.Validate(o); len(problems) != 1 || !strings.Contains(problems[0].Reason, "operator's streams") {
		t.Errorf("a tenant named operator: %+v", problems)
	}
}
