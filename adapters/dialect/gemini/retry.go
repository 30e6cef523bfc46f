package gemini

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// maxRetryAfter bounds what is believed: a provider that says "in three weeks" is
// asked again tomorrow.
const maxRetryAfter = 24 * time.Hour

// retryAfter is when Google wants to be asked again, and which of its words said so
// (W20): a header, which a proxy may add, its own RetryInfo, or the sentence that
// repeats it.
func retryAfter(r dialect.Refusal) failure.Retry {
	if v := r.Header.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return told(s, "retry-after")
		}
		if at, err := http.ParseTime(v); err == nil {
			return told(at.Sub(clock(r)).Seconds(), "retry-after")
		}
	}
	if !rawjson.Shallow(r.Body) || !gjson.ValidBytes(r.Body) {
		return failure.Retry{}
	}
	for _, path := range []string{"error.details.#.retryDelay|0", "#.error.details|0.#.retryDelay|0"} {
		if d, err := time.ParseDuration(gjson.GetBytes(r.Body, path).Str); err == nil {
			return told(d.Seconds(), "retry_info")
		}
	}
	_, rest, ok := strings.Cut(strings.ToLower(stated(r.Body).message), "please retry in ")
	if !ok {
		return failure.Retry{}
	}
	word, _, _ := strings.Cut(rest, " ")
	if d, err := time.ParseDuration(strings.TrimRight(word, ".,;!")); err == nil {
		return told(d.Seconds(), "message")
	}
	return failure.Retry{}
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
	return failure.Retry{After: after, Source: source, Told: true}
}
