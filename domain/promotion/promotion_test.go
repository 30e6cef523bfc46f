package promotion_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/promotion"
	"github.com/sluice-gateway/sluice/domain/request"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func every(n int64) *catalog.AllowanceLimits {
	return &catalog.AllowanceLimits{PerHour: n, PerDay: 2 * n, TotalUSD: "0.00001"}
}

// Whatever a model is called, its counters are its own, settle as the side and the unit
// that they are of, and are no window that trails.
//
// Rules: M10.
func TestEachAllowanceHasItsOwnCounter_M10(t *testing.T) {
	p := &catalog.Promotion{
		ID: "launch", Models: []string{"m", "lab/m", "m/tokens/hour/trailing", "overall", "model/m"},
		FreeInputTokens:  &catalog.Allowances{PerModel: every(10), Overall: every(100)},
		FreeOutputTokens: &catalog.Allowances{PerModel: every(20), Overall: every(200)},
	}
	owner := map[budget.Key]promotion.Allowance{}
	for _, a := range promotion.All("acme", p, noon) {
		if other, taken := owner[a.Key]; taken {
			t.Errorf("%s counts for %+v and %+v", a.Key, other, a)
		}
		owner[a.Key] = a
		if budget.Trails(a.Key) {
			t.Errorf("%s trails", a.Key)
		}
		if side := promotion.SideOf(budget.Check{Key: a.Key}); side != a.Side {
			t.Errorf("%s is of side %q, not %q", a.Key, side, a.Side)
		}
		taken := []request.Take{{Key: string(a.Key), Held: 9}, {Key: "org/acme/tokens/held", Held: 9}}
		input, output := money.Given{Tokens: 1, Cost: 2}, money.Given{Tokens: 3, Cost: 4}
		want := map[promotion.Side]map[catalog.Unit]int64{
			promotion.Input:  {catalog.Tokens: 1, catalog.USD: 2},
			promotion.Output: {catalog.Tokens: 3, catalog.USD: 4},
		}[a.Side][a.Unit]
		if got := promotion.Return(taken, input, output); len(got) != 1 || got[0] != (request.Take{Key: string(a.Key), Held: -9, Settled: want}) {
			t.Errorf("%s settles as %+v, want %d", a.Key, got, want)
		}
		if got := promotion.Keep(taken); len(got) != 1 || got[0].Settled != 9 {
			t.Errorf("%s keeps %+v", a.Key, got)
		}
	}
	// Two sides, three limits, five models and all of them together.
	if len(owner) != 2*3*6 {
		t.Errorf("%d counters", len(owner))
	}
}

// What is given away is decided by the model's own promotion, the sides that are left,
// and whether the request may spend anything.
//
// Rules: M10.
func TestWhatAnOfferGives_M10(t *testing.T) {
	both := catalog.Promotion{
		ID: "both", Models: []string{"m"}, Ends: "2026-12-01",
		FreeInputTokens: &catalog.Allowances{Overall: every(1)}, FreeOutputTokens: &catalog.Allowances{Overall: every(1)},
	}
	cached, input := both, both
	cached.CachedInputFree = true
	input.FreeOutputTokens = nil
	for name, c := range map[string]struct {
		promotion catalog.Promotion
		model     string
		freeOnly  bool
		without   []promotion.Side
		at        time.Time
		want      money.Free
		limits    int
	}{
		"both sides":                    {both, "m", false, nil, noon, money.Free{Input: true, Output: true}, 6},
		"cached input where it is said": {cached, "m", false, nil, noon, money.Free{Input: true, CachedInput: true, Output: true}, 6},
		"all of it for a free request":  {both, "m", true, nil, noon, money.Free{Input: true, CachedInput: true, Output: true}, 6},
		"without the output":            {both, "m", false, []promotion.Side{promotion.Output}, noon, money.Free{Input: true}, 3},
		"without the input":             {cached, "m", false, []promotion.Side{promotion.Input}, noon, money.Free{Output: true}, 3},
		"without either":                {both, "m", false, []promotion.Side{promotion.Input, promotion.Output}, noon, money.Free{}, 0},
		"another model":                 {both, "n", false, nil, noon, money.Free{}, 0},
		"after its end":                 {both, "m", false, nil, noon.Add(24 * time.Hour), money.Free{}, 0},
		"half of it for a free request": {input, "m", true, nil, noon, money.Free{}, 0},
		"half of it for any other":      {input, "m", false, nil, noon, money.Free{Input: true}, 3},
	} {
		o := promotion.OfferFor("acme", []catalog.Promotion{c.promotion}, c.model, c.freeOnly, c.without, c.at)
		if o.Free != c.want || len(o.Allowances) != c.limits || o.Nothing() != (o.Recorded() == nil) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// However reservations and settlements of many workers meet, what is held and given
// never exceeds an allowance, nothing is held below zero, and in the end nothing at all.
//
// Rules: M10, M16.
func TestNoAllowanceIsEverExceeded_M10_M16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := catalog.Promotion{
			ID: "launch", Models: []string{"m", "n"},
			FreeInputTokens:  &catalog.Allowances{PerModel: &catalog.AllowanceLimits{PerHour: 300}, Overall: &catalog.AllowanceLimits{TotalUSD: "0.0000008"}},
			FreeOutputTokens: &catalog.Allowances{Overall: &catalog.AllowanceLimits{PerDay: 90, Total: 120}},
		}
		limits := map[budget.Key]int64{}
		counters := map[budget.Key]budget.Counter{}
		var open [][]request.Take
		var worsts []money.WorstSplit
		now := noon
		apply := func(takes []request.Take) {
			for _, take := range takes {
				budget.Apply(counters, []budget.Delta{{Key: budget.Key(take.Key), Held: take.Held, Settled: take.Settled}})
			}
			for key, c := range counters {
				if c.Held < 0 || c.Held+c.Settled > limits[key] {
					t.Fatalf("%s holds %d and has given %d of %d", key, c.Held, c.Settled, limits[key])
				}
			}
		}
		settle := func(i int) {
			taken, worst := open[i], worsts[i]
			open, worsts = append(open[:i:i], open[i+1:]...), append(worsts[:i:i], worsts[i+1:]...)
			if rapid.Bool().Draw(t, "nobody knows") {
				apply(promotion.Keep(taken))
				return
			}
			part := func(g money.Given) money.Given {
				n := rapid.Int64Range(0, g.Tokens).Draw(t, "used")
				return money.Given{Tokens: n, Cost: money.NanoUSD(n) * g.Cost / money.NanoUSD(max(g.Tokens, 1))}
			}
			apply(promotion.Return(taken, part(worst.Input), part(worst.Output)))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
			if len(open) > 0 && rapid.Bool().Draw(t, "settles") {
				settle(rapid.IntRange(0, len(open)-1).Draw(t, "which"))
				continue
			}
			in, out := rapid.Int64Range(1, 200).Draw(t, "in"), rapid.Int64Range(1, 60).Draw(t, "out")
			worst := money.WorstSplit{Input: money.Given{Tokens: in, Cost: money.NanoUSD(3 * in)}, Output: money.Given{Tokens: out, Cost: money.NanoUSD(15 * out)}}
			o := promotion.OfferFor("acme", []catalog.Promotion{p}, rapid.SampledFrom(p.Models).Draw(t, "model"), rapid.Bool().Draw(t, "free only"), nil, now)
			for _, a := range o.Allowances {
				limits[a.Key] = a.Limit
			}
			if budget.Decide(counters, o.Checks(worst)) == nil {
				apply(o.Takes(worst))
				open, worsts = append(open, o.Takes(worst)), append(worsts, worst)
			}
		}
		for len(open) > 0 {
			settle(0)
		}
		for key, c := range counters {
			if c.Held != 0 {
				t.Fatalf("%s still holds %d", key, c.Held)
			}
		}
	})
}
