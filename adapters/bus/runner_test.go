package bus_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/bus"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// A commit of one process reaches the projections of another by notification, feed
// and bus alone: the poll of this runner never comes (O4).
func TestCommitWakesProjectionsOfAnotherProcess_O4(t *testing.T) {
	url := pgtest.NewDatabase(t)
	openStore := func() *eventstore.Store {
		store, err := eventstore.Open(context.Background(), eventstore.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close(context.Background()) })
		return store
	}
	writer, reader := openStore(), openStore()
	pool := projectiontest.OpenPool(t, url)
	b, err := bus.Open("memory")
	if err != nil {
		t.Fatal(err)
	}
	runner := projections.NewRunner(pool, reader, projections.Options{Poll: time.Hour}, requests.Projection{})
	if err := b.Subscribe(t.Context(), func(n bus.Nudge) { runner.Nudge(n.Shard, n.Position) }); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { runner.Run(ctx) })
	running.Go(func() { bus.Feed(ctx, reader, b, slog.New(slog.DiscardHandler)) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	said := 0
	say := func() {
		rec := projectiontest.Stream(said, projectiontest.Admitted("acme"))[0]
		if _, err := writer.Append(t.Context(), eventstore.Append{Stream: rec.Stream, Events: []eventstore.Event{rec.Event}}); err != nil {
			t.Fatal(err)
		}
		said++
	}
	shown := func() (rows int) {
		if err := pool.QueryRow(t.Context(), "select count(*) from requests").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for shown() == 0 { // until the reader listens: what came before is nobody's news
		say()
	}
	for range 3 {
		say()
		for shown() < said {
		}
	}
}
