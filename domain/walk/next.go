package walk

import (
	"slices"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Start begins the walk: a refusal without any attempt, or the first call.
func (m *Machine) Start(now time.Time) Move {
	m.rungs = placed(m.rungs, m.req, func(r *Rung) bool { return m.world.Exhausted(r, now) })
	m.closeUnavailable()
	if m.nothingFree(now) {
		return m.refuse(noAllowance(), nil)
	}
	if refusal, skips := m.unservable(); refusal != "" {
		return m.refuse(m.refusedByAll(refusal, skips), skips)
	}
	m.say(m.req.Admitted)
	return m.advance(now)
}

// unservable is why no rung at all can ever serve the request: known before any
// attempt, so nothing is held and nobody is called (A3-A5, M3).
func (m *Machine) unservable() (request.Code, []request.RouteSkipped) {
	var skips []request.RouteSkipped
	seen := map[request.SkipReason]bool{}
	for i := range m.rungs {
		r := &m.rungs[i]
		reason, detail := m.unfit(r)
		if reason == "" && len(m.world.Credentials(r.Provider)) == 0 {
			reason = request.SkipCredentialMissing
		}
		if reason == "" {
			return "", nil
		}
		seen[reason] = true
		skips = append(skips, skipOf(r, reason, detail))
	}
	// The reason nearest to serving speaks: a rung that lacked only a price or a
	// key, or leave to be called, was otherwise fit.
	switch {
	case m.unavailable:
		return request.CodeChainUnavailable, skips
	case seen[request.SkipNotFree]:
		return request.CodeInsufficientQuota, skips
	case seen[request.SkipPriceUnknown]:
		return request.CodePriceUnknown, skips
	case seen[request.SkipCredentialMissing], seen[request.SkipBaseURLRefused]:
		return request.CodeNoRouteAllowed, skips
	case seen[request.SkipContextTooSmall]:
		return request.CodeContextLengthExceeded, skips
	case seen[request.SkipCapabilityMissing]:
		return request.CodeCapabilityUnavailable, skips
	default:
		return request.CodeChainUnavailable, skips
	}
}

func skipOf(r *Rung, reason request.SkipReason, detail map[string]string) request.RouteSkipped {
	s := request.RouteSkipped{Rung: r.Index, Model: r.Model, Reason: reason, Detail: detail}
	if r.Provider != nil {
		s.Provider = r.Provider.ID
	}
	if r.Deployment != nil {
		s.Masked = r.Deployment.Masked
	}
	return s
}

// advance looks at the rungs from the cursor on and calls the first that is
// usable now.
func (m *Machine) advance(now time.Time) Move {
	for ; m.cursor < len(m.rungs); m.leave() {
		if stop := m.spent(now); stop != nil {
			return *stop
		}
		r := &m.rungs[m.cursor]
		if move, ok := m.tryRung(r, now); ok {
			return move
		}
	}
	if m.mayLastResort() {
		m.lastResort, m.cursor = true, 0
		return m.advance(now)
	}
	return m.exhausted(now, "")
}

// leave moves the cursor to the next rung, where every count begins anew.
func (m *Machine) leave() {
	m.cursor++
	m.place = place{}
}

// tryRung calls a rung, or records why not.
func (m *Machine) tryRung(r *Rung, now time.Time) (Move, bool) {
	if reason, detail := m.unfit(r); reason != "" {
		return m.skip(r, reason, detail)
	}
	if !m.engaged(r) {
		reason, detail := notEngaged()
		return m.skip(r, reason, detail)
	}
	if m.req.Admitted.FreeOnly && m.offerOf(r.Model, now).Nothing() {
		return m.skip(r, request.SkipNotFree, nil)
	}
	if !m.place.reached {
		m.reach(r, now)
	}
	if m.place.keys.empty() {
		return m.skip(r, request.SkipCredentialMissing, nil)
	}
	if m.req.Fallback == FallbackNone && m.settledElsewhere(r) {
		return Move{}, false
	}
	pass := Ordinary
	if m.lastResort {
		pass = LastResort
	}
	return m.claim(r, pass, m.kindHere(r), now)
}

// claim takes the rung for a call if the circuits let it, with the first key that
// they let pass.
func (m *Machine) claim(r *Rung, pass Pass, kind request.AttemptKind, now time.Time) (Move, bool) {
	var refused Verdict
	for {
		key, ok := m.place.keys.next()
		if !ok {
			break
		}
		verdict := m.world.Claim(r, key, pass, now)
		if verdict.Skip == "" {
			if ordinary(kind) {
				m.place.ordinary++
			}
			return m.call(r, key, kindOf(kind, pass, verdict), now), true
		}
		if refused.Skip == "" {
			refused = verdict
		}
		m.noteWayOn(verdict.Until, now)
		if !verdict.ThisKey && verdict.Skip != request.SkipCredentialOpen {
			// The route itself is closed: another key of it would be too.
			break
		}
	}
	if !m.lastResort {
		m.noteOwn(r, refused.Cause)
	}
	return m.skip(r, refused.Skip, refused.Detail)
}

// ordinary reports whether a call counts against same_route_attempts (W9). Redials,
// rotations and the one repair have bounds of their own.
func ordinary(kind request.AttemptKind) bool {
	switch kind {
	case request.KindRedial, request.KindKeyRotation, request.KindRepair:
		return false
	}
	return true
}

// noteWayOn remembers the soonest moment at which a closed route may open (W20).
func (m *Machine) noteWayOn(until, now time.Time) {
	if wait := until.Sub(now); wait > 0 && (m.wayOn == 0 || wait < m.wayOn) {
		m.wayOn = wait
	}
}

func kindOf(kind request.AttemptKind, pass Pass, v Verdict) request.AttemptKind {
	switch {
	case kind == request.KindSurcharge:
		return kind // whatever else it is, it costs more
	case pass == LastResort:
		return request.KindLastResort
	case v.Probe:
		return request.KindProbe
	}
	return kind
}

// reach fixes what holds for the whole stay on a rung.
func (m *Machine) reach(r *Rung, now time.Time) {
	creds := m.world.Credentials(r.Provider)
	m.place = place{reached: true, keys: newKeyring(creds, m.world.FirstCredential(r.Provider, len(creds)), now)}
	m.place.allowance = m.redialAllowance(r)
	for _, parked := range m.place.keys.parkedIDs() {
		m.say(skipOf(r, request.SkipKeyParked, map[string]string{"key": parked}))
	}
}

// kindHere is why the next call of this rung is made, when it is the rung's first.
func (m *Machine) kindHere(r *Rung) request.AttemptKind {
	switch {
	case r.Surcharge != nil:
		return request.KindSurcharge
	case len(m.attempts) == 0:
		return request.KindFirst
	case !r.Root:
		return request.KindModelChange
	default:
		return request.KindFailover
	}
}

// settledElsewhere reports whether a request that may use no other route has had its
// route: one that was called, or would have been, had it been well.
func (m *Machine) settledElsewhere(r *Rung) bool {
	if len(m.attempts) > 0 {
		return m.current().rung != m.cursor
	}
	return slices.ContainsFunc(m.skips, func(s request.RouteSkipped) bool {
		return forHealth(s.Reason) && s.Rung != r.Index
	})
}

// skip records a route that was not called. Skips cost nothing (W15).
func (m *Machine) skip(r *Rung, reason request.SkipReason, detail map[string]string) (Move, bool) {
	if m.lastResort {
		// The first pass has said why; saying it twice would read as two looks.
		return Move{}, false
	}
	s := skipOf(r, reason, detail)
	m.skips = append(m.skips, s)
	m.say(s)
	if forHealth(reason) {
		m.pass()
		// A route that was just called and whose own failure shut it is listed already.
		if len(m.attempts) == 0 || m.current().rung != m.cursor {
			m.list(s.Masked, Summary{Provider: s.Provider, Model: s.Model, Failure: failure.Class(reason)})
		}
	}
	return Move{}, false
}

// pass notes that the walk leaves the rung it stands on behind.
func (m *Machine) pass() {
	if !slices.Contains(m.passed, m.cursor) {
		m.passed = append(m.passed, m.cursor)
	}
}

// depth is how many candidates in front of the one the walk stands on failed or were
// skipped for their health: 0 on the first, also when it is called as a last resort.
func (m *Machine) depth() int {
	n := 0
	for _, p := range m.passed {
		if p < m.cursor {
			n++
		}
	}
	return n
}

// spent ends the walk when the request has no attempt or no time left (W9, W10).
func (m *Machine) spent(now time.Time) *Move {
	if len(m.attempts) >= m.maxAttempts() {
		end := m.exhausted(now, "attempts_exhausted")
		return &end
	}
	if m.outputBy().Sub(now) < DefaultMinAttemptTime {
		end := m.finish(Answer{Code: request.CodeDeadlineExceeded, Retryable: true}, request.Failed, now, "time_exhausted")
		return &end
	}
	return nil
}

// maxAttempts bounds the whole request: the operator's limit of its root model,
// which a caller may only lower (W9).
func (m *Machine) maxAttempts() int {
	limit := DefaultMaxAttempts
	if len(m.rungs) > 0 && m.rungs[0].Policy.MaxAttempts > 0 {
		limit = m.rungs[0].Policy.MaxAttempts
	}
	if asked := m.req.Admitted.MaxAttempts; asked > 0 {
		limit = min(limit, asked)
	}
	return limit
}

// call reserves an attempt's worst case on a rung (M2).
func (m *Machine) call(r *Rung, key string, kind request.AttemptKind, now time.Time) Move {
	estimate := m.req.Admitted.Estimate
	estimate.MaxOutputTokens = OutputCeiling(r.Deployment, m.req.OutputTokens)
	funds, err := m.fund(r, estimate, now)
	if err != nil {
		return m.internal(now)
	}
	reserved := request.AttemptReserved{
		Attempt: len(m.attempts) + 1, Rung: r.Index, Kind: kind, Tenant: m.req.Admitted.Tenant,
		Provider: r.Provider.ID, Model: r.Model, Deployment: r.Deployment.ID, ProviderKey: key,
		CredentialOwner: r.owner(), FallbackKind: m.fallbackKind(r), FallbackDepth: m.depth(),
		Masked: r.Deployment.Masked, OnClientCancel: string(r.Provider.OnClientCancel), Estimate: estimate, Prices: r.Deployment.Prices, Reserved: funds.worst,
		Promotion: funds.offer, SurchargePercent: r.Surcharge, Holds: budget.Holds(funds.limits),
		Takes:     append(budget.Take(funds.limits, estimate.InputTokens), funds.takes...),
		Selection: r.selection(),
	}
	m.noteModelChange(r)
	m.attempts = append(m.attempts, attempt{reserved: reserved, rung: m.cursor, begun: now})
	m.say(reserved)
	c := &Call{
		Attempt: reserved.Attempt, Rung: *r, Key: key, Reserved: reserved,
		Stream: m.streams(estimate.MaxOutputTokens), WithoutSeals: m.repaired || m.sealedFor(r), Checks: funds.checks,
	}
	c.Timeouts = m.timeouts(r, estimate, c.Stream, now)
	say := m.spoken()
	c.Deltas = effects(say)
	return Move{Say: say, Call: c}
}

// sealedFor reports whether the request's reasoning is known to be another provider's
// than this rung's, where nobody could read it (K4). While nobody knows whose it is,
// the rung is asked.
func (m *Machine) sealedFor(r *Rung) bool {
	if m.req.Issuer == "" {
		return false
	}
	for i := range m.rungs {
		if d := m.rungs[i].Deployment; d != nil && d.ID == m.req.Issuer {
			return m.rungs[i].Provider.ID != r.Provider.ID
		}
	}
	// The issuer is not in the plan any more.
	return true
}

// streams decides whether the provider is asked for a stream (S11).
func (m *Machine) streams(ceiling int64) bool {
	switch {
	case m.req.Stream, m.req.Mode == Stream:
		return true
	case m.req.Mode == Whole:
		return false
	default:
		return ceiling > wholeCeilingTokens
	}
}

// effects are what a commit's events do to the budget counters.
func effects(say []event.Event) []budget.Delta {
	var deltas []budget.Delta
	for _, e := range say {
		deltas = append(deltas, budget.Effects(e)...)
	}
	return deltas
}

// noteModelChange makes the move to another model explicit (N22).
func (m *Machine) noteModelChange(r *Rung) {
	from := m.req.Admitted.CanonicalModel
	if n := len(m.attempts); n > 0 {
		from = m.attempts[n-1].reserved.Model
	}
	if from != r.Model {
		m.say(request.ModelChanged{From: from, To: r.Model, By: "chain"})
	}
}

// fallbackKind is how far this rung's answer is from what was asked (M11).
func (m *Machine) fallbackKind(r *Rung) request.FallbackKind {
	switch {
	case r.Surcharge != nil:
		return request.Surcharge
	case !r.Root:
		return request.ModelChange
	case m.depth() > 0:
		return request.SameModel
	default:
		return request.NoFallback
	}
}

// Unwritten is told that the call's reservation could not be made durable: nobody
// is called. Its Say replaces the call's and closes what earlier attempts left; it
// is empty when the log knows nothing of this request yet.
func (m *Machine) Unwritten(unsaid []event.Event, now time.Time) Move {
	m.attempts = m.attempts[:len(m.attempts)-1]
	answer := Answer{Code: request.CodeGatewayUnavailable, Retryable: true, Attempts: m.candidates}
	if len(m.attempts) == 0 {
		m.done = true
		return Move{Finish: &Finish{Answer: answer}}
	}
	m.said = withoutCall(unsaid)
	return m.finish(answer, request.Failed, now, "")
}

// redialAllowance is fixed when a rung is reached (T5, T6).
func (m *Machine) redialAllowance(r *Rung) int {
	s := r.Policy.ThrottleRedial
	if s == nil {
		return 0
	}
	t := r.Policy.ThrottleCacheThreshold
	if t == nil || *t <= 0 || m.lastUsable() {
		return s.MaxRetries
	}
	return min(s.MaxRetries, int(float64(s.MaxRetries)*m.world.CacheEstimate(r) / *t))
}

// lastUsable reports whether no rung behind the cursor could serve.
func (m *Machine) lastUsable() bool {
	for i := m.cursor + 1; i < len(m.rungs); i++ {
		if reason, _ := m.unfit(&m.rungs[i]); reason == "" {
			return false
		}
	}
	return true
}

// mayLastResort allows a second pass when circuits alone kept the request from
// every rung: a model never fails purely on circuit state (H8).
func (m *Machine) mayLastResort() bool {
	if m.lastResort || len(m.attempts) > 0 {
		return false
	}
	return slices.ContainsFunc(m.skips, func(s request.RouteSkipped) bool {
		return s.Reason == request.SkipBreakerOpen || s.Reason == request.SkipCredentialOpen
	})
}

// internal ends a walk that cannot go on through no fault of a route: a price or
// budget that does not compute. Configuration refuses such values, so this is the
// second line.
func (m *Machine) internal(now time.Time) Move {
	return m.finish(Answer{Code: request.CodeGatewayUnavailable, Retryable: true}, request.Failed, now, "")
}
