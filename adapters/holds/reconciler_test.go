package holds_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	reconciler "github.com/sluice-gateway/sluice/adapters/holds"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/holds"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/views"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A hold lasts a day to the microsecond, is resolved once however many workers look, and
// the request's trail and every view say so (D2, E4).
//
// Rules: R2, E4.
func TestAHoldIsLetGoAfterADay_R2_E4(t *testing.T) {
	store, pool := follow(t)
	placed := projectiontest.Start
	var streams []string
	for n := range 3 {
		streams = append(streams, "request/"+projectiontest.RequestID(n).String())
		say(t, store, streams[n], placed.Add(time.Duration(n)*time.Hour))
	}
	unresolved := func(want int64) {
		t.Helper()
		for got := (holds.Sum{Attempts: -1}); got.Attempts != want; {
			var err error
			if got, err = holds.Unresolved(t.Context(), pool, "acme"); err != nil {
				t.Fatal(err)
			}
			if got.Tokens != 1836*got.Attempts {
				t.Fatalf("%+v", got)
			}
		}
	}
	unresolved(3)

	now := placed.Add(24 * time.Hour)
	r := reconciler.Reconciler{
		Log: store, Held: pool, ShardOf: func(string) int16 { return 0 }, TTL: reconciler.DefaultTTL, Worker: "w1",
		Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
	}
	if n, err := r.Sweep(t.Context()); n != 0 || err != nil {
		t.Fatalf("after exactly a day %d were resolved, %v", n, err)
	}
	now = now.Add(time.Microsecond)
	var sum int
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			n, err := r.Sweep(context.Background())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum += n
		})
	}
	workers.Wait()
	unresolved(2)
	if sum != 1 {
		t.Errorf("resolved %d times", sum)
	}
	events, err := store.ReadStream(t.Context(), streams[0], 1, 100)
	if err != nil || len(events) != 6 || events[5].Type != "meter_hold_resolved" || string(events[5].Data) != `{"attempt":1,"by":"age","usage":{}}` {
		t.Errorf("%+v, %v", events, err)
	}
	report, err := views.NewKeeper(pool, store).Verify(t.Context(), now, nil)
	if err != nil || !report.Lives[0].OK() {
		t.Errorf("%+v, %v", report.Lives, err)
	}
	v, err := projections.NewRebuilder(pool, store).Verify(t.Context(), holds.Projection{}, nil)
	if err != nil || !v.OK() || v.Live.Rows != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}

// follow opens a log with a view of its meter holds behind it.
func follow(t *testing.T) (*eventstore.Store, *pgxpool.Pool) {
	url := pgtest.NewDatabase(t)
	store, err := eventstore.Open(context.Background(), eventstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	pool := projectiontest.OpenPool(t, url)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		projections.NewRunner(pool, store, projections.Options{Poll: time.Millisecond}, holds.Projection{}).Run(ctx)
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return store, pool
}

// say writes the life of a request whose usage never arrived.
func say(t *testing.T, store *eventstore.Store, stream string, at time.Time) {
	t.Helper()
	a := eventstore.Append{Stream: stream}
	for _, e := range []event.Event{
		projectiontest.Admitted("acme"),
		request.AttemptReserved{Attempt: 1, Tenant: "acme", Model: "m"},
		request.AttemptSettled{Attempt: 1, Tenant: "acme", Key: "k1", Model: "m", Basis: usage.BasisUnknown},
		request.MeterHoldPlaced{Attempt: 1, Tenant: "acme", Key: "k1", Model: "m", Tokens: 1836},
		request.RequestFinalized{Outcome: request.Completed, Attempts: 1},
	} {
		enc := event.Encode(e)
		a.Events = append(a.Events, eventstore.Event{Type: enc.Type, Version: enc.Version, At: at, Data: enc.Data})
	}
	if _, err := store.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}
