package budget_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// twelve are limits of money, requests and tokens, as a busy organization has them.
func twelve() []catalog.Budget {
	var budgets []catalog.Budget
	for _, per := range []catalog.Period{catalog.PerMinute, catalog.PerHour, catalog.PerDay, catalog.PerMonth} {
		budgets = append(budgets,
			catalog.Budget{Scope: catalog.ScopeOrganization, LimitUSD: "12345.678901234", Per: per},
			catalog.Budget{Scope: catalog.ScopeKey, Requests: 1_000_000, Per: per},
			catalog.Budget{Scope: catalog.ScopeModel, Tokens: 1_000_000_000, Per: per})
	}
	return budgets
}

// BenchmarkLimits is what a reservation costs before it is asked for: the limits that
// hold, their checks and what is taken of them.
func BenchmarkLimits(b *testing.B) {
	subject := budget.Subject{Tenant: "acme", Key: "01a22a25-d28b-7adc-9663-9b4eee3b32d1", Root: "fable-5", Model: "fable-5", Pool: "fable-5", Deployment: "fable-5@one"}
	budgets, now := twelve(), time.Date(2026, 11, 30, 12, 34, 56, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		limits, err := budget.Limits(subject, budgets, now)
		if err != nil {
			b.Fatal(err)
		}
		budget.Checks(limits, 1000)
		budget.Holds(limits)
		budget.Take(limits, 100)
	}
}
