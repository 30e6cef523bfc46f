package catalog_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Rules: C10.
func TestPolicyDefaults_C10(t *testing.T) {
	rest := func(p catalog.Policy) catalog.Policy {
		p.LostAnswer, p.MaxAttempts = catalog.Continue, 8
		p.Circuit = &catalog.CircuitPolicy{FailuresToOpen: 2, OpenFor: catalog.Duration(30 * time.Second)}
		return p
	}
	for name, c := range map[string]struct{ in, want catalog.Policy }{
		"nothing set": {
			catalog.Policy{},
			catalog.Policy{FailoverMode: catalog.MaximizeCache, ThrottleCacheThreshold: new(0.5)},
		},
		"a mode removes the automatic threshold": {
			catalog.Policy{FailoverMode: catalog.MaximizeCache},
			catalog.Policy{FailoverMode: catalog.MaximizeCache},
		},
		"a threshold alone": {
			catalog.Policy{ThrottleCacheThreshold: new(0.0)},
			catalog.Policy{FailoverMode: catalog.MaximizeCache, ThrottleCacheThreshold: new(0.0)},
		},
		"a redial schedule gets its delays": {
			catalog.Policy{FailoverMode: catalog.MaximizeAvailability, ThrottleRedial: &catalog.ThrottleRedial{MaxRetries: 3}},
			catalog.Policy{FailoverMode: catalog.MaximizeAvailability, ThrottleRedial: &catalog.ThrottleRedial{
				MaxRetries: 3, BaseDelay: catalog.Duration(500 * time.Millisecond), MaxDelay: catalog.Duration(8 * time.Second),
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.in.WithDefaults()
			if diff := cmp.Diff(rest(c.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, got.WithDefaults()); diff != "" {
				t.Errorf("a second time changes it (-once +twice):\n%s", diff)
			}
		})
	}
}

// Rules: M1.
func TestBudgetLimit_M1(t *testing.T) {
	for _, c := range []struct {
		budget catalog.Budget
		unit   catalog.Unit
		limit  int64
		fails  bool
	}{
		{catalog.Budget{LimitUSD: "500.00"}, catalog.USD, 500_000_000_000, false},
		{catalog.Budget{LimitUSD: "0.000000001"}, catalog.USD, 1, false},
		{catalog.Budget{Requests: 600}, catalog.Requests, 600, false},
		{catalog.Budget{Tokens: 7}, catalog.Tokens, 7, false},
		{catalog.Budget{LimitUSD: "much"}, catalog.USD, 0, true},
		{catalog.Budget{LimitUSD: "99999999999"}, catalog.USD, 0, true},
		{catalog.Budget{}, "", 0, true},
	} {
		limit, err := c.budget.Limit()
		if limit != c.limit || (err != nil) != c.fails || c.budget.Unit() != c.unit {
			t.Errorf("%+v: %d %s, %v", c.budget, limit, c.budget.Unit(), err)
		}
	}
}
