// Package sim drives the walk with invented outcomes instead of providers and a
// clock that jumps. It is how decisions are tested, simulated by the million, and
// asked about under another policy.
package sim

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// Ending is how one call ends. Without a Failure it is a whole answer; with one
// and Committed it broke after its first output.
type Ending struct {
	After     time.Duration
	Failure   *failure.Failure
	Committed bool
	Report    walk.Report
}

// Providers answers a call at a moment.
type Providers func(c *walk.Call, now time.Time) Ending

// Run is one request's walk.
type Run struct {
	Events []event.Event
	Answer walk.Answer
	// Calls are the calls that were made, in order.
	Calls []walk.Call
	// Waits are the pauses between them.
	Waits []time.Duration
	End   time.Time
}

// Walk runs a machine to its end from a moment on. book decides reservations as the log
// would and keeps what they hold; nil admits everything.
func Walk(m *walk.Machine, providers Providers, book *budget.Book, now time.Time) Run {
	var run Run
	move := m.Start(now)
	for {
		switch {
		case move.Finish != nil:
			run.write(book, move.Say, now)
			run.Answer, run.End = move.Finish.Answer, now
			return run
		case move.Wait != nil:
			run.Waits = append(run.Waits, move.Wait.For)
			now = now.Add(move.Wait.For)
			move = m.Waited(now)
		default:
			if refused := run.reserve(m, book, move, now); refused != nil {
				move = *refused
				continue
			}
			run.Calls = append(run.Calls, *move.Call)
			end := providers(move.Call, now)
			now = now.Add(end.After)
			move = conclude(m, end, now)
		}
	}
}

func conclude(m *walk.Machine, end Ending, now time.Time) walk.Move {
	switch {
	case end.Failure == nil:
		return m.Completed(end.Report, now)
	case end.Committed:
		return m.Broken(*end.Failure, end.Report, now)
	default:
		return m.Failed(*end.Failure, end.Report, now)
	}
}

// reserve writes a reservation, or tells the machine which limit refused it.
func (r *Run) reserve(m *walk.Machine, book *budget.Book, move walk.Move, now time.Time) *walk.Move {
	if book == nil {
		r.write(nil, move.Say, now)
		return nil
	}
	before := book.Asked(move.Call.Checks, now)
	if refused := budget.Decide(before, move.Call.Checks); refused != nil {
		next := m.Refused(*refused, move.Say, now)
		return &next
	}
	r.write(book, move.Say, now)
	m.Admitted(budget.Standings(before, book.Asked(move.Call.Checks, now), move.Call.Checks))
	return nil
}

func (r *Run) write(book *budget.Book, say []event.Event, now time.Time) {
	r.Events = append(r.Events, say...)
	if book == nil {
		return
	}
	for _, e := range say {
		book.Apply(budget.Effects(e), now)
	}
}

// World is a World in which every circuit is closed and every provider has the
// keys that its configuration names.
type World struct {
	// Cache is the cache estimate of a deployment; 0 when absent.
	Cache map[string]float64
	// Parked is until when a key is parked, by key id.
	Parked map[string]time.Time
	// Closed is what a circuit answers for a deployment; absent admits.
	Closed map[string]walk.Verdict
	// Broke are the deployments whose accounts are known to be out of funds.
	Broke map[string]bool
	// First is where a pool is begun.
	First int
	// Jitter is the random number of every pause.
	Jitter float64
}

// Credentials implements walk.World.
func (w *World) Credentials(p *catalog.Provider) []walk.Credential {
	creds := make([]walk.Credential, len(p.Keys))
	for i, k := range p.Keys {
		creds[i] = walk.Credential{ID: k.ID, ParkedUntil: w.Parked[k.ID]}
	}
	return creds
}

// FirstCredential implements walk.World.
func (w *World) FirstCredential(*catalog.Provider, int) int { return w.First }

// Claim implements walk.World.
func (w *World) Claim(r *walk.Rung, _ string, pass walk.Pass, _ time.Time) walk.Verdict {
	if pass == walk.LastResort {
		return walk.Verdict{}
	}
	return w.Closed[r.Deployment.ID]
}

// Exhausted implements walk.World.
func (w *World) Exhausted(r *walk.Rung, _ time.Time) bool {
	return r.Deployment != nil && w.Broke[r.Deployment.ID]
}

// CacheEstimate implements walk.World.
func (w *World) CacheEstimate(r *walk.Rung) float64 { return w.Cache[r.Deployment.ID] }

// Uniform implements walk.World.
func (w *World) Uniform() float64 { return w.Jitter }
