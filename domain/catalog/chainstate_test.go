package catalog_test

import (
	"slices"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// A chain begins with a direct rung that can be called, or it serves nothing: a
// deleted credential never makes a reference the first rung (C5, C6).
func TestChainStates_C5_C6(t *testing.T) {
	a := []catalog.Rung{{Deployment: "a@east"}, {Model: "b"}, {Deployment: "a@west"}}
	for _, c := range []struct {
		name  string
		chain []catalog.Rung
		held  bool
		want  catalog.ChainState
		first string
	}{
		{"empty", nil, true, catalog.EmptyChain, ""},
		{"its first rung is there", a, true, catalog.AvailableChain, ""},
		{"a reference would be the first", a, false, catalog.UnavailableChain, "credential_missing"},
		{"a provider without keys needs none", []catalog.Rung{{Deployment: "a@west"}}, false, catalog.AvailableChain, ""},
		{"nothing is there", []catalog.Rung{{Deployment: "gone"}}, true, catalog.UnavailableChain, "unresolved"},
		{"the second serves", []catalog.Rung{{Deployment: "gone"}, {Deployment: "a@west"}}, true, catalog.AvailableChain, "unresolved"},
	} {
		state, rungs := catalog.JudgeChain(fixture(), "", "b", c.chain, catalog.At{Holds: func(*catalog.Provider, string) bool { return c.held }})
		if state != c.want || len(rungs) != len(c.chain) {
			t.Errorf("%s: %s %+v, want %s", c.name, state, rungs, c.want)
		}
		if len(rungs) > 0 && rungs[0].Unusable != c.first {
			t.Errorf("%s: the first rung is %q, want %q", c.name, rungs[0].Unusable, c.first)
		}
	}
}

// A route whose base URL is refused is not there for a chain, and no reference takes
// its place (Z1, N11, C6).
func TestChainStatesOfRefusedBaseURLs_Z1_N11(t *testing.T) {
	o := fixture()
	refused := map[string]bool{}
	for _, p := range o.Providers {
		refused[p.BaseURL] = p.ID == "east"
	}
	at := catalog.At{
		Holds:   func(*catalog.Provider, string) bool { return true },
		Refuses: func(baseURL string) bool { return refused[baseURL] },
	}
	for name, c := range map[string]struct {
		chain []catalog.Rung
		want  catalog.ChainState
	}{
		"another of its rungs serves": {[]catalog.Rung{{Deployment: "a@east"}, {Deployment: "a@west"}}, catalog.AvailableChain},
		"a reference does not":        {[]catalog.Rung{{Deployment: "a@east"}, {Model: "b"}}, catalog.UnavailableChain},
	} {
		state, rungs := catalog.JudgeChain(o, "", "b", c.chain, at)
		if state != c.want || rungs[0].Unusable != "base_url_refused" || rungs[1].Unusable != "" {
			t.Errorf("%s: %s %+v", name, state, rungs)
		}
	}
}

// A rung at a surcharge stands in for an organization's own ones and never in their
// place: a chain whose own rungs cannot be called is unavailable, as its requests find
// it (M12, C6).
//
// Rules: C5, C6, M12.
func TestSurchargeMakesNoChainAvailable_C5_C6_M12(t *testing.T) {
	own, west := catalog.Rung{Connection: "own"}, catalog.Rung{Deployment: "b@west"}
	percent := decimal.RequireFromString("7.5")
	for name, c := range map[string]struct {
		chain                 []catalog.Rung
		offered, agreed, held bool
		want                  catalog.ChainState
		west                  string
	}{
		"own rungs serve":                          {[]catalog.Rung{own, west}, true, true, true, catalog.AvailableChain, ""},
		"their credential is gone":                 {[]catalog.Rung{own, west}, true, true, false, catalog.UnavailableChain, "surcharge_not_enabled"},
		"nobody agreed":                            {[]catalog.Rung{own, west}, true, false, true, catalog.AvailableChain, "surcharge_not_enabled"},
		"nobody agreed and the credential is gone": {[]catalog.Rung{own, west}, true, false, false, catalog.UnavailableChain, "surcharge_not_enabled"},
		"no surcharge is asked":                    {[]catalog.Rung{own, west}, false, true, false, catalog.AvailableChain, ""},
		"one in front of the own is ordinary":      {[]catalog.Rung{west, own}, true, true, false, catalog.AvailableChain, ""},
	} {
		o := withConnection(c.chain...)
		o.Tenants[0].SurchargeFallback = c.agreed
		for i := range o.Models {
			if o.Models[i].Slug == "b" && c.offered {
				o.Models[i].Surcharge = &percent
			}
		}
		holds := func(_ *catalog.Provider, key string) bool { return c.held || key != "acme/own" }
		state, rungs := catalog.JudgeChain(o, "acme", "b", c.chain, catalog.At{Holds: holds})
		if at := slices.Index(c.chain, west); state != c.want || rungs[at].Unusable != c.west {
			t.Errorf("%s: %s %+v", name, state, rungs)
		}
	}
}
