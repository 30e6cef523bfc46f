package billing_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

func price(s string) *decimal.Decimal {
	d := decimal.RequireFromString(s)
	return &d
}

// rates are 2 nano-USD a token of input and 10 of output.
var rates = money.Prices{Input: price("0.002"), Output: price("0.010")}

var u = usage.Usage{Input: usage.Of(100), Output: usage.Of(10)} // 300 nano-USD

var freeInput = &request.Gift{ID: "launch", Free: money.Free{Input: true}}

// A correction changes what an attempt cost and not who bears it (M15, M7).
func TestReprice_M15_M7(t *testing.T) {
	for name, tc := range map[string]struct {
		s    request.AttemptSettled
		want request.Amounts
	}{
		"the operator's key": {
			request.AttemptSettled{Amounts: request.Amounts{List: 100, Charge: 100, ProviderCost: 100}},
			request.Amounts{List: 300, Charge: 300, ProviderCost: 300},
		},
		"the customer's own key is not charged": {
			request.AttemptSettled{CredentialOwner: request.Workspace, Amounts: request.Amounts{List: 100, ProviderCost: 100}},
			request.Amounts{List: 300, ProviderCost: 300},
		},
		"nor where the price was zero": {
			request.AttemptSettled{CredentialOwner: request.Workspace},
			request.Amounts{List: 300, ProviderCost: 300},
		},
		"what served nobody is not charged (M5)": {
			request.AttemptSettled{Waived: true, Amounts: request.Amounts{List: 100, ProviderCost: 100}},
			request.Amounts{List: 300, ProviderCost: 300},
		},
		"nor where the price was zero (M5)": {
			request.AttemptSettled{Waived: true},
			request.Amounts{List: 300, ProviderCost: 300},
		},
		"what was free by mistake is charged": {
			request.AttemptSettled{},
			request.Amounts{List: 300, Charge: 300, ProviderCost: 300},
		},
		"a promotion keeps its share, a surcharge too": {
			request.AttemptSettled{Amounts: request.Amounts{List: 100, Charge: 25, ProviderCost: 100, Subsidy: 75, Surcharge: 10}},
			request.Amounts{List: 300, Charge: 75, ProviderCost: 300, Subsidy: 225, Surcharge: 30},
		},
		"a surcharge is a percentage of the new list cost (M12)": {
			request.AttemptSettled{
				SurchargePercent: price("4.5"), // of 300 it is 13.5; the old share would be 15
				Amounts:          request.Amounts{List: 100, Charge: 105, ProviderCost: 100, Surcharge: 5},
			},
			request.Amounts{List: 300, Charge: 314, ProviderCost: 300, Surcharge: 14},
		},
		"also where the price was zero (M12)": {
			request.AttemptSettled{SurchargePercent: price("10")},
			request.Amounts{List: 300, Charge: 330, ProviderCost: 300, Surcharge: 30},
		},
		"beside a subsidy (M12)": {
			request.AttemptSettled{
				SurchargePercent: price("10"),
				Amounts:          request.Amounts{List: 100, Charge: 35, ProviderCost: 100, Subsidy: 75, Surcharge: 10},
			},
			request.Amounts{List: 300, Charge: 105, ProviderCost: 300, Subsidy: 225, Surcharge: 30},
		},
		"what served nobody has no surcharge (M12)": {
			request.AttemptSettled{SurchargePercent: price("10"), Waived: true, Amounts: request.Amounts{List: 100, ProviderCost: 100}},
			request.Amounts{List: 300, ProviderCost: 300},
		},
		"what a promotion paid stays free, part by part (M10)": {
			request.AttemptSettled{Promotion: freeInput, Amounts: request.Amounts{List: 100, Charge: 60, ProviderCost: 100, Subsidy: 40}},
			request.Amounts{List: 300, Charge: 100, ProviderCost: 300, Subsidy: 200},
		},
		"also where the price was zero (M10)": {
			request.AttemptSettled{Promotion: freeInput},
			request.Amounts{List: 300, Charge: 100, ProviderCost: 300, Subsidy: 200},
		},
		"nobody is charged for what served nobody, promotion or not (M5)": {
			request.AttemptSettled{Promotion: freeInput, Waived: true, Amounts: request.Amounts{List: 100, ProviderCost: 100}},
			request.Amounts{List: 300, ProviderCost: 300},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.s.Basis, tc.s.Usage = usage.BasisReported, u
			if diff := cmp.Diff(tc.want, billing.Reprice(tc.s, rates)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What nobody knows stays unknown, and what cannot be priced keeps its amounts (M6).
func TestWhatCannotBeRepricedStays_M6(t *testing.T) {
	was := request.Amounts{List: 7, Charge: 7, ProviderCost: 7}
	for name, tc := range map[string]struct {
		s     request.AttemptSettled
		rates money.Prices
	}{
		"unknown usage":       {request.AttemptSettled{Basis: usage.BasisUnknown, Usage: u, Amounts: was}, rates},
		"no output rate":      {request.AttemptSettled{Basis: usage.BasisReported, Usage: u, Amounts: was}, money.Prices{Input: price("1")}},
		"more than money can": {request.AttemptSettled{Basis: usage.BasisReported, Usage: usage.Usage{Input: usage.Of(math.MaxInt64), Output: usage.Of(0)}, Amounts: was}, money.Prices{Input: price("900000"), Output: price("1")}},
	} {
		if got := billing.Reprice(tc.s, tc.rates); got != was {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func correction(position int64, from, to time.Time, input string) billing.Correction {
	return billing.Correction{Position: position, PriceCorrected: catalog.PriceCorrected{
		Deployment: "d", From: from, To: to, Prices: money.Prices{Input: price(input), Output: price("0")},
	}}
}

// The interval begins with its first moment and ends before its last (M15).
func TestTheIntervalIsHalfOpen_M15(t *testing.T) {
	c := correction(1, start, start.Add(time.Hour), "1")
	for at, want := range map[time.Time]bool{
		start.Add(-1): false, start: true, start.Add(time.Hour - 1): true, start.Add(time.Hour): false,
	} {
		if c.Covers("d", at) != want {
			t.Errorf("%s: %v", at, !want)
		}
	}
	if c.Covers("other", start) {
		t.Error("another deployment is covered")
	}
}

// Whatever corrections there are: the entries sum to what the last one that covers the
// attempt says, nothing is entered for a correction that changes nothing, no sum on the
// way is negative, and taking corrections in one by one enters the same (M15).
func TestEntriesSumToTheLastWord_M15(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(0, 1e6).Draw(t, "tokens")
		cost := money.NanoUSD(tokens)
		s := request.AttemptSettled{
			Deployment: "d", Basis: usage.BasisReported, Usage: usage.Usage{Input: usage.Of(tokens), Output: usage.Of(0)},
			Amounts: request.Amounts{List: cost, Charge: cost, ProviderCost: cost},
		}
		at := start.Add(12 * time.Hour)
		var list []billing.Correction
		for i := range rapid.IntRange(0, 5).Draw(t, "corrections") {
			from := start.Add(time.Duration(rapid.IntRange(0, 23).Draw(t, "from")) * time.Hour)
			to := from.Add(time.Duration(rapid.IntRange(1, 24).Draw(t, "hours")) * time.Hour)
			list = append(list, correction(int64(i+1), from, to, rapid.SampledFrom([]string{"0", "0.001", "0.0025", "0.1"}).Draw(t, "price")))
		}
		want := s.Amounts
		for _, c := range list {
			if c.Covers("d", at) {
				want = billing.Reprice(s, c.Prices)
			}
		}
		entries := billing.Entries(s, at, list)
		var sum request.Amounts
		for i, e := range entries {
			if i > 0 && e.Amounts == (request.Amounts{}) {
				t.Fatalf("correction %d was entered for nothing", e.Correction)
			}
			if sum = sum.Add(e.Amounts); sum.Charge < 0 || sum.List < 0 || sum.ProviderCost < 0 {
				t.Fatalf("after %d entries: %+v", i+1, sum)
			}
		}
		if sum != want {
			t.Fatalf("entries come to %+v, want %+v", sum, want)
		}
		cut := rapid.IntRange(0, len(list)).Draw(t, "cut")
		before := billing.Entries(s, at, list[:cut])
		if diff := cmp.Diff(before, entries[:len(before)]); diff != "" {
			t.Fatalf("a later correction changed an earlier entry:\n%s", diff)
		}
	})
}

func TestPeriods(t *testing.T) {
	if got := billing.Next("2026-12"); got != "2027-01" {
		t.Error(got)
	}
	if end, ok := billing.End("2026-12"); !ok || !end.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Error(end, ok)
	}
	for _, text := range []string{"", "2026", "2026-13", "2026-1", "2026-11-01", "x"} {
		if _, ok := billing.End(text); ok {
			t.Errorf("%q is a period", text)
		}
	}
}
