package walk

import (
	"cmp"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Rung is one candidate of the plan, as the walk sees it.
type Rung struct {
	// Index is the rung's place in the whole plan, as the trail shows it.
	Index int
	// Stage is the uninterrupted run of one model's rungs that this one belongs to;
	// nothing reorders rungs across stages (N19).
	Stage int
	// Model is the exact model that this rung serves; Root is true while it is the
	// model that the caller's name resolved to.
	Model string
	Root  bool
	// ExactModel is the pool's: what every deployment of it serves (N15).
	ExactModel string
	// Unresolved is set instead of a deployment where a position of the chain
	// names nothing usable; the reason is recorded (N7).
	Unresolved request.SkipReason
	// BaseURLRefused is set where the provider's base URL leads into the own network by
	// what it says, and no operator has opened that host (Z1).
	BaseURLRefused bool
	Deployment     *catalog.Deployment
	Provider       *catalog.Provider
	Policy         catalog.Policy
	// Owner is whose credential the rung is called with; empty is the operator's.
	Owner request.Owner
	// Surcharge is set on the operator's rungs that follow an organization's own: in
	// percent of the list price (M12).
	Surcharge *decimal.Decimal
	// Exhausted is set when a walk begins on a rung whose accounts are all known to be out
	// of funds (H12).
	Exhausted bool
	// Position, Referred and Override are its stage's: see catalog.Stage (C6).
	Position int
	Referred bool
	Override bool
}

// owner is whose credential pays the provider (M11).
func (r *Rung) owner() request.Owner { return cmp.Or(r.Owner, request.Operator) }

// World is what a decision may look at besides what the machine was told. It
// answers from memory, without I/O.
type World interface {
	// Credentials lists the keys of a provider whose secrets are held, in their
	// configured order.
	Credentials(p *catalog.Provider) []Credential
	// FirstCredential is where this request starts in the pool (W17).
	FirstCredential(p *catalog.Provider, n int) int
	// Claim asks the circuits whether a route may be called; an admitted probe is
	// taken by asking.
	Claim(r *Rung, credential string, pass Pass, now time.Time) Verdict
	// Exhausted reports whether every account of the operator's that a rung could be
	// called on is known to be out of funds (H12).
	Exhausted(r *Rung, now time.Time) bool
	// CacheEstimate is the fraction of input that the route read from its cache
	// lately, 0 without evidence (T4, L7).
	CacheEstimate(r *Rung) float64
	// Uniform is a random number in [0,1) for jitter (T7).
	Uniform() float64
}

// Credential is one key of a pool.
type Credential struct {
	ID string
	// ParkedUntil is when a throttle of this key ends (W18); zero when it is free.
	ParkedUntil time.Time
}

// Pass is how insistently a route is asked for.
type Pass uint8

// Ordinary respects every circuit. LastResort goes through an open route circuit,
// bounded, when everything else was suppressed (H8). Redial passes this route's
// own throttle window, which is what the wait was for (T5).
const (
	Ordinary Pass = iota
	LastResort
	Redial
)

// Verdict is the circuits' answer. Skip is empty when the route may be called.
type Verdict struct {
	Skip   request.SkipReason
	Detail map[string]string
	// Cause is what had shut the route.
	Cause failure.Class
	// Until is when asking again may help.
	Until time.Time
	// Probe is set when the call is the one half-open probe (H1).
	Probe bool
	// ThisKey is set when the refusal concerns the asked key alone: another key of
	// the pool may pass (W17).
	ThisKey bool
}

// forHealth reports whether a skip counts as fallback depth: the candidate would
// have been called, had it been well.
func forHealth(r request.SkipReason) bool {
	switch r {
	case request.SkipBreakerOpen, request.SkipThrottleWindow, request.SkipCredentialOpen:
		return true
	}
	return false
}

// unfit is why a rung can never serve this request, whatever the moment: what the
// caller may not use, what the request needs, how long it is, what it costs.
func (m *Machine) unfit(r *Rung) (request.SkipReason, map[string]string) {
	switch {
	case r.Unresolved != "":
		return r.Unresolved, nil
	case m.req.Fallback == FallbackSameModel && !r.Root:
		return request.SkipNotSameModel, nil
	case r.Surcharge != nil && !m.engageable(r):
		return notEngaged()
	}
	for _, need := range m.req.Needs {
		// Like a window, a list that was never declared excludes nothing: the request
		// goes on unchanged and the provider answers for itself.
		if declared := r.Deployment.Capabilities; declared != nil && !slices.Contains(declared, need) {
			return request.SkipCapabilityMissing, map[string]string{"capability": string(need)}
		}
	}
	if feature := m.req.Unsayable[r.Provider.Protocol]; feature != "" {
		return request.SkipCapabilityMissing, map[string]string{"capability": feature}
	}
	if window, _, _ := m.tooSmall(r.Deployment.Context); window != "" {
		return request.SkipContextTooSmall, map[string]string{"window": window}
	}
	if r.owner() == request.Operator && !r.Deployment.Prices.Known() {
		return request.SkipPriceUnknown, nil
	}
	if r.BaseURLRefused {
		return request.SkipBaseURLRefused, nil
	}
	if m.notFree(r) {
		return request.SkipNotFree, nil
	}
	return "", nil
}

// tooSmall names the declared window that the request does not fit, or "", with its
// size and what the request needs of it in tokens (A5). An undeclared window excludes
// nothing. The caller's own maximum is never lowered to make it fit.
func (m *Machine) tooSmall(c catalog.Context) (window string, size, needed int64) {
	in, out := m.req.FloorTokens, m.req.OutputTokens
	all := in + max(out, c.MinOutput, 1)
	switch {
	case c.MaxInput > 0 && in > c.MaxInput:
		return "max_input", c.MaxInput, in
	case c.MaxOutput > 0 && out > c.MaxOutput:
		return "max_output", c.MaxOutput, out
	case c.Total > 0 && all > c.Total:
		return "total", c.Total, all
	}
	return "", 0, 0
}

// refusedByAll is the refusal of a request that none of the model's rungs can serve,
// with the largest window that it does not fit where that is why (A9).
func (m *Machine) refusedByAll(code request.Code, skips []request.RouteSkipped) request.Refusal {
	if code == request.CodeInsufficientQuota {
		return noAllowance()
	}
	refusal := request.Refusal{Code: string(code), Scope: "model"}
	if code != request.CodeContextLengthExceeded {
		return refusal
	}
	refusal.Unit = "tokens"
	for i := range skips {
		if skips[i].Reason != request.SkipContextTooSmall {
			continue
		}
		if _, size, needed := m.tooSmall(m.rungs[i].Deployment.Context); size > refusal.Limit {
			refusal.Limit, refusal.Used = size, needed
		}
	}
	return refusal
}

// assumedOutputCeiling is the last resort of M3 and A6: a deployment that
// declares neither its output nor its context.
const assumedOutputCeiling = 32_768

// OutputCeiling is the most output that an attempt on a deployment may produce:
// the caller's maximum, else the deployment's, else what its context allows (A6,
// M3).
func OutputCeiling(d *catalog.Deployment, callerMax int64) int64 {
	ceiling := d.Context.MaxOutput
	if ceiling == 0 {
		ceiling = assumedOutputCeiling
		if d.Context.Total > 0 {
			ceiling = min(ceiling, d.Context.Total)
		}
	}
	if callerMax > 0 {
		return min(callerMax, ceiling)
	}
	return ceiling
}
