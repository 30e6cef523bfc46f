package chat

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// Rules: W2, W4, W5.
func TestClassify_W2_W4_W5(t *testing.T) {
	openAI := func(message, kind, param, code string) string {
		quoteOrNull := func(s string) string {
			if s == "" {
				return "null"
			}
			return string(rawjson.Quote(s))
		}
		return `{"error":{"message":` + string(rawjson.Quote(message)) + `,"type":` + quoteOrNull(kind) + `,"param":` + quoteOrNull(param) + `,"code":` + quoteOrNull(code) + `}}`
	}
	openRouter := func(code, raw string) string {
		return `{"error":{"message":"Provider returned error","code":` + code + `,"metadata":{"raw":` + string(rawjson.Quote(raw)) + `,"provider_name":"Some"}},"user_id":"u"}`
	}
	tests := []struct {
		name   string
		status int
		body   string
		want   failure.Class
	}{
		// Funding, whatever the status.
		{"OpenAI out of funds", 429, openAI("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", "", "insufficient_quota"), failure.ProviderQuota},
		{"DeepSeek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, failure.ProviderQuota},
		{"Anthropic's words through a compatible endpoint", 400, openAI("Your credit balance is too low to access the Anthropic API.", "invalid_request_error", "", ""), failure.ProviderQuota},
		{"spend limit as 400", 400, openAI("You have reached your specified API usage limits. You will regain access on 2026-12-01.", "invalid_request_error", "", ""), failure.ProviderQuota},
		{"xAI", 403, `{"code":"The caller does not have permission","error":"Your newly created team doesn't have any credits yet."}`, failure.ProviderQuota},
		{"OpenRouter", 402, `{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}`, failure.ProviderQuota},
		{"Moonshot", 429, openAI("Your account is suspended", "exceeded_current_quota_error", "", ""), failure.ProviderQuota},
		{"Alibaba arrears", 400, openAI("Access denied, please make sure your account is in good standing.", "Arrearage", "", "Arrearage"), failure.ProviderQuota},
		{"bare 402", 402, ``, failure.ProviderQuota},

		// Not every quota word, not every 429 and not every 400.
		{"Alibaba's insufficient_quota is a token rate", 429, openAI("Allocated quota exceeded, please increase your quota limit.", "insufficient_quota", "", "insufficient_quota"), failure.Throttled},
		{"Gemini's quota is a rate", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED"}}]`, failure.Throttled},
		{"a field named quota", 400, openAI("Unknown parameter: 'quota'.", "invalid_request_error", "quota", "unknown_parameter"), failure.InvalidRequest},
		{"a schema that speaks of balances", 400, openAI("Invalid schema for function 'pay': 'insufficient balance' is not of type 'object'", "invalid_request_error", "tools[0].function.parameters", "invalid_function_parameters"), failure.InvalidRequest},
		{"a 400 about tokens a minute is no context error", 429, openAI("Request too large for model with limit 30000 tokens per minute (TPM)", "tokens", "", "rate_limit_exceeded"), failure.Throttled},

		// Throttles.
		{"OpenAI", 429, openAI("Rate limit reached for gpt-x", "requests", "", "rate_limit_exceeded"), failure.Throttled},
		{"bare 429", 429, `slow down`, failure.Throttled},
		{"a throttle under 503", 503, openAI("Slow down", "server_error", "", "slow_down"), failure.Throttled},
		{"a throttle under 500", 500, `{"message":"Too many requests, please wait"}`, failure.Throttled},
		{"Mistral", 429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}`, failure.Throttled},

		// Credentials.
		{"OpenAI's key", 401, openAI("Incorrect API key provided: sk-1***2.", "invalid_request_error", "", "invalid_api_key"), failure.ProviderAuth},
		{"Gemini rejects a key with 400", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`, failure.ProviderAuth},
		{"403", 403, `{"error":{"message":"Forbidden"}}`, failure.ProviderAuth},
		{"bare 401", 401, `<html>`, failure.ProviderAuth},

		// The model is gone.
		{"OpenAI", 404, openAI("The model `x` does not exist or you do not have access to it.", "invalid_request_error", "", "model_not_found"), failure.DeploymentGone},
		{"Azure", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, failure.DeploymentGone},
		{"Groq retires with 400", 400, openAI("The model `x` has been decommissioned", "invalid_request_error", "", "model_decommissioned"), failure.DeploymentGone},
		{"DeepSeek with 400", 400, openAI("Model Not Exist", "invalid_request_error", "", "invalid_request_error"), failure.DeploymentGone},
		{"OpenRouter with 400", 400, `{"error":{"message":"x/y is not a valid model ID","code":400}}`, failure.DeploymentGone},
		{"no path there", 404, `404 page not found`, failure.DeploymentGone},
		{"another 404 of the caller's", 404, openAI("File not found", "invalid_request_error", "messages[0].content[0].file.file_id", ""), failure.InvalidRequest},

		// Context.
		{"OpenAI", 400, openAI("This model's maximum context length is 8192 tokens.", "invalid_request_error", "messages", "context_length_exceeded"), failure.ContextLength},
		{"vLLM without a code", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}`, failure.ContextLength},
		{"SGLang", 400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","code":400}`, failure.ContextLength},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, failure.ContextLength},

		// Policy.
		{"Azure", 400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, failure.ContentPolicy},
		{"OpenRouter's moderation is a 403", 403, `{"error":{"message":"Your chosen model requires moderation and your input was flagged.","code":403,"metadata":{"reasons":["violence"]}}}`, failure.ContentPolicy},
		{"Alibaba", 400, openAI("Input data may contain inappropriate content.", "data_inspection_failed", "", "data_inspection_failed"), failure.ContentPolicy},

		// The caller's own.
		{"a wrong field", 400, openAI("Invalid type for 'temperature'.", "invalid_request_error", "temperature", "invalid_type"), failure.InvalidRequest},
		{"FastAPI", 422, `{"detail":[{"loc":["body","n"],"msg":"value is not a valid integer","type":"type_error.integer"}]}`, failure.InvalidRequest},
		{"an unknown 4xx", 418, ``, failure.InvalidRequest},
		{"too large", 413, ``, failure.InvalidRequest},

		// The provider's own.
		{"500", 500, openAI("The server had an error", "server_error", "", ""), failure.ServerError},
		{"503", 503, `Service Unavailable`, failure.ServerError},
		{"529", 529, openAI("Overloaded", "overloaded_error", "", ""), failure.ServerError},
		{"408 may be retried (W12)", 408, ``, failure.ServerError},
		{"redirect", 307, ``, failure.BadPayload},
		{"deep nesting", 500, strings.Repeat("[", 1<<16), failure.ServerError},

		// Relays.
		{"wrapped throttle", 429, openRouter("429", `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`), failure.Throttled},
		{"wrapped throttle under 502", 502, openRouter("502", `{"error":{"message":"x","code":429}}`), failure.Throttled},
		{"wrapped funding under 400", 400, openRouter("400", `{"error":{"message":"x","code":"insufficient_quota"}}`), failure.ProviderQuota},
		{"wrapped funding in bare words", 400, openRouter("400", `Your credit balance is too low to access the API`), failure.ProviderQuota},
		{"wrapped client error under 502", 502, openRouter("502", `{"error":{"message":"temperature: too high","type":"invalid_request_error"}}`), failure.InvalidRequest},
		{"wrapped context error", 400, openRouter("400", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), failure.ContextLength},
		{"wrapped policy", 400, openRouter("400", `{"error":{"code":"content_filter","message":"x"}}`), failure.ContentPolicy},
		{"twice in error", 400, `{"error":{"error":{"message":"x","code":"insufficient_quota"}}}`, failure.ProviderQuota},
		{"JSON in the message", 400, `{"error":{"message":"{\"error\":{\"message\":\"x\",\"code\":\"model_not_found\"}}"}}`, failure.DeploymentGone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Outbound{}.Classify(dialect.Refusal{Status: tt.status, Body: []byte(tt.body)})
			if f.Class != tt.want {
				t.Errorf("class = %s (%s), want %s", f.Class, f.Code, tt.want)
			}
			if f.Status != tt.status || f.PossiblyBilled {
				t.Errorf("failure = %+v", f)
			}
			callers := f.Class == failure.InvalidRequest || f.Class == failure.ContextLength || f.Class == failure.ContentPolicy
			if (f.Relay != nil) != callers {
				t.Errorf("relay = %+v for %s (W3, D7)", f.Relay, f.Class)
			}
		})
	}
}

// Rules: W3, D7.
func TestRelayCarriesTheProvidersWord_W3_D7(t *testing.T) {
	f := Outbound{}.Classify(dialect.Refusal{Status: 422, Body: []byte(`{"error":{"message":"bad n","type":"invalid_request_error","param":"n","code":"invalid_value"}}`)})
	want := failure.Relay{Status: 422, Message: "bad n", Type: "invalid_request_error", Param: "n", Code: "invalid_value"}
	if f.Relay == nil || *f.Relay != want {
		t.Errorf("relay = %+v, want %+v", f.Relay, want)
	}
	wrapped := Outbound{}.Classify(dialect.Refusal{Status: 502, Body: []byte(`{"error":{"code":502,"metadata":{"raw":"{\"error\":{\"code\":400,\"message\":\"inner\"}}"}}}`)})
	if wrapped.Relay == nil || wrapped.Relay.Status != 400 || wrapped.Relay.Message != "inner" {
		t.Errorf("wrapped relay = %+v", wrapped.Relay)
	}
	long := Outbound{}.Classify(dialect.Refusal{Status: 400, Body: []byte(`{"error":{"message":"` + strings.Repeat("漢", 4000) + `"}}`)})
	if n := len(long.Relay.Message); n > dialect.MaxRelay || n < dialect.MaxRelay-utf8.UTFMax || !utf8.ValidString(long.Relay.Message) {
		t.Errorf("relay of %d bytes, valid %v", n, utf8.ValidString(long.Relay.Message))
	}
}

// Rules: S4.
func TestAnErrorInsideAWholeReply_S4(t *testing.T) {
	tests := map[string]struct {
		class failure.Class
		code  string
	}{
		`{"error":{"message":"boom"}}`:                         {failure.ServerError, "status"},
		`{"error":{"message":"slow","code":429}}`:              {failure.Throttled, "status"},
		`{"error":{"code":"insufficient_quota"},"choices":[]}`: {failure.ProviderQuota, "funding_code"},
		`<html>busy</html>`:                                    {failure.BadPayload, "not_json"},
		``:                                                     {failure.BadPayload, "not_json"},
		`{"hello":"world"}`:                                    {failure.BadPayload, "no_choices"},
		`{"choices":[{"message":{"content":"x"},"finish_reason":"er`:        {failure.BadPayload, "not_json"},
		`{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}`: {failure.StreamErrorEvent, "finish_reason_error"},
		`{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}`: {failure.EmptyCompletion, "no_output"},
		`{"choices":[]}`: {failure.EmptyCompletion, "no_output"},
		`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x"}}]},"finish_reason":"tool_calls"}]}`: {failure.StreamTruncated, "tool_call_cut"},
	}
	for body, want := range tests {
		_, f := Outbound{}.DecodeWhole(asking(false), []byte(body))
		if f == nil || f.Class != want.class || f.Code != want.code {
			t.Errorf("%s: %v, want %s: %s", body, f, want.class, want.code)
		}
	}
}

// What an empty completion cost is known even though it is a failure.
//
// Rules: W8.
func TestEmptyCompletionKeepsItsUsage_W8(t *testing.T) {
	answer, f := Outbound{}.DecodeWhole(asking(false), []byte(`{"choices":[{"message":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":0}}`))
	if f == nil || f.Class != failure.EmptyCompletion || !answer.Empty || answer.Usage.Input.N != 7 {
		t.Errorf("answer %+v, failure %v", answer, f)
	}
}

// Rules: W20.
func TestRetryAfter_W20(t *testing.T) {
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	h := func(kv ...string) http.Header {
		out := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			out.Set(kv[i], kv[i+1])
		}
		return out
	}
	tests := []struct {
		name   string
		header http.Header
		body   string
		after  time.Duration
		source string
	}{
		{"seconds", h("Retry-After", "2"), "", 2 * time.Second, "retry-after"},
		{"fractions", h("Retry-After", "0.5"), "", 500 * time.Millisecond, "retry-after"},
		{"zero is told", h("Retry-After", "0"), "", 0, "retry-after"},
		{"negative is now", h("Retry-After", "-5"), "", 0, "retry-after"},
		{"date by the provider's clock", h("Retry-After", "Sun, 29 Nov 2026 12:00:30 GMT", "Date", "Sun, 29 Nov 2026 12:00:00 GMT"), "", 30 * time.Second, "retry-after"},
		{"date by ours", h("Retry-After", "Sun, 29 Nov 2026 10:00:10 GMT"), "", 10 * time.Second, "retry-after"},
		{"date gone by", h("Retry-After", "Sun, 29 Nov 2026 09:00:00 GMT"), "", 0, "retry-after"},
		{"milliseconds first", h("Retry-After", "2", "Retry-After-Ms", "1500"), "", 1500 * time.Millisecond, "retry-after-ms"},
		{"Azure", h("X-Ms-Retry-After-Ms", "250"), "", 250 * time.Millisecond, "x-ms-retry-after-ms"},
		{"OpenAI's windows", h("X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Reset-Tokens", "6m0s"), "", 6 * time.Minute, "x-ratelimit-reset-tokens"},
		{"the window that is used up", h("X-Ratelimit-Reset-Requests", "20ms", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Tokens", "6m0s"), "", 20 * time.Millisecond, "x-ratelimit-reset-requests"},
		{"a header beats a window", h("Retry-After", "1", "X-Ratelimit-Reset-Tokens", "6m0s"), "", time.Second, "retry-after"},
		{"Google's RetryInfo", nil, `{"error":{"details":[{"@type":"a"},{"retryDelay":"34.4s"}]}}`, 34400 * time.Millisecond, "retry_info"},
		{"in words", nil, `{"error":{"message":"Rate limit reached. Please try again in 7m12.5s. Visit x"}}`, 7*time.Minute + 12500*time.Millisecond, "message"},
		{"in words, ms", nil, `{"error":{"message":"Please try again in 340ms."}}`, 340 * time.Millisecond, "message"},
		{"beyond belief", h("Retry-After", "9999999999"), "", maxRetryAfter, "retry-after"},
		{"nonsense", h("Retry-After", "soon", "X-Ratelimit-Reset-Tokens", "later"), `{"error":{"message":"try again in a while"}}`, 0, ""},
		{"not a number", h("Retry-After", "NaN"), "", 0, "retry-after"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Outbound{}.Classify(dialect.Refusal{Status: 429, Header: tt.header, Body: []byte(tt.body), Now: now}).Retry
			want := failure.Retry{After: tt.after, Source: tt.source, Told: tt.source != ""}
			if got != want {
				t.Errorf("retry = %+v, want %+v", got, want)
			}
		})
	}
}

// A row whose words can never match is decoration.
//
// Rules: W4.
func TestEveryRuleCanMatch_W4(t *testing.T) {
	for _, r := range refusalRules {
		if r.codes == nil && (r.phrases == nil || r.statuses == nil) {
			t.Errorf("%s: a phrase without the statuses under which it counts", r.name)
		}
		for _, word := range append(append([]string{}, r.codes...), r.phrases...) {
			if word != strings.ToLower(word) {
				t.Errorf("%s: %q never matches: it is compared in lower case", r.name, word)
			}
		}
	}
}
