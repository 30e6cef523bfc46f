// Package circuit decides whether a route may be called, from how its last calls
// ended (section H). It is pure: time is an argument and every circuit is a value
// that its owner guards.
//
// There are three kinds of circuit, each with one job (D1). A route's remembers
// failures of one deployment over one connection; an endpoint's remembers that a
// provider's address is down, whoever calls it; a credential's remembers that one
// key was refused or throttled. They are the same machine under different
// policies: Judge decides what one outcome means to each.
package circuit

import (
	"slices"
	"time"
)

// Kind is what a circuit belongs to.
type Kind string

// The kinds of GET /v1/health.
const (
	Route      Kind = "route"
	Endpoint   Kind = "endpoint"
	Credential Kind = "credential"
)

// State is where a circuit stands.
type State string

// The states of the vocabulary. A circuit whose window has ended is half-open,
// whether its probe is running or nobody has come yet.
const (
	Closed   State = "closed"
	Open     State = "open"
	HalfOpen State = "half_open"
)

// Policy is when a circuit opens and for how long.
type Policy struct {
	// FailuresToOpen is how many failures in a row open it.
	FailuresToOpen int
	// Window drops failures that are older; 0 keeps them until a success (H7).
	Window time.Duration
	// OpenFor is the first open window; each failed probe doubles it up to
	// MaxOpenFor. Where both are equal it stays the same.
	OpenFor, MaxOpenFor time.Duration
	// CallersToOpen is how many different callers must have seen a failure within
	// CallersWindow, for failures that a single caller's request may cause (H4).
	CallersToOpen int
	CallersWindow time.Duration
}

// Defaults of H1, H4 and H5.
const (
	DefaultFailuresToOpen = 2
	DefaultOpenFor        = 30 * time.Second

	endpointFailuresToOpen = 5
	endpointOpenFor        = 30 * time.Second
	endpointMaxOpenFor     = 600 * time.Second
	endpointCallersToOpen  = 3
	endpointCallersWindow  = 120 * time.Second

	credentialOpenFor = 5 * time.Minute
)

// maxFailuresToOpen bounds what a circuit remembers, whatever was configured.
const maxFailuresToOpen = 100

// ProbeLease is how long a probe keeps others out. One that never reports, because
// its reservation was refused or its worker's request died, must not keep a route
// shut; nor must a probe that streams for minutes.
const ProbeLease = 60 * time.Second

// RoutePolicy is the policy of a route's circuit; zeros have the defaults of H1.
func RoutePolicy(failuresToOpen int, window, openFor time.Duration) Policy {
	if failuresToOpen <= 0 {
		failuresToOpen = DefaultFailuresToOpen
	}
	if openFor <= 0 {
		openFor = DefaultOpenFor
	}
	return Policy{
		FailuresToOpen: min(failuresToOpen, maxFailuresToOpen), Window: max(window, 0),
		OpenFor: openFor, MaxOpenFor: openFor,
	}
}

// EndpointPolicy is the policy of every endpoint's circuit (H4).
func EndpointPolicy() Policy {
	return Policy{
		FailuresToOpen: endpointFailuresToOpen, OpenFor: endpointOpenFor, MaxOpenFor: endpointMaxOpenFor,
		CallersToOpen: endpointCallersToOpen, CallersWindow: endpointCallersWindow,
	}
}

// CredentialPolicy is the policy of every credential's circuit (H5).
func CredentialPolicy() Policy {
	return Policy{FailuresToOpen: 1, OpenFor: credentialOpenFor, MaxOpenFor: credentialOpenFor}
}

// Circuit is one circuit's state. The zero value is closed and knows of nothing.
type Circuit struct {
	// failures are the last failures in a row, oldest first, at most FailuresToOpen.
	failures []time.Time
	// callers are the different callers that saw a failure lately, at most
	// CallersToOpen.
	callers []sighting

	open  bool
	until time.Time
	// trips counts the openings since the last success.
	trips int
	cause Cause
	// trial is when the probe that is running was let through; zero: none is.
	trial time.Time
	// lastResort is when a call was last let through an open circuit (H8).
	lastResort time.Time

	throttledUntil time.Time
	throttleCause  Cause

	// account is a credential's: whether the account behind it has funds.
	account account
}

// sighting is a failure that one caller saw.
type sighting struct {
	caller string
	at     time.Time
}

// State is where the circuit stands at a time.
func (c *Circuit) State(now time.Time) State {
	switch {
	case !c.open:
		return Closed
	case now.Before(c.until):
		return Open
	default:
		return HalfOpen
	}
}

// Until is when the open window ends and Cause what opened it, while the circuit
// is not closed.
func (c *Circuit) Until() time.Time { return c.until }

// Cause is what opened the circuit last.
func (c *Circuit) Cause() Cause { return c.cause }

// ThrottledUntil is when the throttle window ends; it may be long past.
func (c *Circuit) ThrottledUntil() time.Time { return c.throttledUntil }

// ThrottleCause is what opened the throttle window last.
func (c *Circuit) ThrottleCause() Cause { return c.throttleCause }

// Throttled reports whether the throttle window is open. It is not the failure
// circuit and never opens that one (H2).
func (c *Circuit) Throttled(now time.Time) bool { return now.Before(c.throttledUntil) }

// Free reports whether a call may pass without asking: nothing is open and no
// throttle window was, as far as anybody has looked.
func (c *Circuit) Free(now time.Time) bool { return !c.open && !c.Throttled(now) }

// Ask is whether a call may pass now, whether it would be the half-open probe, and
// if it may not, until when. It changes nothing: a call must pass several circuits,
// and a probe must not be spent on one while another says no.
func (c *Circuit) Ask(now time.Time) (pass, probe bool, until time.Time) {
	switch c.State(now) {
	case Closed:
		return true, false, time.Time{}
	case Open:
		return false, false, c.until
	default:
		if lease := c.trial.Add(ProbeLease); !c.trial.IsZero() && now.Before(lease) {
			return false, false, lease
		}
		return true, true, time.Time{}
	}
}

// AskLastResort is whether a call may pass although every route of its plan is
// suppressed: once in openFor, so that a model never fails on circuit state alone
// while its provider has recovered, and a dead provider is not hammered (H8).
func (c *Circuit) AskLastResort(openFor time.Duration, now time.Time) (pass bool, until time.Time) {
	until = c.lastResort.Add(openFor)
	return c.lastResort.IsZero() || !now.Before(until), until
}

// TakeLastResort spends what AskLastResort granted.
func (c *Circuit) TakeLastResort(now time.Time) { c.lastResort = now }

// Take lets a call through that Ask or AskLastResort admitted, and says when the
// circuit became half-open by it. What the call's outcome is decides.
func (c *Circuit) Take(now time.Time) Change {
	if !c.open {
		return Change{}
	}
	c.trial = now
	if now.Before(c.until) {
		return Change{}
	}
	return Change{To: HalfOpen, Until: now.Add(ProbeLease), Cause: c.cause}
}

// Observe records what an outcome means to this circuit. It returns the transition
// that it made, if any.
func (c *Circuit) Observe(s Signal, p Policy, now time.Time) Change {
	switch s.Effect {
	case Success:
		return c.succeeded()
	case Reached:
		return c.reached()
	case Failed:
		return c.failed(s.Cause, p, now)
	case FailedAtOnce:
		return c.opened(s.Cause, p, now)
	case FailedFor:
		return c.failedFor(s, p, now)
	case Throttle:
		return c.throttled(s, now)
	case OutOfFunds:
		return c.exhausted(s, now)
	default:
		c.giveBack()
		return Change{}
	}
}

// giveBack ends a probe that proved nothing: another may be tried at once (H1). A
// last resort is not given back: its bound holds whatever came of it.
func (c *Circuit) giveBack() { c.trial = time.Time{} }

// succeeded closes the circuit outright (H1). Without a probe under way the answer
// belongs to a call from before the circuit opened, which says nothing of now.
func (c *Circuit) succeeded() Change {
	if !c.open {
		c.failures, c.callers = nil, nil
		return c.funded()
	}
	if c.trial.IsZero() {
		return Change{}
	}
	closed := Change{To: Closed, Cause: c.cause}
	c.reset()
	return closed
}

// reset forgets every failure, an account without funds among them. The throttle
// window is not one.
func (c *Circuit) reset() {
	*c = Circuit{throttledUntil: c.throttledUntil, throttleCause: c.throttleCause}
}

// reached is any answer at all: it ends a row of failures to reach, and heals a
// circuit that such a row had opened. Of one that opened on answers it says nothing.
func (c *Circuit) reached() Change {
	c.failures = nil
	if c.open && !c.cause.Answered() {
		return c.succeeded()
	}
	c.giveBack()
	return Change{}
}

func (c *Circuit) failed(cause Cause, p Policy, now time.Time) Change {
	if c.open {
		return c.opened(cause, p, now)
	}
	c.failures = append(c.failures, now)
	if p.Window > 0 {
		// A slow trickle never adds up to a trip (H7).
		c.failures = slices.DeleteFunc(c.failures, func(at time.Time) bool { return now.Sub(at) > p.Window })
	}
	if len(c.failures) < p.FailuresToOpen {
		return Change{}
	}
	return c.opened(cause, p, now)
}

// failedFor counts a failure by who saw it: one caller's bad request that crashes
// a provider must not close it for everyone (H4).
func (c *Circuit) failedFor(s Signal, p Policy, now time.Time) Change {
	c.failures = nil // an answer of 5xx is an answer: it was reached
	if c.open {
		return c.opened(s.Cause, p, now)
	}
	c.callers = slices.DeleteFunc(c.callers, func(seen sighting) bool {
		return seen.caller == s.Caller || now.Sub(seen.at) > p.CallersWindow
	})
	c.callers = append(c.callers, sighting{s.Caller, now})
	if len(c.callers) < p.CallersToOpen {
		return Change{}
	}
	return c.opened(s.Cause, p, now)
}

// opened opens the circuit, or opens it again after a failed probe. A failure
// while it is open and nothing was let through belongs to a call from before: the
// window stays as it is, or a burst of slow calls would keep pushing its end.
func (c *Circuit) opened(cause Cause, p Policy, now time.Time) Change {
	if c.open && c.trial.IsZero() {
		return Change{}
	}
	until := now.Add(backOff(p, c.trips))
	if c.open && until.Before(c.until) {
		until = c.until // a later, shorter window never shortens an earlier, longer one (H1)
	}
	c.open, c.until, c.cause, c.trial = true, until, cause, time.Time{}
	c.trips++
	return Change{To: Open, Until: until, Cause: cause, Trips: c.trips}
}

// backOff doubles OpenFor for each opening before this one, up to MaxOpenFor.
func backOff(p Policy, trips int) time.Duration {
	d := p.OpenFor
	for range trips {
		if d >= p.MaxOpenFor {
			break
		}
		d *= 2
	}
	return min(d, max(p.MaxOpenFor, p.OpenFor))
}

// throttled opens the throttle window, or makes it longer. The probe, if this was
// one, is given back: a throttle says nothing about failures.
func (c *Circuit) throttled(s Signal, now time.Time) Change {
	c.giveBack()
	until := now.Add(s.For)
	if s.For <= 0 || !until.After(c.throttledUntil) {
		return Change{}
	}
	c.throttledUntil, c.throttleCause = until, s.Cause
	return Change{Throttle: true, Until: until, Cause: s.Cause}
}
