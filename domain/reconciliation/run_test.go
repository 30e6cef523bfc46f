package reconciliation_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/reconciliation"
)

var start = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// finding draws what a check may have seen.
func finding(t *rapid.T) reconciliation.Finding {
	var f reconciliation.Finding
	if rapid.Bool().Draw(t, "digests") {
		f.LogDigest, f.LiveDigest = "aa", rapid.SampledFrom([]string{"aa", "bb"}).Draw(t, "live")
	}
	for range rapid.IntRange(0, 3).Draw(t, "drifts") {
		f.Add(reconciliation.Drift{Key: "k", Is: reconciliation.Row})
	}
	return f
}

// A check that did not compare everything has timed out, whatever it saw, and passes
// under no circumstances; one that did passes exactly when nothing differs (R7).
func TestOnlyAWholeCheckPasses_R7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, whole := finding(t), rapid.Bool().Draw(t, "whole")
		said := reconciliation.Complete(reconciliation.Bills, f, whole, time.Second)
		want := reconciliation.TimedOut
		if whole {
			want = reconciliation.Passed
			if f.Drifted > 0 || f.LogDigest != f.LiveDigest {
				want = reconciliation.Differs
			}
		}
		if said.Result != want || said.DurationMS != 1000 {
			t.Fatalf("%+v whole=%v: %s", f, whole, said.Result)
		}
	})
}

// Whatever happens to its checks: a run has passed exactly when every check of it has,
// what has no result is named with a reason, and the counts are those of the events (R7).
func TestARunPassesWhenEveryCheckHas_R7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.SliceOfDistinct(rapid.SampledFrom(reconciliation.Checks()), rapid.ID).Draw(t, "checks")
		started, err := reconciliation.Begin(wanted, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var r reconciliation.Run
		if err := r.Apply(started, start); err != nil {
			t.Fatal(err)
		}
		allPassed, said := true, 0
		for i, c := range started.Checks {
			if rapid.IntRange(0, 4).Draw(t, "undone") == 0 {
				allPassed = false
				continue
			}
			e := reconciliation.Complete(c, finding(t), rapid.Bool().Draw(t, "whole"), 0)
			if err := r.Apply(e, start.Add(time.Duration(i)*time.Second)); err != nil {
				t.Fatal(err)
			}
			said++
			allPassed = allPassed && e.Result == reconciliation.Passed
			if err := r.Apply(e, start); !errors.Is(err, reconciliation.ErrImpossible) {
				t.Fatalf("%s twice: %v", c, err)
			}
		}
		end := r.Finish(reconciliation.Interrupted, map[reconciliation.Check]reconciliation.Reason{reconciliation.Bills: reconciliation.Busy})
		if (end.Result == reconciliation.Passed) != allPassed {
			t.Fatalf("%+v of %+v", end, r.Completed)
		}
		if end.Passed+end.Drift+end.TimedOut != said || said+len(end.Undone) != len(started.Checks) {
			t.Fatalf("counts %+v of %d checks, %d said", end, len(started.Checks), said)
		}
		for _, u := range end.Undone {
			if want := map[bool]reconciliation.Reason{true: reconciliation.Busy, false: reconciliation.Interrupted}[u.Check == reconciliation.Bills]; u.Reason != want {
				t.Fatalf("%+v", u)
			}
		}
		for _, led := range []bool{true, false} {
			if state := r.State(start, led); (state == reconciliation.Running) != led || state == reconciliation.Done {
				t.Fatalf("without an end, led %v, it is %s", led, state)
			}
		}
		if err := r.Apply(end, start); err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(end, start); !errors.Is(err, reconciliation.ErrImpossible) {
			t.Fatalf("two ends: %v", err)
		}
		if int(r.Version) != said+2 {
			t.Fatalf("version %d after %d checks", r.Version, said)
		}
	})
}

// Rules: R7.
func TestTheWorstResultIsTheRuns_R7(t *testing.T) {
	started, _ := reconciliation.Begin([]reconciliation.Check{reconciliation.Counters, reconciliation.Money, reconciliation.Bills}, 0)
	for name, c := range map[string]struct {
		said []reconciliation.Result
		want reconciliation.Result
	}{
		"all passed":         {[]reconciliation.Result{"passed", "passed", "passed"}, reconciliation.Passed},
		"one timed out":      {[]reconciliation.Result{"passed", "timed_out", "passed"}, reconciliation.TimedOut},
		"drift beside it":    {[]reconciliation.Result{"drift", "timed_out", "passed"}, reconciliation.Differs},
		"one was not made":   {[]reconciliation.Result{"passed", "passed"}, reconciliation.Incomplete},
		"drift and not made": {[]reconciliation.Result{"drift"}, reconciliation.Differs},
		"none was made":      {nil, reconciliation.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			var r reconciliation.Run
			_ = r.Apply(started, start)
			for i, result := range c.said {
				if err := r.Apply(reconciliation.CheckCompleted{Check: started.Checks[i], Result: result}, start); err != nil {
					t.Fatal(err)
				}
			}
			if end := r.Finish(reconciliation.Failed, nil); end.Result != c.want {
				t.Errorf("%+v, want %s", end, c.want)
			}
		})
	}
}

// A run without an end is running only while somebody leads it and its time is not over
// by more than the grace; otherwise it is stalled, and never finished (R7).
func TestARunWithoutAnEndStalls_R7(t *testing.T) {
	started, _ := reconciliation.Begin(nil, 5*time.Minute)
	var r reconciliation.Run
	if err := r.Apply(started, start); err != nil {
		t.Fatal(err)
	}
	limit := start.Add(5*time.Minute + reconciliation.Grace)
	for _, c := range []struct {
		at   time.Time
		led  bool
		want reconciliation.State
	}{
		{start, true, reconciliation.Running},
		{limit.Add(-1), true, reconciliation.Running},
		{limit, true, reconciliation.Stalled},
		{start, false, reconciliation.Stalled},
	} {
		if got := r.State(c.at, c.led); got != c.want {
			t.Errorf("%s led %v: %s, want %s", c.at, c.led, got, c.want)
		}
	}
	for _, c := range []struct {
		reason reconciliation.Reason
		want   reconciliation.State
	}{{reconciliation.Interrupted, reconciliation.Stopped}, {reconciliation.Abandoned, reconciliation.Stopped}, {reconciliation.Busy, reconciliation.Done}} {
		ended := r
		_ = ended.Apply(r.Finish(c.reason, nil), start)
		if got := ended.State(limit, false); got != c.want {
			t.Errorf("ended as %s: %s", c.reason, got)
		}
	}
}

// The shares of the checks never add up to more than the budget, however long each takes
// within its own.
//
// Rules: R7.
func TestSharesStayWithinTheBudget_R7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := time.Duration(rapid.Int64Range(int64(reconciliation.MinTimeBudget), int64(reconciliation.MaxTimeBudget)).Draw(t, "budget")).Truncate(time.Millisecond)
		started, err := reconciliation.Begin(nil, budget)
		if err != nil {
			t.Fatal(err)
		}
		var r reconciliation.Run
		_ = r.Apply(started, start)
		now := start
		for n := len(started.Checks); n > 0; n-- {
			share := r.Share(now, n)
			if share < budget/time.Duration(len(started.Checks))-time.Duration(n) {
				t.Fatalf("%d checks are left and the next has %s of %s", n, share, budget)
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(share)).Draw(t, "took")))
		}
		if now.After(r.Deadline()) {
			t.Fatalf("ended %s behind the deadline", now.Sub(r.Deadline()))
		}
		if r.Share(r.Deadline(), 3) != 0 || r.Share(start, 0) != 0 {
			t.Fatal("a share of nothing")
		}
	})
}

func TestBegin(t *testing.T) {
	all, err := reconciliation.Begin(nil, 0)
	if err != nil || !slices.Equal(all.Checks, reconciliation.Checks()) || all.TimeBudgetMS != reconciliation.DefaultTimeBudget.Milliseconds() {
		t.Errorf("%+v, %v", all, err)
	}
	some, err := reconciliation.Begin([]reconciliation.Check{reconciliation.Bills, reconciliation.Counters, reconciliation.Bills}, time.Minute)
	if want := []reconciliation.Check{reconciliation.Counters, reconciliation.Bills}; err != nil || !slices.Equal(some.Checks, want) {
		t.Errorf("%+v, %v", some, err)
	}
	if _, err := reconciliation.Begin([]reconciliation.Check{"horoscopes"}, 0); err == nil {
		t.Error("an unknown check was taken")
	}
	for _, budget := range []time.Duration{-1, time.Millisecond, 25 * time.Hour} {
		if _, err := reconciliation.Begin(nil, budget); !errors.Is(err, reconciliation.ErrTimeBudget) {
			t.Errorf("%s: %v", budget, err)
		}
	}
}

// Events that cannot stand where they stand are refused and change nothing.
func TestImpossibleEventsAreRefused(t *testing.T) {
	started, _ := reconciliation.Begin([]reconciliation.Check{reconciliation.Money}, 0)
	var unborn, begun reconciliation.Run
	_ = begun.Apply(started, start)
	for name, c := range map[string]struct {
		of reconciliation.Run
		e  any
	}{
		"a check before the start": {unborn, reconciliation.CheckCompleted{Check: reconciliation.Money}},
		"an end before the start":  {unborn, reconciliation.ReconciliationFinished{}},
		"two starts":               {begun, started},
		"another check":            {begun, reconciliation.CheckCompleted{Check: reconciliation.Bills}},
		"something else":           {begun, 7},
	} {
		before := c.of.Version
		if err := c.of.Apply(c.e, start); !errors.Is(err, reconciliation.ErrImpossible) || c.of.Version != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}
