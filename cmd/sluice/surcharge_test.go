package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
)

// surcharged is a configuration in which acme and hosted call a model with a credential
// of their own, at a provider that is down. The model offers the operator's routes at 10
// percent, and acme alone has agreed to them.
func surcharged(down, platform string) string {
	return fmt.Sprintf(`version: 1
providers:
  - {id: up, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
  - {id: platform, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
deployments:
  - {id: m@platform, provider: platform, upstream_model: fake-ok, prices: {input: "1.00", output: "2.00"}}
  - {id: m@up, provider: up, upstream_model: fake-503, prices: {input: "1.00", output: "2.00"}}
models:
  - slug: m
    exact_model: m
    equivalence: {certified_by: tests, on: "2026-11-01", evidence: made up}
    policy: {circuit: {failures_to_open: 100}}
    surcharge: "10"
    chain: [{deployment: m@platform}, {deployment: m@up}]
tenants:
  - id: acme
    surcharge_fallback: true
    budgets: [{scope: organization, limit_usd: "5.00", per: month}]
    connections: [{id: own, provider: up, env: SLUICE_TEST_OWN_KEY}]
    chains: [{model: m, chain: [{connection: own}]}]
  - id: hosted
    connections: [{id: own, provider: up, env: SLUICE_TEST_OWN_KEY}]
    chains: [{model: m, chain: [{connection: own}, {deployment: m@platform}]}]
`, down+"/v1", platform+"/v1")
}

// A call at a surcharge says so on the reply, in the trail, in the search and on the
// bill, with the surcharge as a number of its own; an organization that did not agree to
// one is told what failed, and the skip says why nothing else was called.
//
// Rules: M12, M11, M7, X5.
func TestASurchargeIsShownEverywhere_M12(t *testing.T) {
	useDatabase(t)
	down, platform := fakeprovider.Start(t, fakeprovider.Options{}), fakeprovider.Start(t, fakeprovider.Options{})
	t.Setenv(secrets.MasterKeyEnv, masterKey("a"))
	t.Setenv("SLUICE_TEST_UP_KEY", "operators-credential-0000")
	t.Setenv("SLUICE_TEST_OWN_KEY", "customers-own-credential-1111")
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", surcharged(down.URL(), platform.URL())))
	acme := strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme"))
	hosted := strings.TrimSpace(must(t, "keys", "create", "--tenant", "hosted"))
	s := serve(t)

	reply, err := post(s.public+"/v1/chat/completions", acme, hello)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if kind, provider := reply.Header.Get("X-Sluice-Fallback-Kind"), reply.Header.Get("X-Sluice-Provider"); reply.StatusCode != http.StatusOK || kind != "surcharge" || provider != "platform" {
		t.Fatalf("%d, kind %q by %q", reply.StatusCode, kind, provider)
	}
	calls := platform.Ledger().Calls
	if len(calls) != 1 || calls[0].KeyLast4 != "0000" {
		t.Errorf("the operator's account was called %+v", calls)
	}

	id := reply.Header.Get("X-Request-Id")
	_, text := get(t, s.public+"/v1/requests/"+id+"/trail", acme)
	reserved := gjson.Get(text, `entries.#(kind=="surcharge")`)
	if reserved.Get("fallback_kind").String() != "surcharge" || reserved.Get("credential_owner").String() != "operator" || reserved.Get("surcharge_percent").String() != "10" {
		t.Errorf("trail %s", text)
	}
	settled := gjson.Get(text, `entries.#(event=="attempt_settled")#|@reverse|0`)
	list, surcharge := settled.Get("list_nanousd").Int(), settled.Get("surcharge_nanousd").Int()
	if list == 0 || surcharge != (list+5)/10 || settled.Get("charge_nanousd").Int() != list+surcharge {
		t.Errorf("settled %s", settled)
	}
	if cost := reply.Header.Get("X-Sluice-Cost-Nanousd"); cost != fmt.Sprint(list+surcharge) {
		t.Errorf("the reply says it cost %s of %d", cost, list+surcharge)
	}
	if told := must(t, "explain", id); !strings.Contains(told, "agreed to the operator's at 10 percent") || !strings.Contains(told, "is the surcharge") {
		t.Errorf("explained as %s", told)
	}
	if drawn := must(t, "trail", id); !strings.Contains(drawn, "surcharge: platform") || !strings.Contains(drawn, " (surcharge $0.") {
		t.Errorf("drawn as %s", drawn)
	}
	eventually(t, "the search and the bill have it", func() bool {
		_, found := get(t, s.public+"/v1/requests?model=m", acme)
		_, bill := get(t, s.public+"/v1/bills/"+time.Now().UTC().Format("2006-01"), acme)
		line := gjson.Get(bill, `lines.#(fallback_kind=="surcharge")`)
		return gjson.Get(found, "data.0.surcharge_nanousd").Int() == surcharge &&
			line.Get("surcharge_nanousd").Int() == surcharge && line.Get("charge_nanousd").Int() == list+surcharge
	})

	code, body := do(t, http.MethodPost, s.public+"/v1/chat/completions", hosted, hello)
	if code != http.StatusBadGateway || !strings.Contains(body, "upstream_exhausted") {
		t.Errorf("without its word: %d %s", code, body)
	}
	if calls := platform.Ledger().Calls; len(calls) != 1 {
		t.Errorf("without its word the operator's account was called: %+v", calls)
	}
	eventually(t, "the trail says why", func() bool {
		_, found := get(t, s.public+"/v1/requests?model=m", hosted)
		_, text := get(t, s.public+"/v1/requests/"+gjson.Get(found, "data.0.id").String()+"/trail", hosted)
		return gjson.Get(text, `entries.#(reason=="surcharge_not_enabled").provider`).String() == "platform"
	})
}
