package gemini

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
)

func errorBody(code, status, message, details string) string {
	return `{"error":{"code":` + code + `,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
}

func reason(r string) string {
	return `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` + r + `","domain":"googleapis.com"}`
}

// Rules: W4.
func TestClassify_W4(t *testing.T) {
	const quota = "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: "
	tests := []struct {
		name   string
		status int
		body   string
		class  failure.Class
		code   string
	}{
		{"a bad key", 400, errorBody("400", "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason("API_KEY_INVALID")), failure.ProviderAuth, "key"},
		{"a bad key, in words", 400, errorBody("400", "INVALID_ARGUMENT", "API key expired. Please renew the API key.", ""), failure.ProviderAuth, "key"},
		{"a leaked key", 403, errorBody("403", "PERMISSION_DENIED", "Your API key was reported as leaked.", ""), failure.ProviderAuth, "key"},
		{"no credentials", 401, errorBody("401", "UNAUTHENTICATED", "Request had invalid authentication credentials.", reason("ACCESS_TOKEN_TYPE_UNSUPPORTED")), failure.ProviderAuth, "key"},
		{"no permission", 403, errorBody("403", "PERMISSION_DENIED", "Permission denied on resource project p.", ""), failure.ProviderAuth, "permission_denied"},
		{"the wrong country", 400, errorBody("400", "FAILED_PRECONDITION", "User location is not supported for the API use.", ""), failure.ProviderAuth, "key"},
		{"no billing", 403, errorBody("403", "PERMISSION_DENIED", "This API method requires billing to be enabled.", reason("BILLING_DISABLED")), failure.ProviderQuota, "billing"},
		{"no credits", 429, errorBody("429", "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", ""), failure.ProviderQuota, "billing"},
		{"the spending cap", 429, errorBody("429", "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap.", ""), failure.ProviderQuota, "billing"},
		{"a tier with nothing in it", 429, errorBody("429", "RESOURCE_EXHAUSTED", quota+"0, model: m", ""), failure.ProviderQuota, "billing"},
		{"a rate that talks of billing", 429, errorBody("429", "RESOURCE_EXHAUSTED", quota+"10, model: m", ""), failure.Throttled, "resource_exhausted"},
		{"a rate, by reason", 429, errorBody("429", "RESOURCE_EXHAUSTED", "Quota exceeded", reason("RATE_LIMIT_EXCEEDED")), failure.Throttled, "rate"},
		{"no such model", 404, errorBody("404", "NOT_FOUND", "models/x is not found for API version v1beta", ""), failure.DeploymentGone, "model"},
		{"no such model, Vertex", 404, errorBody("404", "NOT_FOUND", "Publisher Model `x` was not found", ""), failure.DeploymentGone, "model"},
		{"too many tokens", 400, errorBody("400", "INVALID_ARGUMENT", "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", ""), failure.ContextLength, "context"},
		{"too many tokens, Vertex", 400, errorBody("400", "INVALID_ARGUMENT", "Unable to submit request because the input token count is 9 but the model only supports up to 8.", ""), failure.ContextLength, "context"},
		{"a bad field", 400, errorBody("400", "INVALID_ARGUMENT", "Invalid value at 'contents'", `{"fieldViolations":[{"field":"contents"}]}`), failure.InvalidRequest, "invalid_argument"},
		{"a quota in the caller's words", 400, errorBody("400", "INVALID_ARGUMENT", "Unknown name quota: Cannot find field.", ""), failure.InvalidRequest, "invalid_argument"},
		{"a signature", 400, errorBody("400", "INVALID_ARGUMENT", "Thought signature is not valid.", ""), failure.InvalidRequest, "signature"},
		{"overloaded", 503, errorBody("503", "UNAVAILABLE", "The model is overloaded. Please try again later.", ""), failure.ServerError, "unavailable"},
		{"too late", 504, errorBody("504", "DEADLINE_EXCEEDED", "Deadline expired", ""), failure.ServerError, "deadline_exceeded"},
		{"in a list", 429, "[" + errorBody("429", "RESOURCE_EXHAUSTED", "x", "") + "]", failure.Throttled, "resource_exhausted"},
		{"no body, 400", 400, "", failure.InvalidRequest, "status"},
		{"no body, 401", 401, "", failure.ProviderAuth, "status"},
		{"no body, 429", 429, "<html>", failure.Throttled, "status"},
		{"no body, 502", 502, "<html>", failure.ServerError, "status"},
		{"elsewhere", 302, "", failure.BadPayload, "status"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Outbound{}.Classify(dialect.Refusal{Status: tt.status, Body: []byte(tt.body)})
			if f.Class != tt.class || f.Code != tt.code || f.Status != tt.status || f.SealRejected != (tt.code == "signature") {
				t.Errorf("%+v, want %s: %s", f, tt.class, tt.code)
			}
			callers := tt.class == failure.InvalidRequest || tt.class == failure.ContextLength
			if (f.Relay != nil) != callers || (callers && f.Relay.Status != 400) {
				t.Errorf("relay = %+v", f.Relay)
			}
		})
	}
}

// The caller's own fault reaches the caller in Google's words, field and all (W3).
func TestRelay_W3(t *testing.T) {
	f := Outbound{}.Classify(dialect.Refusal{Status: 400, Body: []byte(errorBody("400", "INVALID_ARGUMENT", "Bad contents", `{"fieldViolations":[{"field":"contents[0]"}]}`))})
	want := &failure.Relay{Status: 400, Message: "Bad contents", Type: "INVALID_ARGUMENT", Param: "contents[0]"}
	if diff := cmp.Diff(want, f.Relay); diff != "" {
		t.Error(diff)
	}
}

// Rules: W20.
func TestRetry_W20(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	delay := func(d string) string {
		return errorBody("429", "RESOURCE_EXHAUSTED", "x", `{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"`+d+`"}`)
	}
	tests := []struct {
		name   string
		header http.Header
		body   string
		want   failure.Retry
	}{
		{"nothing", nil, errorBody("429", "RESOURCE_EXHAUSTED", "x", ""), failure.Retry{}},
		{"RetryInfo", nil, delay("34.4s"), failure.Retry{After: 34400 * time.Millisecond, Source: "retry_info", Told: true}},
		{"RetryInfo in a list", nil, "[" + delay("1s") + "]", failure.Retry{After: time.Second, Source: "retry_info", Told: true}},
		{"a header goes first", http.Header{"Retry-After": {"2"}}, delay("9s"), failure.Retry{After: 2 * time.Second, Source: "retry-after", Told: true}},
		{"a date", http.Header{"Retry-After": {"Sun, 29 Nov 2026 12:00:30 GMT"}}, "", failure.Retry{After: 30 * time.Second, Source: "retry-after", Told: true}},
		{"in words", nil, errorBody("429", "RESOURCE_EXHAUSTED", "Quota exceeded. Please retry in 1.5s.", ""), failure.Retry{After: 1500 * time.Millisecond, Source: "message", Told: true}},
		{"for ever", nil, delay("999999999s"), failure.Retry{After: maxRetryAfter, Source: "retry_info", Told: true}},
		{"in the past", nil, delay("-5s"), failure.Retry{Source: "retry_info", Told: true}},
		{"of no kind", http.Header{"Retry-After": {"soon"}}, delay("soon"), failure.Retry{}},
	}
	for _, tt := range tests {
		f := Outbound{}.Classify(dialect.Refusal{Status: 429, Header: tt.header, Body: []byte(tt.body), Now: now})
		if diff := cmp.Diff(tt.want, f.Retry); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Rules: W20.
func TestRecordedThrottle_W20(t *testing.T) {
	body, err := os.ReadFile("../../../../shared/fixtures/provider-streams/google/google-429-retry-info.json")
	if err != nil {
		t.Skipf("the recorded responses are not at ../shared beside the checkout: %v", err)
	}
	f := Outbound{}.Classify(dialect.Refusal{Status: 429, Body: body})
	if f.Class != failure.Throttled || f.Retry.After != 34400*time.Millisecond {
		t.Errorf("%+v", f)
	}
}

// What is passed on is bounded and whole text.
//
// Rules: D7.
func TestRelayIsClipped_D7(t *testing.T) {
	f := Outbound{}.Classify(dialect.Refusal{Status: 400, Body: []byte(errorBody("400", "INVALID_ARGUMENT", strings.Repeat("漢", 4000), ""))})
	if n := len(f.Relay.Message); n > dialect.MaxRelay || n < dialect.MaxRelay-4 || strings.ContainsRune(f.Relay.Message, '\uFFFD') {
		t.Errorf("%d bytes", n)
	}
}
