package money_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// What is free is taken off the charge and nothing else, at the rates of the attempt's
// own tier.
//
// Rules: M10, M7.
func TestWhatIsFreeIsNotCharged_M10_M7(t *testing.T) {
	// 400 fresh, 600 cached, 100 out: 1,200,000 + 180,000 + 1,500,000.
	u := usage.Usage{Input: usage.Of(1000), CachedInput: usage.Of(600), Output: usage.Of(100)}
	written := usage.Usage{Input: usage.Of(1000), CacheWrite5m: usage.Of(100), CacheWrite1h: usage.Of(200), CachedInput: usage.Of(300), Output: usage.Of(0)}
	long := usage.Usage{Input: usage.Of(200_001), CachedInput: usage.Of(1), Output: usage.Of(10)}
	for _, tc := range []struct {
		name   string
		u      usage.Usage
		free   money.Free
		list   money.NanoUSD
		charge money.NanoUSD
		in     money.Given
		out    money.Given
	}{
		{"nothing is free", u, money.Free{}, 2_880_000, 2_880_000, money.Given{}, money.Given{}},
		{
			"cached input has its discount and is charged", u,
			money.Free{Input: true},
			2_880_000, 1_680_000,
			money.Given{Tokens: 400, Cost: 1_200_000},
			money.Given{},
		},
		{
			"cached input is free where that is said", u,
			money.Free{Input: true, CachedInput: true},
			2_880_000, 1_500_000,
			money.Given{Tokens: 1000, Cost: 1_380_000},
			money.Given{},
		},
		{"output on its own", u, money.Free{Output: true}, 2_880_000, 1_380_000, money.Given{}, money.Given{Tokens: 100, Cost: 1_500_000}},
		{
			"everything", u,
			money.Free{Input: true, CachedInput: true, Output: true},
			2_880_000, 0,
			money.Given{Tokens: 1000, Cost: 1_380_000},
			money.Given{Tokens: 100, Cost: 1_500_000},
		},
		{
			"what is written to a cache is input", written,
			money.Free{Input: true},
			1_200_000 + 375_000 + 1_200_000 + 90_000, 90_000,
			money.Given{Tokens: 700, Cost: 2_775_000},
			money.Given{},
		},
		{
			"free tokens count for the long rates too", long,
			money.Free{Input: true},
			200_000*6000 + 600 + 10*22_500, 600 + 10*22_500,
			money.Given{Tokens: 200_000, Cost: 200_000 * 6000},
			money.Given{},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := fable.Split(tc.u, tc.free)
			want := money.Split{List: tc.list, Charge: tc.charge, Subsidy: tc.list - tc.charge, Input: tc.in, Output: tc.out, Exact: true}
			if err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

// A price that nobody knows is no discount, and usage that contradicts itself is priced
// by its totals, without a credit.
//
// Rules: M10, M6.
func TestFreeInputWithoutACachePrice_M10_M6(t *testing.T) {
	p := money.Prices{Input: usd("3"), Output: usd("15")}
	got, err := p.Split(usage.Usage{Input: usage.Of(1000), CachedInput: usage.Of(600), Output: usage.Of(0)}, money.Free{Input: true})
	if err != nil || got.Charge != 1_800_000 || got.Subsidy != 1_200_000 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = fable.Split(usage.Usage{Input: usage.Of(100), CachedInput: usage.Of(200), Output: usage.Of(10)}, money.Free{Input: true})
	if err != nil || got.Exact || got.List != 450_000 || got.Charge != 150_000 || got.Input.Tokens != 100 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is held is the worst case of what is not free.
//
// Rules: M10, M2.
func TestTheWorstCaseOfWhatIsNotFree_M10_M2(t *testing.T) {
	for _, tc := range []struct {
		free money.Free
		want money.WorstSplit
	}{
		{money.Free{}, money.WorstSplit{Charge: 1000*6000 + 100*15_000}},
		{money.Free{Input: true}, money.WorstSplit{Charge: 1000*300 + 100*15_000, Input: money.Given{Tokens: 1000, Cost: 6_000_000}}},
		{money.Free{Input: true, CachedInput: true}, money.WorstSplit{Charge: 100 * 15_000, Input: money.Given{Tokens: 1000, Cost: 6_000_000}}},
		{money.Free{Output: true}, money.WorstSplit{Charge: 1000 * 6000, Output: money.Given{Tokens: 100, Cost: 1_500_000}}},
		{
			money.Free{Input: true, CachedInput: true, Output: true},
			money.WorstSplit{Input: money.Given{Tokens: 1000, Cost: 6_000_000}, Output: money.Given{Tokens: 100, Cost: 1_500_000}},
		},
	} {
		got, err := fable.WorstSplit(1000, 100, money.Media{}, tc.free)
		if err != nil || got != tc.want {
			t.Errorf("%+v: %+v, %v; want %+v", tc.free, got, err, tc.want)
		}
	}
	plain, err := fable.WorstCase(1000, 100, money.Media{})
	if got, _ := fable.WorstSplit(1000, 100, money.Media{}, money.Free{}); err != nil || got.Charge != plain {
		t.Errorf("without a promotion %d, worst case %d", got.Charge, plain)
	}
}

func drawPrices(t *rapid.T) money.Prices {
	rate := func(name string, required bool) *decimal.Decimal {
		if !required && rapid.Bool().Draw(t, name+" unknown") {
			return nil
		}
		d := decimal.New(rapid.Int64Range(0, 1_000_000).Draw(t, name), -int32(rapid.IntRange(0, 12).Draw(t, name+" places")))
		return &d
	}
	p := money.Prices{
		Input: rate("input", true), Output: rate("output", true), CacheRead: rate("cached", false),
		CacheWrite5m: rate("5m", false), CacheWrite1h: rate("1h", false),
		AudioInput: rate("audio in", false), ImageInput: rate("images in", false),
		AudioOutput: rate("audio out", false), ImageOutput: rate("images out", false),
	}
	if rapid.Bool().Draw(t, "long") {
		p.LongContext = &money.LongContext{
			AboveInputTokens: rapid.Int64Range(1, 10_000).Draw(t, "above"),
			Input:            rate("long input", false), Output: rate("long output", false), CacheRead: rate("long cached", false),
		}
	}
	return p
}

func drawFree(t *rapid.T) money.Free {
	f := money.Free{Input: rapid.Bool().Draw(t, "free input"), Output: rapid.Bool().Draw(t, "free output")}
	f.CachedInput = f.Input && rapid.Bool().Draw(t, "free cached input")
	return f
}

func drawUsage(t *rapid.T) usage.Usage {
	n := func(name string) int64 { return rapid.Int64Range(0, 5000).Draw(t, name) }
	cached, w5, w1, fresh := n("cached tokens"), n("5m tokens"), n("1h tokens"), n("fresh tokens")
	return usage.Usage{
		Input: usage.Of(cached + w5 + w1 + fresh), CachedInput: usage.Of(cached), CacheWrite5m: usage.Of(w5),
		CacheWrite1h: usage.Of(w1), Output: usage.Of(n("output tokens")),
		AudioInput: usage.Of(n("audio in tokens")), ImageInput: usage.Of(n("image in tokens")),
		AudioOutput: usage.Of(n("audio out tokens")), ImageOutput: usage.Of(n("image out tokens")),
	}
}

// Whatever is free: the list price is what it would have been, charge and subsidy are
// the whole of it, neither is a credit, and nothing is given away that is not free.
//
// Rules: M10, M7, M1.
func TestSplitsAddUp_M10_M7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, f, u := drawPrices(t), drawFree(t), drawUsage(t)
		got, err := p.Split(u, f)
		if err != nil {
			t.Fatal(err)
		}
		list, err := p.Cost(u)
		if err != nil || got.List != list || got.Charge+got.Subsidy != got.List {
			t.Fatalf("%+v of a list price of %d (%v)", got, list, err)
		}
		if got.Charge < 0 || got.Subsidy < 0 {
			t.Fatalf("a credit: %+v", got)
		}
		if f.Nothing() && got.Subsidy != 0 || f == (money.Free{Input: true, CachedInput: true, Output: true}) && got.Charge != 0 {
			t.Fatalf("%+v with %+v free", got, f)
		}
		if given := got.Input.Cost + got.Output.Cost; given-got.Subsidy > 1 || got.Subsidy-given > 1 {
			t.Fatalf("%d given away, %d subsidized", given, got.Subsidy)
		}
		if !f.Output && got.Output != (money.Given{}) || !f.Input && got.Input != (money.Given{}) {
			t.Fatalf("given away what is not free: %+v", got)
		}
	})
}

// More free is never dearer, more tokens of one tier are never cheaper, and what was
// held covers every usage within it.
//
// Rules: M10, M2.
func TestSplitsAreMonotone_M10_M2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, f, u := drawPrices(t), drawFree(t), drawUsage(t)
		got, err := p.Split(u, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, freer := range []money.Free{{Input: true, CachedInput: f.CachedInput, Output: f.Output}, {Input: true, CachedInput: true, Output: f.Output}, {Input: f.Input, CachedInput: f.CachedInput, Output: true}} {
			if less, err := p.Split(u, freer); err != nil || less.Charge > got.Charge {
				t.Fatalf("%+v free costs %d, %+v costs %d (%v)", freer, less.Charge, f, got.Charge, err)
			}
		}
		more := u
		more.Output = usage.Of(u.Output.N + 1)
		if dearer, err := p.Split(more, f); err != nil || dearer.Charge < got.Charge || dearer.Subsidy < got.Subsidy-1 {
			t.Fatalf("one token more: %+v after %+v (%v)", dearer, got, err)
		}
		p.LongContext = nil
		got, err = p.Split(u, f)
		if err != nil {
			t.Fatal(err)
		}
		more = u
		more.Input, more.CachedInput = usage.Of(u.Input.N+1), usage.Of(u.CachedInput.N+1)
		if dearer, err := p.Split(more, f); err != nil || dearer.Charge < got.Charge {
			t.Fatalf("one cached token more: %+v after %+v (%v)", dearer, got, err)
		}
		worst, err := p.WorstSplit(u.Input.N, u.Output.N, money.Media{Images: true, Audio: true}, f)
		if err != nil || got.Charge > worst.Charge || got.Input.Tokens > worst.Input.Tokens ||
			got.Input.Cost > worst.Input.Cost || got.Output.Tokens > worst.Output.Tokens || got.Output.Cost > worst.Output.Cost {
			t.Fatalf("%+v is more than what was held, %+v (%v)", got, worst, err)
		}
	})
}

// Rules: M10.
func TestTokensForAnAmount_M10(t *testing.T) {
	for _, tc := range []struct {
		amount money.NanoUSD
		rate   *decimal.Decimal
		want   int64
	}{
		{5_000_000_000, usd("2.50"), 2_000_000},
		{1, usd("3"), 0},
		{1_000_000_000, usd("3"), 333_333},
		{1_000_000_000, usd("0"), 0},
		{1_000_000_000, nil, 0},
		{1_000_000_000_000_000_000, usd("0.000000000001"), 0},
	} {
		if got := money.TokensFor(tc.amount, tc.rate); got != tc.want {
			t.Errorf("%d at %v: %d tokens, want %d", tc.amount, tc.rate, got, tc.want)
		}
	}
}
