package reconciler

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
)

const (
	// DefaultEvery is how often a run begins by itself: what drifts is found the same day.
	DefaultEvery = 24 * time.Hour
	// MinEvery is the least: a run takes its time from the database.
	MinEvery = time.Minute
	// scheduledBudget is what a run may take that nobody waits for.
	scheduledBudget = time.Hour
	// retryAfter is when a run that did not come to its end is made again: soon, but not
	// at once, because it may be what ended its worker.
	retryAfter = time.Hour
	// settleTime is how long a worker that starts leaves the database alone, and how
	// long it waits after a look that failed.
	settleTime = time.Minute
	// spreadPart is the part of a wait that is added at random.
	spreadPart = 24
	// never is a wait that no process sees the end of.
	never = 100 * 365 * 24 * time.Hour
)

// firstLook is how long a worker that starts waits.
func (r *Reconciler) firstLook() time.Duration {
	if r.Every <= 0 {
		return never
	}
	return settleTime + time.Duration(r.Jitter()*float64(settleTime))
}

// nextLook is how long to wait until a run may be due. Every worker asks the log, so
// that many workers make as many runs as one.
func (r *Reconciler) nextLook(ctx context.Context) time.Duration {
	if r.Every <= 0 {
		return never
	}
	due, err := r.due(ctx)
	if err != nil {
		return r.firstLook()
	}
	wait := due.Sub(r.Now())
	return max(wait, settleTime) + time.Duration(r.Jitter()*float64(r.Every/spreadPart))
}

// scheduled makes a run of all checks, if one is due and nobody else is at one.
func (r *Reconciler) scheduled(ctx context.Context) {
	due, err := r.due(ctx)
	if err == nil && r.Now().Before(due) {
		return
	}
	var j *job
	if err == nil {
		j, err = r.begin(ctx, nil, r.TimeBudget, eventstore.Meta{})
	}
	switch {
	case err == nil:
		r.report(ctx, j, r.execute(ctx, j))
	case !errors.Is(err, ErrRunning) && ctx.Err() == nil:
		r.Logger.Warn("reconciliation could not begin", "error", err)
	}
}

// due is when the next run of all checks shall begin. One that somebody asked for counts
// as well; one of some checks does not.
func (r *Reconciler) due(ctx context.Context) (time.Time, error) {
	runs, err := r.newest(ctx, "", endedRuns)
	if err != nil {
		return time.Time{}, err
	}
	leader, err := r.Leads.Leader(ctx)
	if err != nil {
		return time.Time{}, err
	}
	for _, s := range runs {
		if !s.Whole() {
			continue
		}
		if state := s.State(r.Now(), s.id == leader); state == reconciliation.Done || state == reconciliation.Running {
			return s.StartedAt.Add(r.Every), nil
		}
		return s.StartedAt.Add(min(r.Every, retryAfter)), nil
	}
	return time.Time{}, nil
}
