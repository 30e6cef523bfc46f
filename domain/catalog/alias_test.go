package catalog_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

// seen is a model as an alias sees it, for the rule read word by word.
type seen struct {
	slug  string
	rank  int
	price *decimal.Decimal
}

// byTheRule reads N4 and N5 off: every model, filtered, then sorted.
func byTheRule(o catalog.Objects, a catalog.Alias) string {
	deployments := map[string]catalog.Deployment{}
	for _, d := range o.Deployments {
		deployments[d.ID] = d
	}
	var fits []seen
	for _, m := range o.Models {
		var best *seen
		for _, r := range m.Chain {
			d := deployments[r.Deployment]
			lacks := slices.ContainsFunc(a.Capabilities, func(c catalog.Capability) bool { return !slices.Contains(d.Capabilities, c) })
			if lacks || d.Context.Total < a.MinContextWindow {
				continue
			}
			rank := slices.Index(a.ProviderPreference, d.Provider)
			if rank < 0 {
				rank = len(a.ProviderPreference)
			}
			if best == nil || rank < best.rank {
				best = &seen{m.Slug, rank, d.Prices.Input}
			}
		}
		if best != nil {
			fits = append(fits, *best)
		}
	}
	if len(fits) == 0 {
		return ""
	}
	return slices.MinFunc(fits, func(x, y seen) int {
		price := 0
		switch {
		case x.price != nil && y.price != nil:
			if price = x.price.Cmp(*y.price); a.CostTier == catalog.Best {
				price = -price
			}
		case x.price != nil:
			price = -1
		case y.price != nil:
			price = 1
		}
		return cmp.Or(cmp.Compare(x.rank, y.rank), price, cmp.Compare(x.slug, y.slug))
	}).slug
}

// What an alias stands for is found in an order that was made once; it is what the rule
// says of all models.
//
// Rules: N4, N5.
func TestAliasIsWhatTheRuleSays_N4_N5(t *testing.T) {
	capabilities := []catalog.Capability{catalog.Chat, catalog.Tools, catalog.Images}
	rapid.Check(t, func(t *rapid.T) {
		var o catalog.Objects
		providers := []string{"p0", "p1", "p2"}
		for i := range rapid.IntRange(1, 8).Draw(t, "models") {
			m := catalog.Model{Slug: fmt.Sprint("m", i)}
			for j := range rapid.IntRange(1, 3).Draw(t, "rungs") {
				d := catalog.Deployment{
					ID: fmt.Sprint(m.Slug, "@", j), Provider: rapid.SampledFrom(providers).Draw(t, "provider"),
					Capabilities: append([]catalog.Capability{}, rapid.SliceOfDistinct(rapid.SampledFrom(capabilities), rapid.ID).Draw(t, "has")...),
				}
				d.Context.Total = rapid.SampledFrom([]int64{0, 10, 20}).Draw(t, "window")
				if rapid.Bool().Draw(t, "priced") {
					d.Prices = money.Prices{Input: new(decimal.New(rapid.Int64Range(0, 3).Draw(t, "price"), 0))}
				}
				o.Deployments = append(o.Deployments, d)
				m.Chain = append(m.Chain, catalog.Rung{Deployment: d.ID})
			}
			o.Models = append(o.Models, m)
		}
		tenant := catalog.Tenant{ID: "acme"}
		for i := range 5 {
			tenant.Aliases = append(tenant.Aliases, catalog.Alias{
				Name:               fmt.Sprint("alias-", i),
				Capabilities:       rapid.SliceOfDistinct(rapid.SampledFrom(capabilities), rapid.ID).Draw(t, "needs"),
				MinContextWindow:   rapid.SampledFrom([]int64{0, 10, 15}).Draw(t, "least"),
				ProviderPreference: rapid.SliceOfDistinct(rapid.SampledFrom(providers), rapid.ID).Draw(t, "prefers"),
				CostTier:           rapid.SampledFrom([]catalog.CostTier{"", catalog.Cheapest, catalog.Balanced, catalog.Best}).Draw(t, "tier"),
			})
		}
		o.Tenants = []catalog.Tenant{tenant}
		snapshot := catalog.NewSnapshot(o)
		for _, a := range tenant.Aliases {
			plan, err := snapshot.Resolve(catalog.Ask{Tenant: "acme", Name: a.Name})
			if want := byTheRule(o, a); plan.CanonicalModel != want {
				t.Fatalf("%+v stands for %q, %v; the rule says %q", a, plan.CanonicalModel, err, want)
			}
		}
	})
}
