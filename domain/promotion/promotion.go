// Package promotion decides what a promotion gives away of an attempt, and what that
// takes of its allowances (M10).
//
// Free input and free output are two gifts, each with allowances of its own. A gift
// applies to an attempt whose worst case fits every one of them, whole or not at all:
// the tokens are held with the reservation, and the settlement puts those that were
// given away in the place of the hold. So what is given away and what is held never
// exceed an allowance, however many workers share it, but for usage beyond what was
// estimated, which is counted in full (M16).
package promotion

import (
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

// Scope names a promotion's allowance where one refuses (A9).
const Scope = budget.ScopePromotion

// Side is one of the two things that are given away.
type Side string

// The sides of a promotion.
const (
	Input  Side = "input"
	Output Side = "output"
)

// Running is the promotion that gives a model away at a moment, nil for none. No two of
// an organization do at once.
func Running(promotions []catalog.Promotion, model string, now time.Time) *catalog.Promotion {
	for i := range promotions {
		if p := &promotions[i]; p.Gives(model) && p.Runs(now) {
			return p
		}
	}
	return nil
}

// Complete reports whether a promotion can make a whole attempt free: one that gives
// away only its input or its output cannot.
func Complete(p *catalog.Promotion) bool {
	return p != nil && p.FreeInputTokens != nil && p.FreeOutputTokens != nil
}

// Allowance is one limit of what is given away, in the window that holds now.
type Allowance struct {
	Side Side
	// Model is whose own allowance it is; empty is that of all the promotion's models.
	Model string
	Per   catalog.Period
	// Unit is catalog.Tokens, or catalog.USD where the limit was written in money:
	// counted in nano-USD, at list price.
	Unit  catalog.Unit
	Limit int64
	Key   budget.Key
	// Resets is when the window ends; zero for the total, which never does.
	Resets time.Time
}

// Allowances are the limits of a promotion that hold for a model at a moment: its own,
// then those of all models together; input before output, short windows first.
func Allowances(tenant string, p *catalog.Promotion, model string, now time.Time) []Allowance {
	var list []Allowance
	for _, side := range []struct {
		name   Side
		limits *catalog.Allowances
	}{{Input, p.FreeInputTokens}, {Output, p.FreeOutputTokens}} {
		if side.limits == nil {
			continue
		}
		a := allowances{tenant: tenant, promotion: p.ID, side: side.name, now: now}
		list = append(list, a.of(side.limits.PerModel, model)...)
		list = append(list, a.of(side.limits.Overall, "")...)
	}
	return list
}

// All are the limits of a promotion for each of its models, and overall, at a moment.
func All(tenant string, p *catalog.Promotion, now time.Time) []Allowance {
	var list []Allowance
	for i, model := range p.Models {
		for _, a := range Allowances(tenant, p, model, now) {
			// What holds for all models together is one limit.
			if a.Model != "" || i == 0 {
				list = append(list, a)
			}
		}
	}
	return list
}

// keys begin the keys of all counters of promotions. A model's name may hold slashes;
// it stands between parts that cannot.
const keys = "promo/"

type allowances struct {
	tenant, promotion string
	side              Side
	now               time.Time
}

func (a allowances) of(limits *catalog.AllowanceLimits, model string) []Allowance {
	whose := "overall"
	if model != "" {
		whose = "model/" + model
	}
	var list []Allowance
	for _, l := range limits.Limits() {
		one := Allowance{Side: a.side, Model: model, Per: l.Per, Unit: catalog.Tokens, Limit: l.Tokens}
		if l.InMoney() {
			one.Unit, one.Limit = catalog.USD, int64(l.NanoUSD)
		}
		var window string
		window, one.Resets = budget.CalendarWindow(l.Per, a.now)
		one.Key = budget.Key(keys + strings.Join([]string{
			a.tenant, a.promotion, string(a.side), whose, string(one.Unit), string(l.Per), window,
		}, "/"))
		list = append(list, one)
	}
	return list
}

// amount is how much of what is given away counts against an allowance, in its unit.
func amount(side Side, unit catalog.Unit, input, output money.Given) int64 {
	given := input
	if side == Output {
		given = output
	}
	if unit == catalog.USD {
		return int64(given.Cost)
	}
	return given.Tokens
}
