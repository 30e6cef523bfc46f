package fakeprovider

import (
	"encoding/json"
	"strings"
)

// anthropicError writes Anthropic's error envelope.
func anthropicError(status int, kind, message string) wording {
	b := append([]byte(`{"type":"error","error":{"type":`), appendString(nil, kind)...)
	b = append(b, `,"message":`...)
	b = appendString(b, message)
	return wording{status, string(append(b, `},"request_id":"req_fake"}`...))}
}

// messagesFailures are Anthropic's words.
var messagesFailures = failureTable{
	"server_error":    {"": anthropicError(500, "api_error", "Internal server error")},
	"bad_gateway":     chatFailures["bad_gateway"],
	"gateway_timeout": {"": anthropicError(504, "timeout_error", "The request timed out.")},
	"unavailable":     {"": anthropicError(503, "api_error", "Service unavailable")},
	"overloaded":      {"": anthropicError(529, "overloaded_error", "Overloaded")},
	"throttled": {
		"": anthropicError(429, "rate_limit_error", "This request would exceed your organization's rate limit of 50 requests per minute."),
	},
	"auth":          {"": anthropicError(401, "authentication_error", "invalid x-api-key")},
	"forbidden":     {"": anthropicError(403, "permission_error", "Your API key does not have permission to use the specified resource.")},
	"model_missing": {"": anthropicError(404, "not_found_error", "model: $MODEL")},
	"timeout":       {"": anthropicError(408, "timeout_error", "Request timed out.")},
	"invalid":       {"": anthropicError(400, "invalid_request_error", "temperature: range: 0..1")},
	"too_large":     {"": anthropicError(413, "request_too_large", "Request exceeds the maximum size")},
	"plain":         {"": anthropicError(400, "error", "The request failed.")},
	"redirect":      {"": {302, ""}},
	"context": {
		"":      anthropicError(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
		"limit": anthropicError(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"),
	},
	"policy": {"": anthropicError(400, "invalid_request_error", "Output blocked by content filtering policy")},
	"funding": {
		"":          anthropicError(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."),
		"anthropic": anthropicError(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."),
		"spend":     anthropicError(400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."),
		"billing":   anthropicError(402, "billing_error", "There is an issue with the billing of your account."),
	},
}

func (messages) failure(f failure, call callFacts) (int, []byte) {
	w := wordingOf(messagesFailures, f.kind, f.form)
	status := w.status
	if f.status != 0 {
		status = f.status
	}
	body := []byte(strings.ReplaceAll(w.body, "$MODEL", safeName(call.model)))
	if f.relay {
		body = relayed(status, body)
	}
	return status, body
}

// errorEvent is an event named error. Bare, it has the error alone, without the
// envelope that names its type.
func (messages) errorEvent(f failure, a *answer, bare bool) event {
	if f.kind == finishKind {
		return event{name: "message_delta", data: []byte(`{"type":"message_delta","delta":{"stop_reason":"error","stop_sequence":null},"usage":{"output_tokens":1}}`)}
	}
	_, body := messages{}.failure(f, callFacts{model: a.model})
	if !json.Valid(body) {
		body = []byte(`{"type":"error","error":` + string(errorMember(body)) + `}`)
	}
	if bare {
		body = []byte(`{"error":` + string(errorMember(body)) + `}`)
	}
	return event{name: "error", data: body}
}
