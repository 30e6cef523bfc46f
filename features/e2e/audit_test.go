package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// life is what the log says about one request.
type life struct {
	// worker is the one that wrote its newest event.
	worker    string
	admitted  int
	committed int
	final     int
	outcome   string
	attempts  map[int64]*attempt
}

// attempt is one of a life's.
type attempt struct {
	deployment   string
	settled      int
	committed    bool
	held, charge int64 // nano-USD
}

// audit reads the whole log and finds what must not be in it. It shares no code
// with what wrote the log.
type audit struct {
	lives map[string]*life
	// drained are the workers that were stopped and had the time to end.
	drained  map[string]bool
	events   int
	problems []string
}

func auditLog(t *testing.T, in *harness.Installation) *audit {
	t.Helper()
	a := &audit{lives: map[string]*life{}, drained: map[string]bool{}}
	versions := map[string]int64{}
	for e := range in.Events(t) {
		a.events++
		if e.Position != int64(a.events) {
			a.problem("position %d follows %d", e.Position, a.events-1)
			a.events = int(e.Position)
		}
		if versions[e.Stream]++; versions[e.Stream] != e.StreamVersion {
			a.problem("%s: version %d where %d is due", e.Stream, e.StreamVersion, versions[e.Stream])
		}
		if id, ok := strings.CutPrefix(e.Stream, "request/"); ok {
			a.fold(id, e)
		}
		if e.Type == "worker_drained" {
			a.drained[e.Worker] = true
		}
	}
	for id, l := range a.lives {
		a.check(id, l)
	}
	return a
}

func (a *audit) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

func (a *audit) fold(id string, e harness.Event) {
	l := a.lives[id]
	if l == nil {
		l = &life{attempts: map[int64]*attempt{}}
		a.lives[id] = l
	}
	l.worker = e.Worker
	number := gjson.Get(e.Data, "attempt").Int()
	one := l.attempts[number]
	if one == nil && number > 0 {
		one = &attempt{}
		l.attempts[number] = one
	}
	switch e.Type {
	case "request_admitted":
		l.admitted++
	case "request_refused":
		l.final++
		l.outcome = "refused"
	case "attempt_reserved":
		if one.deployment != "" {
			a.problem("%s: attempt %d is reserved twice", id, number)
		}
		one.deployment = gjson.Get(e.Data, "deployment").String()
		one.held = gjson.Get(e.Data, "reserved_nanousd").Int()
	case "attempt_committed":
		l.committed++
		one.committed = true
	case "attempt_settled":
		one.settled++
		one.charge += gjson.Get(e.Data, "charge_nanousd").Int()
	case "request_finalized":
		l.final++
		l.outcome = gjson.Get(e.Data, "outcome").String()
	}
}

// check holds one life to what is promised of all.
func (a *audit) check(id string, l *life) {
	if l.admitted > 1 || l.final > 1 || l.committed > 1 {
		a.problem("%s: %d admissions, %d commits, %d finalizations", id, l.admitted, l.committed, l.final)
	}
	for number, one := range l.attempts {
		if one.deployment == "" {
			a.problem("%s: attempt %d was never reserved", id, number)
		}
		if one.settled > 1 || (l.final == 1 && one.settled != 1) {
			a.problem("%s: attempt %d of a request with %d finalizations has %d settlements", id, number, l.final, one.settled)
		}
	}
	if l.outcome == "completed" && l.committed != 1 {
		a.problem("%s: completed with %d commits", id, l.committed)
	}
	if l.final == 0 && a.drained[l.worker] {
		a.problem("%s: left open by a worker that was stopped well", id)
	}
}

// open are the requests that have no end.
func (a *audit) open() (ids []string) {
	for id, l := range a.lives {
		if l.final == 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// money is what the budget counters have to say.
func (a *audit) money() (held, settled int64) {
	for _, l := range a.lives {
		for _, one := range l.attempts {
			settled += one.charge
			if one.settled == 0 {
				held += one.held
			}
		}
	}
	return held, settled
}

// checkCalls compares with what the provider saw. Every call has a reservation of
// its own. A reservation without a call is counted; it may have brought no answer
// and cost nothing.
func (a *audit) checkCalls(calls []fakeprovider.Call) (neverSent int) {
	// Both sides are counted by upstream idempotency key: the tries of one route
	// share it (I4).
	seen, reserved, used := map[string]int{}, map[string]int{}, map[string]int{}
	for _, call := range calls {
		seen[call.IdempotencyKey]++
	}
	for id, l := range a.lives {
		for _, one := range l.attempts {
			key := id + "-" + one.deployment
			reserved[key]++
			if one.committed || one.charge > 0 {
				used[key]++
			}
		}
	}
	for key, n := range seen {
		if n > reserved[key] {
			a.problem("the provider saw %d calls of %s, the log has %d reservations", n, key, reserved[key])
		}
	}
	for key, n := range reserved {
		neverSent += n - min(n, seen[key])
		if used[key] > seen[key] {
			a.problem("%s: %d attempts were answered or charged, the provider saw %d calls", key, used[key], seen[key])
		}
	}
	return neverSent
}

// report fails a test with the first problems.
func (a *audit) report(t *testing.T) {
	t.Helper()
	for _, p := range a.problems[:min(len(a.problems), 20)] {
		t.Error(p)
	}
	if n := len(a.problems); n > 20 {
		t.Errorf("and %d problems more", n-20)
	}
}

// checkLogAgainstLedger audits an installation whose workers were all given the
// time to end: nothing is open, and the counters are what the log adds up to.
func checkLogAgainstLedger(t *testing.T, in *harness.Installation, fake *fakeprovider.Server) {
	t.Helper()
	a := auditLog(t, in)
	a.checkCalls(fake.Ledger().Calls)
	a.report(t)
	if open := a.open(); len(open) > 0 {
		t.Errorf("%d requests have no end: %v", len(open), open)
	}
	in.Must(t, "verify", "--chain")
}
