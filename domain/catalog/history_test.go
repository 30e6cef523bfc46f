package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// versions are the history of one object out of a whole log.
func versions(log []catalog.Recorded, id catalog.ObjectID) []catalog.Version {
	own := slices.DeleteFunc(slices.Clone(log), func(r catalog.Recorded) bool { return r.Stream != id.Stream() })
	return catalog.Versions(id, own)
}

// everything is one object of every kind that a catalog has.
func everything(o catalog.Objects) []catalog.ObjectID {
	return []catalog.ObjectID{
		catalog.Identify(o.Providers[0]), catalog.Identify(o.Deployments[0]),
		{Kind: catalog.KindChain, Name: "a"},
		{Kind: catalog.KindModel, Name: "a"},
		catalog.Identify(o.Classes[0]), catalog.Identify(o.Tiers[0]),
		{Kind: catalog.KindTenant, Name: "acme"},
		{Kind: catalog.KindAlias, Tenant: "acme", Name: "fast"},
		{Kind: catalog.KindRoutingRule, Tenant: "acme", Name: "best"},
		{Kind: catalog.KindBudget, Tenant: "acme", Name: "organization/usd/month"},
		{Kind: catalog.KindTenantChain, Tenant: "acme", Name: "b"},
		{Kind: catalog.KindPromotion, Tenant: "acme", Name: "launch"},
	}
}

// Every object can be taken away and brought back from its own history, and is then
// what it was; the names of objects are read as they are written (C8).
func TestEveryObjectComesBack_C8(t *testing.T) {
	whole := withOverride(catalog.Rung{Deployment: "b@west"})
	whole.Tiers = []catalog.Tier{{Name: "gold", Weight: 3}}
	whole.Tenants[0].Promotions = withPromotion().Tenants[0].Promotions
	whole = whole.Canonical()
	log := history(t, whole)
	for _, id := range everything(whole) {
		parsed, err := catalog.ParseObjectID(id.String())
		if err != nil || parsed != id {
			t.Errorf("%s is read as %+v, %v", id, parsed, err)
		}
		before, ok := whole.Find(id)
		if !ok {
			t.Errorf("%s is not there", id)
			continue
		}
		without, err := whole.Without(id)
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(without.Canonical(), whole) {
			t.Errorf("%s was not taken away", id)
		}
		own := versions(log, id)
		chain := versions(log, catalog.ObjectID{Kind: catalog.KindChain, Name: id.Name})
		back, err := catalog.Revert(without, id, own, chain, own[len(own)-1].Revision)
		if err != nil {
			t.Fatal(err)
		}
		if id.Kind == catalog.KindTenant {
			// What a tenant owned has histories of its own.
			before = catalog.Tenant{ID: "acme", Tier: "standard"}
		}
		if after, _ := back.Find(id); !cmp.Equal(before, after) {
			t.Errorf("%s came back as something else:\n%s", id, cmp.Diff(before, after))
		}
	}
}

// A revert to a revision at which the object was not there takes it away, one that
// never was is refused, and so are keys (Z3).
func TestRevertRefuses_Z3(t *testing.T) {
	whole := fixture()
	gone := whole
	gone.Classes = nil
	log := history(t, whole, gone)
	class := catalog.ObjectID{Kind: catalog.KindClass, Name: "assistant"}
	if got, err := catalog.Revert(whole, class, versions(log, class), nil, 2); err != nil || len(got.Classes) != 0 {
		t.Errorf("to where it was gone: %+v, %v", got.Classes, err)
	}
	var refused *catalog.RevertError
	if _, err := catalog.Revert(whole, class, versions(log, class), nil, 3); !errors.As(err, &refused) {
		t.Errorf("to a revision that never was: %v", err)
	}
	key := catalog.ObjectID{Kind: catalog.KindKey, Name: "k"}
	if _, err := catalog.Revert(whole, key, nil, nil, 1); !errors.As(err, &refused) || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a key: %v", err)
	}
	var missing *catalog.MissingError
	alias := catalog.ObjectID{Kind: catalog.KindAlias, Tenant: "acme", Name: "fast"}
	whole.Tenants = nil
	if _, err := catalog.Revert(whole, alias, versions(log, alias), nil, 1); !errors.As(err, &missing) {
		t.Errorf("of an organization that is gone: %v", err)
	}
}

func TestParseObjectIDRefuses(t *testing.T) {
	for _, text := range []string{"", "model", "model/", "alias/fast", "alias//fast", "thing/x", "/x"} {
		if id, err := catalog.ParseObjectID(text); err == nil {
			t.Errorf("%q names %+v", text, id)
		}
	}
}

// A problem that was there before does not keep other objects from being edited.
func TestOldProblemsBlockNothing(t *testing.T) {
	broken := fixture()
	broken.Deployments = broken.Deployments[1:] // a@east is gone
	edited := broken
	edited.Classes = nil
	if found := catalog.NewFindings(broken, edited); len(found) > 0 {
		t.Errorf("an edit of a class is blocked by %+v", found)
	}
	edited.Providers = nil
	found := catalog.NewFindings(broken, edited)
	if len(found) == 0 || found[0].Object != "deployment/a@west" || found[0].Field != "provider" {
		t.Errorf("a new problem: %+v", found)
	}
}
