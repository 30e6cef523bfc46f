// Package walk decides a request: which route is called next, why another is
// skipped, when the walk stops and what the caller gets.
//
// The walk is a machine without I/O (D14). It is told what happened, together
// with the time, and answers with what to say in the log and what to do. Sockets,
// timers and the database belong to its driver; the simulator, explain and whatif
// drive the same machine.
package walk

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Defaults of W9, W10 and W11.
const (
	DefaultMaxAttempts         = 8
	DefaultSameRouteAttempts   = 2
	DefaultMinAttemptTime      = 250 * time.Millisecond
	DefaultRequestDeadline     = 600 * time.Second
	DefaultFirstOutputDeadline = 300 * time.Second
)

// Fallback is how far a caller lets its request go (N22).
type Fallback string

// The values of x-sluice-fallback.
const (
	FallbackAny       Fallback = "any"
	FallbackSameModel Fallback = "same-model"
	FallbackNone      Fallback = "none"
)

// UpstreamMode is how an answer is fetched for a caller that does not stream (S11).
type UpstreamMode string

// Auto asks for a whole answer while it is short, which has no streaming pace to
// pay, and streams a longer one, so that silence is seen and delivered tokens are
// known.
const (
	Auto   UpstreamMode = "auto"
	Whole  UpstreamMode = "whole"
	Stream UpstreamMode = "stream"
)

// wholeCeilingTokens is the longest answer that Auto asks for whole.
const wholeCeilingTokens = 4096

// Request is what is known of a request when its walk begins.
type Request struct {
	Admitted request.RequestAdmitted
	// FloorTokens is the lower bound of the input, which windows are checked
	// against (A5); Admitted.Estimate is what money is held for (A6).
	FloorTokens int64
	// OutputTokens is the caller's own maximum; 0 when it set none.
	OutputTokens int64
	// Choices is how many answers the caller asked for, each of them as long as
	// OutputTokens allows; 0 is one.
	Choices int
	// Media is what the request holds beside text.
	Media money.Media
	Needs []catalog.Capability
	// Unsayable names, by a provider's protocol, what the request uses and that
	// protocol cannot say (P5). A protocol that is not in it can say everything.
	Unsayable map[catalog.Protocol]string
	// Sealed says that the request carries reasoning that only its issuer can read: it
	// may be left out once (K5).
	Sealed bool
	// Issuer is the deployment that sealed it, "" when that is not known. It goes first
	// within its stage, and only its provider is sent what it sealed (K4).
	Issuer   string
	Fallback Fallback
	Stream   bool
	// Mode says how the upstream is asked on behalf of a caller that does not stream
	// (S11).
	Mode     UpstreamMode
	Deadline time.Time
	// Hold withholds a stream until it is complete, so that a break inside it may
	// still fail over (S13).
	Hold bool
	// Conversation is the caller's hint at which conversation this is: it places the
	// request among equal routes (T3) and is never stored (K1).
	Conversation string
	Budgets      []catalog.Budget
	// Promotions are the organization's, running or not (M10).
	Promotions []catalog.Promotion
}

// Machine holds the decision state of one request. It is not safe for concurrent
// use: one driver feeds it, one fact at a time.
type Machine struct {
	req   Request
	rungs []Rung
	world World

	// said is what the log does not know yet: it travels with the next commit.
	said []event.Event

	cursor   int
	place    place
	attempts []attempt
	// skips is how often each rung was passed over, for the refusal that names them.
	skips []request.RouteSkipped
	// candidates are those of the envelope, in order (W16).
	candidates []Summary
	// passed holds the positions of the rungs that failed or were skipped for their
	// health, each once: a rung that is looked at again as a last resort, or whose
	// retry its circuit refuses, is still one candidate.
	passed []int
	// longestRetry is the largest Retry-After seen (T11).
	longestRetry failure.Retry
	// wayOn is the shortest wait after which a closed route may be open again.
	wayOn time.Duration
	// lastResort is the second pass over a chain whose circuits are all open (H8).
	lastResort bool
	// repaired is set once a provider could not read the request's sealed reasoning:
	// from then on it is left out (K5).
	repaired bool
	// limited is the last limit of a route that refused a reservation (M13).
	limited *request.Refusal
	// ownFailed are the models whose own rungs failed, or were found unwell (M12).
	ownFailed []string
	// ungiven are the allowances that have refused (M10).
	ungiven []ungiven
	// unavailable is set when a chain cannot be called as it was written (C6).
	unavailable bool
	// charged sums what the attempts were settled at.
	charged money.NanoUSD
	done    bool
}

// place is where the walk stands on its current rung.
type place struct {
	// ordinary counts the first call and its plain retries; redials and rotations
	// have their own bounds (W9).
	ordinary int
	redials  int
	// allowance is fixed when the rung is first reached (T5).
	allowance int
	keys      keyring
	reached   bool
}

// attempt is one call that was made or is being made.
type attempt struct {
	reserved request.AttemptReserved
	rung     int
	begun    time.Time
	failed   *failure.Failure
	settled  bool
}

// New makes the machine of one request over the rungs of its plan.
func New(req Request, rungs []Rung, world World) *Machine {
	return &Machine{req: req, rungs: rungs, world: world}
}

// Move is the machine's answer: what to do. What has to be written first is in
// Say, in order, and must be durable before the action is carried out.
type Move struct {
	Say []event.Event
	// Exactly one of these is set.
	Call   *Call
	Wait   *Wait
	Finish *Finish
}

// Call asks for an attempt. Say ends with its AttemptReserved and must be written
// under Checks; a refused check is told to Refused.
type Call struct {
	Attempt int
	Rung    Rung
	Key     string
	// Stream asks the provider for a stream, whatever the caller asked for.
	Stream bool
	// WithoutSeals leaves out reasoning that only its issuer can read (K5).
	WithoutSeals bool
	Checks       []budget.Check
	Deltas       []budget.Delta
	Timeouts     Timeouts
	Reserved     request.AttemptReserved
}

// Wait asks for a pause before the next decision. Nothing is written: what there
// is to say travels with the next commit.
type Wait struct {
	For time.Duration
}

// Finish ends the request: Say closes it, and the caller gets Answer.
type Finish struct {
	Answer Answer
	// ChargeNanoUSD is what the whole request is charged.
	ChargeNanoUSD int64
}

// usualEvents is how many events a commit has at most on the ordinary path.
const usualEvents = 4

// say queues an event for the next commit.
func (m *Machine) say(e event.Event) {
	if m.said == nil {
		m.said = make([]event.Event, 0, usualEvents)
	}
	m.said = append(m.said, e)
}

// spoken hands over what is to be written.
func (m *Machine) spoken() []event.Event {
	say := m.said
	m.said = nil
	return say
}

// current is the attempt that is being made.
func (m *Machine) current() *attempt { return &m.attempts[len(m.attempts)-1] }
