package adminapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/http/adminapi"
	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
)

// Every way to write something invalid is refused with the field and the reason, in
// one form, and nothing of it is in the log (C2, C7, N15, N16).
func TestInvalidEdits_C2_C7(t *testing.T) {
	s := start(t)
	events := len(s.Log.Events)
	for _, c := range []struct{ method, path, ifMatch, body, field, reason string }{
		{"PUT", "/models/lab%2Fa/chain", "1", `{"chain":[]}`, "chain", "at least one deployment"},
		{"DELETE", "/models/lab%2Fa/chain", "1", ``, "chain", "at least one deployment"},
		{"PUT", "/models/lab%2Fa/chain", "1", `[{"model":"b"}]`, "chain[0].model", "only after a deployment"},
		{"PUT", "/models/lab%2Fa/chain", "1", `[{"deployment":"a@east"},{"model":"b"},{"model":"b"}]`, "chain[2].model", "at most one reference"},
		{"PUT", "/models/lab%2Fa/chain", "1", `[{"deployment":"b@west"}]`, "chain[0].deployment", "serves exact model"},
		{"PUT", "/models/lab%2Fa/chain", "1", `[{"deployment":"none"}]`, "chain[0].deployment", "does not exist"},
		{"PUT", "/models/b/chain", "1", `[{"deployment":"b@west","model":"lab/a"}]`, "chain[0]", "names 2 targets"},
		{"PUT", "/models/b/chain", "1", `[{}]`, "chain[0]", "names no target"},
		{"DELETE", "/deployments/a@east", "2", ``, "chain[0].deployment", "does not exist"},
		{"DELETE", "/providers/east", "1", ``, "provider", "does not exist"},
		{"DELETE", "/models/b", "2", ``, "chain[1].model", "does not exist"},
		{"PUT", "/tenants/acme/routing-rules/x", "", `{"chain":["a","b","c","d","e","f"]}`, "chain", "max_fallback_depth"},
		{"PUT", "/tenants/acme/routing-rules/x", "", `{"chain":["b","b"]}`, "chain[1]", "repeats"},
		{"PUT", "/tenants/acme/routing-rules/x", "", `{"match":"y","chain":["b"]}`, "", "another object than the address"},
		{"PUT", "/tenants/acme/aliases/x", "", `{"cost_tier":"dear"}`, "cost_tier", "none of cheapest"},
		{"PUT", "/tenants/acme/aliases/x", "", `{"capabilities":["flight"]}`, "capabilities[0]", "none of chat"},
		{"PUT", "/tenants/acme/budgets", "", `{"scope":"organization","per":"day"}`, "", "has 0 limits"},
		{"PUT", "/tenants/acme/budgets", "", `{"scope":"organization","limit_usd":"-5","per":"day"}`, "limit_usd", "more than 0"},
		{"PUT", "/deployments/a@east/prices", "2", `{"input":"-1"}`, "input", "cannot be negative"},
		{"PUT", "/deployments/a@east/prices", "2", `{"input":1e3}`, "input", "decimal number"},
		{"PUT", "/deployments/a@east/prices", "2", `{"inputs":"1"}`, "", "unknown field \"inputs\""},
		{"PATCH", "/deployments/a@east", "2", `{"context":{"total":10,"max_input":20}}`, "context.max_input", "more than the total window"},
		{"PATCH", "/deployments/a@east", "2", `{"masked":"yes"}`, "masked", "must be true or false"},
		{"PUT", "/providers/x", "", `{"protocol":"openai","base_url":"https://u:p@h.test"}`, "base_url", "a secret never stands"},
		{"PUT", "/providers/x", "", `{"protocol":"openai","base_url":"https://h.test","keys":[{"id":"k","secret":"sk-1234"}]}`, "keys[0]", "unknown field \"secret\""},
		{"PUT", "/providers/a%2Fb", "", `{"protocol":"openai","base_url":"https://h.test"}`, "id", "may hold only"},
		{"PUT", "/classes/x/chain", "", `{"chain":["b"],"chain":["b"]}`, "chain", "stands twice."},
		{"PUT", "/classes/x/chain", "", `null`, "", "must be a JSON object, not null"},
		{"PUT", "/classes/x/chain", "", `{"chain":["b"]} true`, "", "goes on after"},
		{"PUT", "/classes/x/chain", "", `{"chain":`, "", "not JSON"},
		{"PUT", "/classes/x/chain", "", `"b"`, "", "must be a JSON object"},
		{"PUT", "/classes/x/chain", "", strings.Repeat(`{"chain":`, 60), "", "nested more than"},
		{"PUT", "/classes/x/chain", "W/x", `{"chain":["b"]}`, "If-Match", "must be a revision"},
		{"PUT", "/classes/x/chain", "1", `{"chain":["b"],"revision":2}`, "revision", "not the one in If-Match"},
		{"POST", "/tenants/acme/keys", "", `{"scopes":["fly"]}`, "scopes", "one of inference"},
		{"POST", "/tenants/acme/keys", "", `{"class":"vision","models":["b"]}`, "models", "not both"},
		{"POST", "/tenants/acme/keys", "", `{"expires_at":"2020-01-01T00:00:00Z"}`, "expires_at", "in the past"},
		{"POST", "/tenants/acme/keys", "", `{"reply_model":"mine"}`, "reply_model", "requested or canonical"},
		{"PUT", "/tenants/acme", `"2"`, `{"reply_model":"mine"}`, "reply_model", "none of requested, canonical"},
		{"POST", "/tenants/acme/keys", "", `{"expires_at":"soon"}`, "expires_at", "must be a time"},
	} {
		a := do(t, s, http.StatusBadRequest, c.method, c.path, c.ifMatch, c.body)
		check(t, a, "error.code", `"invalid_request"`)
		if got := strings.Trim(a.Field("error.field"), `"`); got != c.field {
			t.Errorf("%s %s %s: field %q, want %q: %s", c.method, c.path, c.body, got, c.field, a.Body)
		}
		message := strings.ReplaceAll(a.Field("error.message"), `\"`, `"`)
		if !strings.Contains(message, c.reason) {
			t.Errorf("%s %s %s: says %s, not %q", c.method, c.path, c.body, message, c.reason)
		}
		if strings.Contains(string(a.Body), "sk-1234") {
			t.Errorf("repeats a secret: %s", a.Body)
		}
	}
	do(t, s, http.StatusRequestEntityTooLarge, "PUT", "/classes/x/chain", "", `{"chain":["`+strings.Repeat("b", 1<<20)+`"]}`)
	if len(s.Log.Events) != events {
		t.Errorf("%d events were written by refused edits", len(s.Log.Events)-events)
	}
}

// Nobody gets in without the bootstrap key or a key with the scope admin, whatever
// the path (Z3, Z7).
func TestEveryRouteNeedsTheScope_Z3_Z7(t *testing.T) {
	s := start(t)
	reader := do(t, s, 201, "POST", "/tenants/acme/keys", "", `{"scopes":["inference","read"]}`)
	for _, r := range adminapi.New(adminapi.Config{}).Routes() {
		path := strings.NewReplacer("{tenant}", "acme", "{id}", "x", "{name}", "bills", "{scope}", "organization", "{unit}", "usd", "{per}", "day").Replace(r[1])
		for _, c := range []struct {
			key, code string
			status    int
		}{
			{"nonsense", `"invalid_api_key"`, http.StatusUnauthorized},
			{adminapitest.Bootstrap + "x", `"invalid_api_key"`, http.StatusUnauthorized},
			{strings.Trim(reader.Field("key"), `"`), `"forbidden"`, http.StatusForbidden},
		} {
			a, err := s.Do(adminapitest.Ask{Method: r[0], Path: path, Key: c.key, Body: "{}"})
			if err != nil || a.Status != c.status || a.Field("error.code") != c.code {
				t.Errorf("%s %s: %d %s %v", r[0], path, a.Status, a.Body, err)
			}
		}
	}
}

// What the release does not have is not there, in the same form.
func TestUnknownPaths(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/tiers/iron", "/tenants/acme/tiers", "/nonsense"} {
		check(t, do(t, s, 404, "GET", path, "", ""), "error.code", `"not_found"`)
	}
}
