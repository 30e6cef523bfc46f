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

// ownKeys is a configuration in which acme calls provider up with a credential of its
// own, and the operator's provider platform stands behind it in its chains. Its models
// are answered as their names say.
func ownKeys(up, platform string) string {
	text := fmt.Sprintf(`version: 1
providers:
  - {id: up, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
  - {id: platform, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
`, up+"/v1", platform+"/v1")
	var deployments, models, chains strings.Builder
	for model, answer := range map[string]string{"works": "fake-ok", "rejects": "fake-401", "broke": "fake-funding"} {
		for _, provider := range []string{"up", "platform"} {
			fmt.Fprintf(&deployments, "  - {id: %s@%s, provider: %s, upstream_model: %q, prices: {input: \"1.00\", output: \"2.00\"}}\n",
				model, provider, provider, map[string]string{"up": answer, "platform": "fake-ok"}[provider])
		}
		fmt.Fprintf(&models, `  - slug: %s
    exact_model: %s
    equivalence: {certified_by: tests, on: "2026-11-01", evidence: made up}
    chain: [{deployment: %s@up}, {deployment: %s@platform}]
`, model, model, model, model)
		fmt.Fprintf(&chains, "      - {model: %s, chain: [{connection: own-%s}, {deployment: %s@platform}]}\n", model, model, model)
	}
	return text + "deployments:\n" + deployments.String() + "models:\n" + models.String() + `tenants:
  - id: acme
    budgets: [{scope: organization, limit_usd: "5.00", per: month}]
    connections:
      - {id: own-works, provider: up, stored: true}
      - {id: own-rejects, provider: up, stored: true}
      - {id: own-broke, provider: up, stored: true}
    chains:
` + chains.String() + "  - {id: other}\n"
}

// ownScene is a worker that serves ownKeys, with a credential stored for every
// connection.
type ownScene struct {
	serving
	key          string
	up, platform *fakeprovider.Server
}

func newOwnScene(t *testing.T) *ownScene {
	t.Helper()
	s := &ownScene{up: fakeprovider.Start(t, fakeprovider.Options{}), platform: fakeprovider.Start(t, fakeprovider.Options{})}
	useDatabase(t)
	t.Setenv(secrets.MasterKeyEnv, masterKey("a"))
	t.Setenv("SLUICE_TEST_UP_KEY", "operators-credential-0000")
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", ownKeys(s.up.URL(), s.platform.URL())))
	for _, model := range []string{"works", "rejects", "broke"} {
		if r := setCredential(t, "customers-own-credential-1111", "--tenant", "acme", "own-"+model); r.code != exitDone {
			t.Fatalf("%s%s", r.stdout, r.stderr)
		}
	}
	t.Setenv("SLUICE_ADMIN_KEY", ownAdminKey)
	s.key = strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme"))
	s.serving = serve(t)
	return s
}

const ownAdminKey = "the-bootstrap-key-of-a-test"

// snapshot is the id of the catalog that the worker serves from.
func (s *ownScene) snapshot(t *testing.T) string {
	t.Helper()
	_, text := get(t, s.admin+"/admin/v1/snapshot", ownAdminKey)
	return gjson.Get(text, "id").String()
}

// chat asks for a model and returns status, body and the request's trail.
func (s *ownScene) chat(t *testing.T, model string) (int, string, gjson.Result) {
	t.Helper()
	code, body := do(t, http.MethodPost, s.public+"/v1/chat/completions", s.key, strings.Replace(hello, `"m"`, `"`+model+`"`, 1))
	var list gjson.Result
	eventually(t, "the request is listed", func() bool {
		_, text := get(t, s.public+"/v1/requests?limit=1&model="+model, s.key)
		list = gjson.Parse(text)
		return list.Get("data.0.id").Exists()
	})
	return code, body, list
}

// A request on a customer's own key is called with it, at the operator's address for
// the provider; it is charged nothing and holds nothing of a budget, and trail, list
// and bill say whose credential it was.
//
// Rules: W6, M7, M11.
func TestOwnKeyIsTheCustomersOwn_W6_M11(t *testing.T) {
	s := newOwnScene(t)
	code, body, list := s.chat(t, "works")
	if calls := s.up.Ledger().Calls; code != http.StatusOK || len(calls) != 1 || calls[0].KeyLast4 != "1111" {
		t.Fatalf("%d %s, calls %+v", code, body, s.up.Ledger().Calls)
	}
	_, text := get(t, s.public+"/v1/requests/"+list.Get("data.0.id").String()+"/trail", s.key)
	reserved := gjson.Get(text, `entries.#(event=="attempt_reserved")`)
	if reserved.Get("credential_owner").String() != "workspace" || reserved.Get("reserved_nanousd").Int() != 0 || reserved.Get("deployment").String() != "works@up" {
		t.Errorf("trail %s", text)
	}
	period := time.Now().UTC().Format("2006-01")
	eventually(t, "the bill has the attempt", func() bool {
		_, text = get(t, s.public+"/v1/bills/"+period, s.key)
		return gjson.Get(text, "lines.0.attempts").Int() == 1
	})
	line := gjson.Get(text, "lines.0")
	if line.Get("credential_owner").String() != "workspace" || line.Get("charge_nanousd").Int() != 0 ||
		line.Get("list_nanousd").Int() <= 0 || line.Get("provider_cost_nanousd").Int() <= 0 {
		t.Errorf("bill %s", text)
	}

	for model, want := range map[string]struct {
		status int
		code   string
	}{
		"rejects": {http.StatusFailedDependency, "customer_credential_rejected"},
		"broke":   {http.StatusPaymentRequired, "customer_credential_quota"},
	} {
		code, body, _ := s.chat(t, model)
		if code != want.status || !strings.Contains(body, want.code) {
			t.Errorf("%s: %d %s", model, code, body)
		}
		if calls := s.platform.Ledger().Calls; len(calls) != 0 {
			t.Errorf("%s: bought on the platform's account: %+v", model, calls)
		}
		// While the circuit is open the connection is skipped, for what the chain names next
		// and nothing else.
		ups := len(s.up.Ledger().Calls)
		if code, body, _ := s.chat(t, model); code != http.StatusOK {
			t.Errorf("%s, the second time: %d %s", model, code, body)
		}
		if calls := s.platform.Ledger().Calls; len(calls) != 1 || len(s.up.Ledger().Calls) != ups {
			t.Errorf("%s, the second time: %d calls of the platform's, %d of its own", model, len(calls), len(s.up.Ledger().Calls)-ups)
		}
		s.platform.Reset()
	}
	// Its circuits are shown to it, and to nobody else.
	other := strings.TrimSpace(must(t, "keys", "create", "--tenant", "other"))
	eventually(t, "the other's key opens", func() bool {
		code, _ := get(t, s.public+"/v1/health", other)
		return code == http.StatusOK
	})
	_, mine := get(t, s.public+"/v1/health", s.key)
	_, theirs := get(t, s.public+"/v1/health", other)
	if gjson.Get(mine, "circuits.#").Int() == 0 || gjson.Get(theirs, "circuits.#").Int() != 0 {
		t.Errorf("health for its own %s, for another %s", mine, theirs)
	}
}

// Credentials are stored and deleted over the admin API; it shows that one is held and
// the last four characters, and no more.
//
// Rules: Z2, C6, W6.
func TestCredentialsOverTheAdminAPI_Z2(t *testing.T) {
	s := newOwnScene(t)
	ask := func(want int, method, path, body string) string {
		t.Helper()
		status, text := do(t, method, s.admin+"/admin/v1"+path, ownAdminKey, body)
		if status != want || strings.Contains(text, "customers-own") {
			t.Fatalf("%s %s: %d %s", method, path, status, text)
		}
		return text
	}
	const path = "/tenants/acme/connections/own-works/credential"
	if text := ask(http.StatusOK, "PUT", path, `{"secret":"customers-own-credential-3333"}`); gjson.Get(text, "last_four").String() != "3333" {
		t.Errorf("stored: %s", text)
	}
	// This worker knows at once.
	if code, body, _ := s.chat(t, "works"); code != http.StatusOK || s.up.Ledger().Calls[0].KeyLast4 != "3333" {
		t.Errorf("%d %s", code, body)
	}
	ask(http.StatusOK, "DELETE", path, "")
	ask(http.StatusNotFound, "DELETE", path, "")
	chain := ask(http.StatusOK, "GET", "/tenants/acme/chains/works", "")
	if gjson.Get(chain, "rungs.0.unusable").String() != "credential_missing" || gjson.Get(chain, "state").String() != "available" {
		t.Errorf("chain %s", chain)
	}
	list := ask(http.StatusOK, "GET", "/providers/up/credentials", "")
	if gjson.Get(list, "data.0.key").String() != "k1" || !gjson.Get(list, "data.0.held").Bool() || gjson.Get(list, "data.0.stored").Bool() {
		t.Errorf("list %s", list)
	}
	ask(http.StatusNotFound, "GET", "/providers/nobody/credentials", "")
	for _, body := range []string{`{}`, `{"secret":""}`, `{"secret":7}`, `{"secrets":"x"}`, `customers-own`} {
		ask(http.StatusBadRequest, "PUT", path, body)
	}
	// A key in the environment is not stored over it.
	ask(http.StatusBadRequest, "PUT", "/providers/up/credentials/k1", `{"secret":"x"}`)
}

// A credential may be deleted under any chain. An organization's own chain that is
// left with none is refused until it is repaired or reset; it never becomes the
// operator's, whose rung on the same deployment is a paid one.
//
// Rules: C6, C4.
func TestDeletedOwnKeyIsNeverTheOperatorsDefault_C6(t *testing.T) {
	s := newOwnScene(t)
	config := ownKeys(s.up.URL(), s.platform.URL())
	alone := strings.Replace(config, "[{connection: own-works}, {deployment: works@platform}]", "[{connection: own-works}]", 1)
	before := s.snapshot(t)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", alone))
	eventually(t, "the worker has heard of the chain", func() bool { return s.snapshot(t) != before })
	must(t, "credentials", "delete", "--tenant", "acme", "own-works")
	eventually(t, "the chain is unavailable", func() bool {
		code, body := do(t, http.MethodPost, s.public+"/v1/chat/completions", s.key, strings.Replace(hello, `"m"`, `"works"`, 1))
		return code == http.StatusServiceUnavailable && strings.Contains(body, "chain_unavailable")
	})
	for _, call := range append(s.up.Ledger().Calls, s.platform.Ledger().Calls...) {
		if call.KeyLast4 != "1111" {
			t.Errorf("%s was called with %s for %s", call.Path, call.KeyLast4, call.Model)
		}
	}
	// Repaired by another credential.
	if r := setCredential(t, "customers-own-credential-2222", "--tenant", "acme", "own-works"); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	served := func(last4 string) func() bool {
		return func() bool {
			code, _ := do(t, http.MethodPost, s.public+"/v1/chat/completions", s.key, strings.Replace(hello, `"m"`, `"works"`, 1))
			calls := s.up.Ledger().Calls
			return code == http.StatusOK && len(calls) > 0 && calls[len(calls)-1].KeyLast4 == last4
		}
	}
	eventually(t, "the repaired chain serves", served("2222"))
	// Reset, deliberately: now it is the operator's.
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", strings.Replace(alone, "      - {model: works, chain: [{connection: own-works}]}\n", "", 1)))
	eventually(t, "the operator's chain serves", served("0000"))
}
