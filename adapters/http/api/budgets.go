package api

import (
	"context"
	"iter"
	"strings"
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

// budgetState is a limit and what is left of it, in its unit; money is in nano-USD.
type budgetState struct {
	// Budget is the id of the budget and Of whose counter this is, where it is one of
	// several. Neither names a masked deployment.
	Budget      string              `json:"budget"`
	Scope       string              `json:"scope"`
	Of          string              `json:"of,omitempty"`
	Unit        string              `json:"unit"`
	Per         catalog.Period      `json:"per"`
	Enforcement catalog.Enforcement `json:"enforcement"`
	Limit       int64               `json:"limit"`
	// Held is reserved by requests that run, Settled used in the window.
	Held    int64 `json:"held"`
	Settled int64 `json:"settled"`
	// Remaining is never below zero, also where a limit was lowered below what is spent.
	Remaining int64 `json:"remaining"`
	// ResetsAt is when the window ends or, where it trails, moves next.
	ResetsAt *time.Time `json:"resets_at"`
}

// maxBudgetStates bounds the list: a budget of each model has a counter for every one.
const maxBudgetStates = 2_000

// getBudgets is GET /v1/budgets: the organization's limits and what is left of them. Of
// keys, teams and identities it shows the caller's own.
func (a *API) getBudgets(ctx context.Context, c *call) *edge.Reply {
	tenant, ok := c.snapshot.Tenant(c.key.Tenant)
	if !ok {
		return a.unavailable(c.Request)
	}
	limits, err := limitsShown(c, tenant, a.Now())
	if err != nil {
		a.Logger.Error("budgets cannot be read", "tenant", tenant.ID, "error", err)
		return a.unavailable(c.Request)
	}
	var keys []budget.Key
	for _, l := range limits {
		keys = append(keys, l.Key)
		if l.HeldKey != "" {
			keys = append(keys, l.HeldKey)
		}
	}
	counters := map[budget.Key]budget.Counter{}
	if len(keys) > 0 {
		if counters, err = a.Counters.Counters(ctx, a.ShardOf(tenant.ID), keys); err != nil {
			a.Logger.Error("budget counters cannot be read", "error", err)
			return a.unavailable(c.Request)
		}
	}
	states := make([]budgetState, len(limits))
	for i := range limits {
		states[i] = stateOf(&limits[i], counters)
		states[i].mask(c.snapshot)
	}
	return writeJSON(listOf(states, ""))
}

// limitsShown are the organization's limits, one for each counter: a budget of every
// model has as many as there are models.
func limitsShown(c *call, tenant *catalog.Tenant, now time.Time) ([]budget.Limit, error) {
	var limits []budget.Limit
	for i := range tenant.Budgets {
		for who := range under(c, tenant, &tenant.Budgets[i]) {
			if len(limits) >= maxBudgetStates {
				return limits, nil
			}
			of, err := budget.Limits(who, tenant.Budgets[i:i+1], now)
			if err != nil {
				return nil, err
			}
			limits = append(limits, of...)
		}
	}
	return limits, nil
}

// under are those whom a budget has a counter for, as far as the caller may see them.
func under(c *call, tenant *catalog.Tenant, b *catalog.Budget) iter.Seq[budget.Subject] {
	return func(yield func(budget.Subject) bool) {
		who := budget.Subject{Tenant: tenant.ID, Key: c.key.ID, Team: c.key.Team, Identity: c.key.Identity}
		switch b.Scope {
		case catalog.ScopeModel, catalog.ScopePool:
			seen := map[string]bool{}
			for _, m := range c.snapshot.Objects().Models {
				name := m.Slug
				if b.Scope == catalog.ScopePool {
					name = m.ExactModel
				}
				who.Model, who.Pool = m.Slug, m.ExactModel
				if (b.Of == "" || b.Of == name) && !seen[name] && !yield(who) {
					return
				}
				seen[name] = true
			}
		case catalog.ScopeDeployment:
			for _, d := range c.snapshot.Objects().Deployments {
				who.Deployment = d.ID
				if (b.Of == "" || b.Of == d.ID) && !yield(who) {
					return
				}
			}
		default:
			yield(who)
		}
	}
}

// mask leaves a masked deployment out of its limit: its name tends to tell the provider
// (X1).
func (s *budgetState) mask(snapshot *catalog.Snapshot) {
	if s.Scope != catalog.ScopeDeployment {
		return
	}
	if d, ok := snapshot.Deployment(s.Of); ok && d.Masked {
		s.Budget = strings.Replace(s.Budget, ":"+s.Of, "", 1)
		s.Of = ""
	}
}

func stateOf(l *budget.Limit, counters map[budget.Key]budget.Counter) budgetState {
	s := budgetState{
		Budget: l.Budget, Scope: l.Scope, Of: l.Of, Per: l.Per, Enforcement: catalog.Enforce, Limit: l.Limit,
	}
	if l.Observe {
		s.Enforcement = catalog.Observe
	}
	seen := l.See(counters)
	s.Unit, s.Held, s.Settled = seen.Unit, seen.Held, seen.Settled
	s.Remaining = max(0, l.Limit-seen.Used)
	if !seen.Resets.IsZero() {
		s.ResetsAt = &seen.Resets
	}
	return s
}
