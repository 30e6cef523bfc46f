package gemini

import "github.com/sluice-gateway/sluice/domain/failure"

// rule is one row: it holds if one of its reasons was given, or one of its phrases
// under one of its statuses.
type rule struct {
	class failure.Class
	// name is our word for the row, which the log may keep (E10).
	name string
	// reasons are those of google.rpc.ErrorInfo.
	reasons []string
	// phrases are looked for in the lower-case message.
	phrases []string
	// statuses are the HTTP statuses under which a phrase means this.
	statuses []int
	// seal says that a signature was not accepted (K5).
	seal bool
}

// rules are Google's known reasons and phrases (W4). "You exceeded your current quota,
// please check your plan and billing details" is not among them: Google says so of a
// rate as well, and its QuotaFailure names windows of a minute beside it.
var rules = []rule{
	{class: failure.ProviderQuota, name: "billing", reasons: []string{"BILLING_DISABLED", "BILLING_NOT_ACTIVE"}, phrases: []string{
		"prepayment credits are depleted", "spending cap", "spend cap", "requires billing to be enabled", "enable billing",
		"billing account", "billing to be enabled", "delinquent",
		// A window of the free tier that lets nothing through does not open again.
		"limit: 0,",
	}, statuses: []int{400, 402, 403, 429}},

	{class: failure.ProviderAuth, name: "key", reasons: []string{
		"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED",
		"API_KEY_IP_ADDRESS_BLOCKED", "API_KEY_ANDROID_APP_BLOCKED", "API_KEY_IOS_APP_BLOCKED",
		"ACCESS_TOKEN_EXPIRED", "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "ACCESS_TOKEN_TYPE_UNSUPPORTED",
		"CREDENTIALS_MISSING", "ACCOUNT_STATE_INVALID", "CONSUMER_INVALID", "CONSUMER_SUSPENDED",
		"SERVICE_DISABLED", "SERVICE_NOT_ACTIVATED", "USER_PROJECT_DENIED", "IAM_PERMISSION_DENIED", "LOCATION_POLICY_VIOLATED",
	}, phrases: []string{
		"api key not valid", "api key expired", "api key not found", "api key was reported as leaked", "pass a valid api key",
		"user location is not supported",
	}, statuses: []int{400, 401, 403}},

	{class: failure.Throttled, name: "rate", reasons: []string{"RATE_LIMIT_EXCEEDED", "RESOURCE_QUOTA_EXCEEDED"}},

	{class: failure.ContextLength, name: "context", phrases: []string{
		"input token count", "maximum number of tokens allowed", "model only supports up to", "exceeds the maximum number of tokens",
		"input context is too long", "prompt is too long",
	}, statuses: []int{400, 413}},

	{class: failure.InvalidRequest, name: "signature", phrases: []string{
		"thought signature", "thought_signature", "thoughtsignature",
	}, statuses: []int{400}, seal: true},

	{class: failure.ContentPolicy, name: "policy", phrases: []string{
		"google's responsible ai", "blocked by our safety", "violated our usage guidelines", "usage policies",
	}, statuses: []int{400, 403}},

	{class: failure.DeploymentGone, name: "model", phrases: []string{
		"is not found for api version", "model not found", "publisher model", "is no longer available", "has been retired",
		"is not supported for generatecontent",
	}, statuses: []int{400, 404}},
}

// codeRules are what Google's own status means when neither reason nor phrase is
// known.
var codeRules = map[string]struct {
	class failure.Class
	name  string
}{
	"UNAUTHENTICATED":    {failure.ProviderAuth, "unauthenticated"},
	"PERMISSION_DENIED":  {failure.ProviderAuth, "permission_denied"},
	"RESOURCE_EXHAUSTED": {failure.Throttled, "resource_exhausted"},
	"NOT_FOUND":          {failure.DeploymentGone, "not_found"},
	"UNAVAILABLE":        {failure.ServerError, "unavailable"},
	"INTERNAL":           {failure.ServerError, "internal"},
	"UNKNOWN":            {failure.ServerError, "unknown"},
	"DEADLINE_EXCEEDED":  {failure.ServerError, "deadline_exceeded"},
	"CANCELLED":          {failure.ServerError, "cancelled"},
	"ABORTED":            {failure.ServerError, "aborted"},
	"DATA_LOSS":          {failure.ServerError, "data_loss"},

	"INVALID_ARGUMENT":    {failure.InvalidRequest, "invalid_argument"},
	"FAILED_PRECONDITION": {failure.InvalidRequest, "failed_precondition"},
	"OUT_OF_RANGE":        {failure.InvalidRequest, "out_of_range"},
}

// statusRules are what an HTTP status means when the body says nothing. Every other
// 4xx is the caller's.
var statusRules = map[int]failure.Class{
	401: failure.ProviderAuth,
	402: failure.ProviderQuota,
	403: failure.ProviderAuth,
	404: failure.DeploymentGone,
	// A provider that gave up waiting may be asked again on the same route (W12).
	408: failure.ServerError,
	429: failure.Throttled,
	499: failure.ServerError,
}
