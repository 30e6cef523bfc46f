package converse

import "github.com/sluice-gateway/sluice/domain/failure"

// rule is one row: an exception of one of the kinds, with one of the phrases in its
// message. Without kinds it is any, without phrases any message.
type rule struct {
	class failure.Class
	// name is our word for the row, which the log may keep (E10).
	name    string
	kinds   []string
	phrases []string
	// seal says that the reasoning of an earlier turn was what the model could not read
	// (K5).
	seal bool
}

// The kinds that say little by themselves, because Bedrock uses them for several
// facts. One without a kind at all has lost its header on the way.
var (
	caller    = []string{"validationexception", "validationerror", "badrequestexception", "serializationexception", ""}
	forbidden = []string{"accessdeniedexception", "accessdenied", "forbiddenexception", "validationexception", ""}
)

// rules are Bedrock's exceptions, tried in order (W4). A ValidationException is the
// caller's fault only where its message names nothing else: a retired model, a model
// that the account may not use and a prompt that is too long come as one too.
var rules = []rule{
	{class: failure.ProviderQuota, name: "funding", kinds: forbidden, phrases: []string{
		"invalid_payment_instrument", "valid payment instrument", "payment method", "account is suspended",
	}},
	{class: failure.DeploymentGone, name: "model_access", kinds: forbidden, phrases: []string{
		"don't have access to the model", "do not have access to the model", "not have access to the model",
		"model access is denied", "marked by provider as legacy", "access to this model is not available",
		"is not available for this account", "not authorized to access this model", "use case details have not been submitted",
	}},
	{class: failure.DeploymentGone, name: "region_blocked", kinds: forbidden, phrases: []string{
		"unsupported countries, regions", "not available in your region", "isn't supported in this region",
		"not supported in this region", "not available in this region",
	}},
	{class: failure.DeploymentGone, name: "model_unknown", kinds: caller, phrases: []string{
		"model identifier is invalid", "end of its life", "has been retired", "has been deprecated", "is deprecated and",
		"could not resolve the foundation model", "model id is invalid", "invalid model id", "unknown model",
		"on-demand throughput", "inference profile is invalid", "model does not exist", "model not found", "modelid is invalid",
	}},
	{class: failure.DeploymentGone, name: "resource", kinds: []string{"resourcenotfoundexception", "notfoundexception", "unknownoperationexception"}},

	{class: failure.InvalidRequest, name: "signature", kinds: caller, seal: true, phrases: []string{
		"invalid `signature`", "invalid signature in", "invalid `data` in", "signature in thinking", "reasoningcontent.signature",
	}},
	{class: failure.ContextLength, name: "context", kinds: caller, phrases: []string{
		"input is too long", "prompt is too long", "exceed context limit", "context length", "context window",
		"too many input tokens", "input tokens exceeds", "exceeds the maximum number of input tokens", "maximum context",
	}},
	{class: failure.ContentPolicy, name: "policy", kinds: caller, phrases: []string{
		"content filtering policy", "blocked by guardrail", "blocked by our content filters", "violates our usage polic",
		"responsible ai policy", "content policy",
	}},

	{class: failure.Throttled, name: "throttling", kinds: []string{
		"throttlingexception", "throttledexception", "throttling", "toomanyrequestsexception", "requestlimitexceeded",
		"requestthrottled", "requestthrottledexception", "provisionedthroughputexceededexception", "slowdown",
	}},
	// A quota of the service, such as tokens a day: it opens again by itself.
	{class: failure.Throttled, name: "service_quota", kinds: []string{"servicequotaexceededexception", "limitexceededexception"}},
	{class: failure.Throttled, name: "throttle_words", kinds: []string{
		"modelerrorexception", "modelstreamerrorexception", "serviceunavailableexception", "",
	}, phrases: []string{"too many requests", "too many tokens", "too many connections", "rate limit"}},

	{class: failure.ProviderAuth, name: "credential", kinds: []string{
		"unrecognizedclientexception", "expiredtokenexception", "expiredtoken", "invalidsignatureexception",
		"signaturedoesnotmatch", "incompletesignatureexception", "incompletesignature", "invalidclienttokenid",
		"missingauthenticationtokenexception", "missingauthenticationtoken", "missingauthentication",
		"notauthorized", "optinrequired", "requestexpired", "invalidaccesskeyid",
		"accessdeniedexception", "accessdenied", "forbiddenexception", "unauthorizedexception",
	}},

	// Asked again in a moment, a model that is being loaded answers; an SDK does so by
	// itself.
	{class: failure.ServerError, name: "model_not_ready", kinds: []string{"modelnotreadyexception"}},
	{class: failure.ServerError, name: "model_timeout", kinds: []string{"modeltimeoutexception", "requesttimeoutexception", "requesttimeout"}},
	{class: failure.ServerError, name: "model_error", kinds: []string{"modelerrorexception", "modelstreamerrorexception"}},
	{class: failure.ServerError, name: "internal", kinds: []string{
		"internalserverexception", "internalservererror", "internalfailure", "internalerror", "serviceexception",
	}},
	{class: failure.ServerError, name: "unavailable", kinds: []string{"serviceunavailableexception", "serviceunavailable"}},

	{class: failure.InvalidRequest, name: "validation", kinds: []string{
		"validationexception", "validationerror", "badrequestexception", "serializationexception",
	}},
}

// statusClasses are what a status means when the body said nothing known. Every other
// 4xx is the caller's.
var statusClasses = map[int]failure.Class{
	401: failure.ProviderAuth,
	402: failure.ProviderQuota,
	403: failure.ProviderAuth,
	404: failure.DeploymentGone,
	// A provider that gave up waiting may be asked again on the same route (W12).
	408: failure.ServerError,
	424: failure.ServerError,
	425: failure.ServerError,
	429: failure.Throttled,
	499: failure.ServerError,
}
