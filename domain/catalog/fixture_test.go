package catalog_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

var testTime = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func rate(s string) *decimal.Decimal { return new(decimal.RequireFromString(s)) }

// fixture is a small valid catalog with every kind of object in it.
func fixture() catalog.Objects {
	return catalog.Objects{
		Providers: []catalog.Provider{
			{
				ID: "east", Protocol: catalog.OpenAI, BaseURL: "https://east.example.test/v1",
				Keys: []catalog.ProviderKey{{ID: "k1", Env: "EAST_KEY"}, {ID: "k2", Env: "EAST_KEY_2"}},
			},
			{ID: "west", Protocol: catalog.OpenAI, BaseURL: "http://west.example.test:8080/v1"},
		},
		Deployments: []catalog.Deployment{
			{
				ID: "a@east", Provider: "east", UpstreamModel: "a-1", Capabilities: []catalog.Capability{catalog.Tools, catalog.Chat},
				Prices: money.Prices{Input: rate("3.00"), Output: rate("15")},
			},
			{ID: "a@west", Provider: "west", UpstreamModel: "a-2", Prices: money.Prices{Input: rate("2.5"), Output: rate("10")}},
			{ID: "b@east", Provider: "east", UpstreamModel: "b-1", Prices: money.Prices{Input: rate("1"), Output: rate("2")}},
			{ID: "b@west", Provider: "west", UpstreamModel: "b-2", Prices: money.Prices{Input: rate("1"), Output: rate("2")}},
		},
		Models: []catalog.Model{
			{
				Slug: "a", ExactModel: "a", Equivalence: &catalog.Equivalence{CertifiedBy: "ops", On: "2026-11-01", Evidence: "sha256:00"},
				Policy: catalog.Policy{FailoverMode: catalog.MaximizeAvailability, MaxAttempts: 4},
				Chain:  []catalog.Rung{{Deployment: "a@east"}, {Model: "b"}, {Deployment: "a@west"}},
			},
			{
				Slug: "b", ExactModel: "b", Equivalence: &catalog.Equivalence{CertifiedBy: "ops", On: "2026-11-01", Evidence: "sha256:01"},
				Chain: []catalog.Rung{{Deployment: "b@east"}, {Model: "a"}, {Deployment: "b@west"}},
			},
		},
		Classes: []catalog.Class{{Name: "assistant", Chain: []string{"a", "b"}}},
		Tenants: []catalog.Tenant{
			{
				ID: "acme", Tier: "standard",
				Aliases:      []catalog.Alias{{Name: "fast", Capabilities: []catalog.Capability{catalog.Chat}, CostTier: catalog.Cheapest}},
				RoutingRules: []catalog.RoutingRule{{Match: "best", Chain: []string{"a", "fast"}}},
				Budgets: []catalog.Budget{
					{Scope: "organization", LimitUSD: "500.00", Per: catalog.PerMonth},
					{Scope: "organization", Requests: 600, Per: catalog.PerMinute},
				},
			},
			{ID: "zeta"},
		},
	}
}

// history is the events that make a catalog of objects, as a log would hold them.
func history(t testing.TB, objects ...catalog.Objects) []catalog.Recorded {
	t.Helper()
	state, log := catalog.NewState(), []catalog.Recorded(nil)
	for _, o := range objects {
		for _, change := range catalog.Diff(state, o) {
			version := change.Revision
			for _, e := range change.Events {
				version++
				rec := catalog.Recorded{Stream: change.Stream, Version: version, Position: int64(len(log) + 1), At: testTime, Event: e}
				log = append(log, rec)
				state.Fold(rec)
			}
		}
	}
	return log
}

func folded(log []catalog.Recorded) *catalog.State {
	state := catalog.NewState()
	for _, rec := range log {
		state.Fold(rec)
	}
	return state
}

func snapshotOf(t testing.TB, o catalog.Objects) *catalog.Snapshot {
	t.Helper()
	return folded(history(t, o)).Snapshot()
}
