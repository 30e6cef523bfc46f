package chat

import "github.com/sluice-gateway/sluice/domain/failure"

// rule is one row: every condition that it states must hold.
type rule struct {
	class failure.Class
	// name is our word for the row, which the log may keep (E10).
	name string
	// codes are matched whole, in lower case, against an error's code, status, reason
	// and type.
	codes []string
	// phrases are looked for in the lower-case message.
	phrases []string
	// statuses are the HTTP statuses under which the row holds; empty is any. An error
	// inside a 2xx counts as noStatus unless it names a status itself.
	statuses []int
	// ownParam lets a phrase hold although the error points at a field of the request.
	// Otherwise a phrase there is the caller's text quoted back, and a schema with
	// "insufficient balance" in it is no empty account.
	ownParam bool
}

const noStatus = 0

// refusalRules are the dialect's known codes and phrases, of all providers that
// speak it (W4). They are tried in order: all codes before all phrases, and only
// then the status alone. "Quota" by itself says nothing: it is money to one
// provider and tokens a minute to the next.
var refusalRules = []rule{
	// Alibaba says insufficient_quota of a token rate.
	{class: failure.Throttled, name: "token_rate", codes: []string{"insufficient_quota"}, phrases: []string{
		"allocated quota exceeded", "per min", "rate limit", "rate-limit", "(tpm)", "(rpm)",
	}},

	{class: failure.ProviderQuota, name: "funding_code", codes: []string{
		"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error",
		"insufficient_balance", "insufficient_credits", "insufficient_funds", "insufficient_user_quota",
		"credit_balance_too_low", "credits_exhausted", "out_of_credits", "payment_required",
		"exceeded_current_quota_error", "arrearage", "accountoverdueerror", "1113",
	}},
	{class: failure.ContextLength, name: "context_code", codes: []string{
		"context_length_exceeded", "context_window_exceeded", "exceed_context_size_error", "prompt_too_long",
		"input_too_long", "tokens_limit_reached",
	}},
	{class: failure.ContentPolicy, name: "policy_code", codes: []string{
		"content_filter", "content_policy_violation", "content_policy", "responsibleaipolicyviolation",
		"data_inspection_failed", "datainspectionfailed", "moderation_blocked", "sensitive_words_detected", "1301",
	}},
	{class: failure.DeploymentGone, name: "model_code", codes: []string{
		"model_not_found", "modelnotfound", "deploymentnotfound", "deployment_not_found", "model_not_available",
		"model_decommissioned", "model_terminated", "model_not_supported", "invalid_model", "no_such_model",
		"unknown_model", "resource_not_found_error",
	}},
	{class: failure.ProviderAuth, name: "auth_code", codes: []string{
		"invalid_api_key", "incorrect_api_key", "invalid_authentication_error", "authentication_error",
		"incorrect_api_key_error", "api_key_invalid", "expired_api_key", "unauthorized", "unauthenticated",
		"account_deactivated", "organization_deactivated", "invalid_organization", "ip_not_authorized",
		"permission_denied", "permission_error", "permission_denied_error", "access_terminated_error",
		"unsupported_country_region_territory",
	}},
	{class: failure.Throttled, name: "throttle_code", codes: []string{
		"rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error", "rate_limited", "ratelimitreached",
		"too_many_requests", "toomanyrequests", "resource_exhausted", "throttling", "throttling.ratequota",
		"throttling.allocationquota", "throttling.burstrate", "throttlingexception", "limit_requests",
		"limit_burst_rate", "slow_down", "capacity_exceeded", "1302", "1305",
	}},

	{class: failure.ProviderQuota, name: "funding_phrase", statuses: []int{noStatus, 400, 402, 403, 429}, phrases: []string{
		"credit balance is too low", "insufficient balance", "insufficient credit", "insufficient funds",
		"not enough credit", "out of credits", "requires more credits", "never purchased credits",
		"check your plan and billing", "billing hard limit", "reached your specified api usage limit",
		"spending limit", "spend limit", "check your billing", "is in arrears", "account is in good standing",
		"used all available credits", "doesn't have any credits", "add credits", "余额不足",
	}},
	{class: failure.Throttled, name: "throttle_phrase", statuses: []int{noStatus, 403, 413, 429, 500, 502, 503, 529}, phrases: []string{
		"rate limit reached", "rate limit exceeded", "rate-limited", "rate limited", "too many requests",
		"tokens per minute", "requests per minute", "resource has been exhausted",
	}},
	{class: failure.ContextLength, name: "context_phrase", statuses: []int{noStatus, 400, 413, 422}, ownParam: true, phrases: []string{
		"maximum context length", "model's context length", "context length exceeded", "context length is only",
		"context window", "context size", "context limit", "prompt is too long", "input is too long",
		"maximum number of tokens allowed", "maximum number of input tokens", "range of input length",
		"exceeds the maximum input", "maximum prompt length", "too large for model with",
	}},
	{class: failure.ContentPolicy, name: "policy_phrase", statuses: []int{noStatus, 400, 403, 422, 451}, phrases: []string{
		"content management policy", "content policy", "content_policy", "safety system",
		"requires moderation", "input was flagged", "violates usage guidelines", "inappropriate content",
		"flagged as potentially violating", "rejected by the safety", "content safety",
	}},
	{class: failure.ProviderAuth, name: "auth_phrase", statuses: []int{noStatus, 400}, phrases: []string{
		"api key not valid", "invalid api key", "incorrect api key", "api key expired", "no auth credentials",
	}},
	{class: failure.DeploymentGone, name: "model_phrase", statuses: []int{noStatus, 400, 403, 422}, ownParam: true, phrases: []string{
		"has been decommissioned", "has been deprecated and", "model not exist", "model does not exist",
		"not a valid model id", "unknown model", "reached its end of life", "model has been retired",
		"do not have access to the model", "does not have access to model", "not have access to it",
		"no endpoints found",
	}},
}

// statusRules are what a status means when the body said nothing known. Every other
// 4xx is the caller's.
var statusRules = map[int]struct {
	class failure.Class
	name  string
}{
	401: {failure.ProviderAuth, "status"},
	402: {failure.ProviderQuota, "status"},
	403: {failure.ProviderAuth, "status"},
	404: {failure.DeploymentGone, "status"},
	// A provider that gave up waiting may be asked again on the same route (W12).
	408: {failure.ServerError, "request_timeout"},
	425: {failure.ServerError, "status"},
	429: {failure.Throttled, "status"},
	// Groq's flex tier without capacity.
	498: {failure.Throttled, "status"},
	499: {failure.ServerError, "status"},
}

// callerTypes are error types that mean the caller's fault where no status of its
// own goes with them: inside a relay's wrapper or inside a stream.
var callerTypes = []string{"invalid_request_error", "badrequesterror", "bad_request_error", "invalid_request"}
