package config_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func openStore(t *testing.T) *eventstore.Store {
	t.Helper()
	return storeAt(t, pgtest.NewDatabase(t))
}

func storeAt(t *testing.T, url string) *eventstore.Store {
	t.Helper()
	store, err := eventstore.Open(t.Context(), eventstore.Config{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := store.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

// Through the real log: a file becomes events, a worker serves them, a key opens
// the catalog, the same file changes nothing, and what is overtaken is refused
// (C1, C3, C11, C13).
func TestFileToSnapshotThroughTheLog_C1_C3_C13(t *testing.T) {
	ctx, store := t.Context(), openStore(t)
	text, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if plan := apply(t, store, mustLoad(t, string(text))); plan.Empty() {
		t.Fatal("nothing was applied")
	}
	key, plaintext, err := config.CreateKey(ctx, store, config.KeyRequest{Tenant: "acme"}, rand.Reader, operator, time.Now())
	if err != nil {
		t.Fatal(err)
	}

	worker := live.New(store)
	if err := worker.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	first := worker.Current()
	if found, ok := first.KeyByHash(catalog.HashKey(plaintext)); !ok || found.ID != key.ID {
		t.Error("the key does not open the catalog")
	}
	plan, err := first.Resolve(catalog.Ask{Tenant: "acme", Name: "fable-5"})
	if err != nil || len(plan.Stages) != 2 || len(plan.Stages[0].Rungs) != 2 || plan.Stages[1].Model.Slug != "fable-4" {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if again := apply(t, store, mustLoad(t, string(text))); !again.Empty() {
		t.Errorf("the second time planned\n%s", printed(t, again))
	}

	overtaken := config.Diff(read(t, store), mustLoad(t, strings.Replace(string(text), `output: "5.00"`, `output: "6.00"`, 1)))
	apply(t, store, mustLoad(t, strings.Replace(string(text), `output: "5.00"`, `output: "7.00"`, 1)))
	var stale *config.StaleError
	if err := config.Apply(ctx, store, overtaken, operator, time.Now()); !errors.As(err, &stale) {
		t.Errorf("an overtaken plan: %v", err)
	}
	if err := worker.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	d, _ := worker.Current().Deployment("fable-4@anthropic")
	if d.Prices.Output.String() != "7" || worker.Current().ID == first.ID || worker.Current().Position <= first.Position {
		t.Errorf("after the change: output %s, id %s", d.Prices.Output, worker.Current().ID)
	}

	// An export to an empty log gives the same catalog.
	fresh := configtest.NewLog()
	apply(t, fresh, mustLoad(t, string(config.Export(read(t, store)))))
	if got := read(t, fresh).Snapshot().ID; got != worker.Current().ID {
		t.Errorf("exported and applied: %s, want %s", got, worker.Current().ID)
	}
}
