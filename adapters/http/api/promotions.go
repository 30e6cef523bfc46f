package api

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/promotion"
)

// The states of a promotion.
const (
	promotionUpcoming = "upcoming"
	promotionRunning  = "running"
	promotionEnded    = "ended"
)

// promotionState is a promotion and, while it runs, what is left of it.
type promotionState struct {
	ID     string     `json:"id"`
	Models []string   `json:"models"`
	State  string     `json:"state"`
	Starts *time.Time `json:"starts"`
	Ends   *time.Time `json:"ends"`
	// FreeInput and FreeOutput say what is given away at all.
	FreeInput       bool             `json:"free_input"`
	FreeOutput      bool             `json:"free_output"`
	CachedInputFree bool             `json:"cached_input_free"`
	Allowances      []allowanceState `json:"allowances"`
}

// allowanceState is one limit of what is given away, in tokens. Where it was written in
// money they are about what it buys at the dearest price of the models, and approximate
// says so; they are null where no price is known.
type allowanceState struct {
	Side promotion.Side `json:"side"`
	// Model is null for the allowance of all models together.
	Model     *string        `json:"model"`
	Per       catalog.Period `json:"per"`
	Limit     *int64         `json:"limit_tokens"`
	Held      *int64         `json:"held_tokens"`
	Given     *int64         `json:"given_tokens"`
	Remaining *int64         `json:"remaining_tokens"`
	// Approximate is set on tokens that were made of money.
	Approximate bool       `json:"approximate"`
	ResetsAt    *time.Time `json:"resets_at"`
}

// getPromotions is GET /v1/promotions: what is given away to the organization, and what
// is left of it.
func (a *API) getPromotions(ctx context.Context, c *call) *edge.Reply {
	tenant, ok := c.snapshot.Tenant(c.key.Tenant)
	if !ok {
		return a.unavailable(c.Request)
	}
	now := a.Now()
	states := make([]promotionState, len(tenant.Promotions))
	running := make([][]promotion.Allowance, len(tenant.Promotions))
	var keys []budget.Key
	for i := range tenant.Promotions {
		p := &tenant.Promotions[i]
		states[i] = promotionStateOf(p, now)
		if states[i].State != promotionRunning {
			continue
		}
		running[i] = promotion.All(tenant.ID, p, now)
		for _, one := range running[i] {
			keys = append(keys, one.Key)
		}
	}
	var counters map[budget.Key]budget.Counter
	if len(keys) > 0 {
		var err error
		if counters, err = a.Counters.Counters(ctx, a.ShardOf(tenant.ID), keys); err != nil {
			a.Logger.Error("counters of promotions cannot be read", "error", err)
			return a.unavailable(c.Request)
		}
	}
	for i := range running {
		for _, one := range running[i] {
			models := states[i].Models
			if one.Model != "" {
				models = []string{one.Model}
			}
			rate := c.snapshot.DearestRate(models, one.Side == promotion.Output)
			states[i].Allowances = append(states[i].Allowances, leftOf(one, counters[one.Key], rate))
		}
	}
	return writeJSON(listOf(states, ""))
}

func promotionStateOf(p *catalog.Promotion, now time.Time) promotionState {
	s := promotionState{
		ID: p.ID, Models: p.Models, State: promotionRunning, FreeInput: p.FreeInputTokens != nil,
		FreeOutput: p.FreeOutputTokens != nil, CachedInputFree: p.CachedInputFree, Allowances: []allowanceState{},
	}
	starts, ends := p.Interval()
	if !starts.IsZero() {
		s.Starts = &starts
	}
	if !ends.IsZero() {
		s.Ends = &ends
	}
	switch {
	case now.Before(starts):
		s.State = promotionUpcoming
	case !p.Runs(now):
		s.State = promotionEnded
	}
	return s
}

// leftOf tells a limit and its counter in tokens. What is left is never below zero.
func leftOf(l promotion.Allowance, now budget.Counter, rate *decimal.Decimal) allowanceState {
	s := allowanceState{Side: l.Side, Per: l.Per, Approximate: l.Unit == catalog.USD}
	if l.Model != "" {
		s.Model = &l.Model
	}
	if !l.Resets.IsZero() {
		s.ResetsAt = &l.Resets
	}
	if s.Approximate && (rate == nil || !rate.IsPositive()) {
		return s
	}
	tokens := func(n int64) *int64 {
		if s.Approximate {
			n = money.TokensFor(money.NanoUSD(n), rate)
		}
		return &n
	}
	s.Limit, s.Held, s.Given = tokens(l.Limit), tokens(now.Held), tokens(now.Settled)
	s.Remaining = tokens(max(0, l.Limit-now.Held-now.Settled))
	return s
}
