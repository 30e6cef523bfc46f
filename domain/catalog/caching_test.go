package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

// Supported, priced and nothing else: what the catalog can know of a cache.
//
// Rules: K7.
func TestCacheQuestionsAreKeptApart_K7(t *testing.T) {
	rate := decimal.RequireFromString("0.3")
	yes, no := true, false
	plain := catalog.Deployment{ID: "plain"}
	without := catalog.Deployment{ID: "without", Capabilities: []catalog.Capability{catalog.Chat}}
	priced := catalog.Deployment{ID: "priced", Prices: money.Prices{CacheRead: &rate}}
	supports := catalog.Deployment{ID: "supports", Capabilities: []catalog.Capability{catalog.PromptCaching}}
	for _, tc := range []struct {
		name  string
		chain []catalog.Deployment
		want  catalog.CacheAnswers
	}{
		{"nobody declared anything", []catalog.Deployment{plain}, catalog.CacheAnswers{}},
		{"declared without it", []catalog.Deployment{plain, without}, catalog.CacheAnswers{Supported: &no}},
		{"supported and not priced", []catalog.Deployment{without, supports}, catalog.CacheAnswers{Supported: &yes}},
		{"supported first", []catalog.Deployment{supports, without}, catalog.CacheAnswers{Supported: &yes}},
		{"priced and not declared", []catalog.Deployment{priced}, catalog.CacheAnswers{Priced: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := catalog.Model{Slug: "m", ExactModel: "m"}
			for _, d := range tc.chain {
				m.Chain = append(m.Chain, catalog.Rung{Deployment: d.ID})
			}
			s := catalog.NewSnapshot(catalog.Objects{Deployments: tc.chain, Models: []catalog.Model{m}})
			got, ok := s.CacheAnswers("m")
			if diff := cmp.Diff(tc.want, got); diff != "" || !ok {
				t.Error(diff)
			}
		})
	}
	if _, ok := catalog.NewSnapshot(catalog.Objects{}).CacheAnswers("m"); ok {
		t.Error("an answer for no model")
	}
}
