package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/secrets"
)

// hookSecrets sign what the receiver of a path hears.
var hookSecrets = map[string]string{
	"/ops":  "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	"/acme": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
}

// receiver is a server of webhooks that checks every signature with the convention's own
// library.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	status int
	heard  map[string][]string // path to bodies
	seen   map[string]int      // ids
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, status: http.StatusOK, heard: map[string][]string{}, seen: map[string]int{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	hook, err := standard.NewWebhook(hookSecrets[req.URL.Path])
	if err == nil {
		err = hook.Verify(body, req.Header)
	}
	if id := gjson.GetBytes(body, "id").String(); err != nil || id != req.Header.Get("Webhook-Id") {
		r.t.Errorf("%s: %s, %v", req.URL.Path, body, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard[req.URL.Path] = append(r.heard[req.URL.Path], string(body))
	r.seen[req.Header.Get("Webhook-Id")]++
	w.WriteHeader(r.status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// of are the messages of a type that a path has heard.
func (r *receiver) of(path, typ string) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.heard[path] {
		if gjson.Get(body, "type").String() == typ {
			list = append(list, body)
		}
	}
	return list
}

func hooked(up, hooks string) string {
	return fmt.Sprintf(`version: 1
providers:
  - {id: up, protocol: openai, base_url: %q, keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
deployments:
  - {id: works@up, provider: up, upstream_model: fake-ok, prices: {input: "1.00", output: "2.00"}}
  - {id: fails@up, provider: up, upstream_model: fake-503, prices: {input: "1.00", output: "2.00"}}
models:
  - {slug: works, exact_model: works, chain: [{deployment: works@up}]}
  - {slug: fails, exact_model: fails, policy: {circuit: {failures_to_open: 1}}, chain: [{deployment: fails@up}]}
tenants:
  - id: acme
    budgets: [{scope: organization, limit_usd: "5.00", per: month}]
    webhooks:
      - {id: own, url: %q, stored: true}
  - id: poor
    budgets: [{scope: organization, limit_usd: "0.000001", per: month}]
webhooks:
  - {id: ops, url: %q, env: SLUICE_TEST_HOOK_SECRET}
  - {id: inside, url: "https://192.0.2.1.nip.example.test:1/", env: SLUICE_TEST_HOOK_SECRET, disabled: true}
`, up+"/v1", hooks+"/acme", hooks+"/ops")
}

// The whole way: what happens on a worker is told to whom it concerns, signed, once, with
// secrets from the environment and from the database; what a receiver does not take is
// tried again, shown, and sent again by hand.
//
// Rules: U4, Z6, C14.
func TestWebhooksAreTold_U4_Z6_C14(t *testing.T) {
	fake, hooks := fakeprovider.Start(t, fakeprovider.Options{}), newReceiver(t)
	useDatabase(t)
	const admin = "the-bootstrap-key-of-a-test"
	for name, value := range map[string]string{
		secrets.MasterKeyEnv: masterKey("a"), "SLUICE_TEST_UP_KEY": "operators-credential-0000", "SLUICE_ADMIN_KEY": admin,
		"SLUICE_TEST_HOOK_SECRET": hookSecrets["/ops"] + "\n",
	} {
		t.Setenv(name, value)
	}
	file := writeFile(t, "sluice.yaml", hooked(fake.URL(), hooks.server.URL))
	must(t, "apply", "-f", file)
	if out := must(t, "doctor", "--output", "json"); !strings.Contains(out, "acme/own") || !strings.Contains(out, "not stored") {
		t.Errorf("the doctor says nothing of a secret that is not stored: %s", out)
	}
	if r := setCredential(t, hookSecrets["/acme"], "--tenant", "acme", "--webhook", "own"); r.code != exitDone || !strings.Contains(r.stdout, "webhook own of tenant acme is stored, ending in b7oD") {
		t.Fatalf("%+v", r)
	}
	if out := must(t, "doctor", "--output", "json"); strings.Contains(out, "acme/own") {
		t.Errorf("the doctor says %s", out)
	}
	key, poor := strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme")), strings.TrimSpace(must(t, "keys", "create", "--tenant", "poor"))
	s := serve(t)
	ask := func(want int, method, path, body string) string {
		t.Helper()
		status, text := do(t, method, s.admin+"/admin/v1"+path, admin, body)
		if status != want || strings.Contains(text, "MfKQ9r8") || strings.Contains(text, "C2FVsBQ") {
			t.Fatalf("%s %s: %d %s", method, path, status, text)
		}
		return text
	}
	chat := func(key, model string) {
		t.Helper()
		_, _ = do(t, http.MethodPost, s.public+"/v1/chat/completions", key, strings.Replace(hello, `"m"`, `"`+model+`"`, 1))
	}
	heard := func(path, typ string, n int) string {
		t.Helper()
		eventually(t, fmt.Sprintf("%s hears of %d %s", path, n, typ), func() bool { return len(hooks.of(path, typ)) >= n })
		return hooks.of(path, typ)[n-1]
	}

	chat(key, "fails")
	if body := heard("/ops", "circuit_opened", 1); gjson.Get(body, "data.deployment").String() != "fails@up" || gjson.Get(body, "tenant").Type != gjson.Null {
		t.Errorf("opened: %s", body)
	}
	for range 3 {
		chat(poor, "works")
	}
	if body := heard("/ops", "budget_exhausted", 1); gjson.Get(body, "tenant").String() != "poor" || gjson.Get(body, "data.limit_nanousd").Int() != 1000 {
		t.Errorf("exhausted: %s", body)
	}
	ask(http.StatusCreated, "PUT", "/tenants/acme/aliases/mine", `{"capabilities":["chat"],"provider_preference":["up"]}`)
	ask(http.StatusOK, "PATCH", "/tenants/acme/aliases/mine?", `{"capabilities":["transcription"],"revision":1}`)
	for _, path := range []string{"/ops", "/acme"} {
		if body := heard(path, "alias_degraded", 1); gjson.Get(body, "data.alias").String() != "mine" || gjson.Get(body, "tenant").String() != "acme" {
			t.Errorf("degraded: %s", body)
		}
	}

	// A ping that is not taken is tried again, under the same id.
	hooks.answer(http.StatusInternalServerError)
	id := gjson.Get(ask(http.StatusAccepted, "POST", "/tenants/acme/webhooks/own/ping", ""), "id").String()
	one := "/tenants/acme/webhooks/own/deliveries/" + id
	eventually(t, "the ping has failed", func() bool {
		return gjson.Get(ask(http.StatusOK, "GET", one, ""), "last_failure").String() == "status"
	})
	shown := ask(http.StatusOK, "GET", one, "")
	if gjson.Get(shown, "state").String() != "pending" || gjson.Get(shown, "last_status").Int() != 500 || gjson.Get(shown, "body.data.webhook").String() != "own" {
		t.Errorf("shown: %s", shown)
	}
	_, metrics := get(t, s.admin+"/metrics", "")
	for _, line := range []string{"sluice_webhooks_pending 1", "sluice_webhooks_failing 1", "sluice_webhooks_dead 0", `sluice_webhook_attempts_total{outcome="failed"}`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics do not say %s", line)
		}
	}
	hooks.answer(http.StatusOK)
	ask(http.StatusAccepted, "POST", one+"/redeliver", "")
	eventually(t, "the ping was taken", func() bool {
		return gjson.Get(ask(http.StatusOK, "GET", one, ""), "state").String() == "delivered"
	})
	list := ask(http.StatusOK, "GET", "/tenants/acme/webhooks/own/deliveries?state=delivered&limit=1", "")
	if gjson.Get(list, "data.#").Int() != 1 || gjson.Get(list, "next_cursor").String() == "" || gjson.Get(list, "data.0.id").String() != id {
		t.Errorf("listed: %s", list)
	}
	ask(http.StatusNotFound, "GET", "/webhooks/ops/deliveries/"+id, "")
	ask(http.StatusNotFound, "POST", "/webhooks/ops/deliveries/"+id+"/redeliver", "")
	ask(http.StatusNotFound, "GET", "/webhooks/ops/deliveries/x", "")
	ask(http.StatusNotFound, "GET", "/webhooks/nobody/deliveries", "")
	ask(http.StatusNotFound, "POST", "/tenants/poor/webhooks/own/ping", "")
	ask(http.StatusBadRequest, "POST", "/webhooks/inside/ping", "")
	ask(http.StatusBadRequest, "GET", "/webhooks/ops/deliveries?state=moon", "")
	ask(http.StatusBadRequest, "GET", "/webhooks/ops/deliveries?cursor=moon", "")
	ask(http.StatusOK, "PUT", "/tenants/acme/webhooks/own/secret", `{"secret":"`+hookSecrets["/acme"]+`"}`)
	ask(http.StatusBadRequest, "PUT", "/webhooks/ops/secret", `{"secret":"x"}`) // it is in the environment

	// acme has heard of itself alone, and nobody of anything twice.
	for _, typ := range []string{"circuit_opened", "budget_exhausted"} {
		if got := hooks.of("/acme", typ); len(got) > 0 {
			t.Errorf("acme heard of %s", got)
		}
	}
	if got := hooks.of("/ops", "budget_exhausted"); len(got) != 1 {
		t.Errorf("three refusals are told as %s", got)
	}
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, s.stderr)
	}
	for hook, secret := range hookSecrets {
		if strings.Contains(s.stderr.String()+must(t, "export")+must(t, "history", "webhook/ops")+must(t, "credentials", "list"), strings.TrimPrefix(secret, "whsec_")) {
			t.Errorf("the secret of %s is printed", hook)
		}
	}
	hooks.mu.Lock()
	defer hooks.mu.Unlock()
	for seen, n := range hooks.seen {
		if n > 1 && seen != id {
			t.Errorf("%s was sent %d times", seen, n)
		}
	}
}

// A worker that ends after something happened and before it was told loses nothing: the
// next one tells it.
//
// Rules: U4, E11.
func TestAnotherWorkerTells_U4_E11(t *testing.T) {
	fake, hooks := fakeprovider.Start(t, fakeprovider.Options{}), newReceiver(t)
	useDatabase(t)
	t.Setenv(secrets.MasterKeyEnv, masterKey("a"))
	t.Setenv("SLUICE_TEST_UP_KEY", "operators-credential-0000")
	t.Setenv("SLUICE_TEST_HOOK_SECRET", hookSecrets["/ops"])
	file := hooked(fake.URL(), hooks.server.URL)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", file))
	// Nobody runs while the alias degrades.
	alias := strings.Replace(file, "    webhooks:\n", "    aliases: [{name: mine, capabilities: [chat]}]\n    webhooks:\n", 1)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", alias))
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", strings.Replace(alias, "{name: mine, capabilities: [chat]}", "{name: mine, capabilities: [transcription]}", 1)))
	hooks.answer(http.StatusServiceUnavailable)
	s := serve(t)
	eventually(t, "it was tried", func() bool { return len(hooks.of("/ops", "alias_degraded")) > 0 })
	if code := s.end(); code != exitDone {
		t.Fatalf("exit %d:\n%s", code, s.stderr)
	}
	hooks.answer(http.StatusOK)
	serve(t)
	before := len(hooks.of("/ops", "alias_degraded"))
	eventually(t, "it is told", func() bool { return len(hooks.of("/ops", "alias_degraded")) > before })
	list := hooks.of("/ops", "alias_degraded")
	for _, body := range list {
		if body != list[0] {
			t.Errorf("sent as %s, then as %s", list[0], body)
		}
	}
}

// apply says which webhooks nothing will be sent to, and what opens them.
//
// Rules: U4, Z1.
func TestApplyTellsOfRefusedWebhooks_U4_Z1(t *testing.T) {
	useDatabase(t)
	t.Setenv(network.HostsEnv, "127.0.0.1")
	for url, want := range map[string]string{
		"https://hooks.example.test/": "", "http://127.0.0.1:9/": "",
		"https://10.1.2.3/x": network.HostsEnv + "=10.1.2.3:443", "http://hooks.example.test/": network.HostsEnv + "=hooks.example.test:80",
	} {
		text := fmt.Sprintf("version: 1\nwebhooks:\n  - {id: ops, url: %q, env: SLUICE_TEST_HOOK_SECRET}\n", url)
		r := sluice(t, "apply", "--dry-run", "-f", writeFile(t, "sluice.yaml", text))
		if r.code != exitDone || strings.Contains(r.stderr, "the webhook ops") != (want != "") || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s", url, r.code, r.stderr)
		}
	}
}
