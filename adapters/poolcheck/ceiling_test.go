package poolcheck_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/poolcheck"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/money"
)

// worstCases are what each call of a check can cost at most, in the order of the calls.
func worstCases(e equivalence.Evidence) (list []money.NanoUSD) {
	for _, c := range e.Cases {
		for _, a := range c.Answers {
			if a.Reason == "" {
				list = append(list, a.WorstCase)
			}
		}
	}
	return list
}

// A call whose worst case could pass the ceiling is not made, nor any after it: where
// nobody tells what a call cost, its worst case stays taken, so the ceiling is reached
// after exactly so many calls as the provider itself has counted.
//
// Rules: N24, M2.
func TestNoCallPassesTheCeiling_N24_M2(t *testing.T) {
	w := newWorld(t)
	const silent = "ok+usage:absent,ok+usage:absent,ok+usage:absent,tools:2+usage:absent,words:64+usage:absent,ok+usage:absent"
	members := []member{{protocol: catalog.OpenAI, outcomes: silent}, {protocol: catalog.Anthropic, outcomes: silent}}
	plan, err := w.checker.Plan(t.Context(), w.pool(t, members...), generous)
	if err != nil {
		t.Fatal(err)
	}
	worst := worstCases(plan)
	if len(worst) != 12 || w.fake.Ledger().Total != 0 {
		t.Fatalf("%d calls planned, %d made", len(worst), w.fake.Ledger().Total)
	}
	var sum money.NanoUSD
	for calls, next := range worst {
		for _, limit := range []money.NanoUSD{sum, sum + next - 1} {
			e := w.check(t, poolcheck.Limits{MaxSpend: limit, MaxAttempts: 100}, members...)
			if total := w.fake.Ledger().Total; total != int64(calls) || e.Exposure != sum || e.Exposure+e.Cost > limit {
				t.Errorf("with %d: %d calls and %d taken, want %d calls and %d", limit, total, e.Exposure, calls, sum)
			}
			if e.Result == equivalence.Passed || caseOf(t, e, poolcheck.StopCase).Answers[1].Reason != equivalence.MaxUSD {
				t.Errorf("with %d: %s%s", limit, e.Result, differences(e))
			}
		}
		sum += next
	}
	if e := w.check(t, poolcheck.Limits{MaxSpend: sum, MaxAttempts: 100}, members...); e.Attempts != 12 || e.Exposure != sum {
		t.Errorf("with the sum of all: %d calls, %d taken", e.Attempts, e.Exposure)
	}
}

// What providers count is charged in place of the worst case, whatever mix of prices,
// outcomes and ceilings there is: never is more spent and at stake than the ceiling.
//
// Rules: N24, M2.
func TestSpentNeverPassesTheCeiling_N24_M2(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		members := make([]member, rapid.IntRange(2, 3).Draw(rt, "members"))
		for i := range members {
			rate := decimal.New(rapid.Int64Range(0, 8000).Draw(rt, "rate"), -2)
			outcomes := ""
			for range 6 {
				outcomes += rapid.SampledFrom([]string{"ok", "ok+usage:absent", "500", "cut:2", "tools:2", "words:64"}).Draw(rt, "outcome") + ","
			}
			members[i] = member{
				protocol: rapid.SampledFrom([]catalog.Protocol{catalog.OpenAI, catalog.Anthropic, catalog.Gemini}).Draw(rt, "protocol"),
				outcomes: outcomes + "ok", change: func(t *poolcheck.Target) { t.Deployment.Prices.Output = &rate },
			}
		}
		limits := poolcheck.Limits{
			MaxSpend:    money.NanoUSD(rapid.Int64Range(0, 200_000_000).Draw(rt, "max_spend")),
			MaxAttempts: rapid.IntRange(0, 20).Draw(rt, "max_attempts"),
		}
		e := w.check(t, limits, members...)
		if e.Cost+e.Exposure > limits.MaxSpend || e.Attempts > limits.MaxAttempts {
			rt.Errorf("%d spent and %d at stake under %d, %d calls of %d", e.Cost, e.Exposure, limits.MaxSpend, e.Attempts, limits.MaxAttempts)
		}
	})
}

// Rules: N24.
func TestNoMoreCallsThanAllowed_N24(t *testing.T) {
	w := newWorld(t)
	for limit := range 5 {
		e := w.check(t, poolcheck.Limits{MaxSpend: money.NanoPerUSD, MaxAttempts: limit}, member{protocol: catalog.OpenAI, outcomes: good}, member{protocol: catalog.OpenAI, outcomes: good})
		if total := w.fake.Ledger().Total; total != int64(limit) || e.Result != equivalence.Blocked {
			t.Errorf("at most %d: %d calls, %s%s", limit, total, e.Result, differences(e))
		}
	}
}

// What has no price, no key or a base URL that is refused is not called, and nobody is
// called to be compared with it.
//
// Rules: N24, M3, Z1.
func TestTheUnusableAreNotCalled_N24_M3_Z1(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change func(*poolcheck.Target)
		want   equivalence.Reason
	}{
		"no price":        {func(t *poolcheck.Target) { t.Deployment.Prices = money.Prices{} }, equivalence.PriceUnknown},
		"no output price": {func(t *poolcheck.Target) { t.Deployment.Prices.Output = nil }, equivalence.PriceUnknown},
		"no key":          {func(t *poolcheck.Target) { t.Provider.Keys[0].Env = "POOL_NOT_SET" }, equivalence.CredentialMissing},
		"refused":         {func(t *poolcheck.Target) { t.Provider.BaseURL = "http://169.254.169.254/v1" }, equivalence.BaseURLRefused},
		"no sum": {func(t *poolcheck.Target) {
			t.Deployment.Prices.Output = new(decimal.New(1, 18))
		}, equivalence.PriceUnknown},
	} {
		e := w.check(t, generous, member{catalog.OpenAI, good, c.change}, member{protocol: catalog.OpenAI, outcomes: good})
		if e.Attempts != 0 || e.Result != equivalence.Blocked || e.Cases[0].Answers[0].Reason != c.want || e.Cases[0].Answers[1].Reason != equivalence.NothingToCompare {
			t.Errorf("%s: %d calls, %s%s", name, e.Attempts, e.Result, differences(e))
		}
		e = w.check(t, generous, member{catalog.OpenAI, good, c.change}, member{protocol: catalog.OpenAI, outcomes: good}, member{protocol: catalog.OpenAI, outcomes: good})
		if e.Attempts != 12 || e.Result != equivalence.Blocked || e.Pool[2].Result != equivalence.Passed {
			t.Errorf("%s of three: %d calls, %s%s", name, e.Attempts, e.Result, differences(e))
		}
	}
	// A second key of the pool serves where the first is not held.
	e := w.check(t, generous, member{catalog.OpenAI, good, func(t *poolcheck.Target) {
		t.Provider.Keys = []catalog.ProviderKey{{ID: "k0", Env: "POOL_NOT_SET"}, {ID: "k1", Env: "POOL_KEY"}}
	}}, member{protocol: catalog.OpenAI, outcomes: good})
	if e.Result != equivalence.Passed {
		t.Errorf("second key: %s%s", e.Result, differences(e))
	}
}

// The pool is what the chain names itself and what is to join it.
//
// Rules: N24, N15.
func TestPoolOf_N24_N15(t *testing.T) {
	o := catalog.Objects{
		Providers:   []catalog.Provider{{ID: "p"}},
		Deployments: []catalog.Deployment{{ID: "a", Provider: "p"}, {ID: "b", Provider: "p"}, {ID: "lost", Provider: "gone"}},
		Models: []catalog.Model{
			{Slug: "m", ExactModel: "x", Chain: []catalog.Rung{{Deployment: "a"}, {Model: "other"}, {Deployment: "b"}}},
			{Slug: "other", ExactModel: "y", Chain: []catalog.Rung{{Deployment: "b"}}},
		},
	}
	pool, err := poolcheck.PoolOf(o, "m", []string{"b"})
	if err != nil || len(pool.Targets) != 2 || pool.Targets[1].Deployment.ID != "b" || pool.Targets[1].Provider.ID != "p" {
		t.Errorf("%+v, %v", pool, err)
	}
	if pool, err = poolcheck.PoolOf(o, "other", []string{"a"}); err != nil || len(pool.Targets) != 2 || pool.Targets[0].Deployment.ID != "b" {
		t.Errorf("%+v, %v", pool, err)
	}
	for want, c := range map[string]struct {
		model string
		with  []string
	}{
		"there is no model nobody":             {"nobody", nil},
		"there is no deployment nothing":       {"m", []string{"nothing"}},
		"deployment lost has no provider gone": {"m", []string{"lost"}},
		"model other has 1 deployment: there is nothing to compare; name those that are to join it with --with": {"other", nil},
	} {
		if _, err := poolcheck.PoolOf(o, c.model, c.with); err == nil || err.Error() != want {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// What is asked has a name in every evidence; a set that changed has another.
//
// Rules: N24.
func TestTheSetHasAName_N24(t *testing.T) {
	w := newWorld(t)
	members := []member{{protocol: catalog.OpenAI, outcomes: good}, {protocol: catalog.OpenAI, outcomes: good}}
	standard, err := w.checker.Plan(t.Context(), w.pool(t, members...), generous)
	if err != nil {
		t.Fatal(err)
	}
	const want = "sha256:34061f5b886a9acbdf2ea30f8945e8ecd4a8a905eb67e348367f3faebf7ebcf2"
	if standard.Set != want {
		t.Errorf("the set is %s now: evidence that was stored before asked something else, which is right if it was changed on purpose", standard.Set)
	}
	w.checker.Set = poolcheck.Synthetic()[:5]
	if other, err := w.checker.Plan(t.Context(), w.pool(t, members...), generous); err != nil || other.Set == standard.Set || len(other.Cases) != 5 {
		t.Errorf("%v: %s", err, other.Set)
	}
}
