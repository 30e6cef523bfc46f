package api

import (
	"context"
	"time"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Counters reads budget counters as they are now. They are the counters that requests
// are decided by, not a copy.
type Counters interface {
	Counters(ctx context.Context, shard int16, keys []budget.Key) (map[budget.Key]budget.Counter, error)
}

// budgetState is a budget and what is left of it, in its unit; money is in nano-USD.
// What this release does not count is null: nobody knows it, which is not zero.
type budgetState struct {
	Scope string         `json:"scope"`
	Unit  string         `json:"unit"`
	Per   catalog.Period `json:"per"`
	Limit int64          `json:"limit"`
	// Held is reserved by requests that run.
	Held    *int64 `json:"held"`
	Settled *int64 `json:"settled"`
	// Remaining is never below zero, also where a limit was lowered below what is spent.
	Remaining *int64     `json:"remaining"`
	ResetsAt  *time.Time `json:"resets_at"`
}

// getBudgets is GET /v1/budgets: the organization's limits and what is left of them.
func (a *API) getBudgets(ctx context.Context, c *call) *edge.Reply {
	tenant, ok := c.snapshot.Tenant(c.key.Tenant)
	if !ok {
		return a.unavailable(c.Request)
	}
	states := make([]budgetState, len(tenant.Budgets))
	counted := map[int]budget.Limit{}
	var keys []budget.Key
	for i, b := range tenant.Budgets {
		size, err := b.Limit()
		if err != nil {
			a.Logger.Error("budget cannot be read", "tenant", tenant.ID, "budget", b.ID(), "error", err)
			return a.unavailable(c.Request)
		}
		states[i] = budgetState{Scope: b.Scope, Unit: unitName(b.Unit()), Per: b.Per, Limit: size}
		// One at a time, so that a limit is known by the budget it came from.
		limits, err := budget.MoneyLimits(tenant.ID, tenant.Budgets[i:i+1], a.Now())
		if err != nil || len(limits) == 0 {
			continue
		}
		counted[i], keys = limits[0], append(keys, limits[0].Key)
	}
	if len(keys) > 0 {
		counters, err := a.Counters.Counters(ctx, a.ShardOf(tenant.ID), keys)
		if err != nil {
			a.Logger.Error("budget counters cannot be read", "error", err)
			return a.unavailable(c.Request)
		}
		for i, limit := range counted {
			states[i].count(counters[limit.Key], limit.Resets)
		}
	}
	return writeJSON(listOf(states, ""))
}

func (s *budgetState) count(now budget.Counter, resets time.Time) {
	remaining := max(0, s.Limit-now.Held-now.Settled)
	s.Held, s.Settled, s.Remaining = &now.Held, &now.Settled, &remaining
	if !resets.IsZero() {
		s.ResetsAt = &resets
	}
}

// unitName says that money is counted in nano-USD.
func unitName(u catalog.Unit) string {
	if u == catalog.USD {
		return "nanousd"
	}
	return string(u)
}
