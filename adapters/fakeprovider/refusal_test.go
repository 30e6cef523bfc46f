package fakeprovider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

// TestRefusals_O9_W4 sends every refusal and reads what a classifier reads:
// status, headers and the words of the body.
//
// Rules: O9, W4.
func TestRefusals_O9_W4(t *testing.T) {
	tests := []struct {
		model  string
		status int
		body   string // what the body contains
	}{
		{"fake-429", 429, `"code":"rate_limit_exceeded"`},
		{"fake-429:tpm", 429, `"code":"insufficient_quota"`},
		{"fake-500", 500, `"type":"server_error"`},
		{"fake-502", 502, "<html>"},
		{"fake-503", 503, "overloaded"},
		{"fake-504", 504, "<html>"},
		{"fake-529", 529, `"type":"overloaded_error"`},
		{"fake-401", 401, `"code":"invalid_api_key"`},
		{"fake-403", 403, "does not have access to model `fake-403`"},
		{"fake-404", 404, `"code":"model_not_found"`},
		{"fake-408", 408, `"type":"timeout"`},
		{"fake-400", 400, `"param":"temperature"`},
		{"fake-413", 413, "too large"},
		{"fake-status:418", 418, `"error"`},
		{"fake-context", 400, `"code":"context_length_exceeded"`},
		{"fake-context:vllm", 400, `"object":"error"`},
		{"fake-context:sglang", 400, "longer than the model's context length"},
		{"fake-context:xai", 400, "maximum prompt length"},
		{"fake-policy", 400, `"code":"content_policy_violation"`},
		{"fake-policy:azure", 400, `"ResponsibleAIPolicyViolation"`},
		{"fake-policy:openrouter", 403, "flagged by moderation"},
		{"fake-funding", 429, `"code":"insufficient_quota"`},
		{"fake-funding:hard-limit", 400, "billing_hard_limit_reached"},
		{"fake-funding:inactive", 429, "billing_not_active"},
		{"fake-funding:anthropic", 400, "credit balance is too low"},
		{"fake-funding:spend", 400, "usage limits"},
		{"fake-funding:deepseek", 402, "Insufficient Balance"},
		{"fake-funding:openrouter", 402, "requires more credits"},
		{"fake-funding:credits", 402, "Insufficient credits"},
		{"fake-funding:xai", 403, "used all available credits"},
		{"fake-funding:moonshot", 429, "exceeded_current_quota_error"},
		{"fake-funding:together", 402, "Credit limit exceeded"},
		{"fake-no-such-fault", 404, `"code":"model_not_found"`},
	}
	c := start(t, fakeprovider.Options{})
	for _, test := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", test.model, stream), func(t *testing.T) {
				c := c.on(t)
				r := c.call(test.model, stream)
				if r.err != nil || r.status != test.status || !strings.Contains(string(r.body), test.body) {
					t.Errorf("status %d, error %v, body %s", r.status, r.err, r.body)
				}
				if !strings.Contains(test.body, "<") && !json.Valid(r.body) {
					t.Errorf("the body is not JSON: %s", r.body)
				}
				if last := c.lastCall(); last.Status != test.status || last.BilledInputTokens != 0 || last.BilledOutputTokens != 0 {
					t.Errorf("ledger: %+v", last)
				}
			})
		}
	}
}

// TestRetryAfter_W18 is every form of the wait that a throttle may name. The
// bubble's clock stands at midnight UTC 2000-01-01, so dates are exact.
//
// Rules: W18.
func TestRetryAfter_W18(t *testing.T) {
	tests := []struct {
		model, header, value string
	}{
		{"fake-429", "Retry-After", ""},
		{"fake-429:none", "Retry-After", ""},
		{"fake-429:2", "Retry-After", "2"},
		{"fake-429:huge", "Retry-After", "86400"},
		{"fake-429:bad", "Retry-After", "soon"},
		{"fake-429:date:90", "Retry-After", "Sat, 01 Jan 2000 00:01:30 GMT"},
		{"fake-429:ms:1500", "Retry-After-Ms", "1500"},
		{"fake-429:azure-ms:700", "X-Ms-Retry-After-Ms", "700"},
		{"fake-429:reset:6m0s", "X-Ratelimit-Reset-Requests", "6m0s"},
		{"fake-429:reset:6m0s", "X-Ratelimit-Reset-Tokens", "6m0s"},
		{"fake-503+retry-after:5", "Retry-After", "5"},
	}
	for _, test := range tests {
		t.Run(test.model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := startInMemory(t, fakeprovider.Options{}).call(test.model, false)
				if got := r.header.Get(test.header); r.status < 400 || got != test.value {
					t.Errorf("status %d, %s = %q, want %q", r.status, test.header, got, test.value)
				}
			})
		})
	}
}

// TestGrowingRetryAfter_W20 asks for longer each time: the latest reading has
// to win at the caller.
//
// Rules: W20.
func TestGrowingRetryAfter_W20(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for _, want := range []string{"1", "5", "30", "30"} {
		if got := c.call("fake-429:1,429:5,429:30", false).header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q, want %q", got, want)
		}
	}
}

// TestRelayKeepsTheInnerError_W4 wraps refusals as a relay does: the status
// and the inner body survive as a string in the metadata.
//
// Rules: W4.
func TestRelayKeepsTheInnerError_W4(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for model, inner := range map[string]string{
		"fake-429:2+relay":             "rate_limit_exceeded",
		"fake-funding:anthropic+relay": "credit balance is too low",
		"fake-context+relay":           "context_length_exceeded",
		"fake-policy:azure+relay":      "content_filter",
		"fake-400+relay":               "temperature",
	} {
		r := c.call(model, true)
		wrapped := c.decode(r.body)
		if wrapped.Error == nil || wrapped.Error.Message != "Provider returned error" || wrapped.Error.Code != float64(r.status) {
			t.Errorf("%s: wrapper %s", model, r.body)
			continue
		}
		if !json.Valid([]byte(wrapped.Error.Metadata.Raw)) || !strings.Contains(wrapped.Error.Metadata.Raw, inner) {
			t.Errorf("%s: inner %s", model, wrapped.Error.Metadata.Raw)
		}
	}
}

// TestStalledErrorBody_W11 gives half of an error body, then nothing.
//
// Rules: W11.
func TestStalledErrorBody_W11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startInMemory(t, fakeprovider.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		r := c.post(ctx, chatBody("fake-500+stall-body", false), "k")
		if r.status != http.StatusInternalServerError || len(r.body) == 0 || json.Valid(r.body) || r.err == nil {
			t.Errorf("status %d, body %q, error %v", r.status, r.body, r.err)
		}
		if last := c.lastCall(); !last.ClientGone {
			t.Errorf("the ledger does not know that the client left: %+v", last)
		}
	})
}

// TestRedirect sends a 302 that no client should follow with a key.
func TestRedirect(t *testing.T) {
	r := start(t, fakeprovider.Options{}).call("fake-redirect", false)
	if r.status != http.StatusFound || r.header.Get("Location") == "" {
		t.Errorf("status %d, Location %q", r.status, r.header.Get("Location"))
	}
}

// TestUnknownModelSaysWhy keeps a typing error in a test from looking like a
// fault under test.
func TestUnknownModelSaysWhy(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	c.call("fake-cut:x", false)
	if outcome := c.lastCall().Outcome; !strings.Contains(outcome, `"x" is not a number`) {
		t.Errorf("outcome %q", outcome)
	}
}
