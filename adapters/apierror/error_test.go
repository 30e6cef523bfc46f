package apierror

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
)

// contract is the table of the outer contract: code, status, Anthropic's type,
// retryable.
const contract = `
invalid_api_key 401 authentication_error no
forbidden 403 permission_error no
model_not_found 404 not_found_error no
alias_unresolvable 404 not_found_error no
invalid_request 400 invalid_request_error no
capability_unavailable 400 invalid_request_error no
context_length_exceeded 400 invalid_request_error no
request_too_large 413 request_too_large no
no_route_allowed 503 api_error no
class_not_configured 404 not_found_error no
chain_unavailable 503 api_error no
insufficient_quota 429 rate_limit_error no
rate_limit_exceeded 429 rate_limit_error yes
provider_throttled 429 rate_limit_error yes
capacity_exhausted 429 rate_limit_error yes
admission_timeout 429 rate_limit_error yes
customer_credential_rejected 424 api_error no
customer_credential_quota 402 billing_error no
upstream_exhausted 502 api_error yes
empty_completion 502 api_error yes
upstream_truncated 502 api_error yes
answer_lost 502 api_error no
deadline_exceeded 504 timeout_error yes
price_unknown 503 api_error no
idempotency_conflict 409 invalid_request_error no
idempotency_replay_unavailable 409 invalid_request_error no
gateway_unavailable 503 overloaded_error yes
revision_conflict 409 invalid_request_error no
`

func TestTheTableIsTheContract(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(contract), "\n")
	if len(lines) != len(Codes()) {
		t.Errorf("%d codes, the contract has %d", len(Codes()), len(lines))
	}
	for _, line := range lines {
		f := strings.Fields(line)
		row, ok := table[Code(f[0])]
		if !ok {
			t.Errorf("%s is missing", f[0])
			continue
		}
		retryable := map[bool]string{true: "yes", false: "no"}[row.Retryable]
		if got := strings.Join([]string{f[0], strconv.Itoa(row.Status), row.Anthropic, retryable}, " "); got != line {
			t.Errorf("got %s, want %s", got, line)
		}
		if row.OpenAI == "" || row.Message == "" {
			t.Errorf("%s has no OpenAI type or no message", f[0])
		}
	}
}

// A fault of ours must not look like the caller's (M145).
func TestAnUnknownCodeIsOurFault(t *testing.T) {
	if e := New("no_such_code"); e.HTTPStatus() != 503 {
		t.Errorf("status = %d", e.HTTPStatus())
	}
}

// Rules: P11, W20.
func TestHeader_P11_W20(t *testing.T) {
	tests := []struct {
		after       time.Duration
		seconds, ms string
	}{
		{0, "", ""},
		{time.Millisecond, "1", "1"},
		{1500 * time.Millisecond, "2", "1500"},
		{time.Microsecond, "1", "1"},
		{60 * time.Second, "60", "60000"},
		{time.Hour, "60", "60000"},
	}
	for _, tt := range tests {
		e := New(ProviderThrottled)
		e.RetryAfter = tt.after
		h := e.Header()
		if h.Get("Retry-After") != tt.seconds || h.Get("Retry-After-Ms") != tt.ms {
			t.Errorf("%v: %v", tt.after, h)
		}
		if h.Get("X-Should-Retry") != "true" {
			t.Errorf("x-should-retry = %q", h.Get("X-Should-Retry"))
		}
	}
	for _, code := range []Code{InvalidRequest, InsufficientQuota} {
		if got := New(code).Header().Get("X-Should-Retry"); got != "false" {
			t.Errorf("%s: x-should-retry = %q", code, got)
		}
	}
}

// The provider's status stands for a caller's fault and for nothing else.
//
// Rules: W3, D7.
func TestRelay_W3_D7(t *testing.T) {
	e := New(InvalidRequest)
	e.Relay = &failure.Relay{Status: 422, Message: "n is bad"}
	if e.HTTPStatus() != 422 || e.Text() != "n is bad" {
		t.Errorf("%d %s", e.HTTPStatus(), e.Text())
	}
	e.Relay.Status = 502
	if e.HTTPStatus() != 400 {
		t.Errorf("status = %d", e.HTTPStatus())
	}
	e = New(ContextLengthExceeded)
	e.Relay = &failure.Relay{Status: 413}
	if e.HTTPStatus() != 400 || e.Text() != Of(ContextLengthExceeded).Message {
		t.Errorf("%d %s", e.HTTPStatus(), e.Text())
	}
	e = New(UpstreamExhausted)
	e.Status, e.Message = 503, "Every route is closed."
	if e.HTTPStatus() != 503 || e.Text() != "Every route is closed." {
		t.Errorf("%d %s", e.HTTPStatus(), e.Text())
	}
}
