package adminapi_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
)

func TestMain(m *testing.M) {
	// fasthttp's clock and the cleaner of an ended server's pool sleep on.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

const base = `version: 1
providers:
  - {id: east, protocol: openai, base_url: "https://east.example.test/v1", keys: [{id: k1, env: EAST}]}
  - {id: west, protocol: openai, base_url: "https://west.example.test/v1", keys: [{id: k1, env: WEST}]}
deployments:
  - {id: a@east, provider: east, upstream_model: a, prices: {input: "1", output: "2"}}
  - {id: a@west, provider: west, upstream_model: a, prices: {input: "1", output: "2"}}
  - {id: b@west, provider: west, upstream_model: b, prices: {input: "1", output: "2"}}
models:
  - slug: lab/a
    exact_model: a
    equivalence: {certified_by: ops, on: 2026-11-01, evidence: "sha256:00"}
    policy: {failover_mode: maximize_availability, throttle_cache_threshold: 0.3, max_attempts: 4}
    chain: [{deployment: a@east}, {model: b}]
  - {slug: b, exact_model: b, chain: [{deployment: b@west}]}
tiers:
  - {name: gold, weight: 3}
tenants:
  - {id: acme, tier: standard, budgets: [{scope: organization, limit_usd: "5", per: month}]}
`

func start(t *testing.T) *adminapitest.Server {
	t.Helper()
	s, err := adminapitest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Apply(base); err != nil {
		t.Fatal(err)
	}
	return s
}

// do asks and checks the status.
func do(t *testing.T, s *adminapitest.Server, status int, method, path, ifMatch, body string) adminapitest.Answer {
	t.Helper()
	a, err := s.Do(adminapitest.Ask{Method: method, Path: path, IfMatch: ifMatch, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, a.Status, status, a.Body)
	}
	return a
}

func check(t *testing.T, a adminapitest.Answer, path, want string) {
	t.Helper()
	if got := a.Field(path); got != want {
		t.Errorf("%s is %s, want %s in %s", path, got, want, a.Body)
	}
}

func mentions(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q does not say %q", text, want)
	}
}
