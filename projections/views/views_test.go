package views_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/views"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// open opens the real log on a fresh database.
func open(t testing.TB) (*eventstore.Store, *pgxpool.Pool) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	store, err := eventstore.Open(context.Background(), eventstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return store, projectiontest.OpenPool(t, url)
}

// lives are n whole lives, the same for the same seed.
func lives(n int) [][]eventstore.Recorded {
	streams := make([][]eventstore.Recorded, n)
	for i := range streams {
		streams[i] = projectiontest.Stream(i, rapid.Custom(projectiontest.Life).Example(i)...)
	}
	return streams
}

// appendOf is a part of a stream as its worker would write it, with its effects on
// the counters.
func appendOf(part []eventstore.Recorded) eventstore.Append {
	a := eventstore.Append{Stream: part[0].Stream, Expected: part[0].StreamVersion - 1, Meta: part[0].Meta}
	for _, rec := range part {
		e, err := event.Decode(rec.Type, rec.Version, rec.Data)
		if err != nil {
			panic(err)
		}
		a.Events = append(a.Events, rec.Event)
		a.Deltas = append(a.Deltas, budget.Effects(e)...)
	}
	return a
}

// say appends a life in two commits, as a request does.
func say(ctx context.Context, store *eventstore.Store, life []eventstore.Recorded) error {
	cut := min(2, len(life))
	for _, part := range [][]eventstore.Recorded{life[:cut], life[cut:]} {
		if len(part) == 0 {
			continue
		}
		if _, err := store.Append(ctx, appendOf(part)); err != nil {
			return err
		}
	}
	return nil
}

// The whole of it on the real log: many requests at once, two workers' runners,
// rebuilds of every view meanwhile; in the end every view is what the log adds up
// to, and every life was possible (E4, E5).
func TestViewsAreWhatTheLogAddsUpTo_E4(t *testing.T) {
	store, pool := open(t)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for range 2 {
		runner := projections.NewRunner(pool, store, projections.Options{Poll: 5 * time.Millisecond}, views.All()...)
		running.Go(func() { runner.Run(ctx) })
	}
	keeper := views.NewKeeper(pool, store)
	var writers sync.WaitGroup
	const requests = 200
	streams := lives(requests)
	for w := range 8 {
		writers.Go(func() {
			for i := w; i < requests; i += 8 {
				if err := say(ctx, store, streams[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, name := range views.Names() {
		if err := keeper.Rebuild(ctx, name, nil); err != nil {
			t.Fatalf("rebuild %s: %v", name, err)
		}
	}
	writers.Wait()
	head, err := store.Head(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range views.All() {
		eventually(t, pool, fmt.Sprintf(`exists (select from projection_checkpoints
			where name = '%s' and target = 'live' and position = %d)`, p.Name(), head.Position))
	}
	report, err := keeper.Verify(ctx, projectiontest.Start, nil)
	if err != nil || !report.OK() {
		t.Fatalf("%+v, %v", report, err)
	}
	if report.Lives[0].Requests != requests || report.Views[0].Live.Rows != requests || report.Counters[0].Counters == 0 {
		t.Errorf("verified too little: %+v", report)
	}

	if _, err := pool.Exec(ctx, "update budget_counters set settled = settled + 1 where key like '%month%'"); err != nil {
		t.Fatal(err)
	}
	if report, err = keeper.Verify(ctx, projectiontest.Start, nil); err != nil || report.OK() || len(report.Counters[0].Drifts) == 0 {
		t.Errorf("a counter was changed, and verify says %+v, %v", report.Counters, err)
	}
}

// eventually asks the database until a condition holds.
func eventually(t testing.TB, pool *pgxpool.Pool, condition string) {
	t.Helper()
	for holds := false; !holds; {
		if err := pool.QueryRow(t.Context(), "select "+condition+" or pg_sleep(0.005) is null").Scan(&holds); err != nil {
			t.Fatal(err)
		}
	}
}

// A rebuild's tables come by their indexes as "like" names them; one that a
// migration named otherwise would be lost under its name.
func TestRebuildKeepsEveryIndex(t *testing.T) {
	store, pool := open(t)
	indexes := func() (text string) {
		err := pool.QueryRow(t.Context(), `select string_agg(indexdef, e'\n' order by indexname)
			from pg_indexes join projection_tables on table_name = tablename where schemaname = 'public'`).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := indexes()
	for _, p := range views.All() {
		if err := views.NewKeeper(pool, store).Rebuild(t.Context(), p.Name(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if after := indexes(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestUnknownViewIsNamed(t *testing.T) {
	store, pool := open(t)
	err := views.NewKeeper(pool, store).Rebuild(t.Context(), "horoscopes", nil)
	if unknown, ok := errors.AsType[*views.UnknownError](err); !ok || unknown.Name != "horoscopes" {
		t.Error(err)
	}
}

// BenchmarkReplay rebuilds each view from a log of a realistic mix.
func BenchmarkReplay(b *testing.B) {
	store, pool := open(b)
	ctx := context.Background()
	streams := lives(2000)
	var appends []eventstore.Append
	for copyOf := range 20 {
		for i, life := range streams {
			stream := "request/" + projectiontest.RequestID(copyOf*len(streams)+i).String()
			cut := min(2, len(life))
			for _, part := range [][]eventstore.Recorded{life[:cut], life[cut:]} {
				if len(part) > 0 {
					a := appendOf(part)
					a.Stream = stream
					appends = append(appends, a)
				}
			}
		}
	}
	for len(appends) > 0 {
		n := min(400, len(appends))
		if _, err := store.AppendAll(ctx, appends[:n]); err != nil {
			b.Fatal(err)
		}
		appends = appends[n:]
	}
	head, err := store.Head(ctx, 0)
	if err != nil {
		b.Fatal(err)
	}
	keeper := views.NewKeeper(pool, store)
	for _, name := range views.Names() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := keeper.Rebuild(ctx, name, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(head.Position)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkLive folds what 1,500 requests a second say within one linger, into all
// views: what following the log costs a worker and its database.
func BenchmarkLive(b *testing.B) {
	_, pool := open(b)
	ctx := context.Background()
	const batch = 75
	streams := lives(2000)
	said := 0
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		log := projectiontest.NewLog()
		for range batch {
			stream := "request/" + projectiontest.RequestID(said).String()
			for _, rec := range streams[said%len(streams)] {
				rec.Stream = stream
				log.Append(rec)
			}
			said++
		}
		events, err := log.ReadAll(ctx, 0, 0, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for _, p := range views.All() {
			wanted := slices.DeleteFunc(slices.Clone(events), func(r eventstore.Recorded) bool { return !slices.Contains(p.Types(), r.Type) })
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "set local synchronous_commit = off"); err != nil {
					return err
				}
				return p.Apply(ctx, tx, wanted)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(said), "µs/request")
}
