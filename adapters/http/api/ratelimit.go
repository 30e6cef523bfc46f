package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// limitsOf are the windows that a reply tells of: what an admitted attempt left of them,
// or the one that refused.
func limitsOf(out *gateway.Outcome) gateway.RateLimits {
	limits, e := out.Facts.Limits, out.Err
	if e == nil || e.Code != apierror.RateLimitExceeded || e.Limit == nil || e.Used == nil {
		return limits
	}
	refused := &gateway.RateLimit{Limit: *e.Limit, Remaining: max(0, *e.Limit-*e.Used), Reset: e.ResetsAt}
	if e.Unit == string(catalog.Requests) {
		limits.Requests = refused
	} else {
		limits.Tokens = refused
	}
	return limits
}

// setLimits sends the caller's windows in the form of its dialect (R8). They are the
// gateway's own, never an upstream account's.
func setLimits(h http.Header, d neutral.Dialect, l gateway.RateLimits, now time.Time) {
	for unit, limit := range map[string]*gateway.RateLimit{"requests": l.Requests, "tokens": l.Tokens} {
		if limit == nil {
			continue
		}
		at := limit.Reset
		if at.Before(now) { // zero where only what still runs fills the window
			at = now
		}
		name, reset := openAIName, at.Sub(now).Round(time.Millisecond).String()
		if d == neutral.Messages {
			// Anthropic's SDKs read an instant; rounded up, so that it is not too early.
			name, reset = anthropicName, at.Add(time.Second-1).Truncate(time.Second).UTC().Format(time.RFC3339)
		}
		h.Set(name(unit, "limit"), strconv.FormatInt(limit.Limit, 10))
		h.Set(name(unit, "remaining"), strconv.FormatInt(limit.Remaining, 10))
		h.Set(name(unit, "reset"), reset)
	}
}

func openAIName(unit, what string) string    { return "X-Ratelimit-" + what + "-" + unit }
func anthropicName(unit, what string) string { return "Anthropic-Ratelimit-" + unit + "-" + what }
