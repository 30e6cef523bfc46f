package catalog

// What a caller may ask for besides a model, and what schedules a deployment.
// These objects are configured, hashed, exported and kept; resolving names
// through them and scheduling by them have their own rules (N2-N12, L1-L12).

// Alias is a constraint that a name stands for, with an optional pin (N3).
type Alias struct {
	Name             string       `json:"name"`
	Pin              string       `json:"pin,omitempty"`
	Capabilities     []Capability `json:"capabilities,omitempty"`
	MinContextWindow int64        `json:"min_context_window,omitempty"`
	// ProviderPreference is an order, not a whitelist (N5).
	ProviderPreference []string `json:"provider_preference,omitempty"`
	CostTier           CostTier `json:"cost_tier,omitempty"`
}

// CostTier is how an alias orders what fits (N4).
type CostTier string

// The cost tiers of N3.
const (
	Cheapest CostTier = "cheapest"
	Balanced CostTier = "balanced"
	Best     CostTier = "best"
)

// RoutingRule maps a requested name to an ordered chain of models or aliases (N6).
type RoutingRule struct {
	Match string   `json:"match"`
	Chain []string `json:"chain"`
}

// MaxFallbackDepth is the longest chain that a routing rule or a class may be
// written with (N8).
const MaxFallbackDepth = 5

// Class is a traffic class: a name for a kind of work, with its own chain (N9).
type Class struct {
	Name  string   `json:"name"`
	Chain []string `json:"chain"`
}

// Retention is what an organization lets the gateway keep.
type Retention struct {
	Responses bool `json:"responses,omitempty"`
}

// Dispatch are the local limits and the scheduling of one deployment (L1-L12). A
// nil or zero field has the default of its rule.
type Dispatch struct {
	ConcurrencyBound          int        `json:"concurrency_bound,omitempty"`
	FairShare                 *bool      `json:"fair_share,omitempty"`
	FreshSessionSpillFraction *float64   `json:"fresh_session_spill_fraction,omitempty"`
	RequestsPerMinute         int64      `json:"requests_per_minute,omitempty"`
	TokensPerMinute           int64      `json:"tokens_per_minute,omitempty"`
	CachePriorityAlpha        *float64   `json:"cache_priority_alpha,omitempty"`
	HeadroomSpillBelow        *float64   `json:"headroom_spill_below,omitempty"`
	StickySpillSeconds        int64      `json:"sticky_spill_seconds,omitempty"`
	Saturation                Saturation `json:"saturation,omitempty"`
}

// Saturation is what follows a walk that met only local refusals (L11).
type Saturation string

// The choices of L11.
const (
	Overflow Saturation = "overflow"
	Refuse   Saturation = "refuse"
)
