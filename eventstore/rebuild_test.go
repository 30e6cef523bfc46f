package eventstore

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// moved is an event whose effect is in its data, as a reservation's is.
type moved struct {
	Key     budget.Key `json:"key"`
	Held    int64      `json:"held"`
	Settled int64      `json:"settled"`
}

func (m moved) append() Append {
	data, _ := json.Marshal(m)
	return Append{
		Stream: newRequest(),
		Events: []Event{{Type: "moved", Version: 1, Data: data}, {Type: "noted", Version: 1, Data: []byte(`{}`)}},
		Deltas: []budget.Delta{{Key: m.Key, Held: m.Held, Settled: m.Settled}},
	}
}

func effects(raw Raw) ([]budget.Delta, error) {
	switch string(raw.Type) {
	case "moved":
		var m moved
		err := json.Unmarshal(raw.Data, &m)
		return []budget.Delta{{Key: m.Key, Held: m.Held, Settled: m.Settled}}, err
	case "noted", "thing_happened":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown event %s", raw.Type)
}

// Appends go on while the counters are compared and rebuilt: neither may see half
// of an append.
//
// Rules: E4, E5.
func TestRebuiltCountersEqualLiveOnesBesideTraffic_E4_E5(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n >= 30 { // every counter has been written to
						return
					}
				default:
				}
				m := moved{Key: budget.Key(fmt.Sprintf("org/o%d/usd", (w+n)%5)), Held: int64(n%7 - 3), Settled: 1}
				if n%3 == 0 {
					m.Key = budget.Key([]string{
						"org/o1/requests/minute/trailing", "org/o1/tokens/minute/trailing", "org/o1/tokens/hour/trailing",
					}[(w+n)%3])
				}
				if _, err := s.Append(t.Context(), m.append()); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	for range 5 {
		c, err := s.CompareCounters(t.Context(), 0, effects, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.LiveDigest != c.Fold.Digest || len(c.Drifts) > 0 {
			t.Fatalf("drift at %d: %+v", c.Fold.Position, c.Drifts)
		}
		if _, err := s.RebuildCounters(t.Context(), 0, effects, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	writers.Wait()
	c, err := s.CompareCounters(t.Context(), 0, effects, nil)
	if err != nil || len(c.Drifts) > 0 || c.Fold.Counters != 8 {
		t.Fatalf("at the end: %+v, %v", c, err)
	}
}

// Rules: E4.
func TestRebuildMendsDriftedCounters_E4(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	for _, m := range []moved{{"a", 5, 0}, {"b", 7, 1}, {"b", -7, 6}} {
		if _, err := s.Append(t.Context(), m.append()); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, connect(t, url), `update budget_counters set held = held + 1 where key = 'a'`)
	mustExec(t, connect(t, url), `insert into budget_counters values (0, 'ghost', 3, 4)`)
	mustExec(t, connect(t, url), `insert into budget_counters values (1, 'other shard', 3, 4)`)
	c, err := s.CompareCounters(t.Context(), 0, effects, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Drift{
		{Key: "a", Live: budget.Counter{Held: 6}, Fold: budget.Counter{Held: 5}},
		{Key: "ghost", Live: budget.Counter{Held: 3, Settled: 4}},
	}
	if diff := cmp.Diff(want, c.Drifts); diff != "" || c.LiveDigest == c.Fold.Digest {
		t.Fatalf("drifts %s, digests %s %s", diff, c.LiveDigest, c.Fold.Digest)
	}
	r, err := s.RebuildCounters(t.Context(), 0, effects, nil)
	if err != nil || r.Position != 6 || r.Counters != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	got, err := s.Counters(t.Context(), 0, []budget.Key{"a", "b", "ghost"})
	wantCounters := map[budget.Key]budget.Counter{"a": {Held: 5}, "b": {Settled: 7}, "ghost": {}}
	if diff := cmp.Diff(wantCounters, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	other, err := s.Counters(t.Context(), 1, []budget.Key{"other shard"})
	if err != nil || other["other shard"].Held != 3 {
		t.Fatalf("another shard's counters were touched: %v, %v", other, err)
	}
}

// A fold that meets what it does not know stops and says where; it never skips.
//
// Rules: E8.
func TestRebuildStopsAtUnknownEvent_E8(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	mustAppend(t, s, newRequest(), 0, 2)
	_, err := s.Append(t.Context(), Append{Stream: newRequest(), Events: []Event{{Type: "novel", Version: 1, Data: []byte(`{}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.RebuildCounters(t.Context(), 0, effects, nil)
	if err == nil || err.Error() != "position 3: unknown event novel" {
		t.Fatalf("got %v", err)
	}
}
