package messages

import "github.com/sluice-gateway/sluice/domain/failure"

const noStatus = 0

// typeRules are the error types of the dialect. Whatever type is not here is judged
// by its status.
var typeRules = map[string]failure.Class{
	"invalid_request_error": failure.InvalidRequest,
	"request_too_large":     failure.InvalidRequest,
	"authentication_error":  failure.ProviderAuth,
	"permission_error":      failure.ProviderAuth,
	"billing_error":         failure.ProviderQuota,
	"not_found_error":       failure.DeploymentGone,
	"rate_limit_error":      failure.Throttled,
	"timeout_error":         failure.ServerError,
	"api_error":             failure.ServerError,
	"overloaded_error":      failure.ServerError,
}

// phraseRule is one row: a phrase, in lower case, under one of its statuses.
type phraseRule struct {
	class failure.Class
	// name is our word for the row, which the log may keep (E10).
	name     string
	phrases  []string
	statuses []int
}

// phraseRules are tried in order, before the types. Anthropic says an empty balance,
// a reached spend limit and a prompt that is too long all as 400
// invalid_request_error.
var phraseRules = []phraseRule{
	{class: failure.ProviderQuota, name: "funding_phrase", statuses: []int{noStatus, 400, 402, 403, 429}, phrases: []string{
		"credit balance is too low", "reached your specified api usage limit", "reached your specified workspace api usage limit",
		"insufficient balance", "insufficient credit", "not enough credit", "out of credits", "requires more credits",
		"spend limit", "spending limit", "余额不足",
	}},
	{class: failure.ContextLength, name: "context_phrase", statuses: []int{noStatus, 400, 413, 422}, phrases: []string{
		"prompt is too long", "input is too long", "exceed context limit", "context window", "maximum context length",
		"context length exceeded", "input length and `max_tokens` exceed",
	}},
	{class: failure.ContentPolicy, name: "policy_phrase", statuses: []int{noStatus, 400, 403}, phrases: []string{
		"output blocked by content filtering policy", "content filtering policy", "blocked under anthropic's usage policy",
		"violates our usage policy", "violate our usage policy",
	}},
	{class: failure.ProviderAuth, name: "auth_phrase", statuses: []int{noStatus, 400, 401, 403}, phrases: []string{
		"invalid x-api-key", "organization has been disabled", "account has been disabled", "invalid bearer token",
		"only authorized for use with claude code",
	}},
	{class: failure.DeploymentGone, name: "model_phrase", statuses: []int{noStatus, 400, 403}, phrases: []string{
		"model has been retired", "reached its end of life", "is not a valid model id", "model does not exist",
		"not have access to the model",
	}},
}

// statusRules are what a status means when the body said nothing known. Every other
// 4xx is the caller's.
var statusRules = map[int]failure.Class{
	401: failure.ProviderAuth,
	402: failure.ProviderQuota,
	403: failure.ProviderAuth,
	404: failure.DeploymentGone,
	// A provider that gave up waiting may be asked again on the same route (W12).
	408: failure.ServerError,
	425: failure.ServerError,
	429: failure.Throttled,
	499: failure.ServerError,
}
