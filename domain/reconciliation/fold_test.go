package reconciliation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/domain/request"
)

func reserved(attempt int, held money.NanoUSD) request.AttemptReserved {
	return request.AttemptReserved{Attempt: attempt, Reserved: held}
}

func settled(tenant string, attempt int, charge money.NanoUSD, holds ...string) request.AttemptSettled {
	return request.AttemptSettled{Tenant: tenant, Attempt: attempt, Amounts: request.Amounts{Charge: charge}, Holds: holds}
}

// An attempt that holds money after its request's end is found and named; one whose
// request is open is counted, and one that was settled is neither (R7).
func TestUnsettledAttemptsAreNamed_R7(t *testing.T) {
	var h reconciliation.Holds
	for _, said := range []struct {
		stream string
		e      any
	}{
		{"request/a", reserved(1, 10)},
		{"request/b", reserved(1, 20)},
		{"request/a", settled("acme", 1, 3)},
		{"request/a", reserved(2, 30)},
		{"request/a", request.RequestFinalized{}}, // attempt 2 leaks
		{"request/c", reserved(1, 40)},
		{"request/c", request.RequestFinalized{}},
		{"request/c", settled("acme", 1, 4)}, // late, but settled
		{"request/d", request.RequestRefused{}},
	} {
		if err := h.Apply(said.stream, said.e); err != nil {
			t.Fatal(err)
		}
	}
	got := h.Finding(9)
	leak := reconciliation.Amounts("request/a attempt 2", 0, 30)
	leak.Is = reconciliation.Unsettled
	want := reconciliation.Finding{Position: 9, Compared: 4, Open: 1, OpenHeld: 20, Drifted: 1, Drifts: []reconciliation.Drift{leak}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The fold agrees with a count over the whole of what was said.
//
// Rules: R7.
func TestHoldsAreWhatWasSaid_R7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type key struct {
			stream string
			n      int
		}
		var h reconciliation.Holds
		held := map[key]int64{}
		ended := map[string]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			stream := fmt.Sprintf("request/%d", rapid.IntRange(0, 4).Draw(t, "request"))
			n := rapid.IntRange(1, 3).Draw(t, "attempt")
			var e any
			switch rapid.IntRange(0, 2).Draw(t, "said") {
			case 0:
				if _, twice := held[key{stream, n}]; ended[stream] || twice {
					continue
				}
				amount := rapid.Int64Range(0, 100).Draw(t, "held")
				held[key{stream, n}], e = amount, reserved(n, money.NanoUSD(amount))
			case 1:
				delete(held, key{stream, n})
				e = settled("acme", n, 1)
			default:
				ended[stream], e = true, request.RequestFinalized{}
			}
			if err := h.Apply(stream, e); err != nil {
				t.Fatal(err)
			}
		}
		var open, sum int64
		var leaked []string
		for k, amount := range held {
			if ended[k.stream] {
				leaked = append(leaked, fmt.Sprintf("%s attempt %d", k.stream, k.n))
				continue
			}
			open++
			sum += amount
		}
		slices.Sort(leaked)
		f := h.Finding(0)
		var named []string
		for _, d := range f.Drifts {
			named = append(named, d.Key)
		}
		if f.Open != open || f.OpenHeld != sum || f.Drifted != int64(len(leaked)) || !slices.Equal(named, leaked) {
			t.Fatalf("%+v, want %d open with %d, leaked %v", f, open, sum, leaked)
		}
	})
}

// Sums that agree are no drift, and any that was changed is named with both amounts; the
// bills are compared as far as they have come, the counters to the end (R7).
func TestSumsThatDifferAreNamed_R7(t *testing.T) {
	november := time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)
	const counter = "org/acme/usd/month/2026-11"
	c := reconciliation.NewCharges(nil)
	c.Settle(settled("acme", 1, 10, counter, "org/acme/usd/total/total"), november, true)
	c.Settle(settled("acme", 1, 5, counter), november.Add(time.Second), true) // December's, held on November's
	c.Settle(settled("globex", 1, 7), november, true)
	c.Settle(settled("acme", 1, 100, counter), november, false) // the bills are behind

	account := func(tenant, period string) reconciliation.Account {
		return reconciliation.Account{Tenant: tenant, Period: period}
	}
	right := func() reconciliation.Sums {
		s := reconciliation.NewSums()
		for _, table := range []map[reconciliation.Account]int64{s.Bills, s.Usage} {
			table[account("acme", "2026-11")], table[account("acme", "2026-12")], table[account("globex", "2026-11")] = 10, 5, 7
		}
		s.Counters[counter] = 115
		return s
	}
	if f := c.Finding(right(), 4); f.Drifted != 0 || f.Compared != 7 || f.Position != 4 {
		t.Errorf("nothing differs: %+v", f)
	}
	for name, tc := range map[string]struct {
		change func(reconciliation.Sums)
		want   reconciliation.Drift
	}{
		"a bill":        {func(s reconciliation.Sums) { s.Bills[account("acme", "2026-11")]++ }, reconciliation.Amounts("bill acme/2026-11", 10, 11)},
		"a lost bill":   {func(s reconciliation.Sums) { delete(s.Bills, account("globex", "2026-11")) }, reconciliation.Amounts("bill globex/2026-11", 7, 0)},
		"a bill of air": {func(s reconciliation.Sums) { s.Bills[account("nobody", "2026-11")] = 3 }, reconciliation.Amounts("bill nobody/2026-11", 0, 3)},
		"the usage":     {func(s reconciliation.Sums) { s.Usage[account("acme", "2026-12")] = 0 }, reconciliation.Amounts("usage acme/2026-12", 5, 0)},
		"a counter":     {func(s reconciliation.Sums) { s.Counters[counter] = 15 }, reconciliation.Amounts("counter "+counter, 115, 15)},
		"a counter of air": {
			func(s reconciliation.Sums) { s.Counters["org/x/usd/month/2026-11"] = 1 },
			reconciliation.Amounts("counter org/x/usd/month/2026-11", 0, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			sums := right()
			tc.change(sums)
			f := c.Finding(sums, 4)
			if diff := cmp.Diff([]reconciliation.Drift{tc.want}, f.Drifts); diff != "" || f.Drifted != 1 {
				t.Errorf("%d drifted:\n%s", f.Drifted, diff)
			}
		})
	}
	if reconciliation.IsMonthly(budget.Key("org/acme/usd/total/total")) || !reconciliation.IsMonthly(counter) {
		t.Error("the month is not told from other windows")
	}
}

// Rules: R7.
func TestNamedDriftsAreBounded_R7(t *testing.T) {
	var f reconciliation.Finding
	for range 3 {
		f.Add(make([]reconciliation.Drift, 60)...)
	}
	if f.Drifted != 180 || len(f.Drifts) != reconciliation.MaxDrifts {
		t.Errorf("%d counted, %d named", f.Drifted, len(f.Drifts))
	}
}
