package messages

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

func refusal(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":` + string(rawjson.Quote(message)) + `},"request_id":"r"}`
}

// Rules: W2, W4, W5.
func TestClassify_W2_W4_W5(t *testing.T) {
	const invalid = "invalid_request_error"
	relayed := func(inner string) string {
		return `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":` + string(rawjson.Quote(inner)) + `}}}`
	}
	tests := []struct {
		name   string
		status int
		body   string
		want   failure.Class
	}{
		{"empty balance is a 400", 400, refusal(invalid, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), failure.ProviderQuota},
		{"spend limit is a 400", 400, refusal(invalid, "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."), failure.ProviderQuota},
		{"billing", 402, refusal("billing_error", "x"), failure.ProviderQuota},
		{"a schema that speaks of balances", 400, refusal(invalid, "tools.0.custom.input_schema: 'insufficient balance' is not of type 'object'"), failure.InvalidRequest},
		{"prompt too long", 400, refusal(invalid, "prompt is too long: 210000 tokens > 200000 maximum"), failure.ContextLength},
		{"prompt and output too long", 400, refusal(invalid, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), failure.ContextLength},
		{"body too large", 413, refusal("request_too_large", "Request exceeds the maximum size"), failure.InvalidRequest},
		{"policy", 400, refusal(invalid, "Output blocked by content filtering policy"), failure.ContentPolicy},
		{"a wrong field", 400, refusal(invalid, "max_tokens: Field required"), failure.InvalidRequest},
		{"throttle", 429, refusal("rate_limit_error", "This request would exceed your organization's rate limit"), failure.Throttled},
		{"bare throttle", 429, `slow down`, failure.Throttled},
		{"overloaded", 529, refusal("overloaded_error", "Overloaded"), failure.ServerError},
		{"bare overload", 529, ``, failure.ServerError},
		{"server error", 500, refusal("api_error", "Internal server error"), failure.ServerError},
		{"caller's word under a 500", 500, refusal(invalid, "x"), failure.ServerError},
		{"timeout", 504, refusal("timeout_error", "x"), failure.ServerError},
		{"request timeout", 408, ``, failure.ServerError},
		{"no such model", 404, refusal("not_found_error", "model: claude-nope"), failure.DeploymentGone},
		{"no such path", 404, refusal("not_found_error", "Not Found"), failure.DeploymentGone},
		{"no such file", 404, refusal("not_found_error", "File not found: file_1"), failure.InvalidRequest},
		{"key", 401, refusal("authentication_error", "invalid x-api-key"), failure.ProviderAuth},
		{"permission", 403, refusal("permission_error", "x"), failure.ProviderAuth},
		{"disabled organization", 400, refusal(invalid, "This organization has been disabled."), failure.ProviderAuth},
		{"redirect", 302, ``, failure.BadPayload},
		{"deep nesting", 500, strings.Repeat("[", 1<<16), failure.ServerError},
		{"wrapped balance", 400, relayed(refusal(invalid, "Your credit balance is too low")), failure.ProviderQuota},
		{"wrapped throttle under 502", 502, relayed(refusal("rate_limit_error", "x")), failure.Throttled},
		{"wrapped client error under 502", 502, relayed(refusal(invalid, "temperature: too high")), failure.InvalidRequest},
		{"JSON in the message", 400, refusal(invalid, refusal("overloaded_error", "x")), failure.ServerError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Outbound{}.Classify(dialect.Refusal{Status: tt.status, Body: []byte(tt.body)})
			if f.Class != tt.want || f.Status != tt.status || f.SealRejected {
				t.Errorf("%+v (%s), want %s", f, f.Code, tt.want)
			}
			callers := f.Class == failure.InvalidRequest || f.Class == failure.ContextLength || f.Class == failure.ContentPolicy
			if (f.Relay != nil) != callers {
				t.Errorf("relay = %+v for %s (W3, D7)", f.Relay, f.Class)
			}
			if callers && (f.Relay.Status < 400 || f.Relay.Status > 499) {
				t.Errorf("relay status %d", f.Relay.Status)
			}
		})
	}
}

// Rules: K5.
func TestRejectedSeals_K5(t *testing.T) {
	for message, want := range map[string]bool{
		"messages.1.content.0: Invalid `signature` in `thinking` block":     true,
		"messages.1.content.0: Invalid `data` in `redacted_thinking` block": true,
		"messages.1.content.0: thinking blocks must come first":             false,
		"Invalid `signature` of a webhook":                                  false,
	} {
		f := Outbound{}.Classify(dialect.Refusal{Status: 400, Body: []byte(refusal("invalid_request_error", message))})
		if f.SealRejected != want || f.Class != failure.InvalidRequest || f.Relay.Message != message {
			t.Errorf("%s: %+v", message, f)
		}
	}
}

// Rules: W20.
func TestRetryAfter_W20(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	tests := []struct {
		name   string
		status int
		header map[string]string
		want   failure.Retry
	}{
		{"milliseconds first", 429, map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, failure.Retry{After: 1500 * time.Millisecond, Source: "retry-after-ms", Told: true}},
		{"seconds", 429, map[string]string{"Retry-After": "7", "Anthropic-Ratelimit-Requests-Reset": in(time.Minute)}, failure.Retry{After: 7 * time.Second, Source: "retry-after", Told: true}},
		{"date, by the provider's clock", 503, map[string]string{"Retry-After": "Sun, 29 Nov 2026 13:00:30 GMT", "Date": "Sun, 29 Nov 2026 13:00:00 GMT"}, failure.Retry{After: 30 * time.Second, Source: "retry-after", Told: true}},
		{"the window that is used up", 429, map[string]string{
			"Anthropic-Ratelimit-Requests-Reset": in(time.Hour), "Anthropic-Ratelimit-Requests-Remaining": "5",
			"Anthropic-Ratelimit-Input-Tokens-Reset": in(20 * time.Second), "Anthropic-Ratelimit-Input-Tokens-Remaining": "0",
		}, failure.Retry{After: 20 * time.Second, Source: "anthropic-ratelimit-input-tokens-reset", Told: true}},
		{"the latest when none says so", 429, map[string]string{"Anthropic-Ratelimit-Requests-Reset": in(time.Second), "Anthropic-Ratelimit-Output-Tokens-Reset": in(time.Minute)}, failure.Retry{After: time.Minute, Source: "anthropic-ratelimit-output-tokens-reset", Told: true}},
		{"in the past", 429, map[string]string{"Anthropic-Ratelimit-Tokens-Reset": in(-time.Minute)}, failure.Retry{Source: "anthropic-ratelimit-tokens-reset", Told: true}},
		{"windows say nothing of a 500", 500, map[string]string{"Anthropic-Ratelimit-Requests-Reset": in(time.Minute)}, failure.Retry{}},
		{"no number", 429, map[string]string{"Retry-After": "soon"}, failure.Retry{}},
		{"bounded", 429, map[string]string{"Retry-After": "99999999"}, failure.Retry{After: maxRetryAfter, Source: "retry-after", Told: true}},
	}
	for _, tt := range tests {
		h := http.Header{}
		for name, value := range tt.header {
			h.Set(name, value)
		}
		got := Outbound{}.Classify(dialect.Refusal{Status: tt.status, Header: h, Now: now}).Retry
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Rules: P11, D7.
func TestErrors_P11_D7(t *testing.T) {
	limit, used := int64(5), int64(6)
	spent := apierror.New(apierror.InsufficientQuota)
	spent.RequestID, spent.Scope, spent.Limit, spent.Used, spent.Unit = "r1", "organization", &limit, &used, "usd"
	spent.ResetsAt = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	relayed := apierror.New(apierror.InvalidRequest)
	relayed.Relay = &failure.Relay{Status: 413, Message: "too big", Type: "request_too_large"}
	closed := apierror.New(apierror.UpstreamExhausted)
	closed.Status, closed.RetryAfter = 503, 90*time.Second
	closed.Attempts = []apierror.Attempt{{Provider: "p", Model: "m", Failure: "server_error", Status: 529}}
	tests := []struct {
		err    *apierror.Error
		status int
		want   string
	}{
		{spent, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"What is left of the budget does not cover the request.","code":"insufficient_quota","request_id":"r1","retryable":false,"scope":"organization","limit":5,"used":6,"unit":"usd","resets_at":"2026-12-01T00:00:00Z"},"request_id":"r1"}`},
		{relayed, 413, `{"type":"error","error":{"type":"request_too_large","message":"too big","code":"invalid_request","retryable":false,"provider_error":{"status":413,"type":"request_too_large"}}}`},
		{closed, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Every route of this model failed.","code":"upstream_exhausted","retryable":true,"retry_after_ms":90000,"attempts":[{"provider":"p","model":"m","failure":"server_error","status":529}]}}`},
		{apierror.New(apierror.UpstreamExhausted), 502, `{"type":"error","error":{"type":"api_error","message":"Every route of this model failed.","code":"upstream_exhausted","retryable":true}}`},
		{apierror.New(apierror.GatewayUnavailable), 503, `{"type":"error","error":{"type":"overloaded_error","message":"The gateway is not available.","code":"gateway_unavailable","retryable":true}}`},
	}
	for _, tt := range tests {
		status, header, body := Inbound{}.Error(tt.err)
		if status != tt.status || header.Get("X-Should-Retry") == "" {
			t.Errorf("%s: %d %v", tt.err.Code, status, header)
		}
		dialecttest.SameJSON(t, tt.want, string(body))
	}
}

// Every class that a type or a phrase names is one of the table's.
//
// Rules: W2.
func TestTablesNameKnownClasses_W2(t *testing.T) {
	for _, r := range phraseRules {
		if !slices.Contains(failure.Classes(), r.class) || r.name == "" || len(r.phrases) == 0 || len(r.statuses) == 0 {
			t.Errorf("row %+v", r)
		}
		for _, p := range r.phrases {
			if p != strings.ToLower(p) {
				t.Errorf("%q is not in lower case and matches nothing", p)
			}
		}
	}
	for kind, class := range typeRules {
		if !slices.Contains(failure.Classes(), class) {
			t.Errorf("%s: %s", kind, class)
		}
	}
}

// Rules: S4.
func TestAWholeErrorInsideA200_S4(t *testing.T) {
	_, f := Outbound{}.DecodeWhole(asking(), []byte(refusal("overloaded_error", "Overloaded")))
	if f == nil || f.Class != failure.ServerError {
		t.Errorf("%+v", f)
	}
	for body, code := range map[string]string{`<html>`: "not_json", `{}`: "no_content", `{"content":[3],"stop_reason":"end_turn"}`: "malformed_block"} {
		if _, f = (Outbound{}).DecodeWhole(asking(), []byte(body)); f == nil || f.Class != failure.BadPayload || f.Code != code {
			t.Errorf("%s: %+v", body, f)
		}
	}
	answer, f := Outbound{}.DecodeWhole(asking(), []byte(`{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":1}}`))
	if f == nil || f.Class != failure.EmptyCompletion || !answer.Empty || answer.Usage.Input.N != 5 {
		t.Errorf("%+v %+v (W8)", answer, f)
	}
	var wrapped error = f
	if _, ok := errors.AsType[*failure.Failure](wrapped); !ok {
		t.Error("not a failure")
	}
}
