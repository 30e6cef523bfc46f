package catalog

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/money"
)

// The defaults of a policy, each with its rule.
const (
	DefaultThrottleCacheThreshold = 0.5                    // C10
	DefaultMaxAttempts            = 8                      // W9
	DefaultRedialBaseDelay        = 500 * time.Millisecond // T5
	DefaultRedialMaxDelay         = 8 * time.Second        // T5
	DefaultFailuresToOpen         = 2                      // H1
	DefaultOpenFor                = 30 * time.Second       // H1
)

// WithDefaults fills in what the operator left open. After it, a nil
// ThrottleCacheThreshold means that there is none: a mode that was set without a
// threshold removes the automatic one (C10). A nil ThrottleRedial stays nil: no
// schedule is an allowance of zero (T5). Applying it twice changes nothing.
func (p Policy) WithDefaults() Policy {
	if p.FailoverMode == "" {
		p.FailoverMode = MaximizeCache
		if p.ThrottleCacheThreshold == nil {
			p.ThrottleCacheThreshold = new(DefaultThrottleCacheThreshold)
		}
	}
	if p.ThrottleRedial != nil {
		redial := *p.ThrottleRedial
		redial.BaseDelay = Duration(redial.BaseDelay.Or(DefaultRedialBaseDelay))
		redial.MaxDelay = Duration(redial.MaxDelay.Or(DefaultRedialMaxDelay))
		p.ThrottleRedial = &redial
	}
	if p.LostAnswer == "" {
		p.LostAnswer = Continue
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = DefaultMaxAttempts
	}
	circuit := CircuitPolicy{}
	if p.Circuit != nil {
		circuit = *p.Circuit
	}
	if circuit.FailuresToOpen == 0 {
		circuit.FailuresToOpen = DefaultFailuresToOpen
	}
	circuit.OpenFor = Duration(circuit.OpenFor.Or(DefaultOpenFor))
	p.Circuit = &circuit
	return p
}

// keepsTo reports whether requests for the model may not go on to next by an
// organization's choice (N22). Another pool of the same exact model is no other model.
func (m *Model) keepsTo(next *Model) bool {
	return m.Policy.SameModelOnly && next.ExactModel != m.ExactModel
}

// Unit is what a budget counts.
type Unit string

// The units of R8.
const (
	USD      Unit = "usd"
	Requests Unit = "requests"
	Tokens   Unit = "tokens"
)

// Unit is what the budget counts; empty when it limits nothing.
func (b Budget) Unit() Unit {
	switch {
	case b.LimitUSD != "":
		return USD
	case b.Requests != 0:
		return Requests
	case b.Tokens != 0:
		return Tokens
	}
	return ""
}

// Limit is the size of the budget: nano-USD, requests or tokens, by Unit. A
// limit_usd that is no amount is an error, and never a limit of zero by accident:
// the caller fails closed on it.
func (b Budget) Limit() (int64, error) {
	switch b.Unit() {
	case Requests:
		return b.Requests, nil
	case Tokens:
		return b.Tokens, nil
	}
	limit, err := money.ParseUSD(b.LimitUSD)
	return int64(limit), err
}

// DefaultSoftPercent is the use of a limit that is told once a window (R9).
const DefaultSoftPercent = 80

// Soft is the share of the limit, in percent, that is told when it is reached; 0 is
// never.
func (b Budget) Soft() int {
	if b.SoftPercent == nil {
		return DefaultSoftPercent
	}
	return *b.SoftPercent
}

// ID is what tells one budget of a tenant from another: scope, unit, period, and in
// front whose it is when the scope alone does not say: "model:fable-5/usd/month".
func (b Budget) ID() string {
	scope := b.Scope
	if b.Of != "" {
		scope += ":" + b.Of
	}
	return scope + "/" + string(b.Unit()) + "/" + string(b.Per)
}
