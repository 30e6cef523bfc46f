package projections

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// adder counts what it is given in one row: nothing in its table would notice an
// event that is folded twice.
type adder struct{}

func (adder) Name() string    { return "adder" }
func (adder) Version() int    { return 1 }
func (adder) Types() []string { return []string{"request_admitted"} }
func (adder) Money() bool     { return true }

func (adder) Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	_, err := tx.Exec(ctx, "update adder set n = n + $1", len(batch))
	return err
}

// The advisory lock is for not doing work twice; that nothing counts twice does not
// rest on it. Four that all believe to lead add up to one (E3).
func TestTwoLeadersCountOnce_E3(t *testing.T) {
	url := pgtest.NewDatabase(t)
	projectiontest.Owner(t, url, `create table adder (n bigint); insert into adder values (0);
		grant select, insert, update, delete on adder to sluice_app;
		insert into projection_tables values ('adder', 'adder')`)
	pool := projectiontest.OpenPool(t, url)
	log := projectiontest.NewLog()
	const events = 400
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			v := newView(adder{}, log, live)
			for position := int64(0); position < events; {
				var err error
				if position, _, err = v.advance(t.Context(), pool, 0, math.MaxInt64); err != nil && !errors.Is(err, errMoved) {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range events {
		log.Append(projectiontest.Stream(n, request.RequestAdmitted{Tenant: "acme"})...)
	}
	all.Wait()
	var n int64
	if err := pool.QueryRow(t.Context(), "select n from adder").Scan(&n); err != nil || n != events {
		t.Errorf("counted %d of %d, %v", n, events, err)
	}
}
