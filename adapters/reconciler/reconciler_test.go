package reconciler_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/adapters/reconciler/reconcilertest"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fleet is what several workers share.
type fleet struct {
	log   *configtest.Log
	leads *reconcilertest.Leads
}

func newFleet() fleet { return fleet{configtest.NewLog(), &reconcilertest.Leads{}} }

// worker is one of them, with checks of its own.
func (f fleet) worker(name string, every time.Duration, look reconciler.Look) *reconciler.Reconciler {
	return reconciler.New(reconciler.Config{
		Log: f.log, Leads: f.leads, Look: look, Worker: name, Every: every,
		Now: time.Now, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }, Jitter: func() float64 { return 0.5 },
		Logger: slog.New(slog.DiscardHandler),
	})
}

// runs are all runs that the log has, newest first.
func (f fleet) runs(t *testing.T) []reconciler.Report {
	t.Helper()
	list, err := f.worker("reader", 0, nil).List(context.Background(), uuid.Nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// clean is a check that finds nothing, at once.
func clean(context.Context, reconciliation.Check, func(int64, int64)) (reconciliation.Finding, error) {
	return reconciliation.Finding{Position: 9, Compared: 3}, nil
}

// after waits, or less long when ctx ends.
func after(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// However long checks take, whether they heed their time or not, return its error or
// swallow it, and find something or not: what took longer than its share has timed out
// and is never reported as passed, what stayed within has its own result, and the run
// passes only if all did (R7).
func TestATimedOutCheckNeverPasses_R7(t *testing.T) {
	type behaviour struct {
		takes           time.Duration
		heeds, swallows bool
		drifts          bool
		late            bool // what it came to, judged by the shares
	}
	rapid.Check(t, func(rt *rapid.T) {
		const budget = time.Minute
		plan := map[reconciliation.Check]*behaviour{}
		for _, c := range reconciliation.Checks() {
			plan[c] = &behaviour{
				takes:    time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(rt, "takes")),
				heeds:    rapid.Bool().Draw(rt, "heeds"),
				swallows: rapid.Bool().Draw(rt, "swallows"),
				drifts:   rapid.IntRange(0, 3).Draw(rt, "drifts") == 0,
			}
		}
		var got reconciler.Report
		synctest.Test(t, func(t *testing.T) {
			f := newFleet()
			w := f.worker("w1", 0, func(ctx context.Context, c reconciliation.Check, progress func(int64, int64)) (reconciliation.Finding, error) {
				b := plan[c]
				deadline, _ := ctx.Deadline()
				b.late = !time.Now().Add(b.takes).Before(deadline)
				progress(1, 2)
				if b.heeds {
					after(ctx, b.takes)
				} else {
					time.Sleep(b.takes)
				}
				var found reconciliation.Finding
				if b.drifts {
					found.Add(reconciliation.Drift{Key: "k"})
				}
				if b.swallows {
					return found, nil
				}
				return found, ctx.Err()
			})
			id, err := w.Once(t.Context(), nil, budget, eventstore.Meta{Actor: "cli:ada"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err = w.Get(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		})
		all := true
		for _, c := range got.Checks {
			b := plan[c.Check]
			want := reconciliation.Passed
			switch {
			case b.late:
				want = reconciliation.TimedOut
			case b.drifts:
				want = reconciliation.Differs
			}
			all = all && want == reconciliation.Passed
			if c.Result == nil || *c.Result != want {
				rt.Fatalf("%s %+v: %v, want %s", c.Check, *b, c.Result, want)
			}
		}
		if got.State != reconciliation.Done || (*got.Result == reconciliation.Passed) != all {
			rt.Fatalf("the run is %s, %s", got.State, *got.Result)
		}
	})
}

// A check that cannot be made has no result, and says why; the others are made (R7).
func TestAFailedCheckHasNoResult_R7(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want reconciliation.Reason
	}{
		"another verification": {projections.ErrBusy, reconciliation.Busy},
		"a rebuild":            {projections.ErrReplaced, reconciliation.Busy},
		"another release":      {&projections.VersionError{Name: "bills", Have: 1, Built: 2}, reconciliation.Outdated},
		"an unknown event":     {&projections.EventError{Err: &event.UnknownTypeError{Type: "x"}}, reconciliation.Unreadable},
		"anything else":        {errors.New("a cause that stays inside"), reconciliation.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			w := f.worker("w1", 0, func(ctx context.Context, check reconciliation.Check, p func(int64, int64)) (reconciliation.Finding, error) {
				if check == reconciliation.Money {
					return reconciliation.Finding{}, c.err
				}
				return clean(ctx, check, p)
			})
			if _, err := w.Once(t.Context(), nil, 0, eventstore.Meta{}); err != nil {
				t.Fatal(err)
			}
			run := f.runs(t)[0]
			if run.State != reconciliation.Done || *run.Result != reconciliation.Incomplete {
				t.Errorf("%s, %s", run.State, *run.Result)
			}
			for _, done := range run.Checks {
				if (done.Result == nil) != (done.Check == reconciliation.Money) {
					t.Errorf("%+v", done)
				}
				if done.Check == reconciliation.Money && done.Undone != c.want {
					t.Errorf("undone as %s, want %s", done.Undone, c.want)
				}
			}
		})
	}
}

// While one worker runs, no other can begin; once it has ended, one can (R7).
func TestOneRunAtATime_R7(t *testing.T) {
	f := newFleet()
	began, proceed := make(chan struct{}), make(chan struct{})
	one := f.worker("w1", 0, func(ctx context.Context, c reconciliation.Check, p func(int64, int64)) (reconciliation.Finding, error) {
		if c == reconciliation.Counters {
			close(began)
			<-proceed
		}
		return clean(ctx, c, p)
	})
	two := f.worker("w2", 0, clean)
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := one.Once(t.Context(), nil, 0, eventstore.Meta{}); err != nil {
			t.Error(err)
		}
	})
	<-began
	if run := f.runs(t)[0]; run.State != reconciliation.Running || run.Result != nil || run.Progress == nil || run.Progress.Check != reconciliation.Counters {
		t.Errorf("while it runs: %+v", run)
	}
	if _, err := two.Once(t.Context(), nil, 0, eventstore.Meta{}); !errors.Is(err, reconciler.ErrRunning) {
		t.Errorf("a second run: %v", err)
	}
	if _, err := two.Start(t.Context(), nil, 0, eventstore.Meta{}); !errors.Is(err, reconciler.ErrRunning) {
		t.Errorf("a second run: %v", err)
	}
	close(proceed)
	running.Wait()
	if _, err := two.Once(t.Context(), []reconciliation.Check{reconciliation.Money}, 0, eventstore.Meta{}); err != nil {
		t.Fatal(err)
	}
	if runs := f.runs(t); len(runs) != 2 || runs[0].Worker != "w2" || *runs[1].Result != reconciliation.Passed {
		t.Errorf("%+v", runs)
	}
}

// A worker that stops says so: the checks that it made keep their results, the others
// have none, and the run has not passed (R7).
func TestAStoppedRunIsInterrupted_R7(t *testing.T) {
	f := newFleet()
	ctx, stop := context.WithCancel(t.Context())
	w := f.worker("w1", 0, func(ctx context.Context, c reconciliation.Check, p func(int64, int64)) (reconciliation.Finding, error) {
		if c == reconciliation.OpenHolds {
			stop()
			<-ctx.Done()
		}
		return clean(ctx, c, p)
	})
	if _, err := w.Once(ctx, nil, 0, eventstore.Meta{}); err != nil {
		t.Fatal(err)
	}
	run := f.runs(t)[0]
	if run.State != reconciliation.Stopped || *run.Result != reconciliation.Incomplete || run.EndedAt == nil {
		t.Errorf("%s, %s", run.State, *run.Result)
	}
	for _, c := range run.Checks {
		if made := c.Check == reconciliation.Counters; made != (c.Result != nil) || made == (c.Undone == reconciliation.Interrupted) {
			t.Errorf("%+v", c)
		}
	}
}

// A run that was accepted and not begun is ended by a worker that stops, and that worker
// accepts no more.
//
// Rules: R7.
func TestAWorkerThatStopsLeavesNoRunOpen_R7(t *testing.T) {
	f := newFleet()
	w := f.worker("w1", 0, clean)
	id, err := w.Start(t.Context(), nil, 0, eventstore.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	w.Run(ended)
	run, err := w.Get(t.Context(), id)
	if err != nil || run.EndedAt == nil {
		t.Errorf("%+v, %v", run, err)
	}
	if _, err := w.Start(t.Context(), nil, 0, eventstore.Meta{}); !errors.Is(err, reconciler.ErrStopping) {
		t.Error(err)
	}
	if leader, _ := f.leads.Leader(t.Context()); leader != uuid.Nil {
		t.Error("the lead was kept")
	}
}

// A run whose worker was killed is stalled, with where it was and for how long, and never
// clean; the next run ends it, and a worker that comes back from the dead cannot go on
// with it (R7).
func TestAKilledRunIsStalled_R7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		began, proceed := make(chan struct{}), make(chan struct{})
		dead := f.worker("w1", 0, func(ctx context.Context, c reconciliation.Check, p func(int64, int64)) (reconciliation.Finding, error) {
			if c == reconciliation.OpenHolds {
				time.Sleep(3 * time.Second) // long enough for the progress to be told again
				p(40, 100)
				close(began)
				<-proceed
			}
			return clean(ctx, c, p)
		})
		var running sync.WaitGroup
		var outcome error
		running.Go(func() { _, outcome = dead.Once(t.Context(), nil, time.Hour, eventstore.Meta{}) })
		<-began
		f.leads.Kill()
		time.Sleep(time.Minute)
		run := f.runs(t)[0]
		if run.State != reconciliation.Stalled || run.Result != nil || run.EndedAt != nil || run.SilentMS != time.Minute.Milliseconds() {
			t.Errorf("%+v", run)
		}
		if p := run.Progress; p == nil || p.Check != reconciliation.OpenHolds || p.Done != 40 || p.Total != 100 {
			t.Errorf("progress %+v", p)
		}
		next := f.worker("w2", 0, clean)
		if h, err := next.Health(t.Context()); err != nil || !h.Stalled || len(h.Checks) != 1 {
			t.Errorf("%+v, %v", h, err)
		}

		if _, err := next.Once(t.Context(), nil, 0, eventstore.Meta{}); err != nil {
			t.Fatal(err)
		}
		runs := f.runs(t)
		if *runs[0].Result != reconciliation.Passed || runs[1].State != reconciliation.Stopped || *runs[1].Result != reconciliation.Incomplete {
			t.Errorf("%s %s, %s %s", runs[0].State, *runs[0].Result, runs[1].State, *runs[1].Result)
		}
		if c := runs[1].Checks[1]; c.Undone != reconciliation.Abandoned {
			t.Errorf("%+v", c)
		}
		if h, err := next.Health(t.Context()); err != nil || h.Stalled || len(h.Checks) != len(reconciliation.Checks()) {
			t.Errorf("%+v, %v", h, err)
		}
		close(proceed)
		running.Wait()
		if !errors.Is(outcome, reconciler.ErrLeadLost) {
			t.Errorf("the dead worker: %v", outcome)
		}
	})
}

// A worker that is at its run long after its time is stalled as well: it makes no
// progress (R7).
func TestAStuckRunIsStalled_R7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		proceed := make(chan struct{})
		w := f.worker("w1", 0, func(ctx context.Context, c reconciliation.Check, p func(int64, int64)) (reconciliation.Finding, error) {
			<-proceed
			return clean(ctx, c, p)
		})
		var running sync.WaitGroup
		running.Go(func() { _, _ = w.Once(t.Context(), nil, time.Minute, eventstore.Meta{}) })
		synctest.Wait()
		time.Sleep(time.Minute + reconciliation.Grace)
		if run := f.runs(t)[0]; run.State != reconciliation.Stalled {
			t.Errorf("%+v", run)
		}
		close(proceed)
		running.Wait()
	})
}

// A log that is away for a moment costs no result, and one that wrote what it did not
// answer for has it once.
//
// Rules: R7.
func TestAResultWaitsForTheLog_R7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		log := &moody{Log: f.log, moods: []error{nil, eventstore.ErrOverloaded, eventstore.ErrOutcomeUnknown, eventstore.ErrUnavailable}}
		w := reconciler.New(reconciler.Config{
			Log: log, Leads: f.leads, Look: clean, Worker: "w1",
			Now: time.Now, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }, Logger: slog.New(slog.DiscardHandler),
		})
		if _, err := w.Once(t.Context(), nil, 0, eventstore.Meta{}); err != nil {
			t.Fatal(err)
		}
		run := f.runs(t)[0]
		if *run.Result != reconciliation.Passed || len(f.log.Events) != len(reconciliation.Checks())+2 {
			t.Errorf("%+v in %d events", run, len(f.log.Events))
		}
	})
}

// moody answers its first appends with errors; one whose outcome is unknown is written.
type moody struct {
	*configtest.Log
	moods []error
}

func (m *moody) Append(ctx context.Context, a eventstore.Append) (eventstore.Result, error) {
	if len(m.moods) == 0 {
		return m.Log.Append(ctx, a)
	}
	mood := m.moods[0]
	m.moods = m.moods[1:]
	if mood == nil || errors.Is(mood, eventstore.ErrOutcomeUnknown) {
		r, err := m.Log.Append(ctx, a)
		if err != nil {
			return r, err
		}
		return r, mood
	}
	return eventstore.Result{}, mood
}
