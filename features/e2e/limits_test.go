package e2e_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestTwoWorkersShareAMinute_R1_R8_O1: two workers behind a plain balancer admit exactly
// the limit, and every reply says what is left in its caller's own form.
//
// Rules: R1, R8, A9, O1.
func TestTwoWorkersShareAMinute_R1_R8_O1(t *testing.T) {
	const callers, limit = 60, 20
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	in := harness.Install(t, harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: fake.URL()}},
		Models:    []harness.Model{{Slug: "m", Routes: []string{"a/fake-words:5"}}},
		Tenants: []harness.Tenant{{ID: "acme", Budgets: []string{
			"{scope: organization, requests: 20, per: minute}",
			"{scope: organization, tokens: 1000000, per: day}",
		}}},
	})
	// Two keys of one organization have no more than one of them.
	keys := []string{in.Key(t, "acme"), in.Key(t, "acme")}
	base := harness.Balance(t, in.Serve(t), in.Serve(t)).URL
	clients := []harness.Client{{Base: base, Key: keys[0]}, {Base: base, Key: keys[1]}}

	var served, refused atomic.Int64
	var running sync.WaitGroup
	for n := range callers {
		running.Go(func() {
			reply := clients[n%2].Chat(t, "m", "hello")
			remaining, err := strconv.ParseInt(reply.Header.Get("X-Ratelimit-Remaining-Requests"), 10, 64)
			if err != nil || reply.Header.Get("X-Ratelimit-Limit-Requests") != "20" {
				t.Errorf("what is left is not told: %s", reply)
			}
			if reply.IsWhole() {
				served.Add(1)
				return
			}
			refused.Add(1)
			checkError(t, reply, 429, "rate_limit_exceeded")
			after, _ := strconv.Atoi(reply.Header.Get("Retry-After"))
			if remaining != 0 || after < 1 || after > 60 || reply.Get("error.unit").String() != "requests" || reply.Get("error.used").Int() != limit {
				t.Errorf("got %s", reply)
			}
		})
	}
	running.Wait()
	if served.Load() != limit || refused.Load() != callers-limit || fake.Ledger().Total != limit {
		t.Fatalf("%d served and %d refused of %d, %d calls", served.Load(), refused.Load(), callers, fake.Ledger().Total)
	}

	state := clients[0].Get(t, "/v1/budgets")
	if state.Get("data.0.settled").Int() != limit || state.Get("data.0.remaining").Int() != 0 || state.Get("data.1.settled").Int() == 0 || state.Get("data.1.held").Int() != 0 {
		t.Errorf("the budgets: %s", state)
	}
	messages := clients[0].Do(t, "POST", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, "Anthropic-Version", "2023-06-01")
	reset, err := time.Parse(time.RFC3339, messages.Header.Get("Anthropic-Ratelimit-Requests-Reset"))
	if messages.Status != 429 || messages.Header.Get("Anthropic-Ratelimit-Requests-Remaining") != "0" || err != nil || time.Until(reset) > 61*time.Second {
		t.Errorf("in the other dialect: %s", messages)
	}
}
