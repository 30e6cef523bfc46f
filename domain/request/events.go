// Package request is the life of one request as events: what may be said about
// it, in which order, and what the sayings add up to.
//
// The events carry numbers, names and classes, never content (E10): no prompt, no
// answer, no tool argument, no provider text, no key.
package request

import (
	"math"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// RequestAdmitted opens a request. What a later decision depends on is fixed here
// (N14): the catalog snapshot, the deadline, the limits.
type RequestAdmitted struct {
	Tenant         string `json:"tenant"`
	Key            string `json:"key"`
	Team           string `json:"team,omitempty"`
	Identity       string `json:"identity,omitempty"`
	Dialect        string `json:"dialect"`
	RequestedModel string `json:"requested_model"`
	CanonicalModel string `json:"canonical_model"`
	Class          string `json:"class,omitempty"`
	Priority       string `json:"priority,omitempty"`
	Stream         bool   `json:"stream,omitempty"`
	Snapshot       string `json:"snapshot"`
	DeadlineMS     int64  `json:"deadline_ms"`
	MaxAttempts    int    `json:"max_attempts"`
	Fallback       string `json:"fallback,omitempty"`
	// FreeOnly is a request that may only be free of charge (M10).
	FreeOnly        bool     `json:"free_only,omitempty"`
	Estimate        Estimate `json:"estimate"`
	ClientRequestID string   `json:"client_request_id,omitempty"`
	ClientRetry     int      `json:"client_retry,omitempty"`
}

// Estimate is what the request is planned with, in tokens (A6).
type Estimate struct {
	InputTokens     int64 `json:"input_tokens"`
	MaxOutputTokens int64 `json:"max_output_tokens"`
}

// RequestRefused is the whole life of a request that was turned away before any
// attempt, with the scope that refused (A9). Where a walk had begun, a
// RequestFinalized with outcome refused carries the same Refusal instead.
type RequestRefused struct {
	Tenant          string `json:"tenant"`
	Key             string `json:"key"`
	Dialect         string `json:"dialect"`
	RequestedModel  string `json:"requested_model,omitempty"`
	Snapshot        string `json:"snapshot,omitempty"`
	ClientRequestID string `json:"client_request_id,omitempty"`
	Refusal
	// Skipped are the routes that could not serve the request, where that is why.
	Skipped []RouteSkipped `json:"skipped,omitempty"`
}

// Refusal is why: our error code, and for a limit its scope, size and use.
type Refusal struct {
	Code  string `json:"code"`
	Scope string `json:"scope,omitempty"`
	// Of is whose limit it is, where the scope alone does not say: the key, the team, the
	// model ...
	Of string `json:"of,omitempty"`
	// Masked hides Of from callers: it is a masked deployment (X1).
	Masked bool   `json:"masked,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	Used   int64  `json:"used,omitempty"`
	Unit   string `json:"unit,omitempty"`
	// Per is the limit's period: minute, hour, day, month or total.
	Per    string `json:"per,omitempty"`
	Resets string `json:"resets_at,omitempty"`
}

// RouteSkipped is a route that was looked at and not called (W15).
type RouteSkipped struct {
	Rung     int               `json:"rung"`
	Provider string            `json:"provider,omitempty"`
	Model    string            `json:"model,omitempty"`
	Reason   SkipReason        `json:"reason"`
	Masked   bool              `json:"masked,omitempty"`
	Detail   map[string]string `json:"detail,omitempty"`
}

// AttemptReserved holds an attempt's worst case, before the provider is called
// (M2). The prices that will settle it are fixed here (M4).
type AttemptReserved struct {
	Attempt         int          `json:"attempt"`
	Rung            int          `json:"rung"`
	Kind            AttemptKind  `json:"kind"`
	Tenant          string       `json:"tenant"`
	Provider        string       `json:"provider"`
	Model           string       `json:"model"`
	Deployment      string       `json:"deployment"`
	ProviderKey     string       `json:"provider_key,omitempty"`
	CredentialOwner Owner        `json:"credential_owner"`
	FallbackKind    FallbackKind `json:"fallback_kind"`
	FallbackDepth   int          `json:"fallback_depth"`
	// Selection is set where something else than the chain decided on the route's turn.
	Selection Selection `json:"selection,omitempty"`
	Masked    bool      `json:"masked,omitempty"`
	// OnClientCancel is what becomes of the call when the client leaves: cancel or
	// drain (S7).
	OnClientCancel string        `json:"on_client_cancel,omitempty"`
	Estimate       Estimate      `json:"estimate"`
	Prices         money.Prices  `json:"prices"`
	Reserved       money.NanoUSD `json:"reserved_nanousd"`
	// SurchargePercent is what an attempt that was engaged by the failure of an
	// organization's own routes costs on top of its list price (M12).
	SurchargePercent *decimal.Decimal `json:"surcharge_percent,omitempty"`
	// Promotion is what pays a part of the attempt; Reserved is the worst case of the rest.
	Promotion *Gift `json:"promotion,omitempty"`
	// Holds are the counters that carry the reservation, so that settling releases
	// exactly them even when the budgets have changed since.
	Holds []string `json:"holds,omitempty"`
	// Takes are what the attempt takes of counters that do not count its money: a
	// dispatch of a window of requests, its input of a window of tokens.
	Takes []Take `json:"takes,omitempty"`
}

// Gift is what a promotion pays of an attempt (M10).
type Gift struct {
	ID   string     `json:"id"`
	Free money.Free `json:"free"`
}

// Frees is what is given away; nothing, where no promotion pays.
func (g *Gift) Frees() money.Free {
	if g == nil {
		return money.Free{}
	}
	return g.Free
}

// Take is what an event does to one counter, in the counter's own unit. A hold that is
// given back is negative.
type Take struct {
	Key     string `json:"key"`
	Held    int64  `json:"held,omitempty"`
	Settled int64  `json:"settled,omitempty"`
}

// AttemptThrottled is a provider's "not now".
type AttemptThrottled struct {
	Attempt      int    `json:"attempt"`
	Status       int    `json:"status"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	RetrySource  string `json:"retry_source,omitempty"`
	DurationMS   int64  `json:"duration_ms"`
}

// ThrottleDecided is what the walk did about a throttle and the inputs it used
// (T12).
type ThrottleDecided struct {
	Attempt   int              `json:"attempt"`
	Decision  ThrottleDecision `json:"decision"`
	Mode      string           `json:"mode"`
	Estimate  float64          `json:"cache_estimate"`
	Threshold *float64         `json:"threshold,omitempty"`
	Allowance int              `json:"allowance"`
	DelayMS   int64            `json:"delay_ms,omitempty"`
}

// AttemptFailed ends an attempt that served nothing.
type AttemptFailed struct {
	Attempt        int           `json:"attempt"`
	Failure        failure.Class `json:"failure"`
	Status         int           `json:"status,omitempty"`
	Code           string        `json:"code,omitempty"`
	PossiblyBilled bool          `json:"possibly_billed"`
	RetryAfterMS   int64         `json:"retry_after_ms,omitempty"`
	RetrySource    string        `json:"retry_source,omitempty"`
	DurationMS     int64         `json:"duration_ms"`
}

// AttemptCommitted is the first semantic output: from here on no other answer may
// start (S1, S2).
type AttemptCommitted struct {
	Attempt     int    `json:"attempt"`
	FirstOutput string `json:"first_output"`
	TTFTMS      int64  `json:"ttft_ms"`
}

// AttemptSettled replaces the hold with what the attempt cost, once (I5). The five
// amounts are never one (M7). It repeats what the attempt was, so that a ledger
// row and a bill line need no other event (M11).
type AttemptSettled struct {
	Attempt         int          `json:"attempt"`
	Tenant          string       `json:"tenant"`
	Key             string       `json:"key"`
	Provider        string       `json:"provider"`
	Model           string       `json:"model"`
	Deployment      string       `json:"deployment"`
	CredentialOwner Owner        `json:"credential_owner"`
	FallbackKind    FallbackKind `json:"fallback_kind"`
	Masked          bool         `json:"masked,omitempty"`

	Basis usage.Basis `json:"basis"`
	Usage usage.Usage `json:"usage"`
	Amounts
	// Promotion is what paid the subsidy, as the reservation fixed it.
	Promotion *Gift `json:"promotion,omitempty"`
	// Waived is an attempt that served nothing: whatever it cost, the customer is not
	// charged, and a price correction does not charge it either (M5).
	Waived bool `json:"waived,omitempty"`
	// SurchargePercent is the attempt's own, which a price correction keeps (M12).
	SurchargePercent *decimal.Decimal `json:"surcharge_percent,omitempty"`
	// Reserved is the hold that this settlement replaces.
	Reserved money.NanoUSD `json:"reserved_nanousd"`
	Holds    []string      `json:"holds,omitempty"`
	// Takes give back what the reservation took and put what was used in its place (R2).
	Takes []Take `json:"takes,omitempty"`
	// Failure is set when the attempt ended badly but had to be paid.
	Failure    failure.Class `json:"failure,omitempty"`
	DurationMS int64         `json:"duration_ms,omitempty"`
}

// Amounts are the five numbers of M7, in nano-USD.
type Amounts struct {
	List         money.NanoUSD `json:"list_nanousd"`
	Charge       money.NanoUSD `json:"charge_nanousd"`
	ProviderCost money.NanoUSD `json:"provider_cost_nanousd"`
	Subsidy      money.NanoUSD `json:"subsidy_nanousd"`
	Surcharge    money.NanoUSD `json:"surcharge_nanousd"`
}

// Add sums amounts field by field.
func (a Amounts) Add(b Amounts) Amounts {
	return Amounts{
		List: a.List + b.List, Charge: a.Charge + b.Charge, ProviderCost: a.ProviderCost + b.ProviderCost,
		Subsidy: a.Subsidy + b.Subsidy, Surcharge: a.Surcharge + b.Surcharge,
	}
}

// WithSurcharge adds a percentage of the list cost to the charge, rounded once; nil
// adds nothing (M12). The error is money.ErrOverflow, or that of a percentage that is
// none.
func (a Amounts) WithSurcharge(percent *decimal.Decimal) (Amounts, error) {
	if percent == nil {
		return a, nil
	}
	share, err := a.List.Percent(*percent)
	if err != nil {
		return Amounts{}, err
	}
	if a.Charge > math.MaxInt64-share {
		return Amounts{}, money.ErrOverflow
	}
	a.Charge, a.Surcharge = a.Charge+share, a.Surcharge+share
	return a, nil
}

// Sub is the difference, field by field; the only amounts that may be negative.
func (a Amounts) Sub(b Amounts) Amounts {
	return Amounts{
		List: a.List - b.List, Charge: a.Charge - b.Charge, ProviderCost: a.ProviderCost - b.ProviderCost,
		Subsidy: a.Subsidy - b.Subsidy, Surcharge: a.Surcharge - b.Surcharge,
	}
}

// ReservationReleased says that a failed attempt's hold is gone.
type ReservationReleased struct {
	Attempt  int           `json:"attempt"`
	Released money.NanoUSD `json:"released_nanousd"`
}

// ReservationOverrun is usage beyond what was reserved: counted in full and shown
// (M16).
type ReservationOverrun struct {
	Attempt int           `json:"attempt"`
	Overrun money.NanoUSD `json:"overrun_nanousd"`
}

// MeterHoldPlaced keeps tokens held because an attempt's usage is unknown (D2): its
// estimated input and what was delivered.
type MeterHoldPlaced struct {
	Attempt int    `json:"attempt"`
	Tenant  string `json:"tenant,omitempty"`
	Key     string `json:"key,omitempty"`
	Model   string `json:"model,omitempty"`
	Tokens  int64  `json:"tokens"`
	Takes   []Take `json:"takes,omitempty"`
}

// ByAge resolves a meter hold that nobody could resolve better: its tokens are let go
// and its usage stays unknown.
const ByAge = "age"

// MeterHoldResolved ends a meter hold: by reconciliation or by its age (D2). It is the
// one event that may follow the end of its request.
type MeterHoldResolved struct {
	Attempt int         `json:"attempt"`
	By      string      `json:"by"`
	Usage   usage.Usage `json:"usage"`
	Takes   []Take      `json:"takes,omitempty"`
}

// LimitObserved is an attempt that a limit under observation would have refused (R9).
type LimitObserved struct {
	Attempt int    `json:"attempt"`
	Budget  string `json:"budget"`
	Refusal
}

// BudgetThresholdReached says that the use of a limit has reached its soft threshold: once in
// a window, whichever worker saw it (R9). Stream threshold/<counter>/<window>.
type BudgetThresholdReached struct {
	Tenant string `json:"tenant"`
	Budget string `json:"budget"`
	Scope  string `json:"scope"`
	Unit   string `json:"unit"`
	// Masked hides Budget from callers: it names a masked deployment (X1).
	Masked bool `json:"masked,omitempty"`
	// Window is the window's name in UTC: 2026-11, 2026-11-30T10:15, total.
	Window string `json:"window"`
	// Threshold, Limit and Used are in whole units.
	Threshold int64  `json:"threshold"`
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Resets    string `json:"resets_at,omitempty"`
	// Request is whose reservation reached it.
	Request string `json:"request"`
}

// ModelChanged says that the walk moved to another model (N22).
type ModelChanged struct {
	From string `json:"from"`
	To   string `json:"to"`
	By   string `json:"by"`
}

// RequestFinalized closes a request, once.
type RequestFinalized struct {
	Outcome        Outcome `json:"outcome"`
	Code           string  `json:"code,omitempty"`
	Attempts       int     `json:"attempts"`
	FallbackDepth  int     `json:"fallback_depth"`
	CanonicalModel string  `json:"canonical_model,omitempty"`
	DurationMS     int64   `json:"duration_ms"`
	TTFTMS         *int64  `json:"ttft_ms,omitempty"`
	// Refusal is set on outcome refused.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Exhausted says why a walk ended before its last rung: attempts_exhausted,
	// time_exhausted (W9, W10).
	Exhausted string `json:"exhausted,omitempty"`
}
