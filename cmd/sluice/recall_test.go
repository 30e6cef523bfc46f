package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
)

// troubled is a configuration of two models. The first route of "broke" is an account
// without funds, the first route of "down" answers 503; behind both stands one that serves.
func troubled(up, platform string) string {
	return fmt.Sprintf(`version: 1
providers:
  - {id: poor, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
  - {id: sick, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
  - {id: well, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
deployments:
  - {id: broke@poor, provider: poor, upstream_model: fake-funding, prices: {input: "1.00", output: "2.00"}}
  - {id: broke@well, provider: well, upstream_model: fake-ok, prices: {input: "1.00", output: "2.00"}}
  - {id: down@sick, provider: sick, upstream_model: fake-503, prices: {input: "1.00", output: "2.00"}}
  - {id: down@well, provider: well, upstream_model: fake-ok, prices: {input: "1.00", output: "2.00"}}
models:
  - slug: broke
    exact_model: broke
    equivalence: {certified_by: tests, on: "2026-11-01", evidence: made up}
    chain: [{deployment: broke@poor}, {deployment: broke@well}]
  - slug: down
    exact_model: down
    equivalence: {certified_by: tests, on: "2026-11-01", evidence: made up}
    policy: {circuit: {failures_to_open: 1, open_for: 10h}}
    chain: [{deployment: down@sick}, {deployment: down@well}]
tenants: [{id: acme}]
`, up+"/v1", up+"/v1", platform+"/v1")
}

// A restarted worker knows which circuits were open and which accounts had no funds: it
// calls neither route to find that out again.
//
// Rules: H11, H12.
func TestARestartForgetsNoCircuitAndNoAccount_H11_H12(t *testing.T) {
	useDatabase(t)
	up, well := fakeprovider.Start(t, fakeprovider.Options{}), fakeprovider.Start(t, fakeprovider.Options{})
	t.Setenv(secrets.MasterKeyEnv, masterKey("a"))
	t.Setenv("SLUICE_TEST_UP_KEY", "operators-credential-0000")
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", troubled(up.URL(), well.URL())))
	key := strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme"))

	ask := func(s serving, model string) (id string) {
		t.Helper()
		reply, err := post(s.public+"/v1/chat/completions", key, strings.Replace(hello, `"m"`, `"`+model+`"`, 1))
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusOK || reply.Header.Get("X-Sluice-Provider") != "well" {
			t.Fatalf("%s: %d by %q", model, reply.StatusCode, reply.Header.Get("X-Sluice-Provider"))
		}
		return reply.Header.Get("X-Request-Id")
	}
	first := serve(t)
	ask(first, "broke")
	ask(first, "down")
	if calls := up.Ledger().Calls; len(calls) < 2 {
		t.Fatalf("%+v", calls)
	}
	eventually(t, "the log has it", func() bool {
		_, all := get(t, first.public+"/v1/health", key)
		return gjson.Get(all, "circuits.#").Int() == 2
	})
	if code := first.end(); code != exitDone {
		t.Fatalf("ended with %d", code)
	}
	up.Reset()

	second := serve(t)
	broke, down := ask(second, "broke"), ask(second, "down")
	if calls := up.Ledger().Calls; len(calls) != 0 {
		t.Errorf("a restarted worker found out again: %+v", calls)
	}
	if told := must(t, "explain", down); !strings.Contains(told, "the circuit of its route was open") {
		t.Errorf("explained as %s", told)
	}
	if told := must(t, "explain", broke); !strings.Contains(told, "Attempt 1 goes to broke@well") || strings.Contains(told, "was not called") {
		t.Errorf("explained as %s", told)
	}
}
