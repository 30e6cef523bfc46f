package fakeprovider

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// openAIError writes OpenAI's error envelope; empty param and code are null.
func openAIError(status int, message, kind, param, code string) wording {
	b := append([]byte(`{"error":{"message":`), appendString(nil, message)...)
	b = append(b, `,"type":`...)
	b = appendString(b, kind)
	b = append(b, `,"param":`...)
	b = appendStringOr(b, param, "null")
	b = append(b, `,"code":`...)
	b = appendStringOr(b, code, "null")
	return wording{status, string(append(b, "}}"...))}
}

// chatFailures are OpenAI's words, and those of others who speak its protocol.
var chatFailures = failureTable{
	"server_error": {
		"": openAIError(500, "The server had an error while processing your request. Sorry about that!", "server_error", "", ""),
	},
	"bad_gateway":     {"": {502, "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center><hr><center>cloudflare</center></body></html>"}},
	"gateway_timeout": {"": {504, "<html><head><title>504 Gateway Time-out</title></head><body><center><h1>504 Gateway Time-out</h1></center></body></html>"}},
	"unavailable": {
		"": openAIError(503, "The engine is currently overloaded, please try again later.", "service_unavailable", "", ""),
	},
	"overloaded": {
		"": openAIError(529, "Overloaded", "overloaded_error", "", "overloaded"),
	},
	"throttled": {
		"":    openAIError(429, "Rate limit reached for $MODEL in organization org-fake on requests per min (RPM): Limit 60, Used 60, Requested 1. Please try again in 1s.", "requests", "", "rate_limit_exceeded"),
		"tpm": openAIError(429, "You exceeded your current quota of tokens per minute, please slow down.", "insufficient_quota", "", "insufficient_quota"),
	},
	"auth": {
		"": openAIError(401, "Incorrect API key provided. You can find your API key in the account page.", "invalid_request_error", "", "invalid_api_key"),
	},
	"forbidden": {
		"": openAIError(403, "Project `proj_fake` does not have access to model `$MODEL`", "invalid_request_error", "", "model_not_found"),
	},
	"model_missing": {
		"": openAIError(404, "The model `$MODEL` does not exist or you do not have access to it.", "invalid_request_error", "", "model_not_found"),
	},
	"timeout": {
		"": openAIError(408, "Request timed out.", "timeout", "", "request_timeout"),
	},
	"invalid": {
		"": openAIError(400, "Invalid value for 'temperature': expected a number between 0 and 2.", "invalid_request_error", "temperature", "invalid_value"),
		// Reasoning of an earlier turn that was encrypted for somebody else.
		"seal": openAIError(400, "The encrypted content for item rs_fake could not be verified.", "invalid_request_error", "", "invalid_encrypted_content"),
	},
	"too_large": {
		"": openAIError(413, "Request body is too large.", "invalid_request_error", "", "request_too_large"),
	},
	"plain": {
		"": openAIError(400, "The request failed.", "error", "", ""),
	},
	"redirect": {"": {302, ""}},
	"context": {
		"":       openAIError(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens. Please reduce the length of the messages.", "invalid_request_error", "messages", "context_length_exceeded"),
		"vllm":   {400, `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 10000 tokens in the messages, Please reduce the length of the messages.","type":"BadRequestError","param":null,"code":400}`},
		"sglang": {400, `{"object":"error","message":"Input length (10000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","param":null,"code":400}`},
		"xai":    {400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}`},
	},
	"policy": {
		"":           openAIError(400, "Your request was rejected as a result of our safety system.", "invalid_request_error", "", "content_policy_violation"),
		"azure":      {400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":false,"severity":"safe"},"jailbreak":{"filtered":true,"detected":true}}}}}`},
		"openrouter": {403, `{"error":{"code":403,"message":"Input was flagged by moderation","metadata":{"reasons":["violence"],"flagged_input":"...","provider_name":"OpenAI","model_slug":"$MODEL"}}}`},
	},
	"funding": {
		"":           openAIError(429, "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs.", "insufficient_quota", "", "insufficient_quota"),
		"hard-limit": openAIError(400, "Billing hard limit has been reached", "invalid_request_error", "", "billing_hard_limit_reached"),
		"inactive":   openAIError(429, "Your account is not active, please check your billing details on our website.", "billing_not_active", "", "billing_not_active"),
		"anthropic":  {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`},
		"spend":      {400, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`},
		"deepseek":   openAIError(402, "Insufficient Balance", "unknown_error", "", "invalid_request_error"),
		"openrouter": {402, `{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 12. To increase, visit the credits page and upgrade to a paid account","metadata":{"provider_name":null}}}`},
		"credits":    {402, `{"error":{"code":402,"message":"Insufficient credits. Add more using the credits page"}}`},
		"xai":        {403, `{"code":"The caller does not have permission to execute the specified operation","error":"Your team has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."}`},
		"moonshot":   openAIError(429, "Your account is suspended, please check your plan and billing details", "exceeded_current_quota_error", "", ""),
		"together":   openAIError(402, "Credit limit exceeded, please add credits to your account.", "credit_limit", "", ""),
	},
}

func (chat) failure(f failure, call callFacts) (int, []byte) {
	w := wordingOf(chatFailures, f.kind, f.form)
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

// relayed wraps a provider's error as OpenRouter hands it on: its own message
// says nothing, the inner body is a string in the metadata.
func relayed(status int, inner []byte) []byte {
	b := []byte(`{"error":{"message":"Provider returned error","code":`)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, `,"metadata":{"raw":`...)
	b = appendString(b, string(inner))
	return append(b, `,"provider_name":"Inner","is_byok":false}},"user_id":"user_fake"}`...)
}

// errorEvent is an error chunk as OpenRouter and others send it: the members
// of a chunk, no choices, and the error beside them. As a finish, the chunk
// has a choice that ends with "error". Bare, it is an event named error whose
// data is the error envelope alone.
func (chat) errorEvent(f failure, a *answer, bare bool) event {
	if f.kind == finishKind {
		b := appendChunkHead(nil, a)
		b = append(b, `"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","native_finish_reason":"error"}],"error":{"code":502,"message":"Provider disconnected"}}`...)
		return event{data: b}
	}
	_, body := chat{}.failure(f, callFacts{model: a.model})
	if bare {
		b := append([]byte(`{"error":`), errorMember(body)...)
		return event{name: "error", data: append(b, '}')}
	}
	b := appendChunkHead(nil, a)
	b = append(b, `"choices":[],"error":`...)
	b = append(b, errorMember(body)...)
	return event{data: append(b, '}')}
}

// errorMember takes the error out of a body, or makes one of a body that is
// no JSON (the page of a reverse proxy).
func errorMember(body []byte) []byte {
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &envelope) == nil && len(bytes.TrimSpace(envelope.Error)) > 0 {
		return envelope.Error
	}
	return []byte(`{"message":"upstream connect error or disconnect/reset before headers","type":"server_error","param":null,"code":502}`)
}

// safeName makes a caller's model name fit to stand inside a JSON string.
func safeName(model string) string {
	quoted := appendString(nil, model)
	return string(quoted[1 : len(quoted)-1])
}
