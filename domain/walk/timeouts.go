package walk

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Limits of silence (W11). A deployment overrides the first four.
const (
	DefaultConnectTimeout    = 5 * time.Second
	DefaultFirstByteTimeout  = 20 * time.Second
	DefaultStreamIdleTimeout = 60 * time.Second
	// ErrorBodyTimeout bounds the reading of an error's body: it refines the class,
	// it must not delay the failover.
	ErrorBodyTimeout = 250 * time.Millisecond
	// firstBytePerMillionTokens grows the wait with the prompt: reading a long one
	// takes a provider minutes before its first byte.
	firstBytePerMillionTokens = 240 * time.Second
	// wholeTokensPerSecond is the slowest pace at which a whole answer is still
	// waited for: it sends no byte until it is done.
	wholeTokensPerSecond = 10
)

// Timeouts are the limits of one attempt, all measured from its dispatch but for
// StreamIdle. None but Total stands for the request's deadline: of two timers that
// end at once either may win, and the loser of a caller's short deadline would be the
// route, counted as slow in its circuit.
type Timeouts struct {
	Connect     time.Duration
	FirstByte   time.Duration
	FirstOutput time.Duration
	StreamIdle  time.Duration
	ErrorBody   time.Duration
	// Whole bounds a whole answer, which sends no byte until it is done; 0 for a
	// stream.
	Whole time.Duration
	// Total is what is left of the request's one deadline (W10).
	Total time.Duration
}

func (m *Machine) timeouts(r *Rung, e request.Estimate, stream bool, now time.Time) Timeouts {
	own := r.Deployment.Timeouts
	slope := time.Duration(float64(firstBytePerMillionTokens) * float64(e.InputTokens) / 1e6)
	t := Timeouts{
		Connect:    own.Connect.Or(DefaultConnectTimeout),
		FirstByte:  own.FirstByte.Or(DefaultFirstByteTimeout) + slope,
		StreamIdle: own.StreamIdle.Or(DefaultStreamIdleTimeout),
		ErrorBody:  ErrorBodyTimeout,
		Total:      m.req.Deadline.Sub(now),
	}
	if !stream {
		t.Whole = t.FirstByte + time.Duration(e.MaxOutputTokens)*time.Second/wholeTokensPerSecond
		return t
	}
	t.FirstOutput = m.firstOutput(own, t.FirstByte, now)
	if by := m.outputBy(); by.Before(m.req.Deadline) && (t.FirstOutput == 0 || by.Sub(now) < t.FirstOutput) {
		t.FirstOutput = by.Sub(now)
	}
	return t
}

// firstOutput is one attempt's bound from dispatch to its first output. Without it a
// provider that only trickles comments would keep the request until nobody else had
// time left to answer. A deployment says it outright; one that says how long it may be
// silent gets that much after its first byte; any other gets half of what is left, as
// long as another route could use the rest. 0 is no bound of its own.
func (m *Machine) firstOutput(own catalog.Timeouts, firstByte time.Duration, now time.Time) time.Duration {
	switch {
	case own.FirstOutput > 0:
		return time.Duration(own.FirstOutput)
	case own.StreamIdle > 0:
		return firstByte + time.Duration(own.StreamIdle)
	case !m.lastUsable():
		return m.outputBy().Sub(now) / 2
	}
	return 0
}

// outputBy is when the request must have its first output at the latest: the
// deadline of all, or for a stream first_output_deadline (D10).
func (m *Machine) outputBy() time.Time {
	if !m.req.Stream {
		return m.req.Deadline
	}
	begun := m.req.Deadline.Add(-time.Duration(m.req.Admitted.DeadlineMS) * time.Millisecond)
	if by := begun.Add(DefaultFirstOutputDeadline); by.Before(m.req.Deadline) {
		return by
	}
	return m.req.Deadline
}
