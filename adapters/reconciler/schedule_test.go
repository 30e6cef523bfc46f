package reconciler_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
)

// start runs workers until the test ends or stop is called.
func start(t *testing.T, workers ...*reconciler.Reconciler) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(func() { w.Run(ctx) })
	}
	return func() { cancel(); running.Wait() }
}

// Three workers make one run a day between them, the first soon after they started, and
// none where they are told not to (R7).
func TestOneRunADay_R7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		stop := start(t, f.worker("w1", 24*time.Hour, clean), f.worker("w2", 24*time.Hour, clean), f.worker("w3", 24*time.Hour, clean))
		time.Sleep(10 * time.Minute)
		if n := len(f.runs(t)); n != 1 {
			t.Fatalf("%d runs after a start", n)
		}
		time.Sleep(23 * time.Hour)
		if n := len(f.runs(t)); n != 1 {
			t.Fatalf("%d runs within a day", n)
		}
		time.Sleep(2 * time.Hour)
		if n := len(f.runs(t)); n != 2 {
			t.Fatalf("%d runs after a day", n)
		}
		stop()

		quiet := newFleet()
		stop = start(t, quiet.worker("w1", 0, clean))
		time.Sleep(30 * 24 * time.Hour)
		if n := len(quiet.runs(t)); n != 0 {
			t.Errorf("%d runs that nobody wanted", n)
		}
		stop()
	})
}

// A run of all checks that somebody asked for is the day's; one of some checks is not.
//
// Rules: R7.
func TestAskedForRunsCount_R7(t *testing.T) {
	for name, c := range map[string]struct {
		checks []reconciliation.Check
		runs   int
	}{"all": {nil, 1}, "some": {[]reconciliation.Check{reconciliation.Money}, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet()
				w := f.worker("w1", 24*time.Hour, clean)
				if _, err := w.Once(t.Context(), c.checks, 0, eventstore.Meta{}); err != nil {
					t.Fatal(err)
				}
				stop := start(t, w)
				defer stop()
				time.Sleep(12 * time.Hour)
				if n := len(f.runs(t)); n != c.runs {
					t.Errorf("%d runs, want %d", n, c.runs)
				}
			})
		})
	}
}

// A run that its worker did not end is made again, not at once and not a day later.
//
// Rules: R7.
func TestAnInterruptedRunIsMadeAgain_R7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		ended, stop := context.WithCancel(t.Context())
		stop()
		if _, err := f.worker("w1", 0, clean).Once(ended, nil, 0, eventstore.Meta{}); err != nil {
			t.Fatal(err)
		}
		end := start(t, f.worker("w2", 24*time.Hour, clean))
		defer end()
		time.Sleep(30 * time.Minute)
		if n := len(f.runs(t)); n != 1 {
			t.Fatalf("%d runs after half an hour", n)
		}
		time.Sleep(3 * time.Hour)
		if runs := f.runs(t); len(runs) != 2 || *runs[0].Result != reconciliation.Passed {
			t.Fatalf("%d runs after three hours", len(runs))
		}
	})
}

// What Start accepts, Run does at once, also where nothing is scheduled.
//
// Rules: R7.
func TestAcceptedRunsAreDone_R7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		w := f.worker("w1", 0, clean)
		stop := start(t, w)
		defer stop()
		for range 3 {
			id, err := w.Start(t.Context(), nil, 0, eventstore.Meta{Actor: "admin-key/1"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			run, err := w.Get(t.Context(), id)
			if err != nil || run.Result == nil || *run.Result != reconciliation.Passed || run.Actor != "admin-key/1" || run.Worker != "w1" {
				t.Errorf("%+v, %v", run, err)
			}
		}
	})
}
