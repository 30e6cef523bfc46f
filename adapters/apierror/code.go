package apierror

import (
	"net/http"

	"github.com/sluice-gateway/sluice/domain/request"
)

// Code is our word for an error, stable for callers.
type Code = request.Code

// The codes of api.md.
const (
	InvalidAPIKey                Code = "invalid_api_key"
	Forbidden                    Code = "forbidden"
	ModelNotFound                Code = "model_not_found"
	AliasUnresolvable            Code = "alias_unresolvable"
	InvalidRequest               Code = "invalid_request"
	CapabilityUnavailable        Code = "capability_unavailable"
	ContextLengthExceeded        Code = "context_length_exceeded"
	RequestTooLarge              Code = "request_too_large"
	NoRouteAllowed               Code = "no_route_allowed"
	ClassNotConfigured           Code = "class_not_configured"
	ChainUnavailable             Code = "chain_unavailable"
	InsufficientQuota            Code = "insufficient_quota"
	RateLimitExceeded            Code = "rate_limit_exceeded"
	ProviderThrottled            Code = "provider_throttled"
	CapacityExhausted            Code = "capacity_exhausted"
	AdmissionTimeout             Code = "admission_timeout"
	CustomerCredentialRejected   Code = "customer_credential_rejected"
	CustomerCredentialQuota      Code = "customer_credential_quota"
	UpstreamExhausted            Code = "upstream_exhausted"
	EmptyCompletion              Code = "empty_completion"
	UpstreamTruncated            Code = "upstream_truncated"
	AnswerLost                   Code = "answer_lost"
	DeadlineExceeded             Code = "deadline_exceeded"
	PriceUnknown                 Code = "price_unknown"
	IdempotencyConflict          Code = "idempotency_conflict"
	IdempotencyReplayUnavailable Code = "idempotency_replay_unavailable"
	GatewayUnavailable           Code = "gateway_unavailable"
	RevisionConflict             Code = "revision_conflict"
)

// Row is what a code means to a caller.
type Row struct {
	Status int
	// Anthropic and OpenAI are the error types of the two families of dialects.
	Anthropic string
	OpenAI    string
	Retryable bool
	// Message is said when nothing more exact is.
	Message string
}

// The error types that official SDKs know.
const (
	typeInvalid    = "invalid_request_error"
	typeAuth       = "authentication_error"
	typePermission = "permission_error"
	typeNotFound   = "not_found_error"
	typeTooLarge   = "request_too_large"
	typeRateLimit  = "rate_limit_error"
	typeBilling    = "billing_error"
	typeAPI        = "api_error"
	typeTimeout    = "timeout_error"
	typeOverloaded = "overloaded_error"

	openAIServer = "server_error"
	openAIQuota  = "insufficient_quota"
)

// table is the code table of the outer contract.
var table = map[Code]Row{
	InvalidAPIKey:         {401, typeAuth, typeAuth, false, "The API key is unknown, revoked or expired."},
	Forbidden:             {403, typePermission, typePermission, false, "The API key may not do this."},
	ModelNotFound:         {404, typeNotFound, typeNotFound, false, "The model does not exist or this key may not use it."},
	AliasUnresolvable:     {404, typeNotFound, typeNotFound, false, "No model fits the alias."},
	InvalidRequest:        {400, typeInvalid, typeInvalid, false, "The request is not valid."},
	CapabilityUnavailable: {400, typeInvalid, typeInvalid, false, "No route of this model supports what the request needs."},
	ContextLengthExceeded: {400, typeInvalid, typeInvalid, false, "The request is larger than the context window of every route of this model."},
	RequestTooLarge:       {413, typeTooLarge, typeInvalid, false, "The request is too large."},
	NoRouteAllowed:        {503, typeAPI, openAIServer, false, "Every configured route was turned down."},
	ClassNotConfigured:    {404, typeNotFound, typeNotFound, false, "The traffic class has no chain."},
	ChainUnavailable:      {503, typeAPI, openAIServer, false, "The chain of this model cannot be used as it is configured."},

	InsufficientQuota: {429, typeRateLimit, openAIQuota, false, "What is left of the budget does not cover the request."},
	RateLimitExceeded: {429, typeRateLimit, typeRateLimit, true, "Too many requests or tokens."},
	ProviderThrottled: {429, typeRateLimit, typeRateLimit, true, "The provider is throttling."},
	CapacityExhausted: {429, typeRateLimit, typeRateLimit, true, "No capacity is free."},
	AdmissionTimeout:  {429, typeRateLimit, typeRateLimit, true, "The request waited too long to be admitted."},

	// 424, so that a caller's own provider key is not mistaken for our 401 (W6).
	CustomerCredentialRejected: {http.StatusFailedDependency, typeAPI, typeInvalid, false, "The provider rejected your own credential."},
	CustomerCredentialQuota:    {402, typeBilling, openAIQuota, false, "The account behind your own credential is out of funds."},

	UpstreamExhausted: {502, typeAPI, openAIServer, true, "Every route of this model failed."},
	EmptyCompletion:   {502, typeAPI, openAIServer, true, "The model returned an empty answer."},
	UpstreamTruncated: {502, typeAPI, openAIServer, true, "The answer was cut off before its end."},
	AnswerLost:        {502, typeAPI, openAIServer, false, "The answer was lost after the request had been sent; it may have been billed."},
	DeadlineExceeded:  {504, typeTimeout, openAIServer, true, "The request ran out of time."},
	PriceUnknown:      {503, typeAPI, openAIServer, false, "No route of this model has a known price."},

	IdempotencyConflict:          {409, typeInvalid, typeInvalid, false, "The idempotency key was used for another request."},
	IdempotencyReplayUnavailable: {409, typeInvalid, typeInvalid, false, "The answer of the first request with this idempotency key is not available here."},
	GatewayUnavailable:           {503, typeOverloaded, openAIServer, true, "The gateway is not available."},
	RevisionConflict:             {409, typeInvalid, typeInvalid, false, "The object was changed by someone else."},
}

// Of is the row of a code. A code outside the table is a fault of ours and reads
// as gateway_unavailable: never a 401 or 404, which a caller would act on.
func Of(code Code) Row {
	if row, ok := table[code]; ok {
		return row
	}
	return table[GatewayUnavailable]
}

// Codes lists every code of the table in no particular order.
func Codes() []Code {
	codes := make([]Code, 0, len(table))
	for code := range table {
		codes = append(codes, code)
	}
	return codes
}
