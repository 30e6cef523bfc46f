package circuit

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
)

var start = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// at is a moment so many seconds after start.
func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

var (
	serverError = Cause{Class: failure.ServerError, Status: 503}
	refused     = Cause{Class: failure.ConnectError}

	success = Signal{Effect: Success}
	neutral = Signal{Effect: Neutral}
	failed  = Signal{Effect: Failed, Cause: serverError}
)

// step is one thing that happens to a circuit and what must be true then.
type step struct {
	at float64
	// call asks for a call and takes it when admitted.
	call bool
	// signal is observed otherwise.
	signal Signal
	// refused and probe are what asking must say.
	refused, probe bool
	// until is when a refusal must say that asking may help, in seconds.
	until float64
	// state is where the circuit must stand afterwards; empty is closed.
	state State
	// becomes is the transition that must be reported.
	becomes State
}

func play(t *testing.T, p Policy, steps []step) *Circuit {
	t.Helper()
	var c Circuit
	for i, s := range steps {
		now := at(s.at)
		var change Change
		if s.call {
			pass, probe, until := c.Ask(now)
			if pass == s.refused || probe != s.probe {
				t.Fatalf("step %d: pass %v, probe %v", i, pass, probe)
			}
			if s.refused && !until.Equal(at(s.until)) {
				t.Fatalf("step %d: until %v, want %v", i, until.Sub(start), s.until)
			}
			if pass {
				change = c.Take(now)
			}
		} else {
			change = c.Observe(s.signal, p, now)
		}
		if change.To != s.becomes {
			t.Fatalf("step %d: became %q, want %q", i, change.To, s.becomes)
		}
		want := s.state
		if want == "" {
			want = Closed
		}
		if got := c.State(now); got != want {
			t.Fatalf("step %d: %s, want %s", i, got, want)
		}
	}
	return &c
}

// TestRouteCircuit_H1 walks through every sentence of the rule.
//
// Rules: H1.
func TestRouteCircuit_H1(t *testing.T) {
	for name, steps := range map[string][]step{
		"two failures in a row open for thirty seconds": {
			{at: 0, signal: failed},
			{at: 1, call: true},
			{at: 2, signal: failed, becomes: Open, state: Open},
			{at: 31.9, call: true, refused: true, until: 32, state: Open},
		},
		"a success in between is not in a row": {
			{at: 0, signal: failed},
			{at: 1, signal: success},
			{at: 2, signal: failed},
		},
		"a neutral outcome in between is": {
			{at: 0, signal: failed},
			{at: 1, signal: neutral},
			{at: 2, signal: failed, becomes: Open, state: Open},
		},
		"then one probe, and the others wait": {
			{at: 0, signal: failed},
			{at: 0, signal: failed, becomes: Open, state: Open},
			{at: 30, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
			{at: 31, call: true, refused: true, until: 90, state: HalfOpen},
		},
		"a success closes it outright": {
			{at: 0, signal: failed},
			{at: 0, signal: failed, becomes: Open, state: Open},
			{at: 30, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
			{at: 31, signal: success, becomes: Closed},
			{at: 32, signal: failed},
			{at: 33, call: true},
		},
		"a failed probe opens it again at once": {
			{at: 0, signal: failed},
			{at: 0, signal: failed, becomes: Open, state: Open},
			{at: 30, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
			{at: 31, signal: failed, becomes: Open, state: Open},
			{at: 60, call: true, refused: true, until: 61, state: Open},
			{at: 61, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
		},
		"a neutral outcome gives the probe back": {
			{at: 0, signal: failed},
			{at: 0, signal: failed, becomes: Open, state: Open},
			{at: 30, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
			{at: 31, signal: neutral, state: HalfOpen},
			{at: 31, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
		},
		"so does a throttle, which has its own window": {
			{at: 0, signal: failed},
			{at: 0, signal: failed, becomes: Open, state: Open},
			{at: 30, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
			{at: 31, signal: Signal{Effect: Throttle, For: time.Minute}, state: HalfOpen},
			{at: 32, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
		},
		"a probe that never reports does not keep the route shut": {
			{at: 0, signal: failed},
			{at: 0, signal: failed, becomes: Open, state: Open},
			{at: 30, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
			{at: 90, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
		},
		"what calls from before say changes nothing": {
			{at: 0, signal: failed},
			{at: 0, signal: failed, becomes: Open, state: Open},
			{at: 20, signal: failed, state: Open},
			{at: 21, signal: success, state: Open},
			{at: 29, call: true, refused: true, until: 30, state: Open},
			{at: 30, signal: success, state: HalfOpen},
			{at: 30, call: true, probe: true, becomes: HalfOpen, state: HalfOpen},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, RoutePolicy(0, 0, 0), steps) })
	}
}

// TestOldFailuresAreDropped_H7: a slow trickle never adds up, a burst does.
//
// Rules: H7.
func TestOldFailuresAreDropped_H7(t *testing.T) {
	p := RoutePolicy(3, 30*time.Second, time.Minute)
	play(t, p, []step{
		{at: 0, signal: failed},
		{at: 20, signal: failed},
		{at: 40, signal: failed},
		{at: 60, signal: failed},
		{at: 80, signal: failed},
		{at: 81, signal: failed, becomes: Open, state: Open},
		{at: 82, call: true, refused: true, until: 141, state: Open},
	})
}

// TestOpensAtOnce_H3 and without any traffic before (H10).
//
// Rules: H3.
func TestOpensAtOnce_H3(t *testing.T) {
	play(t, RoutePolicy(0, 0, 0), []step{
		{at: 0, signal: Signal{Effect: FailedAtOnce, Cause: Cause{Class: failure.DeploymentGone, Status: 404}}, becomes: Open, state: Open},
		{at: 1, call: true, refused: true, until: 30, state: Open},
	})
}

// TestEndpointBackOff_H4: five in a row that nobody reaches, doubling from 30 s to
// 600 s by failed probes, and back to 30 s after a success.
//
// Rules: H4.
func TestEndpointBackOff_H4(t *testing.T) {
	unreachable := Signal{Effect: Failed, Cause: refused}
	var c Circuit
	p := EndpointPolicy()
	for i := range 4 {
		if change := c.Observe(unreachable, p, at(float64(i))); change.To != "" {
			t.Fatalf("opened after %d", i+1)
		}
	}
	now := at(10)
	change := c.Observe(unreachable, p, now)
	for i, want := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
		if got := change.Until.Sub(now); change.To != Open || got != want*time.Second {
			t.Fatalf("opening %d: %q for %v, want %v s", i+1, change.To, got, want)
		}
		now = change.Until
		c.Take(now)
		change = c.Observe(unreachable, p, now)
	}
	c.Take(change.Until)
	c.Observe(success, p, change.Until)
	for range 5 {
		change = c.Observe(unreachable, p, now)
	}
	if got := change.Until.Sub(now); got != 30*time.Second {
		t.Errorf("opened for %v after a success, want 30 s", got)
	}
}

// TestEndpointNeedsThreeCallers_H4: one caller's bad request that crashes a
// provider cannot close it for everyone.
//
// Rules: H4.
func TestEndpointNeedsThreeCallers_H4(t *testing.T) {
	seen := func(by string) Signal { return Signal{Effect: FailedFor, Cause: serverError, Caller: by} }
	for name, steps := range map[string][]step{
		"one caller never": {
			{at: 0, signal: seen("a")},
			{at: 1, signal: seen("a")},
			{at: 2, signal: seen("a")},
			{at: 3, signal: seen("a")},
			{at: 4, signal: seen("a")},
			{at: 5, signal: seen("a")},
		},
		"two callers never": {
			{at: 0, signal: seen("a")}, {at: 1, signal: seen("b")}, {at: 2, signal: seen("a")}, {at: 3, signal: seen("b")},
		},
		"three callers": {
			{at: 0, signal: seen("a")}, {at: 60, signal: seen("b")}, {at: 120, signal: seen("c"), becomes: Open, state: Open},
		},
		"not within the window": {
			{at: 0, signal: seen("a")}, {at: 60, signal: seen("b")}, {at: 121, signal: seen("c")},
		},
		"an answer in between": {
			{at: 0, signal: seen("a")}, {at: 1, signal: seen("b")}, {at: 2, signal: success}, {at: 3, signal: seen("c")},
		},
		"are not unreachable": {
			{at: 0, signal: Signal{Effect: Failed, Cause: refused}},
			{at: 0, signal: Signal{Effect: Failed, Cause: refused}},
			{at: 0, signal: Signal{Effect: Failed, Cause: refused}},
			{at: 0, signal: Signal{Effect: Failed, Cause: refused}},
			{at: 1, signal: seen("a")},
			{at: 2, signal: Signal{Effect: Failed, Cause: refused}},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, EndpointPolicy(), steps) })
	}
}

// TestAnyAnswerHealsTheUnreachable_H4: a 4xx proves that the address answers, and
// nothing about the 5xx that another circuit opened on.
//
// Rules: H4.
func TestAnyAnswerHealsTheUnreachable_H4(t *testing.T) {
	for name, tc := range map[string]struct {
		cause Cause
		want  State
	}{"unreachable": {refused, Closed}, "5xx": {serverError, HalfOpen}} {
		t.Run(name, func(t *testing.T) {
			var c Circuit
			p := EndpointPolicy()
			c.Observe(Signal{Effect: FailedAtOnce, Cause: tc.cause}, p, at(0))
			c.Take(at(30))
			c.Observe(Signal{Effect: Reached}, p, at(31))
			if got := c.State(at(31)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if pass, _, _ := c.Ask(at(31)); !pass {
				t.Error("the probe was not given back")
			}
		})
	}
}

// TestThrottleWindow_H2: its own window, never the failure circuit's, and never
// shortened.
//
// Rules: H2.
func TestThrottleWindow_H2(t *testing.T) {
	var c Circuit
	p := RoutePolicy(0, 0, 0)
	throttle := func(d time.Duration) Signal { return Signal{Effect: Throttle, For: d} }
	if change := c.Observe(throttle(60*time.Second), p, at(0)); !change.Throttle || !change.Until.Equal(at(60)) {
		t.Fatalf("%+v", change)
	}
	if change := c.Observe(throttle(30*time.Second), p, at(1)); change.Throttle {
		t.Errorf("a later, shorter window counted: %+v", change)
	}
	if c.State(at(2)) != Closed || !c.Throttled(at(59)) || c.Throttled(at(60)) {
		t.Error("the window is not the one that was asked for")
	}
	c.Observe(failed, p, at(2))
	c.Observe(throttle(90*time.Second), p, at(2))
	if change := c.Observe(failed, p, at(3)); change.To != Open {
		t.Error("a throttle in between must not hide two failures in a row")
	}
	c.Take(at(33))
	if c.Observe(success, p, at(34)); !c.Throttled(at(91)) {
		t.Error("closing the circuit ended the throttle window")
	}
}

// TestLastResort_H8: one a route in open_for, and its success closes the circuit.
//
// Rules: H8.
func TestLastResort_H8(t *testing.T) {
	var c Circuit
	p := RoutePolicy(0, 0, 0)
	c.Observe(Signal{Effect: FailedAtOnce, Cause: serverError}, p, at(0))
	if pass, _ := c.AskLastResort(p.OpenFor, at(1)); !pass {
		t.Fatal("the first last resort was refused")
	}
	c.TakeLastResort(at(1))
	c.Take(at(1))
	c.Observe(neutral, p, at(2))
	if pass, until := c.AskLastResort(p.OpenFor, at(30)); pass || !until.Equal(at(31)) {
		t.Errorf("a second within open_for: %v, until %v", pass, until)
	}
	if pass, _ := c.AskLastResort(p.OpenFor, at(31)); !pass {
		t.Error("refused after open_for")
	}
	c.TakeLastResort(at(29))
	c.Take(at(29))
	if change := c.Observe(failed, p, at(29.5)); change.To != Open || !change.Until.Equal(at(59.5)) {
		t.Errorf("a failed last resort: %+v", change)
	}
	c.Take(at(40))
	if change := c.Observe(success, p, at(41)); change.To != Closed || c.State(at(41)) != Closed {
		t.Errorf("a last resort that served: %+v", change)
	}
}
