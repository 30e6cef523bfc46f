package health

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// Claim implements walk.World: it reads memory only, and says which circuit is in
// the way (H9).
func (r *Registry) Claim(rung *walk.Rung, credential string, pass walk.Pass, now time.Time) walk.Verdict {
	l := r.lane(rung, credential, now)
	if l == nil || l.free() {
		return walk.Verdict{}
	}
	l.lock()
	defer l.unlock(now)
	if pass == walk.LastResort {
		return r.lastResort(l, rung, now)
	}
	for _, e := range l.entries() {
		if refused, ok := e.ask(pass, now); !ok {
			return refused
		}
	}
	return walk.Verdict{Probe: r.take(l, now)}
}

// ask is whether one circuit lets an ordinary call or a redial pass. It needs
// e.mu.
func (e *entry) ask(pass walk.Pass, now time.Time) (walk.Verdict, bool) {
	c := &e.circuit
	if ok, _, until := c.Ask(now); !ok {
		reason := request.SkipBreakerOpen
		if e.name.Kind == circuit.Credential {
			reason = request.SkipCredentialOpen
		}
		return e.refusal(reason, c.Cause(), until), false
	}
	// A throttle window keeps a route shut (H2). A throttled credential is parked
	// instead: put aside by the walk, and tried all the same when the whole pool is
	// (W18). A redial has waited for just this route (T5).
	if e.name.Kind == circuit.Route && pass != walk.Redial && c.Throttled(now) {
		return e.refusal(request.SkipThrottleWindow, c.ThrottleCause(), c.ThrottledUntil()), false
	}
	return walk.Verdict{}, true
}

func (e *entry) refusal(reason request.SkipReason, cause circuit.Cause, until time.Time) walk.Verdict {
	detail := map[string]string{
		"circuit": string(e.name.Kind), "until": until.UTC().Format(time.RFC3339),
		// Where its history is, for whoever asks why.
		"stream": e.name.Stream(),
	}
	if e.name.Credential != "" {
		detail["key"] = e.name.Credential
	}
	return walk.Verdict{Skip: reason, Cause: cause.Class, Until: until, Detail: detail, ThisKey: e.name.Credential != ""}
}

// lastResort lets a call through whatever its circuits say, once a route in its
// open window (H8), but not through a throttle: being asked to stay away is no
// guess about health. It needs the lane's locks.
func (r *Registry) lastResort(l *lane, rung *walk.Rung, now time.Time) walk.Verdict {
	for _, e := range l.entries() {
		if c := &e.circuit; e.name.Kind == circuit.Route && c.Throttled(now) {
			return e.refusal(request.SkipThrottleWindow, c.ThrottleCause(), c.ThrottledUntil())
		}
	}
	c := &l.route.circuit
	if ok, until := c.AskLastResort(routePolicy(rung).OpenFor, now); !ok {
		return l.route.refusal(request.SkipBreakerOpen, c.Cause(), until)
	}
	c.TakeLastResort(now)
	return walk.Verdict{Probe: r.take(l, now)}
}

// take lets a call pass all circuits of a lane and reports whether it is the probe
// of one. It needs the lane's locks.
func (r *Registry) take(l *lane, now time.Time) (probe bool) {
	for _, e := range l.entries() {
		change := e.circuit.Take(now)
		probe = probe || change.To == circuit.HalfOpen
		r.note(e.name, change, now)
	}
	return probe
}

// Observe records how an attempt on a route ended: f is nil for an answer that
// ended properly, and caller is who had asked (H4). A failure that is nobody's
// fault but the caller's changes nothing and gives a probe back.
func (r *Registry) Observe(rung *walk.Rung, credential, caller string, f *failure.Failure, now time.Time) {
	l := r.lane(rung, credential, now)
	if l == nil {
		return
	}
	s := circuit.Judge(f, caller)
	r.aboutFunds(&s.Credential, rung, credential)
	policy := routePolicy(rung)
	r.observe(l.credential, s.Credential, circuit.CredentialPolicy(), now)
	r.observe(l.byKey, s.ByKey, policy, now)
	r.observe(l.route, s.Route, policy, now)
	r.observe(l.endpoint, s.Endpoint, circuit.EndpointPolicy(), now)
}

func (r *Registry) observe(e *entry, s circuit.Signal, p circuit.Policy, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change := e.circuit.Observe(s, p, now)
	e.settle(now)
	if change.Exhausted {
		r.noteExhausted(change.Until)
	}
	// Under the lock, so that the log has a circuit's transitions in their order.
	r.note(e.name, change, now)
}

func routePolicy(rung *walk.Rung) circuit.Policy {
	c := rung.Policy.Circuit
	if c == nil {
		return circuit.RoutePolicy(0, 0, 0)
	}
	return circuit.RoutePolicy(c.FailuresToOpen, time.Duration(c.Window), time.Duration(c.OpenFor))
}

// free reports that no circuit of the lane has to be asked.
func (l *lane) free() bool {
	return !l.credential.shut.Load() && !l.byKey.shut.Load() && !l.route.shut.Load() && !l.endpoint.shut.Load()
}

// lock takes a lane's circuits, in an order by kind that every lane has.
func (l *lane) lock() {
	for _, e := range l.entries() {
		e.mu.Lock()
	}
}

func (l *lane) unlock(now time.Time) {
	for _, e := range l.entries() {
		e.settle(now)
		e.mu.Unlock()
	}
}
