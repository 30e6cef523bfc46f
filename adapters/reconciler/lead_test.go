package reconciler_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections/checks"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// onDatabase is a worker on a real log and a real database.
func onDatabase(t *testing.T, url, name string, look func(*checks.Checker) reconciler.Look) *reconciler.Reconciler {
	t.Helper()
	store, err := eventstore.Open(t.Context(), eventstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	pool := projectiontest.OpenPool(t, url)
	return reconciler.New(reconciler.Config{
		Log: store, Leads: reconciler.Database{Pool: pool}, Look: look(checks.New(pool, store)), Worker: name,
		Now: time.Now, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }, Logger: slog.New(slog.DiscardHandler),
	})
}

func actual(c *checks.Checker) reconciler.Look { return c.Look }

// Many workers that begin at the same moment make one run; its checks are the real ones.
//
// Rules: R7.
func TestTwoWorkersMakeOneRun_R7(t *testing.T) {
	url := pgtest.NewDatabase(t)
	begun, proceed := make(chan struct{}, 1), make(chan struct{})
	workers := []*reconciler.Reconciler{}
	for _, name := range []string{"w1", "w2"} {
		workers = append(workers, onDatabase(t, url, name, func(c *checks.Checker) reconciler.Look {
			return func(ctx context.Context, check reconciliation.Check, p func(int64, int64)) (reconciliation.Finding, error) {
				if check == reconciliation.Counters {
					begun <- struct{}{}
					<-proceed
				}
				return c.Look(ctx, check, p)
			}
		}))
	}
	var racing sync.WaitGroup
	var won, turnedAway atomic.Int32
	for _, w := range workers {
		for range 4 {
			racing.Go(func() {
				switch _, err := w.Once(t.Context(), nil, 0, eventstore.Meta{}); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, reconciler.ErrRunning):
					if turnedAway.Add(1) == 7 {
						close(proceed)
					}
				default:
					t.Error(err)
				}
			})
		}
	}
	<-begun
	racing.Wait()
	runs, err := workers[1].List(t.Context(), uuid.Nil, 10)
	if err != nil || won.Load() != 1 || len(runs) != 1 || runs[0].Result == nil || *runs[0].Result != reconciliation.Passed {
		t.Fatalf("%d won, %+v, %v", won.Load(), runs, err)
	}
	if len(runs[0].Checks) != len(reconciliation.Checks()) || runs[0].State != reconciliation.Done {
		t.Errorf("%+v", runs[0])
	}
}

// A run whose connection ends, as that of a killed worker does, is stalled for whoever
// looks, from that moment on; another worker may begin (R7).
func TestAKilledConnectionStallsTheRun_R7(t *testing.T) {
	url := pgtest.NewDatabase(t)
	begun, proceed := make(chan struct{}), make(chan struct{})
	dead := onDatabase(t, url, "w1", func(c *checks.Checker) reconciler.Look {
		return func(ctx context.Context, check reconciliation.Check, p func(int64, int64)) (reconciliation.Finding, error) {
			if check == reconciliation.Money {
				close(begun)
				<-proceed
			}
			return c.Look(ctx, check, p)
		}
	})
	other := onDatabase(t, url, "w2", actual)
	var running sync.WaitGroup
	var outcome error
	running.Go(func() { _, outcome = dead.Once(t.Context(), nil, 0, eventstore.Meta{}) })
	<-begun
	newest := func() reconciler.Report {
		t.Helper()
		runs, err := other.List(t.Context(), uuid.Nil, 1)
		if err != nil || len(runs) != 1 {
			t.Fatalf("%+v, %v", runs, err)
		}
		return runs[0]
	}
	if run := newest(); run.State != reconciliation.Running || run.Progress == nil || run.Progress.Check != reconciliation.Money {
		t.Errorf("while it runs: %+v", run)
	}
	projectiontest.Owner(t, url, `
		select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted
			and objid = (hashtextextended('sluice reconciliation', 0) & 4294967295)::oid`)
	for newest().State == reconciliation.Running {
	}
	run := newest()
	if run.State != reconciliation.Stalled || run.Result != nil || run.Progress == nil || run.LastProgressAt.IsZero() {
		t.Errorf("after its connection is gone: %+v", run)
	}
	if _, err := other.Once(t.Context(), nil, 0, eventstore.Meta{}); err != nil {
		t.Fatal(err)
	}
	close(proceed)
	running.Wait()
	if !errors.Is(outcome, reconciler.ErrLeadLost) {
		t.Errorf("the dead worker: %v", outcome)
	}
	runs, err := other.List(t.Context(), uuid.Nil, 10)
	if err != nil || len(runs) != 2 || *runs[0].Result != reconciliation.Passed || runs[1].State != reconciliation.Stopped {
		t.Errorf("%+v, %v", runs, err)
	}
	older, err := other.List(t.Context(), runs[0].ID, 10)
	if err != nil || len(older) != 1 || older[0].ID != runs[1].ID {
		t.Errorf("the page behind the newest: %+v, %v", older, err)
	}
	if _, err := other.Get(t.Context(), uuid.Must(uuid.NewV7())); !errors.Is(err, reconciler.ErrNotFound) {
		t.Error(err)
	}
}
