package reconciliation

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// DefaultTimeBudget is what a run that somebody asked for may take: they wait for it.
	DefaultTimeBudget = 5 * time.Minute
	// MinTimeBudget is the least that lets a check look at anything, MaxTimeBudget what
	// leaves room for the next day's run.
	MinTimeBudget = time.Second
	MaxTimeBudget = 24 * time.Hour
	// Grace is how long after its time budget a run may still be writing its end. Every
	// check is cut off at its share, so a run that is open longer makes no progress.
	Grace = time.Minute
)

// Run is what the events of one run add up to.
type Run struct {
	// Version is how many events there are.
	Version   int64
	Started   ReconciliationStarted
	StartedAt time.Time
	// Completed are the checks that have a result, in their order.
	Completed []Completed
	Finished  *ReconciliationFinished
	// LastAt is when the run last said anything.
	LastAt time.Time
}

// Completed is a check's result and when it was said.
type Completed struct {
	CheckCompleted
	At time.Time
}

var (
	// ErrImpossible is an event that cannot stand where it stands.
	ErrImpossible = errors.New("impossible in the life of a reconciliation")
	// ErrTimeBudget is a budget outside its bounds.
	ErrTimeBudget = fmt.Errorf("the time budget must be between %s and %s", MinTimeBudget, MaxTimeBudget)
)

// Begin says the start of a run of the given checks; none means all, in the order of
// Checks. A budget of zero is DefaultTimeBudget. The error is an *UnknownCheckError or
// ErrTimeBudget.
func Begin(checks []Check, budget time.Duration) (ReconciliationStarted, error) {
	if budget == 0 {
		budget = DefaultTimeBudget
	}
	if budget < MinTimeBudget || budget > MaxTimeBudget {
		return ReconciliationStarted{}, ErrTimeBudget
	}
	chosen, err := choose(checks)
	return ReconciliationStarted{Checks: chosen, TimeBudgetMS: budget.Milliseconds()}, err
}

// Apply folds one event that was said at a time. An event that cannot follow the ones
// before it is refused with ErrImpossible and not folded.
func (r *Run) Apply(e any, at time.Time) error {
	switch e := e.(type) {
	case ReconciliationStarted:
		if r.Version != 0 {
			return fmt.Errorf("%w: started twice", ErrImpossible)
		}
		r.Started, r.StartedAt = e, at
	case CheckCompleted:
		if r.Finished != nil || !slices.Contains(r.Pending(), e.Check) {
			return fmt.Errorf("%w: check %s was not expected", ErrImpossible, e.Check)
		}
		r.Completed = append(r.Completed, Completed{e, at})
	case ReconciliationFinished:
		if r.Version == 0 || r.Finished != nil {
			return fmt.Errorf("%w: finished, but not running", ErrImpossible)
		}
		r.Finished = &e
	default:
		return fmt.Errorf("%w: %T", ErrImpossible, e)
	}
	r.Version++
	r.LastAt = at
	return nil
}

// Pending are the checks that have no result yet, in their order.
func (r *Run) Pending() []Check {
	return slices.DeleteFunc(slices.Clone(r.Started.Checks), func(c Check) bool {
		_, done := r.Of(c)
		return done
	})
}

// Of is a check's result, if it has one.
func (r *Run) Of(c Check) (Completed, bool) {
	i := slices.IndexFunc(r.Completed, func(d Completed) bool { return d.Check == c })
	if i < 0 {
		return Completed{}, false
	}
	return r.Completed[i], true
}

// Whole reports whether the run is one of all checks.
func (r *Run) Whole() bool { return len(r.Started.Checks) == len(Checks()) }

// Deadline is when the run's time is over.
func (r *Run) Deadline() time.Time {
	return r.StartedAt.Add(time.Duration(r.Started.TimeBudgetMS) * time.Millisecond)
}

// Share is how long the next of n checks may take: an equal part of what is left, so that
// one that is too slow takes none of the others' time, and one that is quick leaves them
// its own. Zero when nothing is left.
func (r *Run) Share(now time.Time, n int) time.Duration {
	left := r.Deadline().Sub(now)
	if n <= 0 || left <= 0 {
		return 0
	}
	return left / time.Duration(n)
}

// Complete says a check's result. whole reports that everything was compared within the
// check's time: without it there is no pass, and no drift either, whatever was found so
// far, because what was not seen could explain it (R7).
func Complete(c Check, f Finding, whole bool, took time.Duration) CheckCompleted {
	said := CheckCompleted{Check: c, Finding: f, DurationMS: took.Milliseconds()}
	switch {
	case !whole:
		said.Result = TimedOut
	case f.agrees():
		said.Result = Passed
	default:
		said.Result = Differs
	}
	return said
}

// Finish says the end of the run. Every check that has no result is undone, for the
// given reason of its own or else for the common one.
func (r *Run) Finish(common Reason, own map[Check]Reason) ReconciliationFinished {
	var end ReconciliationFinished
	for _, c := range r.Completed {
		switch c.Result {
		case Passed:
			end.Passed++
		case Differs:
			end.Drift++
		default:
			end.TimedOut++
		}
	}
	for _, c := range r.Pending() {
		reason, known := own[c]
		if !known {
			reason = common
		}
		end.Undone = append(end.Undone, Undone{Check: c, Reason: reason})
	}
	switch {
	case end.Drift > 0:
		end.Result = Differs
	case end.TimedOut > 0:
		end.Result = TimedOut
	case len(end.Undone) > 0:
		end.Result = Incomplete
	default:
		end.Result = Passed
	}
	return end
}

// State is where a run is.
type State string

// The states.
const (
	// Running: a worker is at it.
	Running State = "running"
	// Done: it came to its end, and every check was at least tried.
	Done State = "finished"
	// Stopped: its worker stopped, or was found gone, before every check was tried.
	Stopped State = "interrupted"
	// Stalled: it has no end, and nobody is at it or it is far beyond its time. It makes
	// no progress, and says nothing about what it did not check.
	Stalled State = "stalled"
)

// State is where the run is. led reports whether a worker leads it now.
func (r *Run) State(now time.Time, led bool) State {
	switch {
	case r.Finished == nil && led && now.Before(r.Deadline().Add(Grace)):
		return Running
	case r.Finished == nil:
		return Stalled
	case slices.ContainsFunc(r.Finished.Undone, func(u Undone) bool { return u.Reason == Interrupted || u.Reason == Abandoned }):
		return Stopped
	default:
		return Done
	}
}
