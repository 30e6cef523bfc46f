package converse

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// Refusals as Bedrock words them (W4). The type decides, then the message, and the
// status only where neither is known.
func TestClassify_W4(t *testing.T) {
	for _, tt := range []struct {
		status  int
		kind    string
		message string
		class   failure.Class
		code    string
	}{
		{429, "ThrottlingException", "Too many tokens, please wait before trying again.", failure.Throttled, "throttling"},
		{429, "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/", "Too many requests", failure.Throttled, "throttling"},
		{400, "ThrottlingException", "Rate exceeded", failure.Throttled, "throttling"},
		{400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account.", failure.Throttled, "service_quota"},
		{429, "ModelNotReadyException", "The model is not ready.", failure.ServerError, "model_not_ready"},
		{408, "ModelTimeoutException", "Model processing time exceeded.", failure.ServerError, "model_timeout"},
		{424, "ModelErrorException", "The model returned an error.", failure.ServerError, "model_error"},
		{500, "InternalServerException", "x", failure.ServerError, "internal"},
		{503, "ServiceUnavailableException", "Bedrock is unable to process your request.", failure.ServerError, "unavailable"},
		{503, "ServiceUnavailableException", "Too many connections, please wait before trying again.", failure.Throttled, "throttle_words"},

		{403, "AccessDeniedException", "User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel", failure.ProviderAuth, "credential"},
		{403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", failure.DeploymentGone, "model_access"},
		{403, "AccessDeniedException", "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided.", failure.ProviderQuota, "funding"},
		{403, "UnrecognizedClientException", "The security token included in the request is invalid.", failure.ProviderAuth, "credential"},
		{403, "InvalidSignatureException", "Signature expired: 20261129T000000Z is now earlier than …", failure.ProviderAuth, "credential"},
		{400, "ExpiredTokenException", "The security token included in the request is expired", failure.ProviderAuth, "credential"},

		{400, "ValidationException", "The provided model identifier is invalid.", failure.DeploymentGone, "model_unknown"},
		{400, "ValidationException", "Invocation of model ID x with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile that contains this model.", failure.DeploymentGone, "model_unknown"},
		{400, "ValidationException", "This model version has reached the end of its life. Please refer to the AWS documentation for more details.", failure.DeploymentGone, "model_unknown"},
		{404, "ResourceNotFoundException", "This model version has reached the end of its life.", failure.DeploymentGone, "resource"},
		{404, "ResourceNotFoundException", "Could not find what was asked for", failure.DeploymentGone, "resource"},
		{404, "ResourceNotFoundException", "Model use case details have not been submitted for this account.", failure.DeploymentGone, "resource"},
		{400, "ValidationException", "Access to Anthropic models is not allowed from unsupported countries, regions, or territories.", failure.DeploymentGone, "region_blocked"},
		{400, "ValidationException", "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block", failure.InvalidRequest, "signature"},
		{400, "ValidationException", "Input is too long for requested model.", failure.ContextLength, "context"},
		{400, "ValidationException", "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum", failure.ContextLength, "context"},
		{400, "ValidationException", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", failure.ContextLength, "context"},
		{400, "ValidationException", "Output blocked by content filtering policy", failure.ContentPolicy, "policy"},
		{400, "ValidationException", "The value at toolConfig.tools.0.toolSpec.name failed to satisfy constraint", failure.InvalidRequest, "validation"},
		{400, "ValidationException", "The maximum tokens you requested exceeds the model limit of 4096.", failure.InvalidRequest, "validation"},
		{400, "ValidationException", "`temperature` is deprecated for this model.", failure.InvalidRequest, "validation"},

		{400, "", "Input is too long for requested model.", failure.ContextLength, "context"},
		{400, "", "something", failure.InvalidRequest, "status"},
		{403, "", "Forbidden", failure.ProviderAuth, "status"},
		{404, "", "", failure.DeploymentGone, "status"},
		{408, "", "", failure.ServerError, "status"},
		{429, "", "", failure.Throttled, "status"},
		{502, "", "<html>", failure.ServerError, "status"},
		{413, "", "", failure.InvalidRequest, "status"},
		{302, "", "", failure.BadPayload, "redirect"},
	} {
		body := []byte(`{"message":` + string(quote(tt.message)) + `}`)
		named := http.Header{}
		if tt.kind != "" {
			named.Set("X-Amzn-Errortype", tt.kind)
		}
		refusals := []dialect.Refusal{{Status: tt.status, Header: named, Body: body}}
		if tt.kind != "" {
			// Something in between dropped the header.
			inBody := []byte(`{"__type":"com.amazon.coral.service#` + tt.kind + `","Message":` + string(quote(tt.message)) + `}`)
			refusals = append(refusals, dialect.Refusal{Status: tt.status, Body: inBody})
		}
		for i, r := range refusals {
			got := Outbound{}.Classify(r)
			if got.SealRejected != (tt.code == "signature") {
				t.Errorf("%q: seal rejected = %v (K5)", tt.message, got.SealRejected)
			}
			if got.Class != tt.class || got.Code != tt.code || got.Status != tt.status {
				t.Errorf("%d %s %q (%d): %+v", tt.status, tt.kind, tt.message, i, got)
			}
			caller := tt.class == failure.InvalidRequest || tt.class == failure.ContextLength || tt.class == failure.ContentPolicy
			if caller != (got.Relay != nil) || (caller && got.Relay.Message != tt.message) {
				t.Errorf("%q: relay %+v", tt.message, got.Relay)
			}
		}
	}
}

func quote(s string) []byte { return saying(s)[len(`{"message":`) : len(saying(s))-1] }

// Rules: W20.
func TestRetryAfter_W20(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, value string
		after       time.Duration
		told        bool
	}{
		{"Retry-After", "2", 2 * time.Second, true},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond, true},
		{"Retry-After", "Sun, 29 Nov 2026 12:00:30 GMT", 30 * time.Second, true},
		{"Retry-After", "99999999", maxRetryAfter, true},
		{"Retry-After", "soon", 0, false},
		{"X-Other", "1", 0, false},
	} {
		r := dialect.Refusal{Status: 429, Header: http.Header{}, Now: now}
		r.Header.Set(tt.name, tt.value)
		if got := (Outbound{}).Classify(r).Retry; got.After != tt.after || got.Told != tt.told {
			t.Errorf("%s: %s: %+v", tt.name, tt.value, got)
		}
	}
}

// Rules: D7.
func TestRelayIsClipped_D7(t *testing.T) {
	f := Outbound{}.Classify(dialect.Refusal{Status: 400, Body: saying(strings.Repeat("ä", dialect.MaxRelay))})
	if len(f.Relay.Message) > dialect.MaxRelay || strings.ContainsRune(f.Relay.Message, '\uFFFD') {
		t.Errorf("%d bytes", len(f.Relay.Message))
	}
}
