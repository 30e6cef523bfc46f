package reconciler

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/reconciliation"
)

// ErrNotFound is a run that is not there.
var ErrNotFound = errors.New("reconciler: no such reconciliation")

// Report is a run as it is shown.
type Report struct {
	ID    uuid.UUID            `json:"id"`
	State reconciliation.State `json:"state"`
	// Result is null as long as the run has no end: a run that is running or stalled has
	// passed nothing.
	Result       *reconciliation.Result `json:"result"`
	StartedAt    time.Time              `json:"started_at"`
	EndedAt      *time.Time             `json:"ended_at"`
	TimeBudgetMS int64                  `json:"time_budget_ms"`
	// Actor asked for it; empty for a run that began by itself. Worker made it.
	Actor  string `json:"actor,omitempty"`
	Worker string `json:"worker"`
	// LastProgressAt is when the run last did anything that is known, and SilentMS how
	// long ago that is, for a run without an end.
	LastProgressAt time.Time `json:"last_progress_at"`
	SilentMS       int64     `json:"silent_ms,omitempty"`
	// Progress is where it is in its check, or where it was when it was cut off.
	Progress *Progress `json:"progress"`
	// Checks are all that the run makes, in their order.
	Checks []CheckReport `json:"checks"`
}

// CheckReport is one check of a run.
type CheckReport struct {
	Check reconciliation.Check `json:"check"`
	// Result is null for a check that has none; Undone says why, where that is known.
	Result *reconciliation.Result `json:"result"`
	Undone reconciliation.Reason  `json:"undone,omitempty"`
	*reconciliation.Finding
	DurationMS  int64      `json:"duration_ms,omitempty"`
	CompletedAt *time.Time `json:"completed_at,omitempty"`
}

// Get tells about one run; ErrNotFound if there is none.
func (r *Reconciler) Get(ctx context.Context, id uuid.UUID) (Report, error) {
	events, err := r.Log.ReadStream(ctx, reconciliation.Stream(id.String()), 1, maxEvents)
	if err != nil {
		return Report{}, err
	}
	if len(events) == 0 {
		return Report{}, ErrNotFound
	}
	s, err := foldRun(events)
	if err != nil {
		return Report{}, err
	}
	leader, err := r.leaderOf(ctx, []stored{s})
	if err != nil {
		return Report{}, err
	}
	return r.describe(ctx, s, leader)
}

// List tells about runs, newest first; before is a former page's last, uuid.Nil for the
// first page.
func (r *Reconciler) List(ctx context.Context, before uuid.UUID, limit int) ([]Report, error) {
	from := ""
	if before != uuid.Nil {
		from = reconciliation.Stream(before.String())
	}
	runs, err := r.newest(ctx, from, limit)
	if err != nil {
		return nil, err
	}
	leader, err := r.leaderOf(ctx, runs)
	if err != nil {
		return nil, err
	}
	reports := make([]Report, len(runs))
	for i, s := range runs {
		if reports[i], err = r.describe(ctx, s, leader); err != nil {
			return nil, err
		}
	}
	return reports, nil
}

// leaderOf asks who leads, where that makes a difference.
func (r *Reconciler) leaderOf(ctx context.Context, runs []stored) (uuid.UUID, error) {
	for _, s := range runs {
		if s.Finished == nil {
			return r.Leads.Leader(ctx)
		}
	}
	return uuid.Nil, nil
}

func (r *Reconciler) describe(ctx context.Context, s stored, leader uuid.UUID) (Report, error) {
	now := r.Now()
	d := Report{
		ID: s.id, State: s.State(now, s.id == leader), StartedAt: s.StartedAt, TimeBudgetMS: s.Started.TimeBudgetMS,
		Actor: s.by.Actor, Worker: s.by.Worker, LastProgressAt: s.LastAt, Checks: []CheckReport{},
	}
	undone := map[reconciliation.Check]reconciliation.Reason{}
	if s.Finished != nil {
		d.Result, d.EndedAt = &s.Finished.Result, &s.LastAt
		for _, u := range s.Finished.Undone {
			undone[u.Check] = u.Reason
		}
	}
	for _, check := range s.Started.Checks {
		c := CheckReport{Check: check, Undone: undone[check]}
		if done, ok := s.Of(check); ok {
			c.Result, c.Finding, c.DurationMS, c.CompletedAt = &done.Result, &done.Finding, done.DurationMS, &done.At
		}
		d.Checks = append(d.Checks, c)
	}
	if d.State == reconciliation.Done {
		return d, nil
	}
	var err error
	if d.Progress, err = r.Leads.Progress(ctx, s.id); err != nil {
		return d, err
	}
	if d.Progress != nil && s.Finished == nil && d.Progress.At.After(d.LastProgressAt) {
		d.LastProgressAt = d.Progress.At
	}
	if s.Finished == nil {
		d.SilentMS = now.Sub(d.LastProgressAt).Milliseconds()
	}
	return d, nil
}

// Health is what is known from the newest runs, for whoever watches.
type Health struct {
	// Checks are the newest results; a check that has none of late is not there.
	Checks map[reconciliation.Check]reconciliation.Completed
	// Stalled reports that the newest run has no end and makes no progress.
	Stalled bool
}

// healthRuns is how far back results are looked for: at one run a day, three months.
const healthRuns = 100

// Health reads the newest result of each check.
func (r *Reconciler) Health(ctx context.Context) (Health, error) {
	h := Health{Checks: map[reconciliation.Check]reconciliation.Completed{}}
	before := ""
	for read := 0; read < healthRuns && len(h.Checks) < len(reconciliation.Checks()); read += endedRuns {
		runs, err := r.newest(ctx, before, endedRuns)
		if err != nil {
			return h, err
		}
		if read == 0 && len(runs) > 0 {
			leader, err := r.leaderOf(ctx, runs[:1])
			if err != nil {
				return h, err
			}
			h.Stalled = runs[0].State(r.Now(), runs[0].id == leader) == reconciliation.Stalled
		}
		for _, s := range runs {
			for _, done := range s.Completed {
				if _, newer := h.Checks[done.Check]; !newer {
					h.Checks[done.Check] = done
				}
			}
		}
		if len(runs) < endedRuns {
			break
		}
		before = reconciliation.Stream(runs[len(runs)-1].id.String())
	}
	return h, nil
}
