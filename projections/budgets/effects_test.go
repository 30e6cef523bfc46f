package budgets

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

func effects(typ string, version int, data []byte) ([]budget.Delta, error) {
	return Effects(eventstore.Raw{Type: []byte(typ), TypeVersion: version, Data: data})
}

// What the rebuild reads from bytes is what the append applied (E4, E5).
func TestBytesAndEventsHaveTheSameEffects_E4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, e := range projectiontest.Life(t) {
			enc := event.Encode(e)
			got, err := effects(enc.Type, enc.Version, enc.Data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(budget.Effects(e), got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s (-event +bytes):\n%s", enc.Type, diff)
			}
		}
	})
}

// At the end of its requests nothing is held, and what is settled is the sum of
// the charges, on every counter (events.md, invariants 5 and 6).
func TestFinishedRequestsHoldNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counters := map[budget.Key]budget.Counter{}
		charges := map[budget.Key]int64{}
		for range rapid.IntRange(1, 5).Draw(t, "requests") {
			for _, e := range projectiontest.Life(t) {
				enc := event.Encode(e)
				deltas, err := effects(enc.Type, enc.Version, enc.Data)
				if err != nil {
					t.Fatal(err)
				}
				budget.Apply(counters, deltas)
				if s, ok := e.(request.AttemptSettled); ok {
					for _, key := range s.Holds {
						charges[budget.Key(key)] += int64(s.Charge)
					}
				}
				for key, c := range counters {
					if c.Held < 0 {
						t.Fatalf("%s holds %d", key, c.Held)
					}
				}
			}
		}
		for key, c := range counters {
			if c.Held != 0 || c.Settled != charges[key] {
				t.Fatalf("%s: %+v, charged %d", key, c, charges[key])
			}
		}
	})
}

// Money is not added up around what this release cannot read (E8).
func TestUnknownIsNotSkipped_E8(t *testing.T) {
	for _, c := range []struct {
		typ     string
		version int
	}{{"attempt_teleported", 1}, {"attempt_settled", 99}, {"attempt_settled", 0}, {"route_skipped", 99}} {
		_, err := effects(c.typ, c.version, []byte(`{}`))
		if unknown, ok := errors.AsType[*event.UnknownTypeError](err); !ok || unknown.Type != c.typ || unknown.Version != c.version {
			t.Errorf("%s version %d: %v", c.typ, c.version, err)
		}
	}
}

func TestWrongFieldsAreErrors(t *testing.T) {
	for _, data := range []string{
		`{"reserved_nanousd":1.5,"holds":["a"]}`,
		`{"reserved_nanousd":"1","holds":["a"]}`,
		`{"reserved_nanousd":null,"holds":["a"]}`,
		`{"reserved_nanousd":9223372036854775808,"holds":["a"]}`,
		`{"reserved_nanousd":-9223372036854775808,"holds":["a"]}`,
		`{"reserved_nanousd":1,"holds":"a"}`,
		`{"reserved_nanousd":1,"holds":[1]}`,
		`{"reserved_nanousd":1,"holds":{"a":"b"}}`,
		`{"takes":{"key":"a","held":1}}`,
		`{"takes":[1]}`,
		`{"takes":[{"key":1,"held":1}]}`,
		`{"takes":[{"key":"a","held":1.5}]}`,
		`{"takes":[{"key":"a","settled":"1"}]}`,
	} {
		if deltas, err := effects(reserved, 1, []byte(data)); err == nil {
			t.Errorf("%s: %v", data, deltas)
		}
	}
}

// FuzzEffects: no bytes make it panic, and what the domain would write for them is
// read as the domain means it.
func FuzzEffects(f *testing.F) {
	f.Add([]byte(`{"reserved_nanousd":7,"charge_nanousd":9007199254740993,"holds":["org/acme/usd/month/2026-11"]}`))
	f.Add([]byte(`{"holds":["a\u0062\n\"],["],"reserved_nanousd":0}`))
	f.Add([]byte(`{"holds":null,"failure":"\",\"holds\":[\"x\"]"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = effects(settled, 1, data)
		e, err := event.Decode(settled, 1, data)
		if err != nil || e.(request.AttemptSettled).Reserved == math.MinInt64 || e.(request.AttemptSettled).Charge == math.MinInt64 {
			return
		}
		got, err := effects(settled, 1, event.Encode(e).Data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(budget.Effects(e), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-event +bytes):\n%s", diff)
		}
	})
}

// BenchmarkEffects runs a realistic mix; replaying wants 250,000 events/s with the
// reading.
func BenchmarkEffects(b *testing.B) {
	type line struct {
		typ  []byte
		data []byte
	}
	var mix []line
	size := 0
	for n := range 64 {
		for _, e := range rapid.Custom(projectiontest.Life).Example(n) {
			enc := event.Encode(e)
			mix = append(mix, line{[]byte(enc.Type), enc.Data})
			size += len(enc.Data)
		}
	}
	counters := map[budget.Key]budget.Counter{}
	b.ReportMetric(float64(size)/float64(len(mix)), "bytes/event")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l := mix[i%len(mix)]
		deltas, err := Effects(eventstore.Raw{Type: l.typ, TypeVersion: 1, Data: l.data})
		if err != nil {
			b.Fatal(err)
		}
		budget.Apply(counters, deltas)
		i++
	}
}
