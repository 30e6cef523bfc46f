package walk

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Defaults of a redial schedule (T5).
const (
	DefaultRedialBase = 500 * time.Millisecond
	DefaultRedialMax  = 8 * time.Second
)

// throttled decides a provider's "not now" (section T). Another key of the same
// pool comes first: the throttle was that key's (W17).
func (m *Machine) throttled(f failure.Failure, r *Rung, now time.Time) Move {
	if m.place.keys.left() {
		return m.again(r, request.KindKeyRotation, Ordinary, now)
	}
	estimate := m.world.CacheEstimate(r)
	decided := request.ThrottleDecided{
		Attempt: m.current().reserved.Attempt, Mode: string(r.Policy.FailoverMode),
		Estimate: estimate, Threshold: r.Policy.ThrottleCacheThreshold, Allowance: m.place.allowance,
	}
	if r.Policy.ThrottleRedial != nil {
		return m.throttledWithSchedule(decided, f, r, now)
	}
	decided.Decision = throttleRule(r.Policy, estimate)
	m.say(decided)
	if decided.Decision == request.ThrottleReturned {
		return m.finish(m.throttleAnswer(), request.Failed, now, "")
	}
	return m.next(now)
}

// throttleRule is the rule without a schedule: a threshold overrides the mode, in
// all three modes (T1, T2, T4).
func throttleRule(p catalog.Policy, estimate float64) request.ThrottleDecision {
	switch t := p.ThrottleCacheThreshold; {
	case t != nil && estimate >= *t:
		return request.ThrottleReturned
	case t != nil:
		return request.ThrottleFailoverCold
	case p.FailoverMode == catalog.MaximizeCache:
		return request.ThrottleReturned
	default:
		return request.ThrottleFailover
	}
}

// throttledWithSchedule waits and calls the same route again while the allowance
// lasts and the wait fits; then it moves on, whatever the estimate (T5, T9).
func (m *Machine) throttledWithSchedule(d request.ThrottleDecided, f failure.Failure, r *Rung, now time.Time) Move {
	delay, ok := m.redialDelay(f.Retry, r, now)
	if !ok {
		d.Decision = request.ThrottleFailover
		m.say(d)
		return m.next(now)
	}
	d.Decision, d.DelayMS = request.ThrottleBackoff, ms(delay)
	m.say(d)
	m.place.redials++
	return Move{Wait: &Wait{For: delay}}
}

// redialDelay is the next pause of the schedule: exponential up to the cap, then
// uniform in its upper half so that many throttled requests do not come back
// together (T7). No pause when the allowance is spent, when the provider asks for
// longer than the cap, or when no answer would fit behind it (T8).
func (m *Machine) redialDelay(asked failure.Retry, r *Rung, now time.Time) (time.Duration, bool) {
	s := r.Policy.ThrottleRedial
	if m.place.redials >= m.place.allowance || len(m.attempts) >= m.maxAttempts() {
		return 0, false
	}
	base, limit := s.BaseDelay.Or(DefaultRedialBase), s.MaxDelay.Or(DefaultRedialMax)
	d := min(base<<m.place.redials, limit)
	d = d/2 + time.Duration(m.world.Uniform()*float64(d/2))
	if asked.After > limit {
		return 0, false
	}
	d = max(d, asked.After)
	if now.Add(d + DefaultMinAttemptTime).After(m.outputBy()) {
		return 0, false
	}
	return d, true
}

// Waited is told that the pause is over.
func (m *Machine) Waited(now time.Time) Move {
	r := &m.rungs[m.cursor]
	m.place.keys = m.place.keys.rewound()
	return m.again(r, request.KindRedial, Redial, now)
}

// throttleAnswer returns a throttle to the caller with the largest wait that any
// provider asked for (T11).
func (m *Machine) throttleAnswer() Answer {
	return Answer{
		Code: request.CodeProviderThrottled, Retryable: true, RetryAfter: m.longestRetry.After,
		Attempts: m.candidates,
	}
}
