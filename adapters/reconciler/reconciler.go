// Package reconciler runs reconciliations: it makes the checks of a run one after the
// other, each within its share of the time, and says in the log how they ended (R7).
//
// One run at a time, on all workers together: whoever runs has the lead, a lock that
// ends with its worker. A run whose worker was killed stays without an end in the log
// and is shown as stalled, with how far it had come, until the next run ends it. Nothing
// here is waited for by a request.
package reconciler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// Log is what is needed of the event store.
type Log interface {
	Append(ctx context.Context, a eventstore.Append) (eventstore.Result, error)
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
	ReadKind(ctx context.Context, kind, before string, limit int) ([]eventstore.Recorded, error)
}

// Look makes one check; progress hears how many events of the log it has done. It ends
// with its context. An error means that it did not come to its end.
type Look func(ctx context.Context, check reconciliation.Check, progress func(done, total int64)) (reconciliation.Finding, error)

// Config is what a Reconciler is made of.
type Config struct {
	Log   Log
	Leads Leads
	Look  Look
	// Worker is written into every event.
	Worker string
	// Every is how often a run of all checks begins by itself, on one of all workers;
	// zero is never.
	Every time.Duration
	// TimeBudget is that of the runs that begin by themselves; zero is an hour.
	TimeBudget time.Duration
	Now        func() time.Time
	// NewID makes a UUIDv7.
	NewID func() uuid.UUID
	// Jitter is a random number in [0, 1): workers do not all look at once.
	Jitter func() float64
	Logger *slog.Logger
}

// ErrStopping refuses a run on a worker that ends.
var ErrStopping = errors.New("reconciler: the worker is stopping")

// Reconciler runs reconciliations and tells about them. It is safe for concurrent use.
// Run has to run for those to be done that Start accepts.
type Reconciler struct {
	Config
	// accepted holds the one run that has begun in the log and not at its checks.
	accepted chan *job

	mu      sync.Mutex
	stopped bool
}

// New makes a Reconciler.
func New(c Config) *Reconciler {
	if c.TimeBudget == 0 {
		c.TimeBudget = scheduledBudget
	}
	return &Reconciler{Config: c, accepted: make(chan *job, 1)}
}

// Start begins a run, which Run does then, and returns its id. No checks means all, no
// budget the default. The error is *reconciliation.UnknownCheckError,
// reconciliation.ErrTimeBudget, ErrRunning, ErrStopping or the log's.
func (r *Reconciler) Start(ctx context.Context, checks []reconciliation.Check, budget time.Duration, by eventstore.Meta) (uuid.UUID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return uuid.Nil, ErrStopping
	}
	j, err := r.begin(ctx, checks, budget, by)
	if err != nil {
		return uuid.Nil, err
	}
	r.accepted <- j // never waits: who has the lead is the only one
	return j.id, nil
}

// Once begins a run and does it; see Start. An end of ctx interrupts the run, which is
// said in the log and is no error.
func (r *Reconciler) Once(ctx context.Context, checks []reconciliation.Check, budget time.Duration, by eventstore.Meta) (uuid.UUID, error) {
	j, err := r.begin(ctx, checks, budget, by)
	if err != nil {
		return uuid.Nil, err
	}
	return j.id, r.execute(ctx, j)
}

// Run does the runs that are asked for, and those that are due, until ctx ends. A run
// that is under way then is interrupted, and says so.
func (r *Reconciler) Run(ctx context.Context) {
	defer r.stop(ctx)
	wait := r.firstLook()
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case j := <-r.accepted:
			timer.Stop()
			r.report(ctx, j, r.execute(ctx, j))
		case <-timer.C:
			r.scheduled(ctx)
		}
		wait = r.nextLook(ctx)
	}
}

// stop refuses what comes and interrupts what was accepted and not begun.
func (r *Reconciler) stop(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	select {
	case j := <-r.accepted:
		r.report(ctx, j, r.execute(ctx, j))
	default:
	}
}

// report logs how a run ended: only who reads the log would know otherwise.
func (r *Reconciler) report(ctx context.Context, j *job, err error) {
	switch end := j.run.Finished; {
	case err != nil && ctx.Err() == nil:
		r.Logger.Error("reconciliation did not come to its end", "id", j.id, "error", err)
	case end == nil || end.Result == reconciliation.Passed:
		r.Logger.Info("reconciliation ended", "id", j.id)
	default:
		r.Logger.Warn("reconciliation did not pass", "id", j.id, "result", end.Result,
			"drift", end.Drift, "timed_out", end.TimedOut, "undone", len(end.Undone))
	}
}

// job is a run of this worker.
type job struct {
	id   uuid.UUID
	by   eventstore.Meta
	run  reconciliation.Run
	lead Lead
}

// begin takes the lead, ends what a former leader left without an end, and says the
// start of a new run. Nothing is written when the request makes no sense.
func (r *Reconciler) begin(ctx context.Context, checks []reconciliation.Check, budget time.Duration, by eventstore.Meta) (*job, error) {
	started, err := reconciliation.Begin(checks, budget)
	if err != nil {
		return nil, err
	}
	by.Worker = r.Worker
	j := &job{id: r.NewID(), by: by}
	if j.lead, err = r.Leads.Take(ctx, j.id); err != nil {
		return nil, err
	}
	if err = r.abandon(ctx); err == nil {
		err = r.say(ctx, j, started)
	}
	if err != nil {
		j.lead.Release(ctx)
		return nil, err
	}
	return j, nil
}

// execute makes the run's checks and says its end. The lead is given back.
func (r *Reconciler) execute(ctx context.Context, j *job) error {
	defer j.lead.Release(ctx)
	undone := map[reconciliation.Check]reconciliation.Reason{}
	checks := j.run.Started.Checks
	for i, check := range checks {
		said, reason, err := r.look(ctx, j, check, len(checks)-i)
		switch {
		case err != nil:
			return err // the lead is lost: the run is not ours to end
		case reason != "":
			undone[check] = reason
		default:
			if err := r.say(ctx, j, said); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return r.say(ctx, j, j.run.Finish(reconciliation.Interrupted, undone))
}

// look makes one check, the first of n that are left, within its share of the time. It
// has a result, or a reason why it has none; an error is a lead that was lost.
func (r *Reconciler) look(ctx context.Context, j *job, check reconciliation.Check, n int) (said reconciliation.CheckCompleted, reason reconciliation.Reason, err error) {
	if ctx.Err() != nil {
		return said, reconciliation.Interrupted, nil
	}
	began := r.Now()
	bounded, cancel := context.WithTimeout(ctx, j.run.Share(began, n))
	defer cancel()
	held, lost := context.WithCancelCause(bounded)
	defer lost(nil)
	p := pacer{now: r.Now, lead: j.lead, check: check, lost: lost}
	p.say(held, 0, 0)
	if errors.Is(context.Cause(held), ErrLeadLost) {
		return said, "", ErrLeadLost
	}
	finding, failed := r.Look(held, check, func(done, total int64) { p.say(held, done, total) })
	switch {
	case errors.Is(context.Cause(held), ErrLeadLost):
		return said, "", ErrLeadLost
	case ctx.Err() != nil:
		return said, reconciliation.Interrupted, nil
	// The time is asked for, not the error: a check that swallowed its deadline, or
	// came to its end just behind it, has not passed (R7).
	case bounded.Err() != nil:
		return reconciliation.Complete(check, finding, false, r.Now().Sub(began)), "", nil
	case failed != nil:
		r.Logger.Error("a check of the reconciliation could not be made", "id", j.id, "check", check, "error", failed)
		return said, reasonOf(failed), nil
	}
	return reconciliation.Complete(check, finding, true, r.Now().Sub(began)), "", nil
}

// reasonOf is why a check could not be made.
func reasonOf(err error) reconciliation.Reason {
	if _, other := errors.AsType[*projections.VersionError](err); other {
		return reconciliation.Outdated
	}
	if _, unknown := errors.AsType[*event.UnknownTypeError](err); unknown {
		return reconciliation.Unreadable
	}
	if errors.Is(err, projections.ErrBusy) || errors.Is(err, projections.ErrReplaced) {
		return reconciliation.Busy
	}
	return reconciliation.Failed
}
