package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// connect opens one connection that the test's end closes.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestDatabasesAreApart(t *testing.T) {
	first, second := connect(t, pgtest.NewDatabase(t)), connect(t, pgtest.NewDatabase(t))
	if _, err := first.Exec(t.Context(), "CREATE TABLE only_here (id int)"); err != nil {
		t.Fatal(err)
	}
	var there bool
	err := second.QueryRow(t.Context(), "SELECT to_regclass('only_here') IS NOT NULL").Scan(&there)
	if err != nil || there {
		t.Fatalf("the table of one test's database is in another's: %t, %v", there, err)
	}
}

func TestDatabaseIsMigrated(t *testing.T) {
	url := pgtest.NewDatabase(t)
	status, err := migrations.State(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := status.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestDatabaseIsDroppedWithItsTest(t *testing.T) {
	count := func() (n int) {
		admin := connect(t, pgtest.Server(t).URL(""))
		err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname LIKE 'sluice\\_test\\_%'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	t.Run("uses one", func(t *testing.T) {
		connect(t, pgtest.NewEmptyDatabase(t))
		if got := count(); got != before+1 {
			t.Fatalf("%d test databases, want %d", got, before+1)
		}
	})
	if after := count(); after != before {
		t.Fatalf("%d test databases after the test, want %d", after, before)
	}
}

func TestParallelTestsGetDatabases(t *testing.T) {
	for range 8 {
		t.Run("one", func(t *testing.T) {
			t.Parallel()
			if err := connect(t, pgtest.NewDatabase(t)).Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// BenchmarkNewDatabase is the cost of one copy; the server and the template are
// there before.
func BenchmarkNewDatabase(b *testing.B) {
	pgtest.NewDatabase(b)
	for b.Loop() {
		pgtest.NewDatabase(b)
	}
}
