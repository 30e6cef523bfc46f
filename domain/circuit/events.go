package circuit

import "time"

// Name is which circuit an event is about. Key is the circuit's identity (see
// Identity) and the end of its stream; the rest is for people.
type Name struct {
	Kind       Kind   `json:"kind"`
	Key        string `json:"key"`
	Provider   string `json:"provider"`
	Model      string `json:"model,omitempty"`
	Deployment string `json:"deployment,omitempty"`
	// Credential is the id of a key of the pool, never the key.
	Credential string `json:"credential,omitempty"`
	Masked     bool   `json:"masked,omitempty"`
}

// Stream is the circuit's stream in the log. Workers share it; the envelope says
// which worker's circuit it was.
func (n Name) Stream() string { return "circuit/" + string(n.Kind) + "/" + n.Key }

// CircuitOpened closes a route, an endpoint or a credential to calls until a time.
type CircuitOpened struct {
	Name
	Cause Cause     `json:"cause"`
	Until time.Time `json:"until"`
	// Trips counts the openings since the last success: the back-off's exponent.
	Trips int `json:"trips"`
}

// CircuitHalfOpened says that a probe was let through, and until when it keeps
// others out.
type CircuitHalfOpened struct {
	Name
	// Cause is what had opened the circuit.
	Cause Cause     `json:"cause"`
	Until time.Time `json:"until"`
}

// CircuitClosed says that a probe succeeded.
type CircuitClosed struct {
	Name
	// Cause is what had opened the circuit.
	Cause Cause `json:"cause"`
}

// ThrottleWindowOpened says that a provider asked not to be called until a time.
// It is not an opened circuit (H2). On a credential it parks the key (W18).
type ThrottleWindowOpened struct {
	Name
	Cause Cause     `json:"cause"`
	Until time.Time `json:"until"`
}

// Change is a transition of one circuit; its zero value is none.
type Change struct {
	To State
	// Throttle is set instead of To when a throttle window opened or grew.
	Throttle bool
	// Exhausted and Funded are set instead when an account ran out of funds, or was found
	// to have some again (H12).
	Exhausted, Funded bool
	Cause             Cause
	Until             time.Time
	Trips             int
	SecretID          string
}

// Event is the change as the log has it, nil for none.
func (c Change) Event(n Name) any {
	until := c.Until.UTC()
	switch {
	case c.Throttle:
		return ThrottleWindowOpened{Name: n, Cause: c.Cause, Until: until}
	case c.Exhausted:
		return AccountExhausted{Name: n, Cause: c.Cause, SecretID: c.SecretID, Until: until}
	case c.Funded:
		return AccountFunded{Name: n}
	case c.To == Open:
		return CircuitOpened{Name: n, Cause: c.Cause, Until: until, Trips: c.Trips}
	case c.To == HalfOpen:
		return CircuitHalfOpened{Name: n, Cause: c.Cause, Until: until}
	case c.To == Closed:
		return CircuitClosed{Name: n, Cause: c.Cause}
	}
	return nil
}
