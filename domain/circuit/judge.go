package circuit

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
)

// Effect is what an outcome does to one circuit.
type Effect uint8

// Neutral changes nothing and gives a probe back. Success is an answer that ended
// properly. Reached is an answer of any kind from an endpoint. Failed counts
// towards opening, FailedAtOnce opens, FailedFor counts by who saw it. Throttle
// opens the throttle window. OutOfFunds is about the account behind a credential.
const (
	Neutral Effect = iota
	Success
	Reached
	Failed
	FailedAtOnce
	FailedFor
	Throttle
	OutOfFunds
)

// Signal is an outcome as one circuit sees it.
type Signal struct {
	Effect Effect
	Cause  Cause
	// Caller is who saw it, for FailedFor.
	Caller string
	// For is the length of the window, for Throttle.
	For time.Duration
	// SecretID tells which secret was used, for OutOfFunds; Judge does not know it.
	SecretID string
}

// Cause is why a circuit changed: our own words, never a provider's (E10).
type Cause struct {
	Class failure.Class `json:"class,omitempty"`
	// Status is the provider's HTTP status, 0 when there was none.
	Status int `json:"status,omitempty"`
}

// Answered reports whether the provider had answered at all.
func (c Cause) Answered() bool { return c.Status > 0 }

// Signals is what one outcome means to each circuit of a route.
//
// A route is a deployment over a connection, and an operator's connection has a
// pool of keys. What a key alone can be blamed for (a throttle, a refusal, an empty
// account) stays with the route by that key, so that the next key of the pool may
// serve at once (W17, H5); what the deployment is to blame for is the whole
// route's, so that a pool of ten keys does not need twenty failures to open.
type Signals struct {
	// ByKey is for the route by one key, Route for the route by any.
	ByKey, Route Signal
	Endpoint     Signal
	Credential   Signal
}

// Throttle windows (H2). A provider that says no time gets the default; one that
// says an absurd time is believed within bounds.
const (
	DefaultThrottleWindow = 30 * time.Second
	MinThrottleWindow     = 5 * time.Second
	MaxThrottleWindow     = 6 * time.Hour
)

// Judge reads an outcome for each circuit. f is nil for an answer that ended
// properly; caller is the organization and key that sent the request.
func Judge(f *failure.Failure, caller string) Signals {
	if f == nil {
		ok := Signal{Effect: Success}
		return Signals{ByKey: ok, Route: ok, Endpoint: ok, Credential: ok}
	}
	cause := Cause{Class: f.Class, Status: f.Status}
	s := Signals{Endpoint: endpointSignal(f, cause, caller), Credential: credentialSignal(f, cause)}
	switch failure.Of(f.Class).Health {
	case failure.Operational:
		s.Route = Signal{Effect: Failed, Cause: cause}
	case failure.OpensAtOnce:
		at := &s.ByKey
		if f.Class == failure.DeploymentGone {
			at = &s.Route
		}
		*at = Signal{Effect: FailedAtOnce, Cause: cause}
	case failure.ThrottleWindow:
		s.ByKey = Signal{Effect: Throttle, Cause: cause, For: throttleWindow(f.Retry)}
	}
	return s
}

func throttleWindow(r failure.Retry) time.Duration {
	if !r.Told {
		return DefaultThrottleWindow
	}
	return min(max(r.After, MinThrottleWindow), MaxThrottleWindow)
}

// endpointSignal: an endpoint is down when nobody reaches it or many callers get
// 5xx. A refused or throttled key never reaches its circuit (H5).
func endpointSignal(f *failure.Failure, cause Cause, caller string) Signal {
	switch f.Class {
	case failure.ConnectError, failure.TimeoutFirstByte, failure.TimeoutAttempt:
		if cause.Answered() {
			// It began to answer and did not end: reachable, whatever else it is.
			return Signal{Effect: Reached}
		}
		return Signal{Effect: Failed, Cause: cause}
	case failure.ServerError:
		return Signal{Effect: FailedFor, Cause: cause, Caller: caller}
	}
	if cause.Answered() {
		return Signal{Effect: Reached}
	}
	return Signal{}
}

// credentialSignal: a key that was refused is left alone for long; one that was
// throttled is parked exactly as long as the provider said, and not at all when it
// said nothing (H5, W18). One whose account is out of funds stays in use where there
// is nothing better (H12).
func credentialSignal(f *failure.Failure, cause Cause) Signal {
	switch f.Class {
	case failure.ProviderAuth, failure.CustomerCredential:
		return Signal{Effect: FailedAtOnce, Cause: cause}
	case failure.ProviderQuota:
		return Signal{Effect: OutOfFunds, Cause: cause}
	case failure.Throttled:
		if f.Retry.Told {
			return Signal{Effect: Throttle, Cause: cause, For: min(f.Retry.After, MaxThrottleWindow)}
		}
	}
	return Signal{}
}
