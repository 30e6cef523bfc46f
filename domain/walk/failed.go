package walk

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Failed is told how the running attempt failed before it committed. The class
// decides what comes next (W1).
func (m *Machine) Failed(f failure.Failure, r Report, now time.Time) Move {
	f = ownedBy(m.rungs[m.cursor].owner(), f)
	a := m.current()
	a.failed = &f
	if f.Class == failure.Throttled {
		m.say(request.AttemptThrottled{
			Attempt: a.reserved.Attempt, Status: f.Status, DurationMS: ms(now.Sub(a.begun)),
			RetryAfterMS: ms(f.Retry.After), RetrySource: f.Retry.Source,
		})
		if f.Retry.After > m.longestRetry.After {
			m.longestRetry = f.Retry
		}
	} else {
		m.say(request.AttemptFailed{
			Attempt: a.reserved.Attempt, Failure: f.Class, Status: f.Status, Code: f.Code,
			PossiblyBilled: f.PossiblyBilled, DurationMS: ms(now.Sub(a.begun)),
			RetryAfterMS: ms(f.Retry.After), RetrySource: f.Retry.Source,
		})
	}
	m.list(a.reserved.Masked, Summary{Provider: a.reserved.Provider, Model: a.reserved.Model, Failure: f.Class, Status: f.Status})
	m.settleFailed(a, f, r, now)
	return m.moveOn(f, now)
}

// ownedBy gives a failure of a customer's own key its class: the customer gets the
// customer's own error, and the request is never bought on the platform's account
// instead (W6).
func ownedBy(owner request.Owner, f failure.Failure) failure.Failure {
	if owner != request.Workspace {
		return f
	}
	switch f.Class {
	case failure.ProviderAuth:
		f.Class, f.Code = failure.CustomerCredential, failure.OwnKeyRejected
	case failure.ProviderQuota:
		f.Class, f.Code = failure.CustomerCredential, failure.OwnKeyQuota
	}
	return f
}

// moveOn is the decision of W2: the same route, another one, or the end.
func (m *Machine) moveOn(f failure.Failure, now time.Time) Move {
	traits := failure.Of(f.Class)
	r := &m.rungs[m.cursor]
	switch {
	case f.Class == failure.Throttled:
		return m.throttled(f, r, now)
	case f.PossiblyBilled && r.Policy.LostAnswer == catalog.StopLost:
		return m.finish(Answer{Code: request.CodeAnswerLost}, request.Failed, now, "")
	case f.SealRejected && m.req.Sealed && !m.repaired && len(m.attempts) < m.maxAttempts():
		// The same route, without what it could not read: all that the conversation
		// says is still there (K5). It costs an attempt and nothing else. Without one
		// left the caller hears what is wrong and may leave it out itself.
		m.repaired = true
		m.place.keys.again()
		return m.again(r, request.KindRepair, Ordinary, now)
	case !m.mayMove(traits.Move, r):
		return m.stop(f, now)
	case f.Class == failure.ProviderAuth && m.place.keys.left():
		// A credential that was refused says nothing about its neighbours in the
		// pool. The pool and max_attempts bound the rotation, not the retry limit.
		return m.again(r, request.KindKeyRotation, Ordinary, now)
	case traits.SameRoute && m.place.ordinary < DefaultSameRouteAttempts && !f.Retry.Told:
		// Where the provider names a time, calling it again sooner would be
		// hammering: the walk moves on instead.
		m.place.keys.again()
		return m.again(r, request.KindRetry, Ordinary, now)
	}
	return m.next(now)
}

// mayMove reads a class's move under the policy of the rung it happened on.
func (m *Machine) mayMove(move failure.Move, r *Rung) bool {
	switch move {
	case failure.Another:
		return true
	case failure.AnotherIfOptedIn:
		return r.Policy.FailoverOnRefusal
	case failure.AnotherIfLarger:
		return m.largerAhead(r)
	default:
		return false
	}
}

// largerAhead reports whether a rung behind the cursor takes a longer input than
// the one that just said the context was too long (W2). A window that is not
// declared may be larger.
func (m *Machine) largerAhead(than *Rung) bool {
	for i := m.cursor + 1; i < len(m.rungs); i++ {
		r := &m.rungs[i]
		if reason, _ := m.unfit(r); reason != "" || !m.engaged(r) {
			continue
		}
		if inputWindow(r.Deployment.Context) == 0 || inputWindow(r.Deployment.Context) > inputWindow(than.Deployment.Context) {
			return true
		}
	}
	return false
}

func inputWindow(c catalog.Context) int64 {
	if c.MaxInput > 0 {
		return c.MaxInput
	}
	return c.Total
}

// again calls the rung the walk stands on once more.
func (m *Machine) again(r *Rung, kind request.AttemptKind, pass Pass, now time.Time) Move {
	if stop := m.spent(now); stop != nil {
		return *stop
	}
	if move, ok := m.claim(r, pass, kind, now); ok {
		return move
	}
	return m.next(now)
}

// next gives the rung up and goes to the one behind it.
func (m *Machine) next(now time.Time) Move {
	if m.req.Fallback == FallbackNone {
		return m.exhausted(now, "")
	}
	m.noteOwn(&m.rungs[m.cursor], m.current().failed.Class)
	m.pass()
	m.leave()
	return m.advance(now)
}

// stop ends the walk on a failure that no other route may answer (W3, W5).
func (m *Machine) stop(f failure.Failure, now time.Time) Move {
	answer := Answer{Relay: f.Relay}
	if f.Relay != nil && m.current().reserved.Masked {
		// A vendor's own words would tell whose route it is (X1).
		answer.Relay = &failure.Relay{Status: f.Relay.Status}
	}
	outcome := request.Failed
	switch f.Class {
	case failure.ContextLength:
		answer.Code = request.CodeContextLengthExceeded
	case failure.QuotaExceeded:
		answer.Code, outcome = request.CodeInsufficientQuota, request.Refused
	case failure.CustomerCredential:
		answer.Code = request.CodeCustomerCredentialReject
		if f.Code == failure.OwnKeyQuota {
			answer.Code = request.CodeCustomerCredentialQuota
		}
	case failure.ClientCancelled:
		answer.Code, outcome = request.CodeClientCancelled, request.ClientCancelled
	case failure.DeadlineExceeded:
		answer.Code, answer.Retryable = request.CodeDeadlineExceeded, true
	default:
		answer.Code = request.CodeInvalidRequest
	}
	return m.finish(answer, outcome, now, "")
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
