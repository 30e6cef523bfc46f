package chat

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

// retryAfter is when a provider wants to be asked again, and which of its words
// said so (W20). The exact ones come first; the reset of a rate window is only an
// upper bound, and prose the last resort.
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
	if retry := windowReset(h); retry.Told {
		return retry
	}
	return inWords(r.Body)
}

// clock is the provider's time: a date in its headers is by its own clock, which
// need not be ours.
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

// windowReset reads OpenAI's resets: of the window that is used up, or the later
// one when neither says that it is.
func windowReset(h http.Header) failure.Retry {
	var latest failure.Retry
	for _, unit := range []string{"Requests", "Tokens"} {
		name := "X-Ratelimit-Reset-" + unit
		d, err := resetDuration(h.Get(name))
		if err != nil {
			continue
		}
		retry := told(d.Seconds(), name)
		if h.Get("X-Ratelimit-Remaining-"+unit) == "0" {
			return retry
		}
		if !latest.Told || retry.After > latest.After {
			latest = retry
		}
	}
	return latest
}

// resetDuration reads 1s, 6m0s, 20ms, and bare seconds.
func resetDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds >= 0 && seconds <= maxRetryAfter.Seconds() {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return time.ParseDuration(s)
}

// inWords reads a delay out of an error's body: Google's RetryInfo, or the "try
// again in 1.5s" of OpenAI and Groq.
func inWords(body []byte) failure.Retry {
	if !rawjson.Shallow(body) || !gjson.ValidBytes(body) {
		return failure.Retry{}
	}
	for _, path := range []string{"error.details.#.retryDelay|0", "0.error.details.#.retryDelay|0"} {
		if d, err := time.ParseDuration(gjson.GetBytes(body, path).Str); err == nil {
			return told(d.Seconds(), "retry_info")
		}
	}
	for _, e := range unwrap(body) {
		_, rest, ok := strings.Cut(strings.ToLower(e.message), "try again in ")
		if !ok {
			continue
		}
		word, _, _ := strings.Cut(rest, " ")
		if d, err := time.ParseDuration(strings.TrimRight(word, ".,;!")); err == nil {
			return told(d.Seconds(), "message")
		}
	}
	return failure.Retry{}
}
