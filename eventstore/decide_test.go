package eventstore

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// model is the plain rule, one append after the other, with everything known.
type model struct {
	versions map[string]int64
	counters map[budget.Key]budget.Counter
	position int64
}

func (m *model) clone() *model {
	c := &model{map[string]int64{}, map[budget.Key]budget.Counter{}, m.position}
	for k, v := range m.versions {
		c.versions[k] = v
	}
	for k, v := range m.counters {
		c.counters[k] = v
	}
	return c
}

// call is what all appends of one entry come to, and the model after them.
func (m *model) call(e *entry) (*model, outcome) {
	next := m.clone()
	results := make([]Result, len(e.appends))
	for i, a := range e.appends {
		now := next.versions[a.stream]
		if a.expected != AnyVersion && a.expected != now {
			return m, outcome{err: &ConflictError{a.stream, a.expected, now}}
		}
		events, deltas := int64(a.events), a.deltas
		for _, c := range a.checks {
			// On what was there before the call: it is checked whole (R10).
			if at := m.counters[c.Key]; at.Held+at.Settled+c.Ask > c.Limit {
				results[i].Refusal = &budget.Refusal{Check: c, Used: at.Held + at.Settled}
				break
			}
		}
		if results[i].Refusal != nil {
			if a.refuse == nil {
				only := make([]Result, len(e.appends))
				only[i] = results[i]
				return m, outcome{results: only}
			}
			events, deltas = 1, nil
		}
		next.position += events
		next.versions[a.stream] += events
		results[i].Position, results[i].Version = next.position, next.versions[a.stream]
		for _, d := range deltas {
			c := next.counters[d.Key]
			next.counters[d.Key] = budget.Counter{Held: c.Held + d.Held, Settled: c.Settled + d.Settled}
		}
		for _, c := range a.checks {
			if at := next.counters[c.Key]; results[i].Refusal == nil {
				results[i].Standings = append(results[i].Standings, budget.Standing{Check: c, Used: at.Held + at.Settled})
			}
		}
	}
	return next, outcome{results: results}
}

func drawEntry(t *rapid.T) *entry {
	key := rapid.SampledFrom([]budget.Key{"a", "b"})
	e := &entry{}
	for range rapid.IntRange(1, 3).Draw(t, "appends") {
		p := pending{
			stream:   rapid.SampledFrom([]string{"s/1", "s/2", "s/3"}).Draw(t, "stream"),
			expected: rapid.Int64Range(-1, 5).Draw(t, "expected"),
			events:   int16(rapid.IntRange(1, 3).Draw(t, "events")),
		}
		if rapid.Bool().Draw(t, "checked") {
			p.checks = []budget.Check{{Key: key.Draw(t, "check"), Limit: 5, Ask: rapid.Int64Range(0, 4).Draw(t, "ask")}}
		}
		if rapid.Bool().Draw(t, "moves") {
			p.deltas = []budget.Delta{{Key: key.Draw(t, "delta"), Held: rapid.Int64Range(-2, 4).Draw(t, "held"), Settled: 1}}
		}
		if rapid.Bool().Draw(t, "speaks") {
			p.refuse = func(budget.Refusal) ([]Event, []budget.Delta) {
				return []Event{{Type: "refused", Version: 1, Data: []byte(`{}`)}}, nil
			}
		}
		e.appends = append(e.appends, p)
	}
	return e
}

// Whatever a batch holds and however little of it was read: each call is told what
// the plain rule says, one after the other, and what is written adds up to it,
// unless an assumption was wrong, which the index finds.
//
// Rules: E2, M16.
func TestDecideFollowsThePlainRule_E2_M16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := &model{
			versions: map[string]int64{"s/1": 0, "s/2": 2, "s/3": 4},
			counters: map[budget.Key]budget.Counter{"a": {Held: 1}, "b": {Settled: 3}},
			position: 6,
		}
		batch := rapid.SliceOfN(rapid.Custom(drawEntry), 1, 6).Draw(t, "batch")
		f := facts{head: Head{Position: 6}, counters: truth.counters, versions: map[string]int64{}}
		for _, s := range []string{"s/1", "s/2", "s/3"} {
			if rapid.Bool().Draw(t, fmt.Sprint("read ", s)) || wantsAnyVersion(batch, s) {
				f.versions[s] = truth.versions[s]
			}
		}
		got := decide(f, batch)
		// A row on an assumed version that is not the stream's is refused by the index,
		// or was not trusted in the first place.
		first := map[string]bool{}
		for _, r := range got.rows {
			if _, read := f.versions[r.stream]; !read && !first[r.stream] && r.version-int64(r.events) != truth.versions[r.stream] {
				t.Skip("an assumption that the index refuses")
			}
			first[r.stream] = true
		}
		m := truth
		for i, e := range batch {
			var want outcome
			m, want = m.call(e)
			if want.err != nil && writesNothing(got.outcomes[i]) {
				// Another of its appends conflicts as well, or was refused by a budget: a
				// version that was not read is never the reason given.
				continue
			}
			if diff := cmp.Diff(want.results, got.outcomes[i].results); diff != "" || fmt.Sprint(want.err) != fmt.Sprint(got.outcomes[i].err) {
				t.Fatalf("call %d: %s, want %v, got %v", i, diff, want.err, got.outcomes[i].err)
			}
		}
		position := int64(6)
		for _, r := range got.rows {
			if position += int64(r.events); r.position != position {
				t.Fatalf("row ends at %d, want %d", r.position, position)
			}
		}
		if position != m.position || got.last != position {
			t.Fatalf("ends at %d and %d, want %d", position, got.last, m.position)
		}
		sum := map[budget.Key]budget.Counter{}
		for k, c := range truth.counters {
			sum[k] = c
		}
		budget.Apply(sum, got.deltas)
		if diff := cmp.Diff(m.counters, sum); diff != "" {
			t.Fatal(diff)
		}
	})
}

// wantsAnyVersion: the lane reads such a stream always.
func wantsAnyVersion(batch []*entry, stream string) bool {
	for _, e := range batch {
		for _, a := range e.appends {
			if a.stream == stream && a.expected == AnyVersion {
				return true
			}
		}
	}
	return false
}

func writesNothing(o outcome) bool {
	for _, r := range o.results {
		if r.Position != 0 {
			return false
		}
	}
	return true
}
