package health

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// held is a worker that holds every secret but those named.
type held map[string]bool

func (missing held) Holds(_ *catalog.Provider, keyID string) bool { return !missing[keyID] }

func newRegistry() *Registry { return New(Config{Secrets: held{}}) }

func rung(deployment, provider, baseURL string) *walk.Rung {
	return &walk.Rung{
		Model:      "fable-5",
		Deployment: &catalog.Deployment{ID: deployment, UpstreamModel: "u", Provider: provider},
		Provider: &catalog.Provider{
			ID: provider, Protocol: catalog.OpenAI, BaseURL: baseURL,
			Keys: []catalog.ProviderKey{{ID: "k1"}, {ID: "k2"}, {ID: "k3"}},
		},
		Policy: catalog.Policy{}.WithDefaults(),
	}
}

var (
	down      = &failure.Failure{Class: failure.ServerError, Status: 503}
	refused   = &failure.Failure{Class: failure.ConnectError}
	badKey    = &failure.Failure{Class: failure.ProviderAuth, Status: 401}
	brokeKey  = &failure.Failure{Class: failure.ProviderQuota, Status: 402}
	gone      = &failure.Failure{Class: failure.DeploymentGone, Status: 404}
	malformed = &failure.Failure{Class: failure.InvalidRequest, Status: 400}
)

func throttled(after time.Duration) *failure.Failure {
	return &failure.Failure{Class: failure.Throttled, Status: 429, Retry: failure.Retry{After: after, Told: after > 0}}
}

// says checks a claim's skip and which circuit it names.
func says(t *testing.T, v walk.Verdict, skip request.SkipReason, kind circuit.Kind) {
	t.Helper()
	if v.Skip != skip || v.Detail["circuit"] != string(kind) {
		t.Fatalf("verdict %+v, want %s by %q", v, skip, kind)
	}
}

// TestClaim_H9 holds what each failure does to a claim of the same route, and
// which circuit the trail names.
//
// Rules: H9.
func TestClaim_H9(t *testing.T) {
	for name, tc := range map[string]struct {
		failures []*failure.Failure
		skip     request.SkipReason
		kind     circuit.Kind
		until    float64
		thisKey  bool
	}{
		"one failure":     {failures: []*failure.Failure{down}},
		"two failures":    {[]*failure.Failure{down, down}, request.SkipBreakerOpen, circuit.Route, 30, false},
		"caller failures": {failures: []*failure.Failure{malformed, malformed, malformed}},
		"bad key":         {[]*failure.Failure{badKey}, request.SkipCredentialOpen, circuit.Credential, 300, true},
		"empty account":   {[]*failure.Failure{brokeKey}, request.SkipBreakerOpen, circuit.Route, 30, true},
		"missing model":   {[]*failure.Failure{gone}, request.SkipBreakerOpen, circuit.Route, 30, false},
		"throttled":       {[]*failure.Failure{throttled(0)}, request.SkipThrottleWindow, circuit.Route, 30, true},
		"throttled for":   {[]*failure.Failure{throttled(7 * time.Second)}, request.SkipThrottleWindow, circuit.Route, 7, true},
		"success":         {failures: []*failure.Failure{down, nil, down}},
	} {
		t.Run(name, func(t *testing.T) {
			r, a := newRegistry(), rung("d", "p", "https://a")
			for _, f := range tc.failures {
				r.Observe(a, "k1", "acme/1", f, at(0))
			}
			v := r.Claim(a, "k1", walk.Ordinary, at(1))
			says(t, v, tc.skip, tc.kind)
			if tc.skip != "" && (!v.Until.Equal(at(tc.until)) || v.ThisKey != tc.thisKey || v.Detail["until"] != at(tc.until).Format(time.RFC3339)) {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

// TestIsolation_H6_H5: who shares what with a route that is in trouble.
//
// Rules: H6, H5.
func TestIsolation_H6_H5(t *testing.T) {
	type other struct {
		rung *walk.Rung
		key  string
	}
	others := map[string]other{
		"same route":       {rung("d", "p", "https://a"), "k1"},
		"next key":         {rung("d", "p", "https://a"), "k2"},
		"other deployment": {rung("d2", "p", "https://a"), "k1"},
		"other account":    {rung("d3", "p2", "https://a"), "k1"},
		"other address":    {rung("d4", "p4", "https://b"), "k1"},
	}
	repeat := func(f *failure.Failure, n int) (fs []*failure.Failure) {
		for range n {
			fs = append(fs, f)
		}
		return fs
	}
	for name, tc := range map[string]struct {
		failures []*failure.Failure
		// callers is how many take turns in seeing them.
		callers int
		shut    []string
	}{
		"operational failures": {repeat(down, 2), 1, []string{"same route", "next key"}},
		"missing model":        {repeat(gone, 1), 1, []string{"same route", "next key"}},
		"throttled":            {repeat(throttled(9*time.Second), 1), 1, []string{"same route"}},
		"empty account":        {repeat(brokeKey, 1), 1, []string{"same route"}},
		"bad key":              {repeat(badKey, 1), 1, []string{"same route", "other deployment"}},
		"unreachable":          {repeat(refused, 5), 1, []string{"same route", "next key", "other deployment", "other account"}},
		"one caller's 5xx":     {repeat(down, 9), 1, []string{"same route", "next key"}},
		"everyone's 5xx":       {repeat(down, 3), 3, []string{"same route", "next key", "other deployment", "other account"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, sick := newRegistry(), others["same route"]
			for i, f := range tc.failures {
				r.Observe(sick.rung, sick.key, fmt.Sprint("acme/", i%tc.callers), f, at(0))
			}
			shut := map[string]bool{}
			for _, s := range tc.shut {
				shut[s] = true
			}
			for name, o := range others {
				if v := r.Claim(o.rung, o.key, walk.Ordinary, at(1)); (v.Skip != "") != shut[name] {
					t.Errorf("%s: %+v, want shut: %v", name, v, shut[name])
				}
			}
		})
	}
}

// TestOneProbe_H1: a probe is taken by asking, given back by a neutral outcome, and
// never spent while another circuit says no.
//
// Rules: H1.
func TestOneProbe_H1(t *testing.T) {
	r, a := newRegistry(), rung("d", "p", "https://a")
	r.Observe(a, "k1", "acme/1", down, at(0))
	r.Observe(a, "k1", "acme/1", down, at(0))
	r.Observe(a, "k1", "acme/1", throttled(40*time.Second), at(0))
	says(t, r.Claim(a, "k1", walk.Ordinary, at(35)), request.SkipThrottleWindow, circuit.Route)
	if v := r.Claim(a, "k2", walk.Ordinary, at(35)); v.Skip != "" || !v.Probe {
		t.Fatalf("the throttled key's claim spent the probe: %+v", v)
	}
	says(t, r.Claim(a, "k3", walk.Ordinary, at(36)), request.SkipBreakerOpen, circuit.Route)
	r.Observe(a, "k2", "acme/1", malformed, at(37))
	if v := r.Claim(a, "k3", walk.Ordinary, at(38)); v.Skip != "" || !v.Probe {
		t.Fatalf("a neutral outcome did not give the probe back: %+v", v)
	}
	r.Observe(a, "k3", "acme/1", nil, at(39))
	if v := r.Claim(a, "k2", walk.Ordinary, at(39)); v.Skip != "" || v.Probe {
		t.Fatalf("a success did not close: %+v", v)
	}
}

// TestPasses: a redial passes the throttle window it has waited for and nothing
// else (T5); a last resort passes every circuit, once a route in open_for, and no
// throttle window (H8, H2).
func TestPasses_T5_H8(t *testing.T) {
	r, a := newRegistry(), rung("d", "p", "https://a")
	r.Observe(a, "k1", "acme/1", throttled(0), at(0))
	if v := r.Claim(a, "k1", walk.Redial, at(1)); v.Skip != "" {
		t.Errorf("redial in its throttle window: %+v", v)
	}
	r.Observe(a, "k1", "acme/1", gone, at(1))
	says(t, r.Claim(a, "k1", walk.Redial, at(2)), request.SkipBreakerOpen, circuit.Route)
	says(t, r.Claim(a, "k1", walk.LastResort, at(2)), request.SkipThrottleWindow, circuit.Route)

	r = newRegistry()
	r.Observe(a, "k1", "acme/1", gone, at(1))
	r.Observe(a, "k1", "acme/1", badKey, at(2))
	if v := r.Claim(a, "k1", walk.LastResort, at(3)); v.Skip != "" {
		t.Errorf("last resort: %+v", v)
	}
	v := r.Claim(a, "k1", walk.LastResort, at(4))
	says(t, v, request.SkipBreakerOpen, circuit.Route)
	if !v.Until.Equal(at(33)) {
		t.Errorf("until %v", v.Until)
	}
	r.Observe(a, "k1", "acme/1", nil, at(5))
	if got := r.Open(at(6)); len(got) != 0 {
		t.Errorf("a last resort that served left %+v", got)
	}
}

// TestParkedKeys_W18: exactly Retry-After, nothing without it, and on every
// deployment of the account; order and holdings are the provider's.
//
// Rules: W18.
func TestParkedKeys_W18(t *testing.T) {
	r := New(Config{Secrets: held{"k3": true}})
	a := rung("d", "p", "https://a")
	r.Observe(a, "k1", "acme/1", throttled(1500*time.Millisecond), at(0))
	r.Observe(a, "k2", "acme/1", throttled(0), at(0))
	creds := r.Credentials(rung("d2", "p", "https://a").Provider)
	if len(creds) != 2 || creds[0].ID != "k1" || creds[1].ID != "k2" {
		t.Fatalf("%+v", creds)
	}
	if !creds[0].ParkedUntil.Equal(at(1.5)) || !creds[1].ParkedUntil.IsZero() {
		t.Errorf("%+v", creds)
	}
	if other := r.Credentials(rung("d", "p2", "https://a").Provider); !other[0].ParkedUntil.IsZero() {
		t.Errorf("another account's key of the same name is parked: %+v", other)
	}
	// Parked is not shut: the walk tries the whole pool when all are parked.
	if v := r.Claim(rung("d2", "p", "https://a"), "k1", walk.Ordinary, at(1)); v.Skip != "" {
		t.Errorf("%+v", v)
	}
}

// TestFirstCredential_W17: round robin starts one further per request and per
// provider; failover always at the first.
//
// Rules: W17.
func TestFirstCredential_W17(t *testing.T) {
	r := newRegistry()
	a, b := rung("d", "p", "https://a").Provider, rung("d", "p2", "https://a").Provider
	for i := range 7 {
		if got := r.FirstCredential(a, 3); got != i%3 {
			t.Errorf("request %d starts at %d", i, got)
		}
		if got := r.FirstCredential(b, 2); got != i%2 {
			t.Errorf("request %d of the other provider starts at %d", i, got)
		}
	}
	a.KeyStrategy = catalog.Failover
	if got := r.FirstCredential(a, 3); got != 0 {
		t.Errorf("failover starts at %d", got)
	}
	if got := r.FirstCredential(b, 0); got != 0 {
		t.Errorf("an empty pool starts at %d", got)
	}
}

// TestNewSnapshotKeepsCircuits_H1: new objects with the same identity are the same
// route; a corrected address is not.
//
// Rules: H1.
func TestNewSnapshotKeepsCircuits_H1(t *testing.T) {
	r := newRegistry()
	r.Observe(rung("d", "p", "https://a"), "k1", "acme/1", gone, at(0))
	again := rung("d", "p", "https://a")
	again.Deployment.Masked, again.Policy.MaxAttempts = true, 3
	says(t, r.Claim(again, "k1", walk.Ordinary, at(1)), request.SkipBreakerOpen, circuit.Route)
	for name, fix := range map[string]func(*walk.Rung){
		"address":       func(r *walk.Rung) { r.Provider.BaseURL = "https://b" },
		"upstream name": func(r *walk.Rung) { r.Deployment.UpstreamModel = "v" },
	} {
		fixed := rung("d", "p", "https://a")
		fix(fixed)
		if v := r.Claim(fixed, "k1", walk.Ordinary, at(1)); v.Skip != "" {
			t.Errorf("a corrected %s waits for the old one's window: %+v", name, v)
		}
	}
}

// TestOpen_H9 is the list of GET /v1/health, as JSON.
//
// Rules: H9.
func TestOpen_H9(t *testing.T) {
	r, a := newRegistry(), rung("d", "p", "https://a")
	r.Observe(a, "k1", "acme/1", badKey, at(0))
	r.Observe(a, "k2", "acme/1", down, at(0))
	r.Observe(a, "k2", "acme/1", down, at(0))
	r.Observe(a, "k3", "acme/1", throttled(0), at(0))
	got, err := json.Marshal(r.Open(at(30)))
	if err != nil {
		t.Fatal(err)
	}
	want := `[` +
		`{"kind":"credential","provider":"p","model":"","state":"open","until":"2026-11-29T10:05:00Z","cause":"provider_auth"},` +
		`{"kind":"route","provider":"p","model":"fable-5","state":"half_open","until":"2026-11-29T10:00:30Z","cause":"provider_auth"},` +
		`{"kind":"route","provider":"p","model":"fable-5","state":"half_open","until":"2026-11-29T10:00:30Z","cause":"server_error"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestBoundedCircuits: past the bound a route is called without memory; idle ones
// make room, and what is still open is kept.
func TestBoundedCircuits(t *testing.T) {
	r := newRegistry()
	sick := rung("sick", "p", "https://a")
	r.Observe(sick, "k1", "acme/1", throttled(time.Hour), at(0))
	// Each more deployment has two circuits of its own.
	for i := range maxCircuits / 2 {
		r.Claim(rung(fmt.Sprint("d", i), "p", "https://a"), "k1", walk.Ordinary, at(1))
	}
	if len(r.circuits) > maxCircuits || r.Untracked() == 0 {
		t.Fatalf("%d circuits, %d untracked", len(r.circuits), r.Untracked())
	}
	untracked := rung("new", "p", "https://a")
	r.Observe(untracked, "k1", "acme/1", gone, at(2))
	if v := r.Claim(untracked, "k1", walk.Ordinary, at(2)); v.Skip != "" {
		t.Errorf("%+v", v)
	}
	later := start.Add(idleAfter + time.Minute)
	r.Observe(untracked, "k1", "acme/1", gone, later)
	if v := r.Claim(untracked, "k1", walk.Ordinary, later); v.Skip == "" {
		t.Error("idle lanes made no room")
	}
	says(t, r.Claim(sick, "k1", walk.Ordinary, later), request.SkipThrottleWindow, circuit.Route)
	if parked := r.Credentials(sick.Provider)[0].ParkedUntil; !parked.Equal(start.Add(time.Hour)) {
		t.Errorf("parked until %v", parked)
	}
	// Two routes of their own, the route's circuits by key, one endpoint, one key.
	if len(r.circuits) != 6 {
		t.Errorf("%d circuits left", len(r.circuits))
	}
}

// TestSweepForgetsRemovedRoutes: a circuit that nobody comes back to is not listed
// for ever.
func TestSweepForgetsRemovedRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		r.Observe(rung("d", "p", "https://a"), "k1", "acme/1", gone, time.Now())
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		time.Sleep(idleAfter)
		synctest.Wait()
		if len(r.Open(time.Now())) != 1 {
			t.Error("forgotten while it may matter")
		}
		time.Sleep(2 * idleAfter)
		synctest.Wait()
		if left := r.Open(time.Now()); len(left) != 0 {
			t.Errorf("still listed: %+v", left)
		}
		stop()
		<-done
	})
}

// TestAProviderWithoutKeysIsCalledWithoutOne: local model servers ask for none.
func TestAProviderWithoutKeysIsCalledWithoutOne(t *testing.T) {
	creds := newRegistry().Credentials(&catalog.Provider{ID: "local"})
	if len(creds) != 1 || creds[0].ID != "" {
		t.Errorf("credentials %+v", creds)
	}
}

// What happens on an organization's own credential stays there: neither the operator's
// keys on the same deployment nor another organization's connection are touched, by
// whatever circuit; and a caller is not told of it.
//
// Rules: W6, H1, H5, H6.
func TestConnectionsHaveRoutesOfTheirOwn_W6_H6(t *testing.T) {
	own := func(tenant string) *walk.Rung {
		r := rung("d", "p", "http://p.test")
		r.Owner, r.Provider.Keys = request.Workspace, []catalog.ProviderKey{{ID: tenant + "/own"}}
		return r
	}
	for name, f := range map[string]*failure.Failure{"down": down, "credential": badKey, "funds": brokeKey, "throttle": throttled(time.Minute)} {
		r := newRegistry()
		acme, other, paid := own("acme"), own("other"), rung("d", "p", "http://p.test")
		for range 2 { // failures_to_open
			r.Observe(acme, "acme/own", "acme/key", f, at(0))
		}
		if v := r.Claim(acme, "acme/own", walk.Ordinary, at(1)); v.Skip == "" {
			t.Errorf("%s: the connection itself is called again", name)
		}
		if v := r.Claim(other, "other/own", walk.Ordinary, at(1)); v.Skip != "" {
			t.Errorf("%s: another's connection is skipped: %+v", name, v)
		}
		if v := r.Claim(paid, "k1", walk.Ordinary, at(1)); v.Skip != "" {
			t.Errorf("%s: the operator's key is skipped: %+v", name, v)
		}
		for _, c := range r.Open(at(1)) {
			if c.Tenant != "acme" {
				t.Errorf("%s: open for %q: %+v", name, c.Tenant, c)
			}
		}
	}
}
