package request

// SkipReason is why a route was not called.
type SkipReason string

// The skip reasons of api.md.
const (
	SkipBreakerOpen         SkipReason = "breaker_open"
	SkipThrottleWindow      SkipReason = "throttle_window"
	SkipCredentialOpen      SkipReason = "credential_open"
	SkipCapabilityMissing   SkipReason = "capability_missing"
	SkipContextTooSmall     SkipReason = "context_too_small"
	SkipPriceUnknown        SkipReason = "price_unknown"
	SkipQueueBound          SkipReason = "queue_bound"
	SkipFairShareShed       SkipReason = "fair_share_shed"
	SkipRateLimit           SkipReason = "rate_limit"
	SkipFreshSpill          SkipReason = "fresh_spill"
	SkipHeadroomSpill       SkipReason = "headroom_spill"
	SkipDeploymentBudget    SkipReason = "deployment_budget"
	SkipCredentialMissing   SkipReason = "credential_missing"
	SkipBaseURLRefused      SkipReason = "base_url_refused"
	SkipUnresolved          SkipReason = "unresolved"
	SkipModelAlreadyVisited SkipReason = "model_already_visited"
	SkipKeyParked           SkipReason = "key_parked"
	SkipNotSameModel        SkipReason = "not_same_model"
	SkipClassConfined       SkipReason = "class_confined"
	SkipSurchargeNotEnabled SkipReason = "surcharge_not_enabled"
	SkipNotFree             SkipReason = "not_free"
)

// AttemptKind is why an attempt was made.
type AttemptKind string

// The kinds of api.md.
const (
	KindFirst       AttemptKind = "first"
	KindRetry       AttemptKind = "retry"
	KindRedial      AttemptKind = "redial"
	KindKeyRotation AttemptKind = "key_rotation"
	KindFailover    AttemptKind = "failover"
	KindModelChange AttemptKind = "model_change"
	KindProbe       AttemptKind = "probe"
	KindLastResort  AttemptKind = "last_resort"
	KindOverflow    AttemptKind = "overflow"
	KindSurcharge   AttemptKind = "surcharge"
	KindRepair      AttemptKind = "repair"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes of api.md.
const (
	Completed       Outcome = "completed"
	Refused         Outcome = "refused"
	Failed          Outcome = "failed"
	Truncated       Outcome = "truncated"
	ClientCancelled Outcome = "client_cancelled"
	Orphaned        Outcome = "orphaned"
)

// Owner is whose credential pays the provider (M11).
type Owner string

// The owners of a credential.
const (
	Operator  Owner = "operator"
	Workspace Owner = "workspace"
)

// Selection is what else than its place in the chain had to do with a route's turn.
type Selection string

// HouseAccountExhausted is a route whose account is known to be out of funds: it stands
// behind the better-funded ones of its group (H12). It is no error of this request's.
const HouseAccountExhausted Selection = "house_account_exhausted"

// FallbackKind is how far the answer is from what was asked (M11).
type FallbackKind string

// The fallback kinds of api.md.
const (
	NoFallback  FallbackKind = "none"
	SameModel   FallbackKind = "same_model"
	ModelChange FallbackKind = "model_change"
	Surcharge   FallbackKind = "surcharge"
)

// ThrottleDecision is what was done about a throttle (T12).
type ThrottleDecision string

// The decisions of T12.
const (
	ThrottleReturned     ThrottleDecision = "throttle_returned"
	ThrottleBackoff      ThrottleDecision = "throttle_backoff"
	ThrottleFailoverCold ThrottleDecision = "throttle_failover_cold"
	ThrottleFailover     ThrottleDecision = "throttle_failover"
)
