package converse

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// maxRetryAfter bounds what is believed: a provider that says "in three weeks" is
// asked again tomorrow.
const maxRetryAfter = 24 * time.Hour

// retryAfter is when the provider wants to be asked again (W20). Bedrock itself says
// nothing; what stands in front of it may.
func retryAfter(r dialect.Refusal) failure.Retry {
	if ms, err := strconv.ParseFloat(r.Header.Get("Retry-After-Ms"), 64); err == nil {
		return told(ms/1000, "retry-after-ms")
	}
	v := r.Header.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return told(s, "retry-after")
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return failure.Retry{}
	}
	// A date is by the provider's own clock, which need not be ours.
	now := r.Now
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date
	}
	return told(at.Sub(now).Seconds(), "retry-after")
}

func told(seconds float64, source string) failure.Retry {
	if !(seconds >= 0) { // also NaN
		seconds = 0
	}
	after := maxRetryAfter
	if seconds < maxRetryAfter.Seconds() {
		after = time.Duration(seconds * float64(time.Second))
	}
	return failure.Retry{After: after, Source: source, Told: true}
}
