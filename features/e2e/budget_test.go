package e2e_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestTwoWorkersShareABudget_M16_O1: two workers behind a plain balancer, 200
// requests at once, a budget for some of them.
//
// Rules: M16, O1.
func TestTwoWorkersShareABudget_M16_O1(t *testing.T) {
	const (
		callers = 200
		// limit is 0.05 USD in nano-USD: some fifty reservations of 64 output tokens
		// at 15 USD a million.
		limit = 50_000_000
	)
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	in := harness.Install(t, harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: fake.URL()}},
		Models:    []harness.Model{{Slug: "m", Routes: []string{"a/fake-words:60+delay:100ms"}}},
		Tenants:   []harness.Tenant{{ID: "acme", MonthlyUSD: "0.05"}},
	})
	key := in.Key(t, "acme")
	workers := []*harness.Worker{in.Serve(t), in.Serve(t)}
	client := harness.Client{Base: harness.Balance(t, workers...).URL, Key: key}

	watched := watchBudget(t, in, limit)
	replies := make([]harness.Reply, callers)
	var running sync.WaitGroup
	for i := range replies {
		running.Go(func() {
			replies[i], _ = client.Try("POST", harness.ChatPath, harness.ChatBody("m", "hello", nil))
		})
	}
	running.Wait()
	watched()

	var served, refused int
	for _, reply := range replies {
		switch {
		case reply.IsWhole():
			served++
		default:
			refused++
			checkError(t, reply, 429, "insufficient_quota")
			if reply.Get("error.scope").String() == "" || reply.Get("error.limit").Float() == 0 || !reply.Get("error.used").Exists() {
				t.Errorf("scope, limit or use is missing: %s", reply.Body)
			}
			if got := reply.Header.Get("X-Should-Retry"); got != "false" {
				t.Errorf("x-should-retry: %q", got)
			}
		}
	}
	t.Logf("%d served, %d refused", served, refused)
	if served == 0 || refused == 0 {
		t.Errorf("%d served and %d refused: the budget divides nothing", served, refused)
	}
	if calls := fake.Ledger().Total; calls != int64(served) {
		t.Errorf("%d calls for %d answers", calls, served)
	}
	checkBills(t, in, client, served)
	checkBothServed(t, in)
}

// watchBudget looks at the counters for as long as the load runs.
func watchBudget(t *testing.T, in *harness.Installation, limit int64) (stop func()) {
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for {
			if held, settled := in.Spending(t, "acme"); held+settled > limit {
				t.Errorf("held %d and settled %d nano-USD of %d", held, settled, limit)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	return func() { close(done); watcher.Wait() }
}

// checkBills: counters, search and bill say the same.
func checkBills(t *testing.T, in *harness.Installation, client harness.Client, served int) {
	t.Helper()
	held, settled := in.Spending(t, "acme")
	if held != 0 || settled == 0 {
		t.Errorf("held %d, settled %d nano-USD", held, settled)
	}
	harness.Eventually(t, "the search adds up to the counter", func() bool {
		var sum int64
		rows := client.Get(t, "/v1/requests?outcome=completed&limit=200").Get("data").Array()
		for _, row := range rows {
			sum += row.Get("charge_nanousd").Int()
		}
		return len(rows) == served && sum == settled
	})
}

// checkBothServed reads from the log's envelopes which workers wrote requests.
func checkBothServed(t *testing.T, in *harness.Installation) {
	t.Helper()
	writers := map[string]int{}
	for e := range in.Events(t) {
		if strings.HasPrefix(e.Stream, "request/") {
			writers[e.Worker]++
		}
	}
	if len(writers) != 2 {
		t.Errorf("%d workers wrote requests: %v", len(writers), writers)
	}
}

// TestChangesReachEveryWorker_C11: a key and a price, without a restart.
//
// Rules: C11.
func TestChangesReachEveryWorker_C11(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-words:5"}})
	workers := []*harness.Worker{s.worker, s.Serve(t)}
	key := s.Key(t, "acme")
	for _, w := range workers {
		harness.Eventually(t, "the new key works", func() bool {
			return w.Client(key).Chat(t, "m", "hello").Status == 200
		})
	}
	s.config.Models[0].Input, s.config.Models[0].Output = "0.00", "1000.00"
	s.Apply(t, s.config)
	for _, w := range workers {
		harness.Eventually(t, "the new price is charged", func() bool {
			// 5 tokens at 1000 USD a million.
			return w.Client(key).Chat(t, "m", "hello").Header.Get("X-Sluice-Cost-Nanousd") == "5000000"
		})
	}
}
