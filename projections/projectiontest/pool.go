package projectiontest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// NewPool connects to a fresh database with the rights of a worker: a read model
// that needs more would work here and fail in production.
func NewPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return OpenPool(t, pgtest.NewDatabase(t))
}

// OpenPool is NewPool on a database that the test has already.
func OpenPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 8
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role sluice_app")
		return err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Owner runs statements that a worker has no right to, as a migration would.
func Owner(t testing.TB, url string, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
