package circuit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// signals draws any outcome that a circuit may see.
func signals() *rapid.Generator[Signal] {
	return rapid.Custom(func(t *rapid.T) Signal {
		return Signal{
			Effect: rapid.SampledFrom([]Effect{Neutral, Success, Reached, Failed, Failed, FailedAtOnce, FailedFor, Throttle}).Draw(t, "effect"),
			Cause:  rapid.SampledFrom([]Cause{serverError, refused}).Draw(t, "cause"),
			Caller: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "caller"),
			For:    time.Duration(rapid.IntRange(0, 90).Draw(t, "for")) * time.Second,
		}
	})
}

func policies() *rapid.Generator[Policy] {
	return rapid.Custom(func(t *rapid.T) Policy {
		return rapid.SampledFrom([]Policy{
			RoutePolicy(0, 0, 0), RoutePolicy(3, 20*time.Second, time.Minute), RoutePolicy(1, 0, 5*time.Second),
			EndpointPolicy(), CredentialPolicy(),
		}).Draw(t, "policy")
	})
}

// TestCircuitProperties drives a circuit, with its log beside it, through any
// history.
//
//   - An open window is never shortened but by a success (H1).
//   - A throttle window is never shortened at all (H2).
//   - A neutral outcome never changes what a caller or an operator can see but for
//     giving the probe back (H1).
//   - The log tells the same state at every moment (H11).
//   - What is remembered is bounded.
func TestCircuitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Circuit
		var log History
		name := Name{Kind: Route, Key: "k"}
		now := start
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			// The operator may change the policy under a running circuit.
			p := policies().Draw(t, "p")
			before, state := c, c.State(now)
			var change Change
			if rapid.Bool().Draw(t, "call") {
				if pass, _, _ := c.Ask(now); pass || rapid.Bool().Draw(t, "last resort") {
					change = c.Take(now)
				}
			} else {
				s := signals().Draw(t, "signal")
				change = c.Observe(s, p, now)
				if s.Effect == Neutral && (change != Change{} || c.State(now) != state || !c.until.Equal(before.until) || len(c.failures) != len(before.failures)) {
					t.Fatalf("a neutral outcome changed %+v to %+v", before, c)
				}
				if c.open && before.open && c.until.Before(before.until) {
					t.Fatalf("the open window was shortened from %v to %v", before.until, c.until)
				}
				if c.throttledUntil.Before(before.throttledUntil) {
					t.Fatalf("the throttle window was shortened")
				}
			}
			if e := change.Event(name); e != nil {
				log.Apply("w", e)
			}
			told := log.at("w", name)
			if told.State(now) != c.State(now) || told.Throttled(now) != c.Throttled(now) {
				t.Fatalf("the log says %+v, the circuit is %+v", told, c)
			}
			if c.open && (!told.until.Equal(c.until) || told.cause != c.cause || told.trips != c.trips) {
				t.Fatalf("the log says %+v, the circuit is %+v", told, c)
			}
			if len(c.failures) > endpointFailuresToOpen || len(c.callers) > endpointCallersToOpen {
				t.Fatalf("remembers %d failures, %d callers", len(c.failures), len(c.callers))
			}
		}
	})
}
