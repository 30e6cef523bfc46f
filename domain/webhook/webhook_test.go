package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

var at = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func headers(fields map[string]string) http.Header {
	h := http.Header{}
	for name, value := range fields {
		h.Set(name, value)
	}
	return h
}

// The convention's own library takes what is signed, with a secret of either form, and
// refuses it with a byte changed.
//
// Rules: U4.
func TestSignaturesAreTheConventions_U4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "key")
		body := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "body")
		id, sent := uuid.Must(uuid.NewV7()), at.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "later")))
		secret := "whsec_" + base64.StdEncoding.EncodeToString(raw)
		key, err := webhook.Key(secret)
		if err != nil {
			t.Fatal(err)
		}
		receiver, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		h := headers(webhook.Sign(key, id, sent, body))
		if err := receiver.VerifyIgnoringTimestamp(body, h); err != nil {
			t.Fatalf("refused: %v, %v", err, h)
		}
		i := rapid.IntRange(0, len(body)-1).Draw(t, "byte")
		body[i] ^= 1
		if receiver.VerifyIgnoringTimestamp(body, h) == nil {
			t.Fatal("another body is taken")
		}
	})
	plain, err := webhook.Key("a secret as it is")
	if err != nil || string(plain) != "a secret as it is" {
		t.Errorf("%q, %v", plain, err)
	}
	for _, bad := range []string{"whsec_", "whsec_***"} {
		if _, err := webhook.Key(bad); err != webhook.ErrSecret || strings.Contains(err.Error(), "***") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The fourth header is HMAC-SHA256 over the raw body, as RFC 4231 has it.
//
// Rules: U4.
func TestTheBodyIsSigned_U4(t *testing.T) {
	h := webhook.Sign([]byte("Jefe"), uuid.Nil, at, []byte("what do ya want for nothing?"))
	if got := h[webhook.HeaderBody]; got != "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" {
		t.Errorf("signed as %s", got)
	}
}

// Rules: U4.
func TestIDsAreStable_U4(t *testing.T) {
	seen := map[uuid.UUID]string{}
	for _, source := range []string{webhook.FromLog(0, 11), webhook.FromLog(0, 1), webhook.FromLog(1, 1)} {
		for _, tenant := range []string{"", "acme", "a"} {
			for _, hook := range []string{"ops", "cmeops"} {
				id, name := webhook.ID(source, tenant, hook), source+"|"+tenant+"|"+hook
				if other, twice := seen[id]; twice {
					t.Errorf("%s and %s have one id", name, other)
				}
				if seen[id] = name; webhook.ID(source, tenant, hook) != id {
					t.Errorf("%s has another id the second time", name)
				}
			}
		}
	}
	// Fixed for good: a receiver may remember it.
	if got := webhook.ID(webhook.FromLog(0, 1), "acme", "ops").String(); got != "46c28805-fce1-5f20-a005-48f0ea710771" {
		t.Errorf("the id has changed to %s", got)
	}
}

// A budget that ran out is news once in a window, and again when its limit was raised.
//
// Rules: U4.
func TestAWindowIsExhaustedOnce_U4(t *testing.T) {
	r := request.Refusal{
		Code: "insufficient_quota", Scope: "organization", Limit: 5e9, Used: 49e8, Unit: "nanousd", Resets: "2026-12-01T00:00:00Z",
	}
	first, ok := webhook.Exhausted("acme", r)
	if !ok || !first.Until.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
		t.Fatalf("%+v, %v", first, ok)
	}
	r.Used++
	if again, _ := webhook.Exhausted("acme", r); again.Once != first.Once {
		t.Error("the second refusal is another piece of news")
	}
	for what, change := range map[string]func(r *request.Refusal){
		"limit":  func(r *request.Refusal) { r.Limit++ },
		"window": func(r *request.Refusal) { r.Resets = "2027-01-01T00:00:00Z" },
		"scope":  func(r *request.Refusal) { r.Scope = "key" },
		"unit":   func(r *request.Refusal) { r.Unit = "tokens" },
	} {
		other := r
		change(&other)
		if again, _ := webhook.Exhausted("acme", other); again.Once == first.Once {
			t.Errorf("another %s is the same piece of news", what)
		}
	}
	if theirs, _ := webhook.Exhausted("zeta", r); theirs.Once == first.Once {
		t.Error("another organization's is the same piece of news")
	}
	r.Scope, r.Of = "team", "search"
	mine, _ := webhook.Exhausted("acme", r)
	r.Of = "maps"
	if other, _ := webhook.Exhausted("acme", r); other.Once == mine.Once {
		t.Error("another team's is the same piece of news")
	}
	r.Code, r.Unit = "rate_limit_exceeded", "tokens"
	for per, want := range map[string]bool{"minute": false, "hour": false, "day": true, "month": true, "": false} {
		r.Per = per
		if _, news := webhook.Exhausted("acme", r); news != want {
			t.Errorf("tokens per %q: news is %v", per, news)
		}
	}
	r.Per = ""
	for _, code := range []string{"rate_limit_exceeded", "model_not_found", ""} {
		r.Code = code
		if _, news := webhook.Exhausted("acme", r); news {
			t.Errorf("%q is news", code)
		}
	}
}

// A limit of a masked deployment is told of, and not whose it is.
//
// Rules: U4, X1.
func TestMaskedDeploymentsStayMasked_U4_X1(t *testing.T) {
	refused := request.Refusal{
		Code: "insufficient_quota", Scope: "deployment", Of: "hidden@west", Masked: true, Limit: 5, Used: 5, Unit: "nanousd",
	}
	reached := request.BudgetThresholdReached{
		Tenant: "acme", Budget: "deployment:hidden@west/usd/month", Scope: "deployment", Masked: true, Unit: "nanousd", Window: "2026-11",
	}
	gone, ok := webhook.Exhausted("acme", refused)
	near, also := webhook.Of(reached, "threshold/org/acme/deployment/hidden@west/usd/month/2026-11", "w1")
	if !ok || !also {
		t.Fatal("no news")
	}
	for _, n := range []webhook.News{gone, near} {
		text, err := json.Marshal(n.Data)
		if err != nil || strings.Contains(string(text), "hidden") {
			t.Errorf("%s, %v", text, err)
		}
	}
	refused.Of = "other@west"
	if other, _ := webhook.Exhausted("acme", refused); other.Once == gone.Once {
		t.Error("another deployment's is the same piece of news")
	}
}

// A probe that fails opens a circuit that was never closed.
//
// Rules: U4.
func TestAProbeThatFailsIsNoNews_U4(t *testing.T) {
	for trips, want := range map[int]bool{1: true, 2: false, 9: false} {
		if _, news := webhook.Of(circuit.CircuitOpened{Trips: trips}, "circuit/route/1", "w1"); news != want {
			t.Errorf("opening %d is news: %v", trips, news)
		}
	}
	for _, e := range []any{circuit.CircuitHalfOpened{}, circuit.ThrottleWindowOpened{}, request.RequestAdmitted{}, catalog.AliasDefined{}} {
		if _, news := webhook.Of(e, "x", "w1"); news {
			t.Errorf("%T is news", e)
		}
	}
}

// Retries back off with jitter from seconds to two hours, and end after three days.
//
// Rules: U4.
func TestRetriesBackOff_U4(t *testing.T) {
	for attempts, most := range map[int]time.Duration{
		1: 5 * time.Second, 2: 10 * time.Second, 3: 20 * time.Second, 11: 5120 * time.Second, 12: 2 * time.Hour, 1000: 2 * time.Hour,
	} {
		if least, top := webhook.Retry(attempts, 0), webhook.Retry(attempts, 0.999999); least != most/2 || top <= least || top > most {
			t.Errorf("after %d attempts between %s and %s, want %s to %s", attempts, least, top, most/2, most)
		}
	}
	if first, last := webhook.Pause(1, 0.999999), webhook.Pause(99, 0.999999); first > 5*time.Second || last > 5*time.Minute || last < 4*time.Minute {
		t.Errorf("pauses of %s to %s", first, last)
	}

	// A receiver that is never there: what is tried, on a clock of its own.
	now, expires, attempts := at, at.Add(webhook.MaxAge), 0
	for dead := false; !dead; {
		attempts++
		before := now
		now, dead = webhook.Next(webhook.CauseConnect, attempts, now, expires, 0, 0.5)
		if !dead && (now.After(expires) || !now.After(before)) {
			t.Fatalf("attempt %d at %s", attempts, now)
		}
	}
	if attempts < 40 || attempts > 70 {
		t.Errorf("given up after %d attempts", attempts)
	}
	if _, dead := webhook.Next(webhook.CauseGone, 1, at, expires, 0, 0.5); !dead {
		t.Error("a receiver that is gone is tried again")
	}
	if next, _ := webhook.Next(webhook.CauseStatus, 1, at, expires, time.Hour, 0.5); next != at.Add(time.Hour) {
		t.Errorf("asked for an hour, tried at %s", next)
	}
	if next, _ := webhook.Next(webhook.CauseStatus, 1, at, expires, 1000*time.Hour, 0.5); next != at.Add(2*time.Hour) {
		t.Errorf("asked for a thousand hours, tried at %s", next)
	}
}

// Rules: U4.
func TestWhatAStatusSays_U4(t *testing.T) {
	for status, want := range map[int]webhook.Cause{
		200: "", 204: "", 299: "", 301: webhook.CauseRedirect, 308: webhook.CauseRedirect, 304: webhook.CauseRedirect,
		400: webhook.CauseStatus, 404: webhook.CauseStatus, 410: webhook.CauseGone, 429: webhook.CauseStatus, 500: webhook.CauseStatus, 503: webhook.CauseStatus,
	} {
		if got := webhook.Answered(status); got != want {
			t.Errorf("%d is %q", status, got)
		}
	}
}

// A message about nobody has a tenant that is null, not an empty one.
func TestWhomAMessageIsAbout_U4(t *testing.T) {
	for tenant, want := range map[string]string{"": "null", "acme": `"acme"`} {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(webhook.Body(uuid.Nil, at, webhook.News{Type: webhook.TypePing, Tenant: tenant, Data: webhook.Ping{}}), &m); err != nil {
			t.Fatal(err)
		}
		if string(m["tenant"]) != want {
			t.Errorf("tenant is %s", m["tenant"])
		}
	}
}

// A threshold of a day, a month or a total is news, with whose limit it is; one of a
// minute or an hour is a rate's.
//
// Rules: U4, R9.
func TestThresholdsAreTold_U4_R9(t *testing.T) {
	for stream, c := range map[string]struct {
		scope, unit, window string
		want                string
	}{
		"threshold/org/acme/usd/month/2026-11":                      {"organization", "nanousd", "2026-11", `{"budget":"b","window":"2026-11","scope":"organization","limit_nanousd":10,"used_nanousd":9,"threshold_nanousd":8}`},
		"threshold/org/acme/model/lab/usd/a/tokens/day/2026-11-30":  {"model", "tokens", "2026-11-30", `{"budget":"b","window":"2026-11-30","scope":"model","of":"lab/usd/a","limit_tokens":10,"used_tokens":9,"threshold_tokens":8}`},
		"threshold/org/acme/key/k1/requests/total/total":            {"key", "requests", "total", `{"budget":"b","window":"total","scope":"key","of":"k1","limit_requests":10,"used_requests":9,"threshold_requests":8}`},
		"threshold/org/acme/requests/minute/trail/2026-11-30T10:15": {"organization", "requests", "2026-11-30T10:15", ""},
		"threshold/org/acme/usd/hour/2026-11-30T10":                 {"organization", "nanousd", "2026-11-30T10", ""},
	} {
		n, ok := webhook.Of(request.BudgetThresholdReached{
			Tenant: "acme", Budget: "b", Scope: c.scope, Unit: c.unit, Window: c.window, Threshold: 8, Limit: 10, Used: 9,
		}, stream, "w1")
		if !ok {
			if c.want != "" {
				t.Errorf("%s is no news", stream)
			}
			continue
		}
		data, err := json.Marshal(n.Data)
		if err != nil || string(data) != c.want || n.Tenant != "acme" || n.Type != catalog.HookBudgetThreshold {
			t.Errorf("%s is %s, %v", stream, data, err)
		}
	}
}
