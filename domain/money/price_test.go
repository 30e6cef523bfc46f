package money_test

import (
	"errors"
	"math"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/usage"
)

func usd(s string) *decimal.Decimal {
	d := decimal.RequireFromString(s)
	return &d
}

var fable = money.Prices{
	Input: usd("3.00"), Output: usd("15.00"), CacheRead: usd("0.30"), CacheWrite5m: usd("3.75"), CacheWrite1h: usd("6.00"),
	LongContext: &money.LongContext{AboveInputTokens: 200_000, Input: usd("6.00"), Output: usd("22.50"), CacheRead: usd("0.60")},
}

// Rules: M4.
func TestCostPricesEachTokenOnce_M4(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    money.Prices
		u    usage.Usage
		want money.NanoUSD
	}{
		{"input and output", fable, usage.Usage{Input: usage.Of(1000), Output: usage.Of(100)}, 4_500_000},
		{
			"cached input is a part of input", fable,
			usage.Usage{Input: usage.Of(1000), CachedInput: usage.Of(600), Output: usage.Of(0)},
			1_200_000 + 180_000,
		},
		{
			"writes are parts of input too", fable,
			usage.Usage{Input: usage.Of(1000), CacheWrite5m: usage.Of(100), CacheWrite1h: usage.Of(200), Output: usage.Of(0)},
			2_100_000 + 375_000 + 1_200_000,
		},
		{
			"reasoning is a part of output", fable,
			usage.Usage{Input: usage.Of(0), Output: usage.Of(100), Reasoning: usage.Of(90)},
			1_500_000,
		},
		{
			"past the threshold the whole request pays the long rates", fable,
			usage.Usage{Input: usage.Of(200_001), Output: usage.Of(10)},
			200_001*6000 + 10*22_500,
		},
		{
			"a missing cached rate prices as full input (M6)",
			money.Prices{Input: usd("3"), Output: usd("15")},
			usage.Usage{Input: usage.Of(1000), CachedInput: usage.Of(1000), Output: usage.Of(0)},
			3_000_000,
		},
		{
			"half a nano-USD rounds away from zero (M1)",
			money.Prices{Input: usd("0.0005"), Output: usd("0")},
			usage.Usage{Input: usage.Of(1), Output: usage.Of(0)},
			1,
		},
		{
			"less than half rounds to zero (M1)",
			money.Prices{Input: usd("0.000499999"), Output: usd("0")},
			usage.Usage{Input: usage.Of(1), Output: usage.Of(0)},
			0,
		},
		{
			"one rounding for all parts, not one each (M1)",
			money.Prices{Input: usd("0.0004"), Output: usd("0.0004")},
			usage.Usage{Input: usage.Of(1), Output: usage.Of(1)},
			1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.p.Cost(tc.u)
			if err != nil || got != tc.want {
				t.Errorf("got %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}

// Rules: M4.
func TestContradictoryUsageIsAnErrorNeverACredit_M4(t *testing.T) {
	for name, u := range map[string]usage.Usage{
		"more cached than input": {Input: usage.Of(56_322), CachedInput: usage.Of(72_960), Output: usage.Of(1)},
		"negative input":         {Input: usage.Of(-1), Output: usage.Of(1)},
		"negative output":        {Input: usage.Of(1), Output: usage.Of(-1)},
		"negative cached":        {Input: usage.Of(1), CachedInput: usage.Of(-1), Output: usage.Of(1)},
		"parts that wrap around": {Input: usage.Of(10), CachedInput: usage.Of(math.MaxInt64), CacheWrite5m: usage.Of(math.MaxInt64), Output: usage.Of(1)},
	} {
		if cost, err := fable.Cost(u); !errors.Is(err, money.ErrNegative) {
			t.Errorf("%s: cost %d, error %v", name, cost, err)
		}
	}
}

// Rules: M1.
func TestAnAmountThatDoesNotFitIsAnError_M1(t *testing.T) {
	huge := money.Prices{Input: usd("9000000"), Output: usd("1")}
	if cost, err := huge.Cost(usage.Usage{Input: usage.Of(math.MaxInt64), Output: usage.Of(0)}); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("cost %d, error %v", cost, err)
	}
	// What an int64 holds and no attempt can cost: a second one would not fit beside it.
	for tokens, want := range map[int64]error{1_000_000_000_000: nil, 1_000_000_000_001: money.ErrOverflow} {
		cost, err := money.Prices{Input: usd("1"), Output: usd("1")}.Cost(usage.Usage{Input: usage.Of(tokens), Output: usage.Of(0)})
		if !errors.Is(err, want) || err == nil && cost != money.MaxCost {
			t.Errorf("%d tokens cost %d, %v", tokens, cost, err)
		}
	}
}

// Rules: M2.
func TestWorstCaseTakesTheDearestInputRate_M2(t *testing.T) {
	got, err := fable.WorstCase(1000, 100, money.Media{})
	if want := money.NanoUSD(1000*6000 + 100*15_000); err != nil || got != want {
		t.Errorf("got %d, %v; want %d: an hour's cache write is dearer than input", got, err, want)
	}
	// Field case 82: a long prompt is held at its own tier.
	got, err = fable.WorstCase(300_000, 0, money.Media{})
	if want := money.NanoUSD(300_000 * 6000); err != nil || got != want {
		t.Errorf("got %d, %v; want %d", got, err, want)
	}
}

// Rules: M1.
func TestPricesAreExactOrRefused_M1(t *testing.T) {
	for price, want := range map[string]error{
		"-0.01": money.ErrNegative, "0.0000000000001": money.ErrTooPrecise, "0.0000000000010": nil,
		"99999999999": money.ErrOverflow, "0": nil, "1e3": nil, "0.000000000001": nil,
	} {
		p := money.Prices{Input: usd(price), Output: usd("1")}
		if err := p.Validate(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", price, err, want)
		}
	}
}

// TestCostAgreesWithDecimals compares the integer arithmetic with the plain
// formula in exact decimals.
//
// Rules: M1.
func TestCostAgreesWithDecimals_M1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *decimal.Decimal {
			d := decimal.New(rapid.Int64Range(0, 1_000_000).Draw(t, name), -int32(rapid.IntRange(0, 12).Draw(t, name+" places")))
			return &d
		}
		p := money.Prices{Input: draw("input"), Output: draw("output"), CacheRead: draw("cached")}
		in := rapid.Int64Range(0, 2_000_000).Draw(t, "input tokens")
		cached := rapid.Int64Range(0, in).Draw(t, "cached tokens")
		out := rapid.Int64Range(0, 200_000).Draw(t, "output tokens")
		got, err := p.Cost(usage.Usage{Input: usage.Of(in), CachedInput: usage.Of(cached), Output: usage.Of(out)})

		times := func(r *decimal.Decimal, n int64) decimal.Decimal { return r.Mul(decimal.NewFromInt(n)) }
		exact := times(p.Input, in-cached).Add(times(p.CacheRead, cached)).Add(times(p.Output, out)).
			Mul(decimal.NewFromInt(1000)).Round(0)
		if exact.GreaterThan(decimal.NewFromInt(int64(money.MaxCost))) {
			if !errors.Is(err, money.ErrOverflow) {
				t.Fatalf("%s does not fit, got %d, %v", exact, got, err)
			}
			return
		}
		if err != nil || !decimal.NewFromInt(int64(got)).Equal(exact) {
			t.Fatalf("got %d, %v; want %s", got, err, exact)
		}
		worst, err := p.WorstCase(in, out, money.Media{})
		if err == nil && worst < got {
			t.Fatalf("the worst case %d is less than the cost %d", worst, got)
		}
	})
}

// A share is rounded once, half away from zero, and never overflows into a plausible
// number.
//
// Rules: M1.
func TestScaleRoundsOnce_M1(t *testing.T) {
	for _, tc := range []struct {
		n, part, whole, want money.NanoUSD
		err                  error
	}{
		{100, 3, 1, 300, nil},
		{1, 1, 2, 1, nil},
		{1, 1, 3, 0, nil},
		{2, 1, 3, 1, nil},
		{math.MaxInt64, 7, 7, math.MaxInt64, nil},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, nil},
		{math.MaxInt64, 2, 1, 0, money.ErrOverflow},
		{1, 1, 0, 0, money.ErrNegative},
		{-1, 1, 1, 0, money.ErrNegative},
		{0, 5, 9, 0, nil},
	} {
		if got, err := tc.n.Scale(tc.part, tc.whole); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%d x %d / %d = %d, %v", tc.n, tc.part, tc.whole, got, err)
		}
	}
}

// TestWindowTokensOfTheSource_R3: the two worked examples, and what gives no discount.
//
// Rules: R3.
func TestWindowTokensOfTheSource_R3(t *testing.T) {
	u := usage.Usage{Input: usage.Of(100_000), CachedInput: usage.Of(90_000), Output: usage.Of(2_000)}
	reasoning := u
	reasoning.Reasoning = usage.Of(1_500)
	over := u
	over.CachedInput = usage.Of(200_000)
	long := &money.LongContext{AboveInputTokens: 50_000, CacheRead: usd("3")}
	for _, tc := range []struct {
		name   string
		prices money.Prices
		usage  usage.Usage
		want   int64
	}{
		{"cached at a tenth", money.Prices{Input: usd("3"), Output: usd("15"), CacheRead: usd("0.30")}, u, 21_000_000},
		{"the long context's prices are equal", money.Prices{Input: usd("3"), Output: usd("15"), CacheRead: usd("0.30"), LongContext: long}, u, 102_000_000},
		{"no cache price", money.Prices{Input: usd("3"), Output: usd("15")}, u, 102_000_000},
		{"an input price of zero", money.Prices{Input: usd("0"), Output: usd("15"), CacheRead: usd("0")}, u, 102_000_000},
		{"a cached token is never more than a fresh one", money.Prices{Input: usd("3"), Output: usd("15"), CacheRead: usd("9")}, u, 102_000_000},
		{"no prices at all", money.Prices{}, u, 102_000_000},
		{"reasoning is in the output already", money.Prices{Input: usd("3"), CacheRead: usd("0.30")}, reasoning, 21_000_000},
		{"more cached than there was", money.Prices{Input: usd("3"), CacheRead: usd("0.30")}, over, 12_000_000},
		{"a share that does not end", money.Prices{Input: usd("3"), CacheRead: usd("1")}, usage.Usage{Input: usage.Of(1), CachedInput: usage.Of(1)}, 333},
		{"nothing known", money.Prices{Input: usd("3")}, usage.Usage{}, 0},
		{"more than a count can be", money.Prices{}, usage.Usage{Input: usage.Of(math.MaxInt64), Output: usage.Of(math.MaxInt64)}, math.MaxInt64},
		{"less than nothing", money.Prices{}, usage.Usage{Input: usage.Of(-5), Output: usage.Of(-1), CachedInput: usage.Of(-1)}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.prices.WindowParts(tc.usage); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// A percentage of an amount is what exact decimals say, rounded once, half away from
// zero; it grows with both, and never wraps around.
//
// Rules: M1, M12.
func TestPercentAgreesWithDecimals_M1_M12(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := money.NanoUSD(rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount"))
		percent := decimal.New(rapid.Int64Range(0, 1_000_000_000).Draw(t, "digits"), -rapid.Int32Range(0, 6).Draw(t, "places"))
		exact := n.USD().Mul(percent).Shift(7).Round(0) // nano-USD, of percent
		got, err := n.Percent(percent)
		if exact.GreaterThan(decimal.NewFromInt(math.MaxInt64)) {
			if !errors.Is(err, money.ErrOverflow) {
				t.Fatalf("%s does not fit, got %d, %v", exact, got, err)
			}
			return
		}
		if err != nil || !decimal.NewFromInt(int64(got)).Equal(exact) {
			t.Fatalf("%d x %s %%: got %d, %v; want %s", n, percent, got, err, exact)
		}
		if less := n / 2; less < n {
			if part, err := less.Percent(percent); err != nil || part > got {
				t.Fatalf("half of it has a larger share: %d, %v", part, err)
			}
		}
	})
}

// Rules: M1, M12.
func TestPercentRoundsHalfAwayFromZero_M1_M12(t *testing.T) {
	for _, tc := range []struct {
		n       money.NanoUSD
		percent string
		want    money.NanoUSD
		err     error
	}{
		{100, "5", 5, nil},
		{10, "5", 1, nil},
		{9, "5", 0, nil},
		{1, "50", 1, nil},
		{1, "49.999999", 0, nil},
		{7, "0", 0, nil},
		{1000, "0.05", 1, nil},
		{3, "1000", 30, nil},
		{-1, "5", 0, money.ErrNegative},
		{1, "-5", 0, money.ErrNegative},
		{1, "0.0000001", 0, money.ErrTooPrecise},
		{math.MaxInt64, "101", 0, money.ErrOverflow},
	} {
		if got, err := tc.n.Percent(decimal.RequireFromString(tc.percent)); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%d x %s %% = %d, %v", tc.n, tc.percent, got, err)
		}
	}
}

// TestMediaHaveTheirOwnPrices_M2_M4: audio and images are parts of input and output,
// never priced twice, and what came from a cache has the cache's rate.
//
// Rules: M2, M4.
func TestMediaHaveTheirOwnPrices_M2_M4(t *testing.T) {
	p := money.Prices{
		Input: usd("1"), Output: usd("2"), CacheRead: usd("0.5"),
		AudioInput: usd("10"), ImageInput: usd("3"), AudioOutput: usd("20"), ImageOutput: usd("30"),
	}
	for _, tc := range []struct {
		name string
		u    usage.Usage
		want money.NanoUSD
	}{
		{"text alone", usage.Usage{Input: usage.Of(10), Output: usage.Of(10)}, 30_000},
		{"a part of each", usage.Usage{
			Input: usage.Of(10), AudioInput: usage.Of(2), ImageInput: usage.Of(3),
			Output: usage.Of(10), AudioOutput: usage.Of(1), ImageOutput: usage.Of(4),
		}, (5*1 + 2*10 + 3*3 + 5*2 + 1*20 + 4*30) * 1000},
		{"audio from the cache", usage.Usage{Input: usage.Of(10), CachedInput: usage.Of(8), AudioInput: usage.Of(9), Output: usage.Of(1)}, (8*0.5 + 2*10 + 2) * 1000},
		{"more media than there was", usage.Usage{Input: usage.Of(1), AudioInput: usage.Of(9), ImageInput: usage.Of(9), Output: usage.Of(1), ImageOutput: usage.Of(2)}, 40_000},
		{"less than none", usage.Usage{Input: usage.Of(1), AudioInput: usage.Of(-9), Output: usage.Of(1)}, 3_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := p.Cost(tc.u); err != nil || got != tc.want {
				t.Errorf("%d, want %d: %v", got, tc.want, err)
			}
		})
	}
	without := money.Prices{Input: usd("1"), Output: usd("2")}
	if got, err := without.Cost(usage.Usage{Input: usage.Of(10), AudioInput: usage.Of(9), Output: usage.Of(1), ImageOutput: usage.Of(1)}); err != nil || got != 12_000 {
		t.Errorf("without prices of their own: %d, %v", got, err)
	}
	for holds, want := range map[money.Media]money.NanoUSD{
		{}:                          (1 + 30) * 1000, // an answer may hold images unasked
		{Images: true}:              (3 + 30) * 1000,
		{Audio: true, Images: true}: (10 + 30) * 1000,
	} {
		if got, err := p.WorstCase(1, 1, holds); err != nil || got != want {
			t.Errorf("%+v: %d, want %d: %v", holds, got, want, err)
		}
	}
}

// What ParseUSD reads without a decimal is what a decimal would have said.
//
// Rules: M1.
func TestParseUSDIsExact_M1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[0-9]{0,11}(\.[0-9]{0,11})?`),
			rapid.StringMatching(`[-+]?[0-9]{1,3}([.,e][0-9]{0,3})?`),
		).Draw(t, "text")
		got, err := money.ParseUSD(text)
		var want money.NanoUSD
		d, wrong := decimal.NewFromString(text)
		if wrong == nil {
			want, wrong = money.FromUSD(d)
		}
		if got != want || (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %d, %v; want %d, %v", text, got, err, want, wrong)
		}
	})
}
