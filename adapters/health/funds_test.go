package health

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
)

// An account is out of funds once its provider says so on any of its routes, and until
// it serves, its secret is another, or an hour has gone by without the provider saying
// so again.
//
// Rules: H12.
func TestAccountsOutOfFunds_H12(t *testing.T) {
	secret := "one"
	r := New(Config{Secrets: held{}, SecretID: func(*catalog.Provider, string) string { return secret }})
	single := func(deployment, provider string) func() bool {
		a := rung(deployment, provider, "https://a")
		a.Provider.Keys = a.Provider.Keys[:1]
		return func() bool { return r.Exhausted(a, at(10)) }
	}
	d1, d2, other := single("d1", "p"), single("d2", "p"), single("d1", "p2")
	pool := rung("d1", "p", "https://a")
	if d1() {
		t.Fatal("before anything was said")
	}
	r.Observe(pool, "k1", "acme/1", brokeKey, at(0))
	if !d1() || !d2() || other() {
		t.Errorf("by the same account %v and %v, by another %v", d1(), d2(), other())
	}
	if r.Exhausted(pool, at(10)) {
		t.Error("two keys of the pool were never out of funds")
	}
	r.Observe(pool, "k2", "acme/1", brokeKey, at(1))
	r.Observe(pool, "k3", "acme/1", brokeKey, at(2))
	if !r.Exhausted(pool, at(10)) || !r.Exhausted(pool, at(3599)) || r.Exhausted(pool, at(3601)) {
		t.Error("a pool is out of funds when each of its keys is, for an hour")
	}
	secret = "two"
	if d1() {
		t.Error("another secret is another account")
	}
	secret = "one"
	// Evicted it is not while that is known.
	for i := range shardCount {
		r.shards[i].mu.Lock()
		clear(r.shards[i].lanes)
		r.shards[i].mu.Unlock()
	}
	for _, e := range r.circuits {
		e.lanes = 0
	}
	r.mu.Lock()
	r.evict(at(1000))
	r.mu.Unlock()
	if !d1() {
		t.Error("it was forgotten")
	}
	r.Observe(rung("d2", "p", "https://a"), "k1", "acme/1", down, at(4))
	if !d1() {
		t.Error("a failure proves no funds")
	}
	r.Observe(rung("d2", "p", "https://a"), "k1", "acme/1", nil, at(5))
	if d1() || d2() {
		t.Error("it served")
	}

	own := rung("d", "p3", "https://a")
	own.Owner, own.Provider.Keys = request.Workspace, []catalog.ProviderKey{{ID: "acme/own"}}
	r.Observe(own, "acme/own", "acme/1", brokeKey, at(0))
	if r.Exhausted(own, at(1)) {
		t.Error("an organization's own account is its own affair")
	}
}

// What was learned of an account is in the log once, however many calls say it, and a
// restarted worker knows it still: not of an account that has paid, not of another
// secret, and not for longer.
//
// Rules: H12, H11.
func TestAccountsAreRecalled_H12_H11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		secret := func(*catalog.Provider, string) string { return "one" }
		before := New(Config{Secrets: held{}, SecretID: secret, Log: log, Worker: "w1"})
		other := New(Config{Secrets: held{}, SecretID: secret, Log: log, Worker: "w2"})
		broke, paid := rung("a", "broke", "https://a"), rung("b", "paid", "https://b")
		broke.Provider.Keys, paid.Provider.Keys = broke.Provider.Keys[:1], paid.Provider.Keys[:1]
		for i := range 50 {
			before.Observe(broke, "k1", "acme/1", brokeKey, at(float64(i)))
		}
		before.Observe(paid, "k1", "acme/1", brokeKey, at(0))
		other.Observe(paid, "k1", "acme/1", brokeKey, at(1))
		ended, stop := context.WithCancel(t.Context())
		stop()
		before.Run(ended)
		other.Run(ended)
		before.Observe(paid, "k1", "acme/1", nil, at(60))
		before.Run(ended)

		said := map[string]int{}
		for _, rec := range log.recorded {
			said[rec.Type]++
			e, err := event.Decode(rec.Type, rec.Version, rec.Data)
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := e.(circuit.AccountExhausted); ok && (e.Kind != circuit.Credential || e.SecretID != "one" || e.Cause.Status != 402) {
				t.Errorf("%+v", e)
			}
		}
		if said["account_exhausted"] != 3 || said["account_funded"] != 1 {
			t.Errorf("said %v", said)
		}

		recall := func(secret string, now time.Time) *Registry {
			r := New(Config{Secrets: held{}, SecretID: func(*catalog.Provider, string) string { return secret }})
			if err := r.Recall(t.Context(), log, now); err != nil {
				t.Fatal(err)
			}
			return r
		}
		for name, tc := range map[string]struct {
			secret string
			at     float64
			want   bool
		}{
			"soon":              {"one", 100, true},
			"with another key":  {"two", 100, false},
			"after an hour":     {"one", 3700, false},
			"before it is over": {"one", 3500, true},
		} {
			if got := recall(tc.secret, at(tc.at)).Exhausted(broke, at(tc.at)); got != tc.want {
				t.Errorf("%s: %v", name, got)
			}
		}
		if recall("one", at(100)).Exhausted(paid, at(100)) {
			t.Error("an account that one worker saw serve is known to the others as paid")
		}
	})
}

// RecentCircuits implements Memory: what was appended, within bounds.
func (l *memoryLog) RecentCircuits(_ context.Context, _ time.Duration, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recorded[max(0, len(l.recorded)-limit):], nil
}
