package projections_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// tally is a projection that writes down every event it was given, once: a second
// time is a duplicate key and an error.
type tally struct {
	name    string
	version int
	money   bool
	// before runs ahead of every batch; an error fails the batch.
	before func(ctx context.Context, batch []eventstore.Recorded) error
	// after is told of every batch that was written, before it is committed.
	after func(batch []eventstore.Recorded)
}

func (t *tally) Name() string    { return t.name }
func (t *tally) Version() int    { return max(t.version, 1) }
func (t *tally) Types() []string { return []string{"request_admitted", "request_finalized"} }
func (t *tally) Money() bool     { return t.money }

func (t *tally) Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	if t.before != nil {
		if err := t.before(ctx, batch); err != nil {
			return err
		}
	}
	for _, rec := range batch {
		_, err := tx.Exec(ctx, "insert into "+t.name+" (shard, position, type) values ($1, $2, $3)", rec.Shard, rec.Position, rec.Type)
		if err != nil {
			return err
		}
	}
	if t.after != nil {
		t.after(batch)
	}
	return nil
}

// database is one with the tables of the given tallies.
func database(t testing.TB, names ...string) (string, *pgxpool.Pool) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	for _, name := range names {
		projectiontest.Owner(t, url, `
			create table `+name+` (shard smallint, position bigint, type text, primary key (shard, position));
			grant select, insert, update, delete on `+name+` to sluice_app;
			insert into projection_tables (name, table_name) values ('`+name+`', '`+name+`')`)
	}
	return url, projectiontest.OpenPool(t, url)
}

// start runs a runner until the test ends or stop is called.
func start(t testing.TB, r *projections.Runner) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// request opened and closed: two events of the two types a tally wants, and one it
// does not.
func life(n int) []eventstore.Recorded {
	return projectiontest.Stream(n,
		projectiontest.Admitted("acme"),
		request.RouteSkipped{Rung: 1, Reason: request.SkipBreakerOpen},
		request.RequestFinalized{Outcome: request.Failed},
	)
}

// positions reads what a tally has written down.
func positions(t testing.TB, pool *pgxpool.Pool, table string) []int64 {
	t.Helper()
	rows, err := pool.Query(context.Background(), "select position from "+table+" order by shard, position")
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var errPoison = errors.New("poison")
