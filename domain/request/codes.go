package request

// Code is one of our own error codes (api.md). The HTTP status, the dialect's
// error type and the text of each live at the edge, in one table.
type Code string

// The codes a walk or an admission may end with.
const (
	CodeInvalidAPIKey            Code = "invalid_api_key"
	CodeForbidden                Code = "forbidden"
	CodeModelNotFound            Code = "model_not_found"
	CodeInvalidRequest           Code = "invalid_request"
	CodeCapabilityUnavailable    Code = "capability_unavailable"
	CodeContextLengthExceeded    Code = "context_length_exceeded"
	CodeRequestTooLarge          Code = "request_too_large"
	CodeNoRouteAllowed           Code = "no_route_allowed"
	CodeChainUnavailable         Code = "chain_unavailable"
	CodeInsufficientQuota        Code = "insufficient_quota"
	CodeRateLimitExceeded        Code = "rate_limit_exceeded"
	CodeProviderThrottled        Code = "provider_throttled"
	CodeUpstreamExhausted        Code = "upstream_exhausted"
	CodeEmptyCompletion          Code = "empty_completion"
	CodeUpstreamTruncated        Code = "upstream_truncated"
	CodeAnswerLost               Code = "answer_lost"
	CodeDeadlineExceeded         Code = "deadline_exceeded"
	CodePriceUnknown             Code = "price_unknown"
	CodeClientCancelled          Code = "client_cancelled"
	CodeCustomerCredentialReject Code = "customer_credential_rejected"
	CodeCustomerCredentialQuota  Code = "customer_credential_quota"
	CodeGatewayUnavailable       Code = "gateway_unavailable"
)
