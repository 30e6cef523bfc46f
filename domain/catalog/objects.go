// Package catalog is the configuration that requests are served from: providers,
// deployments, models and their chains, tenants, keys and budgets. Every change
// is an event; a Snapshot is what the events add up to (C1).
package catalog

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/money"
)

// Protocol is the dialect that a provider speaks.
type Protocol string

// The outbound protocols of sluice.yaml.
const (
	OpenAI          Protocol = "openai"
	OpenAIResponses Protocol = "openai-responses"
	Anthropic       Protocol = "anthropic"
	Bedrock         Protocol = "bedrock"
	Gemini          Protocol = "gemini"
)

// Capability is something a request may need and a deployment may have.
type Capability string

// The capabilities of sluice.yaml.
const (
	Chat             Capability = "chat"
	Tools            Capability = "tools"
	Images           Capability = "images"
	StructuredOutput Capability = "structured_output"
	ReasoningOutput  Capability = "reasoning"
	PromptCaching    Capability = "prompt_caching"
	Transcription    Capability = "transcription"
	Embeddings       Capability = "embeddings"
)

// Provider is an upstream account: protocol, address and a pool of keys.
type Provider struct {
	ID       string   `json:"id"`
	Protocol Protocol `json:"protocol"`
	// BaseURL is what the vendor's own SDK takes: with /v1 for openai.
	BaseURL     string        `json:"base_url,omitempty"`
	Region      string        `json:"region,omitempty"`
	Keys        []ProviderKey `json:"keys,omitempty"`
	KeyStrategy KeyStrategy   `json:"key_strategy,omitempty"`
	// OnClientCancel is what happens to an upstream call whose client has left (S7).
	OnClientCancel CancelMode `json:"on_client_cancel,omitempty"`
}

// KeyStrategy is where a request starts in a provider's pool of keys (W17).
type KeyStrategy string

// RoundRobin starts one key further each request and is the default; Failover
// always starts at the first.
const (
	RoundRobin KeyStrategy = "round_robin"
	Failover   KeyStrategy = "failover"
)

// CancelMode is the choice of S7.
type CancelMode string

// Cancel ends the upstream call at once and is the default; Drain reads on,
// within limits, to learn the usage that will be billed anyway.
const (
	Cancel CancelMode = "cancel"
	Drain  CancelMode = "drain"
)

// ProviderKey names a credential and where it is kept. The secret itself never
// stands in configuration (C14).
type ProviderKey struct {
	ID           string `json:"id"`
	Env          string `json:"env,omitempty"`
	EnvAccessKey string `json:"env_access_key,omitempty"`
	EnvSecretKey string `json:"env_secret_key,omitempty"`
	// EnvSessionToken goes with an access key that is temporary.
	EnvSessionToken string `json:"env_session_token,omitempty"`
	// Stored says that the secret is kept sealed in the database (Z2); sluice
	// credentials set puts it there.
	Stored bool `json:"stored,omitempty"`
}

// Deployment is one way to reach one exact model.
type Deployment struct {
	ID            string       `json:"id"`
	Provider      string       `json:"provider"`
	UpstreamModel string       `json:"upstream_model"`
	Context       Context      `json:"context,omitzero"`
	Capabilities  []Capability `json:"capabilities,omitempty"`
	Prices        money.Prices `json:"prices,omitzero"`
	Dispatch      *Dispatch    `json:"dispatch,omitempty"`
	Timeouts      Timeouts     `json:"timeouts,omitzero"`
	// Masked hides the provider from the caller, never from the operator (X1).
	Masked bool `json:"masked,omitempty"`
}

// Context are a deployment's windows in tokens (A5). Zero is undeclared, and an
// undeclared window excludes nothing.
type Context struct {
	Total     int64 `json:"total,omitempty"`
	MaxInput  int64 `json:"max_input,omitempty"`
	MaxOutput int64 `json:"max_output,omitempty"`
	MinOutput int64 `json:"min_output,omitempty"`
}

// Timeouts override the limits of silence for one deployment (W11). Zero keeps
// the default.
type Timeouts struct {
	Connect     Duration `json:"connect,omitempty"`
	FirstByte   Duration `json:"first_byte,omitempty"`
	FirstOutput Duration `json:"first_output,omitempty"`
	StreamIdle  Duration `json:"stream_idle,omitempty"`
}

// Duration is a time.Duration that is written as Go writes it: "20s".
type Duration time.Duration

// MarshalText writes the duration as Go writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Or is the duration, or other when it is not set.
func (d Duration) Or(other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return time.Duration(d)
}

// Model is a name that callers may ask for, one exact model behind it, and the
// chain of ways to reach it.
type Model struct {
	Slug string `json:"slug"`
	// ExactModel is the canonical id that every deployment of the chain serves (N15).
	ExactModel  string       `json:"exact_model"`
	Equivalence *Equivalence `json:"equivalence,omitempty"`
	Policy      Policy       `json:"policy,omitzero"`
	// Surcharge offers the model's own rungs to organizations that call it with
	// credentials of theirs, for when these have failed: in percent, on top of the list
	// price (M12). Nil offers nothing.
	Surcharge *decimal.Decimal `json:"surcharge,omitempty"`
	Chain     []Rung           `json:"chain"`
}

// Equivalence is an operator's word that a pool's deployments are one model (N15).
type Equivalence struct {
	CertifiedBy string `json:"certified_by"`
	On          string `json:"on"`
	Evidence    string `json:"evidence"`
}

// Rung is one entry of a chain; exactly one field is set (N16).
type Rung struct {
	Deployment string `json:"deployment,omitempty"`
	Connection string `json:"connection,omitempty"`
	Model      string `json:"model,omitempty"`
}

// Policy is how a model's walk behaves. A nil or zero field has the default of
// its rule.
type Policy struct {
	FailoverMode           FailoverMode    `json:"failover_mode,omitempty"`
	ThrottleCacheThreshold *float64        `json:"throttle_cache_threshold,omitempty"`
	ThrottleRedial         *ThrottleRedial `json:"throttle_redial,omitempty"`
	FailoverOnRefusal      bool            `json:"failover_on_refusal,omitempty"`
	LostAnswer             LostAnswer      `json:"lost_answer,omitempty"`
	MaxAttempts            int             `json:"max_attempts,omitempty"`
	// SameModelOnly keeps requests for the model to its exact model, whatever chains and
	// rules organizations write. The operator's own chains and classes may still leave
	// it (N22).
	SameModelOnly bool           `json:"same_model_only,omitempty"`
	Circuit       *CircuitPolicy `json:"circuit,omitempty"`
}

// FailoverMode says what a throttle does (T1-T3).
type FailoverMode string

// The failover modes.
const (
	MaximizeCache         FailoverMode = "maximize_cache"
	MaximizeAvailability  FailoverMode = "maximize_availability"
	MaximizeCacheAffinity FailoverMode = "maximize_cache_affinity"
)

// ThrottleRedial is the schedule of T5.
type ThrottleRedial struct {
	MaxRetries int      `json:"max_retries"`
	BaseDelay  Duration `json:"base_delay,omitempty"`
	MaxDelay   Duration `json:"max_delay,omitempty"`
}

// LostAnswer is what follows an answer that was lost after it was sent (W13).
type LostAnswer string

// Continue walks on and is the default; StopLost ends with 502 answer_lost.
const (
	Continue LostAnswer = "continue"
	StopLost LostAnswer = "stop"
)

// CircuitPolicy sets a model's route circuits (H1).
type CircuitPolicy struct {
	FailuresToOpen int      `json:"failures_to_open,omitempty"`
	Window         Duration `json:"window,omitempty"`
	OpenFor        Duration `json:"open_for,omitempty"`
}

// Tenant is an organization: the customer of the operator.
type Tenant struct {
	ID string `json:"id"`
	// Tier is the tier that an operator chose (L4); it wins over SystemTier.
	Tier string `json:"tier,omitempty"`
	// SystemTier is the tier that another system gives, such as one that follows what was
	// bought.
	SystemTier   string        `json:"system_tier,omitempty"`
	Aliases      []Alias       `json:"aliases,omitempty"`
	RoutingRules []RoutingRule `json:"routing_rules,omitempty"`
	Budgets      []Budget      `json:"budgets,omitempty"`
	Connections  []Connection  `json:"connections,omitempty"`
	Chains       []TenantChain `json:"chains,omitempty"`
	Promotions   []Promotion   `json:"promotions,omitempty"`
	Webhooks     []Webhook     `json:"webhooks,omitempty"`
	// SurchargeFallback lets the operator's rungs serve, at a surcharge, what the
	// organization's own have failed at, where the model offers it (M12).
	SurchargeFallback bool `json:"surcharge_fallback,omitempty"`
	// ReplyModel is what the model field of replies holds, for keys that do not say (N23).
	ReplyModel ReplyModel `json:"reply_model,omitempty"`
	Retention  Retention  `json:"retention,omitzero"`
}

// ReplyModel is what the model field of a reply holds (N23).
type ReplyModel string

// ReplyRequested is the name that the caller asked for and the default;
// ReplyCanonical is the slug of the model that answered.
const (
	ReplyRequested ReplyModel = "requested"
	ReplyCanonical ReplyModel = "canonical"
)

// TenantChain is an organization's own chain for a model, in the place of the
// operator's. Without one the operator's holds; an empty one is none (C4).
type TenantChain struct {
	Model string `json:"model"`
	Chain []Rung `json:"chain"`
}

// Budget is one limit of an organization; exactly one of LimitUSD, Requests and
// Tokens is set. Scope, whose, unit and period together are its identity.
type Budget struct {
	Scope string `json:"scope"`
	// Of is whose the limit is: a key's id, a model's slug, an exact model, a deployment's
	// id, a team, an identity. Empty is each one's own; an organization has none.
	Of       string `json:"of,omitempty"`
	LimitUSD string `json:"limit_usd,omitempty"`
	Requests int64  `json:"requests,omitempty"`
	Tokens   int64  `json:"tokens,omitempty"`
	Per      Period `json:"per"`
	// SoftPercent is the share of the limit whose use is told once a window; nil is
	// DefaultSoftPercent and 0 never (R9).
	SoftPercent *int        `json:"soft_percent,omitempty"`
	Enforcement Enforcement `json:"enforcement,omitempty"`
}

// The scopes of a budget (R8).
const (
	ScopeOrganization = "organization"
	ScopeTeam         = "team"
	ScopeIdentity     = "identity"
	ScopeKey          = "key"
	ScopeModel        = "model"
	ScopePool         = "pool"
	ScopeDeployment   = "deployment"
)

// BudgetScopes lists them, widest first.
func BudgetScopes() []string {
	return []string{ScopeOrganization, ScopeTeam, ScopeIdentity, ScopeKey, ScopeModel, ScopePool, ScopeDeployment}
}

// Enforcement is what a limit does (R9).
type Enforcement string

// Enforce refuses and is the default; Observe refuses nothing and tells what it would
// have refused.
const (
	Enforce Enforcement = "enforce"
	Observe Enforcement = "observe"
)

// Period is the window of a budget. Windows are UTC; a month is a calendar month.
type Period string

// The periods of R8.
const (
	PerMinute Period = "minute"
	PerHour   Period = "hour"
	PerDay    Period = "day"
	PerMonth  Period = "month"
	Total     Period = "total"
)

// Key is a caller's credential. Only a hash of it is kept (A1, Z3).
type Key struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Hash is the hex SHA-256 of the whole key.
	Hash string `json:"hash"`
	// Prefix is the part that may be shown.
	Prefix string  `json:"prefix"`
	Scopes []Scope `json:"scopes"`
	// Team and Identity are whose the key is, for limits of their own (R8).
	Team     string `json:"team,omitempty"`
	Identity string `json:"identity,omitempty"`
	// Class confines the key to one traffic class, Models to a list of names (N13).
	Class  string   `json:"class,omitempty"`
	Models []string `json:"models,omitempty"`
	// ReplyModel is the key's own choice; empty leaves it to the organization (N23).
	ReplyModel ReplyModel `json:"reply_model,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  time.Time  `json:"expires_at,omitzero"`
	RevokedAt  time.Time  `json:"revoked_at,omitzero"`
}

// Scope is what a key may do.
type Scope string

// The scopes of Z3.
const (
	ScopeInference Scope = "inference"
	ScopeRead      Scope = "read"
	ScopeAdmin     Scope = "admin"
)
