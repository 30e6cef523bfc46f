package e2e_test

import (
	"sync"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestTwoWorkersShareAnAllowance_M10_M16: two workers behind a plain balancer, 120
// requests at once that may only be free, and an allowance for some of them. What is
// held and given never exceeds it, nobody pays, and the operator's cost is on the bill.
//
// Rules: M10, M16, M7.
func TestTwoWorkersShareAnAllowance_M10_M16(t *testing.T) {
	const (
		callers = 120
		// allowance is some fifteen reservations of 64 output tokens.
		allowance = 1000
		counter   = "promo/acme/launch/output/overall/tokens/total/total"
	)
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	in := harness.Install(t, harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: fake.URL()}},
		Models:    []harness.Model{{Slug: "m", Routes: []string{"a/fake-words:50+delay:100ms"}}},
		Tenants: []harness.Tenant{{ID: "acme", MonthlyUSD: "0.000001", Promotions: `[{id: launch, models: [m],
      free_input_tokens: {per_model: {per_day: 1000000}}, free_output_tokens: {overall: {total: 1000}}}]`}},
	})
	key := in.Key(t, "acme")
	workers := []*harness.Worker{in.Serve(t), in.Serve(t)}
	client := harness.Client{Base: harness.Balance(t, workers...).URL, Key: key}

	watched := watchCounter(t, in, counter, allowance)
	replies := make([]harness.Reply, callers)
	var running sync.WaitGroup
	for i := range replies {
		running.Go(func() {
			replies[i], _ = client.Try("POST", harness.ChatPath, harness.ChatBody("m:free", "hello", nil))
		})
	}
	running.Wait()
	watched()

	var served int64
	for _, reply := range replies {
		if reply.IsWhole() {
			served++
			if reply.Get("model").String() != "m:free" || reply.Header.Get("X-Sluice-Canonical-Model") != "m" || reply.Header.Get("X-Sluice-Cost-Nanousd") != "0" {
				t.Errorf("served as %s of %s at %s", reply.Get("model"), reply.Header.Get("X-Sluice-Canonical-Model"), reply.Header.Get("X-Sluice-Cost-Nanousd"))
			}
			continue
		}
		checkError(t, reply, 429, "insufficient_quota")
		if reply.Get("error.scope").String() != "promotion" || reply.Get("error.limit").Int() != allowance || reply.Get("error.unit").String() != "tokens" {
			t.Errorf("%s", reply.Body)
		}
	}
	t.Logf("%d served", served)
	if served == 0 || served == callers || fake.Ledger().Total != served {
		t.Errorf("%d served, %d calls: the allowance divides nothing", served, fake.Ledger().Total)
	}
	held, given := in.Counter(t, counter)
	if held != 0 || given != 50*served || given > allowance {
		t.Errorf("held %d, given %d for %d answers", held, given, served)
	}
	checkGiven(t, client, given)
	// The plain name spends credit, of which there is next to none.
	plain := client.Chat(t, "m", "hello")
	checkError(t, plain, 429, "insufficient_quota")
	if plain.Get("error.scope").String() != "organization" {
		t.Errorf("%s", plain.Body)
	}
	_, bill := billed(t, client, served)
	list, subsidy := bill.Get("list_nanousd").Int(), bill.Get("subsidy_nanousd").Int()
	if list == 0 || subsidy != list || bill.Get("charge_nanousd").Int() != 0 || bill.Get("provider_cost_nanousd").Int() != list {
		t.Errorf("%s", bill.Body)
	}
	if out := in.Must(t, "verify"); out == "" {
		t.Error("verify says nothing")
	}
}

// checkGiven: the organization sees what is left of its promotion.
func checkGiven(t *testing.T, client harness.Client, given int64) {
	t.Helper()
	promotions := client.Get(t, "/v1/promotions")
	launch := promotions.Get("data.0")
	if promotions.Status != 200 || launch.Get("id").String() != "launch" || launch.Get("state").String() != "running" {
		t.Fatalf("%s", promotions.Body)
	}
	output := launch.Get(`allowances.#(side=="output")`)
	if output.Get("limit_tokens").Int() != 1000 || output.Get("given_tokens").Int() != given ||
		output.Get("remaining_tokens").Int() != 1000-given || output.Get("approximate").Bool() || output.Get("model").Raw != "null" {
		t.Errorf("%s", output)
	}
	if input := launch.Get(`allowances.#(side=="input")`); input.Get("model").String() != "m" || input.Get("per").String() != "day" || input.Get("given_tokens").Int() == 0 {
		t.Errorf("%s", input)
	}
}

// watchCounter looks at one counter for as long as the load runs.
func watchCounter(t *testing.T, in *harness.Installation, key string, limit int64) (stop func()) {
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for {
			if held, settled := in.Counter(t, key); held+settled > limit {
				t.Errorf("%s: held %d and settled %d of %d", key, held, settled, limit)
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
