package eventstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

const (
	perMinute = budget.Key("org/acme/requests/minute/trailing")
	tokensDay = budget.Key("org/acme/tokens/day/2026-11-30")
	tokensIn  = budget.Key("org/acme/tokens/minute/trailing")
)

func dispatch(limit int64) Append {
	a := moved{Key: perMinute, Settled: 1}.append()
	a.Checks = []budget.Check{{Key: perMinute, Unit: catalog.Requests, Limit: limit, Ask: 1, Scope: "organization"}}
	return a
}

// TestTwoWorkersShareAWindow_R1: however many stores append at once, exactly the limit
// is admitted, and a refusal says when the window moves.
//
// Rules: R1, R10.
func TestTwoWorkersShareAWindow_R1_R10(t *testing.T) {
	url := pgtest.NewDatabase(t)
	stores := []*Store{openStore(t, Config{URL: url}), openStore(t, Config{URL: url})}
	const limit = 40
	var admitted, refused atomic.Int64
	var callers sync.WaitGroup
	for n := range 100 {
		callers.Go(func() {
			r, err := stores[n%2].Append(t.Context(), dispatch(limit))
			switch {
			case err != nil:
				t.Error(err)
			case r.Refusal == nil:
				admitted.Add(1)
				if s := r.Standings[0]; s.Used < 1 || s.Used > limit || s.Resets.IsZero() {
					t.Errorf("%+v", s)
				}
			default:
				refused.Add(1)
				if until := time.Until(r.Refusal.Resets); r.Refusal.Used != limit || until > time.Minute || until < 0 {
					t.Errorf("%+v", r.Refusal)
				}
			}
		})
	}
	callers.Wait()
	if admitted.Load() != limit || refused.Load() != 60 {
		t.Fatalf("%d admitted, %d refused of a limit of %d", admitted.Load(), refused.Load(), limit)
	}
	c, err := stores[0].CompareCounters(t.Context(), 0, effects, nil)
	if err != nil || len(c.Drifts) > 0 {
		t.Fatalf("%+v, %v", c, err)
	}
}

// age makes everything older, as a minute that passes does. The log keeps its times:
// what is tested is the window that is read.
func age(t *testing.T, url, by string) {
	t.Helper()
	mustExec(t, connect(t, url), `update budget_marks set at = at - $1::text::interval`, by)
}

// Rules: R1, R5.
func TestAWindowMovesOn_R1_R5(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	add := func(want bool) {
		t.Helper()
		r, err := s.Append(t.Context(), dispatch(2))
		if err != nil || (r.Refusal == nil) != want {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	add(true)
	age(t, url, "30 seconds")
	add(true)
	add(false)
	age(t, url, "29 seconds")
	add(false)
	age(t, url, "2 seconds") // the first is older than a minute now
	add(true)
	add(false)
	got, err := s.Counters(t.Context(), 0, []budget.Key{perMinute})
	if c := got[perMinute]; err != nil || c.Settled != 3 || c.Used() != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	age(t, url, "1 minute")
	got, err = s.Counters(t.Context(), 0, []budget.Key{perMinute})
	if c := got[perMinute]; err != nil || c.Used() != 0 || !c.Oldest.IsZero() {
		t.Fatalf("%+v, %v", c, err)
	}
}

// What one append of a call takes does not refuse the next one of the same call: the
// claim of an idempotency key is written under the reservation's own checks.
//
// Rules: R10.
func TestACallIsCheckedBeforeAnyOfItIsTaken_R10(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	first := dispatch(1)
	second := first
	second.Stream, second.Deltas = newRequest(), nil
	results, err := s.AppendAll(t.Context(), []Append{first, second})
	if err != nil || results[0].Refusal != nil || results[1].Refusal != nil || results[1].Position == 0 {
		t.Fatalf("%+v, %v", results, err)
	}
	if r, err := s.Append(t.Context(), dispatch(1)); err != nil || r.Refusal == nil {
		t.Fatalf("%+v, %v", r, err)
	}
}

// A limit's holds may stand on another counter than what it has settled.
//
// Rules: R2, R4.
func TestHoldsOfAnotherCounterCount_R2_R4(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	held := moved{Key: "org/acme/tokens/held", Held: 60_000}.append()
	settled := moved{Key: tokensDay, Settled: 40_000}.append()
	if _, err := s.AppendAll(t.Context(), []Append{held, settled}); err != nil {
		t.Fatal(err)
	}
	ask := moved{Key: "other"}.append()
	ask.Checks = []budget.Check{{Key: tokensDay, HeldKey: "org/acme/tokens/held", Unit: catalog.Tokens, Limit: 100}}
	if r, err := s.Append(t.Context(), ask); err != nil || r.Refusal == nil || r.Refusal.Used != 100 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// A drifted window is found and mended, with writers on, like a drifted counter.
//
// Rules: E4.
func TestRebuildMendsDriftedWindows_E4(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	for range 3 {
		for _, key := range []budget.Key{perMinute, tokensIn} {
			if _, err := s.Append(t.Context(), moved{Key: key, Settled: 7}.append()); err != nil {
				t.Fatal(err)
			}
		}
	}
	conn := connect(t, url)
	mustExec(t, conn, `delete from budget_marks where key = $1 and at = (select min(at) from budget_marks where key = $1)`, perMinute)
	mustExec(t, conn, `update budget_marks set settled = settled + 1 where key = $1`, tokensIn)
	c, err := s.CompareCounters(t.Context(), 0, effects, nil)
	if err != nil || len(c.Drifts) != 2 || c.Drifts[0].Key != perMinute || c.Drifts[1].Key != tokensIn {
		t.Fatalf("%+v, %v", c.Drifts, err)
	}
	if _, err := s.RebuildCounters(t.Context(), 0, effects, nil); err != nil {
		t.Fatal(err)
	}
	if c, err = s.CompareCounters(t.Context(), 0, effects, nil); err != nil || len(c.Drifts) > 0 {
		t.Fatalf("%+v, %v", c.Drifts, err)
	}
	got, err := s.Counters(t.Context(), 0, []budget.Key{perMinute, tokensIn})
	if err != nil || got[perMinute].Used() != 21 || got[tokensIn].Used() != 21 {
		t.Fatalf("%+v, %v", got, err)
	}
}

// The sweep takes what no window can reach and nothing else.
//
// Rules: R5.
func TestOldMarksAreSwept_R5(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	conn := connect(t, url)
	mustExec(t, conn, `insert into budget_marks (shard, key, at, settled)
		select 0, k, clock_timestamp() - a, 0
		from unnest(array['x/requests/minute/trailing', 'x/tokens/hour/trailing']) k,
		     unnest(array['1 minute', '5 minutes', '60 minutes', '63 minutes']::interval[]) a`)
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	rows, err := conn.Query(t.Context(), `select key, count(*) from budget_marks group by key`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var key string
		var n int
		if err := rows.Scan(&key, &n); err != nil {
			t.Fatal(err)
		}
		left[key] = n
	}
	if diff := cmp.Diff(map[string]int{"x/requests/minute/trailing": 1, "x/tokens/hour/trailing": 3}, left); diff != "" {
		t.Error(diff)
	}
}
