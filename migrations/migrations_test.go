package migrations_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func exec(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func state(t *testing.T, url string) migrations.Status {
	t.Helper()
	status, err := migrations.State(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// Rules: O6.
func TestEmptyDatabaseIsMigratedOnce_O6(t *testing.T) {
	url := pgtest.NewEmptyDatabase(t)
	before := state(t, url)
	behind, ok := errors.AsType[*migrations.BehindError](before.Check())
	if !ok || behind.Version != 0 || len(behind.Pending) != len(migrations.All()) {
		t.Fatalf("empty: %v", before.Check())
	}
	if !strings.Contains(behind.Error(), "sluice migrate") {
		t.Errorf("%q does not say what to do", behind)
	}
	would, err := migrations.Migrate(t.Context(), url, true)
	if err != nil || len(would) != len(migrations.All()) {
		t.Fatalf("dry run: %v, %v", would, err)
	}
	if after := state(t, url); after.Version != 0 {
		t.Fatalf("a dry run migrated to %d", after.Version)
	}
	did, err := migrations.Migrate(t.Context(), url, false)
	if err != nil || len(did) != len(would) {
		t.Fatalf("migrated %v, %v", did, err)
	}
	after := state(t, url)
	if err := after.Check(); err != nil || after.Version != migrations.Latest() || after.Digest != migrations.Digest(after.Version) {
		t.Fatalf("%+v, %v", after, err)
	}
	if again, err := migrations.Migrate(t.Context(), url, false); err != nil || len(again) != 0 {
		t.Fatalf("again: %v, %v", again, err)
	}
}

// Several workers' migrate commands at once, on several databases of one cluster:
// roles are the cluster's.
//
// Rules: O6.
func TestConcurrentMigrationsAgree_O6(t *testing.T) {
	urls := []string{pgtest.NewEmptyDatabase(t), pgtest.NewEmptyDatabase(t)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	applied := map[string]int{}
	for i := range 4 {
		wg.Go(func() {
			did, err := migrations.Migrate(t.Context(), urls[i%2], false)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied[urls[i%2]] += len(did)
		})
	}
	wg.Wait()
	for _, url := range urls {
		if err := state(t, url).Check(); err != nil || applied[url] != len(migrations.All()) {
			t.Errorf("%d migrations applied, %v", applied[url], err)
		}
	}
}

func TestDatabasesThatAreNotOursAreLeftAlone(t *testing.T) {
	missing := pgtest.NewEmptyDatabase(t)
	missing = regexp.MustCompile(`sluice_test_\w+`).ReplaceAllString(missing, "sluice_no_such_database")
	foreign := pgtest.NewEmptyDatabase(t)
	exec(t, foreign, `create table somebodys (n int)`)
	alien := pgtest.NewEmptyDatabase(t)
	exec(t, alien, `create table goose_db_version (id int generated always as identity, version_id bigint, is_applied boolean, tstamp timestamptz default now())`)
	exec(t, alien, `insert into goose_db_version (version_id, is_applied) values (0, true), (7, true)`)
	for name, c := range map[string]struct {
		url  string
		want error
	}{
		"no database":       {missing, migrations.ErrNoDatabase},
		"tables of another": {foreign, migrations.ErrForeignSchema},
		"goose of another":  {alien, migrations.ErrForeignSchema},
		"nobody there":      {"postgres://127.0.0.1:1/x?sslmode=disable", migrations.ErrUnreachable},
		"bad settings":      {"postgres://127.0.0.1:1/x?sslmode=nonsense", migrations.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := migrations.State(t.Context(), c.url); !errors.Is(err, c.want) {
				t.Errorf("state: %v", err)
			}
			if _, err := migrations.Migrate(t.Context(), c.url, false); !errors.Is(err, c.want) {
				t.Errorf("migrate: %v", err)
			}
		})
	}
}

// Rules: O11.
func TestUnknownSchemasAreNotBuiltUpon_O11(t *testing.T) {
	t.Run("newer", func(t *testing.T) {
		url := pgtest.NewDatabase(t)
		exec(t, url, `insert into goose_db_version (version_id, is_applied) values (9999, true)`)
		newer, ok := errors.AsType[*migrations.NewerError](state(t, url).Check())
		if !ok || newer.Version != 9999 {
			t.Errorf("check: %v", state(t, url).Check())
		}
		_, err := migrations.Migrate(t.Context(), url, false)
		if _, ok := errors.AsType[*migrations.NewerError](err); !ok {
			t.Errorf("migrate: %v", err)
		}
	})
	t.Run("made by other migrations", func(t *testing.T) {
		url := pgtest.NewDatabase(t)
		exec(t, url, `update schema_digests set digest = 'of an edited file'`)
		_, ok := errors.AsType[*migrations.DigestError](state(t, url).Check())
		if !ok {
			t.Errorf("check: %v", state(t, url).Check())
		}
		_, err := migrations.Migrate(t.Context(), url, false)
		if _, ok := errors.AsType[*migrations.DigestError](err); !ok {
			t.Errorf("migrate: %v", err)
		}
	})
	t.Run("older, of this build", func(t *testing.T) {
		url := pgtest.NewDatabase(t)
		all := migrations.All()
		last := all[len(all)-1]
		exec(t, url, `delete from goose_db_version where version_id = $1`, last.Version)
		exec(t, url, `delete from schema_digests`)
		exec(t, url, `insert into schema_digests (version, digest) values ($1, $2)`, all[len(all)-2].Version, migrations.Digest(all[len(all)-2].Version))
		behind, ok := errors.AsType[*migrations.BehindError](state(t, url).Check())
		if !ok || len(behind.Pending) != 1 || behind.Pending[0] != last {
			t.Errorf("check: %v", state(t, url).Check())
		}
	})
}

// A migrate command that died before it was done is simply run again.
//
// Rules: O6.
func TestInterruptedMigrationIsRunAgain_O6(t *testing.T) {
	url := pgtest.NewDatabase(t)
	exec(t, url, `delete from schema_digests`)
	if _, ok := errors.AsType[*migrations.BehindError](state(t, url).Check()); !ok {
		t.Errorf("check: %v", state(t, url).Check())
	}
	if _, err := migrations.Migrate(t.Context(), url, false); err != nil {
		t.Fatal(err)
	}
	if err := state(t, url).Check(); err != nil {
		t.Error(err)
	}
}

// Files are named and numbered so that goose and Digest read them in one order.
func TestMigrationsAreNumbered(t *testing.T) {
	var before int64
	for _, m := range migrations.All() {
		if !regexp.MustCompile(`^\d{4}_[a-z0-9_]+\.sql$`).MatchString(m.Name) || m.Version <= before {
			t.Errorf("%s follows %d", m.Name, before)
		}
		before = m.Version
		text, err := migrations.FS.ReadFile(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "-- +goose Up") || strings.Contains(string(text), "-- +goose Down") {
			t.Errorf("%s is not forward only", m.Name)
		}
	}
}
