package messages

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// maxRetryAfter bounds what is believed: a provider that says "in three weeks" is
// asked again tomorrow.
const maxRetryAfter = 24 * time.Hour

// windows are Anthropic's rate windows by the middle of their headers' names.
var windows = []string{"Requests", "Input-Tokens", "Output-Tokens", "Tokens"}

// retryAfter is when a provider wants to be asked again, and which of its words said
// so (W20): its retry-after, or the reset of the window that is used up.
func retryAfter(r dialect.Refusal) failure.Retry {
	h := r.Header
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if ms, err := strconv.ParseFloat(h.Get(name), 64); err == nil {
			return told(ms/1000, name)
		}
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return told(s, "Retry-After")
		}
		if at, err := http.ParseTime(v); err == nil {
			return told(at.Sub(clock(r)).Seconds(), "Retry-After")
		}
	}
	if r.Status != http.StatusTooManyRequests {
		// The windows are on every reply; they say when to come back on a 429 alone.
		return failure.Retry{}
	}
	return windowReset(r)
}

// clock is the provider's time: a date in its headers is by its own clock, which need
// not be ours.
func clock(r dialect.Refusal) time.Time {
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		return date
	}
	return r.Now
}

func told(seconds float64, source string) failure.Retry {
	if !(seconds >= 0) { // also NaN
		seconds = 0
	}
	after := maxRetryAfter
	if seconds < maxRetryAfter.Seconds() {
		after = time.Duration(seconds * float64(time.Second))
	}
	return failure.Retry{After: after, Source: strings.ToLower(source), Told: true}
}

// windowReset reads the RFC 3339 resets: the latest of the windows that are used up,
// or of all when none says that it is.
func windowReset(r dialect.Refusal) failure.Retry {
	var spent, latest failure.Retry
	for _, window := range windows {
		name := "Anthropic-Ratelimit-" + window + "-Reset"
		at, err := time.Parse(time.RFC3339, r.Header.Get(name))
		if err != nil {
			continue
		}
		retry := told(at.Sub(clock(r)).Seconds(), name)
		if !latest.Told || retry.After > latest.After {
			latest = retry
		}
		used := r.Header.Get("Anthropic-Ratelimit-"+window+"-Remaining") == "0"
		if used && (!spent.Told || retry.After > spent.After) {
			spent = retry
		}
	}
	if spent.Told {
		return spent
	}
	return latest
}
