package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Rules: M16.
func TestDecideCountsWhatIsHeld_M16(t *testing.T) {
	counters := map[budget.Key]budget.Counter{"a": {Held: 30, Settled: 60}}
	for _, tc := range []struct {
		name   string
		checks []budget.Check
		want   *budget.Refusal
	}{
		{"exactly the rest fits", []budget.Check{{Key: "a", Limit: 100, Ask: 10}}, nil},
		{"one more does not", []budget.Check{{Key: "a", Limit: 100, Ask: 11}}, &budget.Refusal{Check: budget.Check{Key: "a", Limit: 100, Ask: 11}, Used: 90}},
		{"a counter that is not there reads zero", []budget.Check{{Key: "new", Limit: 10, Ask: 10}}, nil},
		{"a limit below what is held refuses", []budget.Check{{Key: "a", Limit: 50, Ask: 0}}, &budget.Refusal{Check: budget.Check{Key: "a", Limit: 50}, Used: 90}},
		{
			"the second check refuses for all (R10)",
			[]budget.Check{{Key: "new", Limit: 10, Ask: 1}, {Key: "a", Limit: 90, Ask: 1}},
			&budget.Refusal{Check: budget.Check{Key: "a", Limit: 90, Ask: 1}, Used: 90},
		},
		{"an ask that would overflow refuses", []budget.Check{{Key: "a", Limit: math.MaxInt64, Ask: math.MaxInt64}}, &budget.Refusal{Check: budget.Check{Key: "a", Limit: math.MaxInt64, Ask: math.MaxInt64}, Used: 90}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, budget.Decide(counters, tc.checks)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWindowsAreUTC(t *testing.T) {
	// 23:30 on the 31st in New York is already the next month in UTC.
	at := time.Date(2026, 10, 31, 23, 30, 0, 0, time.FixedZone("EDT", -4*3600))
	budgets := []catalog.Budget{
		{Scope: "organization", LimitUSD: "500.00", Per: catalog.PerMonth},
		{Scope: "organization", LimitUSD: "1", Per: catalog.PerDay},
		{Scope: "organization", LimitUSD: "0.5", Per: catalog.PerHour},
		{Scope: "organization", LimitUSD: "0.25", Per: catalog.PerMinute},
		{Scope: "organization", LimitUSD: "9", Per: catalog.Total},
		{Scope: "organization", Requests: 600, Per: catalog.PerMinute},
	}
	got, err := budget.Limits(budget.Subject{Tenant: "acme"}, budgets, at)
	if err != nil {
		t.Fatal(err)
	}
	day := func(m time.Month, d, h, min int) time.Time { return time.Date(2026, m, d, h, min, 0, 0, time.UTC) }
	usd := func(window string, per catalog.Period, limit int64, resets time.Time) budget.Limit {
		return budget.Limit{
			Key: budget.Key("org/acme/usd/" + string(per) + "/" + window), Unit: catalog.USD, Limit: limit, Soft: limit * 4 / 5,
			Budget: "organization/usd/" + string(per), Scope: "organization", Per: per, Resets: resets,
		}
	}
	want := []budget.Limit{
		usd("2026-11", catalog.PerMonth, 500_000_000_000, day(12, 1, 0, 0)),
		usd("2026-11-01", catalog.PerDay, 1_000_000_000, day(11, 2, 0, 0)),
		usd("2026-11-01T03", catalog.PerHour, 500_000_000, day(11, 1, 4, 0)),
		usd("2026-11-01T03:30", catalog.PerMinute, 250_000_000, day(11, 1, 3, 31)),
		usd("total", catalog.Total, 9_000_000_000, time.Time{}),
		{
			Key: "org/acme/requests/minute/trailing", Unit: catalog.Requests, Limit: 600, Soft: 480,
			Budget: "organization/requests/minute", Scope: "organization", Per: catalog.PerMinute,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAHoldIsReleasedByItsSettlement_M2: whatever is held and settled, in whatever
// order the keys come, nothing stays held and the charges are what remains.
//
// Rules: M2.
func TestAHoldIsReleasedByItsSettlement_M2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counters := map[budget.Key]budget.Counter{}
		var charged int64
		for range rapid.IntRange(1, 20).Draw(t, "attempts") {
			holds := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, "holds")
			reserved := request.AttemptReserved{Reserved: 100, Holds: holds}
			settled := request.AttemptSettled{Reserved: 100, Holds: holds}
			settled.Charge = 7
			deltas := append(budget.Effects(reserved), budget.Effects(settled)...)
			budget.Apply(counters, budget.Merge(deltas))
			charged += 7 * int64(len(holds))
		}
		var sum int64
		for key, c := range counters {
			if c.Held != 0 {
				t.Fatalf("%s holds %d", key, c.Held)
			}
			sum += c.Settled
		}
		if sum != charged {
			t.Fatalf("settled %d, charged %d", sum, charged)
		}
	})
}

// Rules: R6.
func TestMergeTakesKeysInOneOrder_R6(t *testing.T) {
	got := budget.Merge([]budget.Delta{{Key: "org/b", Held: 1}, {Key: "org/a", Held: 2}, {Key: "org/b", Settled: 3}})
	want := []budget.Delta{{Key: "org/a", Held: 2}, {Key: "org/b", Held: 1, Settled: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
