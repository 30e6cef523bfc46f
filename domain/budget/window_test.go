package budget_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
)

const (
	requestsMinute = budget.Key("org/acme/requests/minute/trailing")
	tokensMinute   = budget.Key("org/acme/tokens/minute/trailing")
	tokensHour     = budget.Key("org/acme/tokens/hour/trailing")
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestTheLthMostRecentDispatchDecides_R1: with a limit of L a dispatch is admitted if
// and only if the L-th most recent one is 60 seconds old or older, to the microsecond.
//
// Rules: R1, R5.
func TestTheLthMostRecentDispatchDecides_R1_R5(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 6).Draw(t, "limit")
		checks := []budget.Check{{Key: requestsMinute, Unit: catalog.Requests, Limit: limit, Ask: 1}}
		book, now := budget.NewBook(), noon
		var dispatched []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "asks") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 20_000_000).Draw(t, "wait_us")) * time.Microsecond)
			if rapid.IntRange(0, 3).Draw(t, "to the edge") == 0 && int64(len(dispatched)) >= limit {
				// Just before, at and just after the moment that decides.
				edge := dispatched[int64(len(dispatched))-limit].Add(time.Minute)
				if at := edge.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "edge_us")) * time.Microsecond); at.After(now) {
					now = at
				}
			}
			fits := int64(len(dispatched)) < limit || !dispatched[int64(len(dispatched))-limit].After(now.Add(-time.Minute))
			refused := budget.Decide(book.Asked(checks, now), checks)
			if (refused == nil) != fits {
				t.Fatalf("limit %d at %s after %v: refused %+v", limit, now, dispatched, refused)
			}
			if refused != nil {
				oldest := dispatched[slices.IndexFunc(dispatched, func(d time.Time) bool { return d.After(now.Add(-time.Minute)) })]
				if refused.Used != limit || !refused.Resets.Equal(oldest.Add(time.Minute)) {
					t.Fatalf("%+v", refused)
				}
				continue
			}
			book.Apply([]budget.Delta{{Key: requestsMinute, Settled: 1}}, now)
			dispatched = append(dispatched, now)
		}
		if n := len(book.Marks(requestsMinute, now)); n > 60 {
			t.Fatalf("%d marks are kept", n)
		}
	})
}

// TestAWindowOfTokensIsAtMostAGranuleTooLong_R2: what was settled inside the window
// counts, what was settled a granule before it does not.
//
// Rules: R2, R5.
func TestAWindowOfTokensIsAtMostAGranuleTooLong_R2_R5(t *testing.T) {
	for key, granule := range map[budget.Key]time.Duration{tokensMinute: time.Second, tokensHour: time.Minute} {
		window, _ := budget.WindowOf(key)
		rapid.Check(t, func(t *rapid.T) {
			book, now := budget.NewBook(), noon
			type use struct {
				at time.Time
				n  int64
			}
			var uses []use
			for range rapid.IntRange(1, 40).Draw(t, "settlements") {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(window.Length)/8).Draw(t, "wait")))
				u := use{now, rapid.Int64Range(1, 1000).Draw(t, "tokens")}
				book.Apply([]budget.Delta{{Key: key, Settled: u.n}}, now)
				uses = append(uses, u)
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(window.Length)).Draw(t, "later")))
			var least, most int64
			for _, u := range uses {
				if u.at.After(now.Add(-window.Length)) {
					least += u.n
				}
				if u.at.After(now.Add(-window.Length - granule)) {
					most += u.n
				}
			}
			if got := book.At(now)[key].Used(); got < least || got > most {
				t.Fatalf("%s: %d is not between %d and %d", key, got, least, most)
			}
			if n := len(book.Marks(key, now)); n > 61 {
				t.Fatalf("%d marks", n)
			}
		})
	}
}

// Rules: R4.
func TestTheTokenGateLooksAtWhatIsThere_R4(t *testing.T) {
	check := []budget.Check{{Key: tokensMinute, HeldKey: "held", Unit: catalog.Tokens, Limit: 100}}
	for _, tc := range []struct {
		name          string
		settled, held int64
		used          int64
		refused       bool
	}{
		{"a token is left, however much the next request takes", 99_000, 0, 99, false},
		{"half a token below rounds up to the limit, once", 99_500, 0, 100, true},
		{"less than half rounds down", 99_499, 0, 99, false},
		{"parts are added before they are rounded", 50_300, 49_300, 100, true},
		{"what is held counts", 0, 100_000, 100, true},
		{"beyond the limit", 250_000, 0, 250, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			counters := map[budget.Key]budget.Counter{tokensMinute: {Settled: tc.settled}, "held": {Held: tc.held}}
			got := budget.Decide(counters, check)
			if (got != nil) != tc.refused || got != nil && got.Used != tc.used {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A day's tokens are those that were settled on it; what is held counts on every day,
// and is settled on the day on which it ends.
//
// Rules: R2.
func TestHeldTokensCountAcrossMidnight_R2(t *testing.T) {
	budgets := []catalog.Budget{
		{Scope: catalog.ScopeOrganization, Tokens: 1000, Per: catalog.PerDay},
		{Scope: catalog.ScopeOrganization, Tokens: 1000, Per: catalog.PerMonth},
		{Scope: catalog.ScopeOrganization, Tokens: 1000, Per: catalog.PerMinute},
	}
	who := budget.Subject{Tenant: "acme"}
	limits := func(at time.Time) []budget.Limit {
		t.Helper()
		l, err := budget.Limits(who, budgets, at)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	evening := time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)
	morning := evening.Add(2 * time.Second)
	book := budget.NewBook()
	reserved := request.AttemptReserved{Takes: budget.Take(limits(evening), 600)}
	book.Apply(budget.Effects(reserved), evening)
	used := func(at time.Time) []int64 {
		var all []int64
		now := book.At(at)
		for _, l := range limits(at) {
			all = append(all, l.See(now).Used)
		}
		return all
	}
	if diff := cmp.Diff([]int64{600, 600, 600}, used(morning)); diff != "" {
		t.Fatalf("held over midnight: %s", diff)
	}
	settled := request.AttemptSettled{Takes: budget.Return(reserved.Takes, limits(morning), 700*1000+499)}
	book.Apply(budget.Effects(settled), morning)
	if diff := cmp.Diff([]int64{700, 700, 700}, used(morning)); diff != "" {
		t.Fatalf("settled in the morning: %s", diff)
	}
	if diff := cmp.Diff([]int64{0, 0, 700}, used(evening)); diff != "" {
		t.Fatalf("the day before: %s", diff)
	}
}

// Tokens of an attempt whose usage nobody knows stay taken until they are let go.
//
// Rules: R2.
func TestAMeterHoldKeepsTokens_R2(t *testing.T) {
	budgets := []catalog.Budget{{Scope: catalog.ScopeKey, Tokens: 1000, Per: catalog.PerHour}, {Scope: catalog.ScopeKey, Tokens: 9, Per: catalog.Total}}
	limits, err := budget.Limits(budget.Subject{Tenant: "acme", Key: "k1"}, budgets, noon)
	if err != nil {
		t.Fatal(err)
	}
	book := budget.NewBook()
	reserved := request.AttemptReserved{Takes: budget.Take(limits, 0)}
	placed := request.MeterHoldPlaced{Takes: budget.HoldOn(reserved.Takes, 5)}
	for _, e := range []any{reserved, request.AttemptSettled{Takes: budget.Return(reserved.Takes, limits, 0)}, placed} {
		book.Apply(budget.Effects(e), noon)
	}
	for _, l := range limits {
		if got := l.See(book.At(noon.Add(48 * time.Hour))); got.Used != 5 || got.Held != 5 {
			t.Errorf("%s: %+v", l.Budget, got)
		}
	}
	book.Apply(budget.Effects(request.MeterHoldResolved{Takes: budget.LetGo(placed.Takes)}), noon)
	for k, c := range book.Counters {
		if c != (budget.Counter{}) {
			t.Errorf("%s: %+v", k, c)
		}
	}
}

// Every scope has its own counters, a budget of nobody in particular is each one's own,
// and one that would apply twice is there once.
//
// Rules: R8, M8.
func TestScopesOfLimits_R8_M8(t *testing.T) {
	who := budget.Subject{
		Tenant: "acme", Key: "k1", Team: "search", Identity: "ada",
		Root: "fable-5", Model: "fable-4", Pool: "fable-4-exact", Deployment: "fable-4@aws",
	}
	keys := func(s budget.Subject, b catalog.Budget) []budget.Key {
		b.Requests, b.Per = 1, catalog.PerDay
		limits, err := budget.Limits(s, []catalog.Budget{b}, noon)
		if err != nil {
			t.Fatal(err)
		}
		var list []budget.Key
		for _, l := range limits {
			list = append(list, l.Key)
		}
		return list
	}
	same := who
	same.Model = same.Root
	nobody := budget.Subject{Tenant: "acme", Key: "k1"}
	for _, tc := range []struct {
		name string
		who  budget.Subject
		b    catalog.Budget
		want []budget.Key
	}{
		{"organization", who, catalog.Budget{Scope: "organization"}, []budget.Key{"org/acme/requests/day/2026-11-30"}},
		{"each key", who, catalog.Budget{Scope: "key"}, []budget.Key{"org/acme/key/k1/requests/day/2026-11-30"}},
		{"another key's", who, catalog.Budget{Scope: "key", Of: "k2"}, nil},
		{"a team's", who, catalog.Budget{Scope: "team", Of: "search"}, []budget.Key{"org/acme/team/search/requests/day/2026-11-30"}},
		{"nobody's team", nobody, catalog.Budget{Scope: "team"}, nil},
		{"an identity's", who, catalog.Budget{Scope: "identity"}, []budget.Key{"org/acme/identity/ada/requests/day/2026-11-30"}},
		{"both models", who, catalog.Budget{Scope: "model"}, []budget.Key{"org/acme/model/fable-5/requests/day/2026-11-30", "org/acme/model/fable-4/requests/day/2026-11-30"}},
		{"one model, once", same, catalog.Budget{Scope: "model"}, []budget.Key{"org/acme/model/fable-5/requests/day/2026-11-30"}},
		{"the model that is called", who, catalog.Budget{Scope: "model", Of: "fable-4"}, []budget.Key{"org/acme/model/fable-4/requests/day/2026-11-30"}},
		{"the pool that is called", who, catalog.Budget{Scope: "pool"}, []budget.Key{"org/acme/pool/fable-4-exact/requests/day/2026-11-30"}},
		{"the deployment", who, catalog.Budget{Scope: "deployment", Of: "fable-4@aws"}, []budget.Key{"org/acme/deployment/fable-4@aws/requests/day/2026-11-30"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, keys(tc.who, tc.b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A limit of every key and one of this key are two limits of one counter, which counts
// an attempt once.
//
// Rules: M8, R8.
func TestLimitsThatShareACounterCountOnce_M8_R8(t *testing.T) {
	var budgets []catalog.Budget
	for _, of := range []string{"", "k1"} {
		budgets = append(budgets,
			catalog.Budget{Scope: "key", Of: of, LimitUSD: "1", Per: catalog.PerMonth},
			catalog.Budget{Scope: "key", Of: of, Requests: 5, Per: catalog.PerMinute},
			catalog.Budget{Scope: "key", Of: of, Tokens: 500, Per: catalog.PerHour},
			catalog.Budget{Scope: "key", Of: of, Tokens: 500, Per: catalog.PerDay})
	}
	limits, err := budget.Limits(budget.Subject{Tenant: "acme", Key: "k1"}, budgets, noon)
	if err != nil || len(limits) != len(budgets) {
		t.Fatalf("%d limits, %v", len(limits), err)
	}
	if diff := cmp.Diff([]string{"org/acme/key/k1/usd/month/2026-11"}, budget.Holds(limits)); diff != "" {
		t.Error(diff)
	}
	taken := budget.Take(limits, 10)
	want := []request.Take{
		{Key: "org/acme/key/k1/requests/minute/trailing", Settled: 1},
		{Key: "org/acme/key/k1/tokens/hour/trailing", Held: 10_000},
		{Key: "org/acme/key/k1/tokens/held", Held: 10_000},
	}
	if diff := cmp.Diff(want, taken); diff != "" {
		t.Error(diff)
	}
	want = []request.Take{
		{Key: "org/acme/key/k1/tokens/hour/trailing", Held: -10_000, Settled: 7_000},
		{Key: "org/acme/key/k1/tokens/held", Held: -10_000},
		{Key: "org/acme/key/k1/tokens/day/2026-11-30", Settled: 7_000},
	}
	if diff := cmp.Diff(want, budget.Return(taken, limits, 7_000)); diff != "" {
		t.Error(diff)
	}
}

// Rules: R9.
func TestObservedLimitsPassAndAreTold_R9(t *testing.T) {
	checks := []budget.Check{
		{Key: "a", Unit: catalog.USD, Limit: 10, Ask: 5, Soft: 8, Observe: true},
		{Key: "b", Unit: catalog.USD, Limit: 10, Ask: 5, Soft: 8},
	}
	before := map[budget.Key]budget.Counter{"a": {Settled: 6}, "b": {Settled: 2}}
	if refused := budget.Decide(before, checks); refused != nil {
		t.Fatalf("%+v", refused)
	}
	after := map[budget.Key]budget.Counter{"a": {Settled: 6, Held: 5}, "b": {Settled: 2, Held: 5}}
	got := budget.Standings(before, after, checks)
	if !got[0].Exceeded || got[1].Exceeded || !got[0].Reached() || got[1].Reached() || got[0].Remaining() != 0 || got[1].Remaining() != 3 {
		t.Errorf("%+v", got)
	}
}
