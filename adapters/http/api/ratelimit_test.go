package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Rules: R8.
func TestLimitsAreToldInTheCallersForm_R8(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	limits := gateway.RateLimits{
		Requests: &gateway.RateLimit{Limit: 600, Remaining: 1, Reset: now.Add(1500 * time.Millisecond)},
		Tokens:   &gateway.RateLimit{Limit: 2_000_000, Remaining: 0, Reset: now.Add(6 * time.Minute)},
	}
	openAI := http.Header{
		"X-Ratelimit-Limit-Requests": {"600"}, "X-Ratelimit-Remaining-Requests": {"1"}, "X-Ratelimit-Reset-Requests": {"1.5s"},
		"X-Ratelimit-Limit-Tokens": {"2000000"}, "X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {"6m0s"},
	}
	anthropic := http.Header{
		"Anthropic-Ratelimit-Requests-Limit": {"600"}, "Anthropic-Ratelimit-Requests-Remaining": {"1"},
		"Anthropic-Ratelimit-Requests-Reset": {"2026-11-30T12:00:02Z"},
		"Anthropic-Ratelimit-Tokens-Limit":   {"2000000"}, "Anthropic-Ratelimit-Tokens-Remaining": {"0"},
		"Anthropic-Ratelimit-Tokens-Reset": {"2026-11-30T12:06:00Z"},
	}
	for dialect, want := range map[neutral.Dialect]http.Header{neutral.Chat: openAI, neutral.Responses: openAI, neutral.Messages: anthropic} {
		got := http.Header{}
		setLimits(got, dialect, limits, now)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", dialect, diff)
		}
	}
	none := http.Header{}
	setLimits(none, neutral.Chat, gateway.RateLimits{}, now)
	if len(none) != 0 {
		t.Errorf("without a limit: %v", none)
	}
}

// What fills a window may all still run: nothing can be told of when it moves, and no
// moment of the past is.
//
// Rules: R8.
func TestAWindowOfRunningRequestsMovesAnyMoment_R8(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	limits := gateway.RateLimits{Tokens: &gateway.RateLimit{Limit: 5}}
	for dialect, want := range map[neutral.Dialect][2]string{
		neutral.Chat:     {"X-Ratelimit-Reset-Tokens", "0s"},
		neutral.Messages: {"Anthropic-Ratelimit-Tokens-Reset", "2026-11-30T12:00:00Z"},
	} {
		got := http.Header{}
		setLimits(got, dialect, limits, now)
		if got.Get(want[0]) != want[1] {
			t.Errorf("%s: %v", dialect, got)
		}
	}
}

// A refusal tells of the window that refused, whatever else is known.
//
// Rules: R8, A9.
func TestARefusalTellsItsWindow_R8_A9(t *testing.T) {
	resets := time.Date(2026, 11, 30, 12, 0, 9, 0, time.UTC)
	limit, used := int64(100), int64(140)
	out := &gateway.Outcome{Err: &apierror.Error{Code: apierror.RateLimitExceeded, Unit: "tokens", Limit: &limit, Used: &used, ResetsAt: resets}}
	want := gateway.RateLimits{Tokens: &gateway.RateLimit{Limit: 100, Reset: resets}}
	if diff := cmp.Diff(want, limitsOf(out)); diff != "" {
		t.Error(diff)
	}
	out.Err.Unit = "requests"
	if got := limitsOf(out); got.Requests == nil || got.Tokens != nil {
		t.Errorf("%+v", got)
	}
	out.Err.Code = apierror.InsufficientQuota
	if got := limitsOf(out); got != (gateway.RateLimits{}) {
		t.Errorf("a budget is no rate: %+v", got)
	}
}
