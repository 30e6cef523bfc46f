package webhook

import "time"

const (
	// MaxAge is how long a message is tried. Three days outlast a weekend.
	MaxAge = 72 * time.Hour
	// firstRetry doubles with each attempt up to lastRetry: seconds for a receiver that
	// restarts, and some 45 attempts in all for one that is away.
	firstRetry = 5 * time.Second
	lastRetry  = 2 * time.Hour
	// firstPause and lastPause bound how long a webhook that failed is left alone,
	// whatever waits for it. So one that is away costs one attempt at a time and seldom,
	// and is noticed within minutes when it is back.
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// Retry is the time until a message is tried again that was tried that often, with a
// random number in [0, 1). Half of it is drawn, so that what failed together does not
// come back together.
func Retry(attempts int, random float64) time.Duration {
	return jittered(firstRetry, lastRetry, attempts, random)
}

// Pause is how long a webhook is left alone after that many failures in a row.
func Pause(failures int, random float64) time.Duration {
	return jittered(firstPause, lastPause, failures, random)
}

func jittered(first, last time.Duration, n int, random float64) time.Duration {
	d := first
	for i := 1; i < n && d < last; i++ {
		d *= 2
	}
	d = min(d, last)
	return d/2 + time.Duration(random*float64(d/2))
}

// Cause is why an attempt failed. The receiver's own words are never kept.
type Cause string

// The causes.
const (
	// CauseAddress is an address in the own network that is not opened (Z1).
	CauseAddress Cause = "address_refused"
	CauseConnect Cause = "connect_error"
	CauseTimeout Cause = "timeout"
	// CauseBroken is a connection that ended without an answer.
	CauseBroken   Cause = "broken"
	CauseStatus   Cause = "status"
	CauseRedirect Cause = "redirect"
	// CauseGone is 410: the receiver wants nothing more of it.
	CauseGone Cause = "gone"
	// CauseSecret is a secret that this worker does not have or cannot use.
	CauseSecret Cause = "secret_missing"
	// CauseBacklog is a message that found too many others waiting.
	CauseBacklog Cause = "backlog_full"
)

// statusGone is HTTP's: the address is not coming back.
const statusGone = 410

// Answered is the cause in a receiver's status; empty for success, which is any 2xx.
func Answered(status int) Cause {
	switch {
	case status >= 200 && status < 300:
		return ""
	case status >= 300 && status < 400:
		return CauseRedirect
	case status == statusGone:
		return CauseGone
	}
	return CauseStatus
}

// Next is when a message is tried again after an attempt that failed at now, and whether
// it is given up instead. asked is what the receiver asked for, 0 for nothing; it can
// only make the wait longer, and not beyond the longest there is.
func Next(cause Cause, attempts int, now, expires time.Time, asked time.Duration, random float64) (next time.Time, dead bool) {
	if cause == CauseGone {
		return now, true
	}
	next = now.Add(max(Retry(attempts, random), min(asked, lastRetry)))
	return next, next.After(expires)
}
