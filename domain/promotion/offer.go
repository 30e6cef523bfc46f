package promotion

import (
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Offer is what a promotion may give away of one attempt. The zero value gives nothing.
type Offer struct {
	ID         string
	Free       money.Free
	Allowances []Allowance
}

// Nothing reports whether the offer gives nothing away.
func (o Offer) Nothing() bool { return o.Free.Nothing() }

// OfferFor is what the running promotion of a model gives away of an attempt on it.
// without are the sides whose allowances have refused. freeOnly asks for an attempt that
// is free altogether, its cached input included, or for nothing: it never spends credit.
func OfferFor(tenant string, promotions []catalog.Promotion, model string, freeOnly bool, without []Side, now time.Time) Offer {
	p := Running(promotions, model, now)
	if p == nil || freeOnly && !Complete(p) {
		return Offer{}
	}
	gives := func(side Side, limits *catalog.Allowances) bool {
		for _, w := range without {
			if w == side {
				return false
			}
		}
		return limits != nil
	}
	free := money.Free{Input: gives(Input, p.FreeInputTokens), Output: gives(Output, p.FreeOutputTokens)}
	free.CachedInput = free.Input && (p.CachedInputFree || freeOnly)
	if free.Nothing() {
		return Offer{}
	}
	o := Offer{ID: p.ID, Free: free}
	for _, a := range Allowances(tenant, p, model, now) {
		if a.Side == Input && free.Input || a.Side == Output && free.Output {
			o.Allowances = append(o.Allowances, a)
		}
	}
	return o
}

// Recorded is the offer as a reservation and its settlement record it; nil for nothing.
func (o Offer) Recorded() *request.Gift {
	if o.Nothing() {
		return nil
	}
	return &request.Gift{ID: o.ID, Free: o.Free}
}

// Checks ask every allowance for the worst case (M16).
func (o Offer) Checks(worst money.WorstSplit) []budget.Check {
	checks := make([]budget.Check, len(o.Allowances))
	for i, a := range o.Allowances {
		checks[i] = budget.Check{
			Key: a.Key, Unit: a.Unit, Whole: true, Limit: a.Limit, Ask: amount(a.Side, a.Unit, worst.Input, worst.Output),
			Budget: o.ID, Scope: Scope, Per: a.Per, Resets: a.Resets,
		}
	}
	return checks
}

// Takes hold the worst case of every allowance.
func (o Offer) Takes(worst money.WorstSplit) []request.Take {
	takes := make([]request.Take, len(o.Allowances))
	for i, a := range o.Allowances {
		takes[i] = request.Take{Key: string(a.Key), Held: amount(a.Side, a.Unit, worst.Input, worst.Output)}
	}
	return takes
}

// Return gives back what a reservation held and takes what was given away instead, on
// the counters that were held: an hour that has passed since keeps what began in it.
func Return(taken []request.Take, input, output money.Given) []request.Take {
	return each(taken, func(k key, _ int64) int64 { return amount(k.side, k.unit, input, output) })
}

// Keep gives away all that was held: what an answer used whose usage nobody knows. It
// may have been all of it, and an allowance that a silent provider never used up would
// be none (M6, D2).
func Keep(taken []request.Take) []request.Take {
	return each(taken, func(_ key, held int64) int64 { return held })
}

func each(taken []request.Take, settled func(key, int64) int64) []request.Take {
	var takes []request.Take
	for _, t := range taken {
		if k, ok := parse(t.Key); ok {
			takes = append(takes, request.Take{Key: t.Key, Held: -t.Held, Settled: settled(k, t.Held)})
		}
	}
	return takes
}

// key is what a counter's key says of it.
type key struct {
	side Side
	unit catalog.Unit
}

// parse reads a key that allowances made; any other is nobody's here.
func parse(text string) (key, bool) {
	rest, ok := strings.CutPrefix(text, keys)
	parts := strings.Split(rest, "/")
	const fewest = 7 // tenant, promotion, side, overall, unit, period, window
	if !ok || len(parts) < fewest {
		return key{}, false
	}
	return key{side: Side(parts[2]), unit: catalog.Unit(parts[len(parts)-3])}, true
}

// SideOf is the side of the allowance that refused.
func SideOf(c budget.Check) Side {
	k, _ := parse(string(c.Key))
	return k.side
}
