package walk_test

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// Deleting a credential leaves what is left of a chain. It never lets a reference to
// another model serve in the place of the model's own rungs, and an organization's
// own chain without a credential never becomes another one's.
//
// Rules: C6, N11, Z1.
func TestDeletedCredentialNeverOpensAnotherWay_C6(t *testing.T) {
	// named is a rung to a deployment by its name, with a credential or without one.
	named := func(deployment string, held bool, edit func(*walk.Rung)) walk.Rung {
		r := rung(0)
		r.Deployment.ID = deployment
		if !held {
			r.Provider.Keys = nil // the simulated world holds what is listed
		}
		if edit != nil {
			edit(&r)
		}
		return r
	}
	referred := func(r *walk.Rung) { r.Model, r.Root, r.Referred = "other", false, true }
	override := func(r *walk.Rung) { r.Override, r.Owner = true, request.Workspace }
	inside := func(r *walk.Rung) { r.BaseURLRefused = true }
	second := func(r *walk.Rung) { r.Position, r.Root, r.Model = 1, false, "second" }

	for name, c := range map[string]struct {
		rungs []walk.Rung
		want  string // who is called first, or the refusal
	}{
		"all held":                                  {[]walk.Rung{named("a", true, nil), named("b", true, referred)}, "a"},
		"another rung of its own":                   {[]walk.Rung{named("a", false, nil), named("c", true, nil), named("b", true, referred)}, "c"},
		"only the reference is left":                {[]walk.Rung{named("a", false, nil), named("b", true, referred)}, "chain_unavailable"},
		"a rung behind the reference":               {[]walk.Rung{named("a", false, nil), named("b", true, referred), named("c", true, nil)}, "chain_unavailable"},
		"the reference is not held either":          {[]walk.Rung{named("a", false, nil), named("b", false, referred)}, "no_route_allowed"},
		"an override":                               {[]walk.Rung{named("a", false, override)}, "chain_unavailable"},
		"an override with a paid rung":              {[]walk.Rung{named("a", false, override), named("b", true, func(r *walk.Rung) { r.Override = true })}, "b"},
		"an operator's chain":                       {[]walk.Rung{named("a", false, nil)}, "no_route_allowed"},
		"a base URL that is refused":                {[]walk.Rung{named("a", true, inside)}, "no_route_allowed"},
		"another rung beside it":                    {[]walk.Rung{named("a", true, inside), named("c", true, nil)}, "c"},
		"a reference does not take its place":       {[]walk.Rung{named("a", true, inside), named("b", true, referred)}, "no_route_allowed"},
		"nor does one behind a credential missing":  {[]walk.Rung{named("c", false, nil), named("a", true, inside), named("b", true, referred)}, "no_route_allowed"},
		"an override of which all is refused":       {[]walk.Rung{named("a", true, func(r *walk.Rung) { override(r); inside(r) })}, "no_route_allowed"},
		"a refused surcharge behind a deleted key":  {[]walk.Rung{named("a", false, override), named("b", true, func(r *walk.Rung) { inside(r); r.Override, r.Surcharge = true, &decimal.Zero })}, "chain_unavailable"},
		"a refused reference behind a deleted rung": {[]walk.Rung{named("a", false, nil), named("b", true, func(r *walk.Rung) { referred(r); inside(r) })}, "no_route_allowed"},
		"the next place of a chain of names": {
			[]walk.Rung{named("a", false, nil), named("b", true, referred), named("d", true, second)}, "d",
		},
	} {
		for i := range c.rungs {
			c.rungs[i].Index = i
		}
		m := walk.New(request1(), c.rungs, &sim.World{})
		move := m.Start(noon)
		got := ""
		switch {
		case move.Call != nil:
			got = move.Call.Rung.Deployment.ID
		case move.Finish != nil:
			got = string(move.Finish.Answer.Code)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A connection's rung is the organization's own: it is charged nothing and holds
// nothing, whatever the deployment's price.
//
// Rules: M7, M11, W6.
func TestRungsSayWhoseCredentialPays_M11(t *testing.T) {
	d, p := &catalog.Deployment{ID: "d"}, &catalog.Provider{ID: "p"}
	rungs := walk.Rungs(catalog.Plan{CanonicalModel: "m", Stages: []catalog.Stage{
		{Model: &catalog.Model{Slug: "m"}, Override: true, Rungs: []catalog.Candidate{{Rung: catalog.Rung{Connection: "own"}, Deployment: d, Provider: p}}},
		{Model: &catalog.Model{Slug: "m"}, Position: 1, Referred: true, Rungs: []catalog.Candidate{{Rung: catalog.Rung{Deployment: "d"}, Deployment: d, Provider: p}}},
	}})
	if rungs[0].Owner != request.Workspace || !rungs[0].Override || rungs[1].Owner != request.Operator || !rungs[1].Referred || rungs[1].Position != 1 {
		t.Errorf("%+v", rungs)
	}
}
