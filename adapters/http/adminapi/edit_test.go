package adminapi_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
)

// Every kind of object can be created, read, replaced and removed at its address,
// its revision only ever grows, and the log names the actor (C1, C3, C8, Z7).
func TestEveryObjectHasAnAddress_C3_C8_Z7(t *testing.T) {
	for _, o := range []struct{ path, create, change, field, want string }{
		{"/providers/north", `{"protocol":"openai","base_url":"https://n.example.test/v1"}`, `{"protocol":"anthropic","base_url":"https://n.example.test"}`, "protocol", `"anthropic"`},
		{"/deployments/b@east", `{"provider":"east","upstream_model":"b"}`, `{"provider":"east","upstream_model":"b2"}`, "upstream_model", `"b2"`},
		{"/models/lab%2Fc", `{"exact_model":"b","chain":[{"deployment":"b@west"}]}`, `{"exact_model":"b","chain":[{"deployment":"b@west"},{"model":"lab/a"}]}`, "chain", `[{"deployment":"b@west"},{"model":"lab/a"}]`},
		{"/classes/summarize/chain", `["b"]`, `{"chain":["lab/a","b"]}`, "chain", `["lab/a","b"]`},
		{"/tiers/silver", `{"weight":2}`, `{"weight":2.5}`, "weight", "2.5"},
		{"/tenants/acme/connections/own", `{"provider":"west","env":"ACME_WEST"}`, `{"provider":"west","env":"ACME_KEY"}`, "env", `"ACME_KEY"`},
		{"/tenants/other", `{}`, `{"tier":"gold"}`, "tier", `"gold"`},
		{"/tenants/acme/aliases/fast", `{"cost_tier":"best"}`, `{"cost_tier":"cheapest","pin":"b"}`, "pin", `"b"`},
		{"/tenants/acme/routing-rules/best", `{"chain":["b"]}`, `{"chain":["lab/a","b"]}`, "chain", `["lab/a","b"]`},
		{
			"/tenants/acme/promotions/launch", `{"models":["b"],"free_input_tokens":{"overall":{"per_day":5}}}`,
			`{"models":["b"],"ends":"2026-12-01","free_output_tokens":{"per_model":{"total_usd":"9.50"}}}`,
			"free_output_tokens.per_model.total_usd", `"9.5"`,
		},
		{"/tenants/acme/budgets/organization/tokens/day", `{"scope":"organization","tokens":5,"per":"day"}`, `{"scope":"organization","tokens":9,"per":"day"}`, "tokens", "9"},
	} {
		t.Run(o.path, func(t *testing.T) {
			s := start(t)
			check(t, do(t, s, 404, "GET", o.path, "", ""), "error.code", `"not_found"`)
			created := do(t, s, 201, "PUT", o.path, "", o.create)
			do(t, s, 428, "PUT", o.path, "", o.change)
			changed := do(t, s, 200, "PUT", o.path, created.ETag, o.change)
			check(t, changed, o.field, o.want)
			if grown(t, created) >= grown(t, changed) {
				t.Errorf("revision %s after %s", changed.ETag, created.ETag)
			}
			read := do(t, s, 200, "GET", o.path, "", "")
			if string(read.Body) != string(changed.Body) || read.ETag != changed.ETag || read.ETag != `"`+read.Field("revision")+`"` {
				t.Errorf("read %s %s, wrote %s %s", read.ETag, read.Body, changed.ETag, changed.Body)
			}
			// What was read can be sent back as it is, and changes nothing.
			events := len(s.Log.Events)
			do(t, s, 200, "PUT", o.path, "", string(read.Body))
			if len(s.Log.Events) != events {
				t.Error("an unchanged object was written")
			}
			stale := do(t, s, 409, "DELETE", o.path, created.ETag, "")
			check(t, stale, "error.code", `"revision_conflict"`)
			check(t, stale, "error.revision", read.Field("revision"))
			gone := do(t, s, 200, "DELETE", o.path, read.ETag, "")
			if grown(t, gone) <= grown(t, read) {
				t.Errorf("revision %s after the removal, %s before", gone.ETag, read.ETag)
			}
			// An editor from before the removal never becomes valid again (C4).
			do(t, s, 409, "PUT", o.path, created.ETag, o.create)
			do(t, s, 409, "PUT", o.path, "0", o.create)
			if again := do(t, s, 404, "GET", o.path, "", ""); again.ETag != gone.ETag {
				t.Errorf("revision %s of what is gone, want %s", again.ETag, gone.ETag)
			}
			do(t, s, 201, "PUT", o.path, gone.ETag, o.create)
			for _, e := range s.Log.Events {
				if e.Meta.Actor != "bootstrap" && e.Meta.Actor != "cli:ada" {
					t.Errorf("%s by %q", e.Type, e.Meta.Actor)
				}
			}
		})
	}
}

func grown(t *testing.T, a adminapitest.Answer) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.Trim(a.ETag, `"`), 10, 64)
	if err != nil {
		t.Fatalf("ETag %q", a.ETag)
	}
	return n
}

// The parts of an object that have addresses of their own: replaced alone, and left
// alone when the whole is replaced without them.
//
// Rules: C3.
func TestPartsOfObjects_C3(t *testing.T) {
	s := start(t)
	prices := do(t, s, 200, "GET", "/deployments/a@east/prices", "", "")
	check(t, prices, "input", `"1"`)
	prices = do(t, s, 200, "PATCH", "/deployments/a@east/prices", prices.ETag, `{"output":"2.50"}`)
	check(t, prices, "input", `"1"`)
	check(t, prices, "output", `"2.5"`)
	whole := do(t, s, 200, "PUT", "/deployments/a@east", prices.ETag, `{"provider":"east","upstream_model":"a-2"}`)
	check(t, whole, "prices.output", `"2.5"`)
	check(t, whole, "upstream_model", `"a-2"`)

	tenant := do(t, s, 200, "GET", "/tenants/acme", "", "")
	tenant = do(t, s, 200, "PUT", "/tenants/acme", tenant.ETag, `{"tier":"gold"}`)
	check(t, tenant, "budgets", `[{"limit_usd":"5","per":"month","scope":"organization"}]`)
	tenant = do(t, s, 200, "PUT", "/tenants/acme", tenant.ETag, `{"tier":"gold","budgets":[]}`)
	check(t, tenant, "budgets", "")

	model := do(t, s, 200, "GET", "/models/lab%2Fa", "", "")
	// A change of the chain is a change of the model that is read with it.
	chain := do(t, s, 200, "GET", "/models/lab%2Fa/chain", "", "")
	do(t, s, 200, "PUT", "/models/lab%2Fa/chain", chain.ETag, `{"chain":[{"deployment":"a@east"},{"deployment":"a@west"}]}`)
	do(t, s, 409, "PUT", "/models/lab%2Fa", model.ETag, `{"exact_model":"a"}`)
	// And the policy, which is another stream, was not touched.
	policy := do(t, s, 200, "GET", "/models/lab%2Fa/policy", "", "")
	do(t, s, 200, "PUT", "/models/lab%2Fa/policy", policy.ETag, `{"max_attempts":2}`)
}

// What was there keeps its revision, also for an edit that comes too late.
//
// Rules: C3, C4.
func TestALateEditIsToldTheRevision_C3_C4(t *testing.T) {
	s := start(t)
	made := do(t, s, 201, "PUT", "/tiers/brief", "", `{"weight":2}`)
	do(t, s, 200, "DELETE", "/tiers/brief", made.ETag, "")
	for _, method := range []string{"GET", "PATCH"} {
		gone := do(t, s, 404, method, "/tiers/brief", "", `{"weight":3}`)
		check(t, gone, "error.revision", "2")
	}
}

// A budget's body need not repeat its address, as no object's need.
//
// Rules: C3, C8.
func TestBudgetsAreAddressed_C3_C8(t *testing.T) {
	s := start(t)
	a := do(t, s, 201, "PUT", "/tenants/acme/budgets/model:b/requests/hour", "", `{"requests":5}`)
	check(t, a, "scope", `"model"`)
	check(t, a, "of", `"b"`)
	check(t, a, "per", `"hour"`)
	for path, body := range map[string]string{
		"/tenants/acme/budgets/galaxy/usd/day":        `{"limit_usd":"5"}`,
		"/tenants/acme/budgets/organization/usd/week": `{"limit_usd":"5"}`,
		"/tenants/acme/budgets/organization/usd/day":  `{"tokens":5}`,
	} {
		do(t, s, 400, "PUT", path, "", body)
	}
}

// An omitted field is unchanged, null clears it (C9), and a mode without a threshold
// has no automatic one (C10).
func TestPatch_C9_C10(t *testing.T) {
	s := start(t)
	path := "/models/lab%2Fa/policy"
	p := do(t, s, 200, "GET", path, "", "")
	p = do(t, s, 200, "PATCH", path, p.ETag, `{"max_attempts":5}`)
	check(t, p, "failover_mode", `"maximize_availability"`)
	check(t, p, "throttle_cache_threshold", "0.3")
	check(t, p, "max_attempts", "5")
	p = do(t, s, 200, "PATCH", path, p.ETag, `{"throttle_cache_threshold":null}`)
	check(t, p, "throttle_cache_threshold", "")
	check(t, p, "effective.throttle_cache_threshold", "")
	p = do(t, s, 200, "PATCH", path, p.ETag, `{"failover_mode":null}`)
	check(t, p, "effective.failover_mode", `"maximize_cache"`)
	check(t, p, "effective.throttle_cache_threshold", "0.5")
	check(t, p, "max_attempts", "5")
	p = do(t, s, 200, "PATCH", path, p.ETag, `{"circuit":{"failures_to_open":3,"open_for":"5s"}}`)
	p = do(t, s, 200, "PATCH", path, p.ETag, `{"circuit":{"open_for":null}}`)
	check(t, p, "circuit", `{"failures_to_open":3}`)
	do(t, s, 400, "PATCH", path, p.ETag, `{"nonsense":null}`)
	p = do(t, s, 200, "DELETE", path, p.ETag, "")
	check(t, p, "max_attempts", "")
	do(t, s, 404, "PATCH", "/models/nobody/policy", "", `{"max_attempts":5}`)
	do(t, s, 404, "PUT", "/models/nobody/policy", "", `{"max_attempts":5}`)
	do(t, s, 404, "PUT", "/tenants/nobody/aliases/x", "", `{}`)
}

// Two editors, one conflict: of many that loaded the same revision one is served
// and the others learn the current one; nothing of theirs is in the log (C3).
func TestConcurrentEditsOfOneObject_C3(t *testing.T) {
	s := start(t)
	loaded := do(t, s, 200, "GET", "/models/lab%2Fa/chain", "", "")
	const editors = 8
	answers := make([]adminapitest.Answer, editors)
	var wg sync.WaitGroup
	for i := range editors {
		wg.Go(func() {
			chain := `{"chain":[{"deployment":"a@east"},{"deployment":"a@west"}]}`
			if i%2 == 0 {
				chain = `{"chain":[{"deployment":"a@west"}]}`
			}
			answers[i], _ = s.Do(adminapitest.Ask{Method: "PUT", Path: "/models/lab%2Fa/chain", IfMatch: loaded.ETag, Body: chain})
		})
	}
	wg.Wait()
	counts := map[int]int{}
	for _, a := range answers {
		counts[a.Status]++
		if a.Status == http.StatusConflict {
			check(t, a, "error.code", `"revision_conflict"`)
			check(t, a, "error.revision", "2")
		}
	}
	if counts[200] != 1 || counts[409] != editors-1 {
		t.Errorf("answers %v", counts)
	}
	if got := s.Log.Versions["chain/operator/lab/a"]; got != 2 {
		t.Errorf("%d chains were written", got-1)
	}
}

// Editors of different objects do not get in each other's way.
//
// Rules: C3.
func TestConcurrentEditsOfManyObjects_C3(t *testing.T) {
	s := start(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			a, err := s.Do(adminapitest.Ask{Method: "PUT", Path: "/tenants/t" + strconv.Itoa(i), Body: `{"tier":"gold"}`})
			if err != nil || a.Status != http.StatusCreated {
				t.Errorf("%d %s %v", a.Status, a.Body, err)
			}
		})
	}
	wg.Wait()
}

// A change is judged over the whole catalog also when another one of something else
// comes in between: nobody can remove what another begins to refer to (C2).
func TestNoChangeIsJudgedOnAnOldCatalog_C2(t *testing.T) {
	s := start(t)
	deployment := do(t, s, 200, "GET", "/deployments/a@west", "", "")
	chain := do(t, s, 200, "GET", "/models/lab%2Fa/chain", "", "")
	// Decided, and not yet written: somebody else puts the deployment into a chain.
	s.Log.Before = sync.OnceFunc(func() {
		s.Log.Before = nil
		do(t, s, 200, "PUT", "/models/lab%2Fa/chain", chain.ETag, `[{"deployment":"a@east"},{"deployment":"a@west"}]`)
	})
	refused := do(t, s, 400, "DELETE", "/deployments/a@west", deployment.ETag, "")
	check(t, refused, "error.field", `"chain[1].deployment"`)
	do(t, s, 200, "GET", "/deployments/a@west", "", "")
}

// PUT to a list names its object in the body; If-Match is then the list's.
//
// Rules: C3.
func TestPutIntoAList_C3(t *testing.T) {
	s := start(t)
	rules := "/tenants/acme/routing-rules"
	first := do(t, s, 201, "PUT", rules, "", `{"match":"best","chain":["lab/a","b"]}`)
	check(t, first, "match", `"best"`)
	second := do(t, s, 201, "PUT", rules, first.ETag, `{"match":"other","chain":["b"]}`)
	do(t, s, 409, "PUT", rules, first.ETag, `{"match":"best","chain":["b"]}`)
	do(t, s, 428, "PUT", rules, "", `{"match":"best","chain":["b"]}`)
	do(t, s, 200, "PUT", rules, second.ETag, `{"match":"best","chain":["b"]}`)
	list := do(t, s, 200, "GET", rules, "", "")
	check(t, list, "data", `[{"chain":["b"],"match":"best"},{"chain":["b"],"match":"other"}]`)
	do(t, s, 201, "PUT", "/tenants/acme/budgets", "", `{"scope":"organization","requests":5,"per":"day"}`)
	do(t, s, 400, "PUT", rules, "", `{"chain":["b"]}`)
}

// An operator learns when it is written that a base URL leads into the own network, and
// from the chain why its rung is not usable. What was read can be written again.
//
// Rules: Z1.
func TestRefusedBaseURLsAreToldOf_Z1(t *testing.T) {
	s := start(t)
	const inside = "http://llm.internal:8000/v1"
	s.Refused = map[string]bool{inside: true}
	east := do(t, s, 200, "GET", "/providers/east", "", "")
	check(t, east, "warnings", "")
	east = do(t, s, 200, "PATCH", "/providers/east", east.ETag, `{"base_url":"`+inside+`"}`)
	if w := east.Field("warnings"); !strings.Contains(w, "provider east") || !strings.Contains(w, "SLUICE_INTERNAL_HOSTS=llm.internal:8000") || !strings.Contains(w, "base_url_refused") {
		t.Errorf("warnings %s", w)
	}
	do(t, s, 200, "PUT", "/providers/east", "", string(east.Body))
	chain := do(t, s, 200, "GET", "/models/lab%2Fa/chain", "", "")
	check(t, chain, "state", `"unavailable"`)
	if rungs := chain.Field("rungs"); !strings.Contains(rungs, `"unusable":"base_url_refused"`) {
		t.Errorf("rungs %s", rungs)
	}
}
