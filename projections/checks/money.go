package checks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
)

// kept is what is kept beside the log at one moment, and how far it had come then.
type kept struct {
	sums reconciliation.Sums
	// heads is where each shard ended, and with it the counters; billed is how far the
	// bills were, and told the newest price correction that they know.
	heads, billed map[int16]int64
	told          int64
}

// money compares what was charged in the log with the bills, the usage and the counters
// of the month. All of them are read in one moment; the log up to there does not change
// any more, so it can be added up afterwards.
func (c *Checker) money(ctx context.Context, progress Progress) (reconciliation.Finding, error) {
	k := kept{sums: reconciliation.NewSums(), heads: map[int16]int64{}, billed: map[int16]int64{}}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, c.pool, snapshot, func(tx pgx.Tx) error { return k.read(ctx, tx, c.shards) })
	if err != nil {
		return reconciliation.Finding{}, err
	}
	corrections, err := bills.Corrections(ctx, c.log, k.told)
	if err != nil {
		return reconciliation.Finding{}, err
	}
	charges := reconciliation.NewCharges(corrections)
	done, err := c.scanAll(ctx, k.heads, []string{"attempt_settled"}, func(rec eventstore.Recorded, e event.Event) error {
		if settled, ok := e.(request.AttemptSettled); ok {
			charges.Settle(settled, projections.ObservedAt(rec), rec.Position <= k.billed[rec.Shard])
		}
		return nil
	}, progress)
	if err != nil {
		// Half of a sum compares with nothing.
		return reconciliation.Finding{Position: done}, err
	}
	return charges.Finding(k.sums, done), nil
}

func (k *kept) read(ctx context.Context, tx pgx.Tx, shards []int16) error {
	rows, err := tx.Query(ctx, `
		select h.shard, h.position, coalesce(c.position, 0), coalesce(c.version, $2)
		from (select s.shard, (select coalesce(max(b.last_position), 0) from log_batches b where b.shard = s.shard) as position
			from unnest($1::smallint[]) as s(shard)) h
		left join projection_checkpoints c on c.name = $3 and c.target = 'live' and c.shard = h.shard`,
		shards, bills.Projection{}.Version(), bills.Projection{}.Name())
	if err != nil {
		return err
	}
	var shard int16
	var head, billed int64
	var version int
	_, err = pgx.ForEachRow(rows, []any{&shard, &head, &billed, &version}, func() error {
		k.heads[shard], k.billed[shard] = head, billed
		if built := (bills.Projection{}).Version(); version != built {
			return &projections.VersionError{Name: bills.Projection{}.Name(), Have: version, Built: built}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if k.told, err = (bills.Projection{}).Foreseen(ctx, tx); err != nil {
		return err
	}
	err = accounts(ctx, tx, k.sums.Bills, `
		select tenant, of_period, sum(charge_nanousd)::bigint from bill_lines group by tenant, of_period`)
	if err != nil {
		return err
	}
	err = accounts(ctx, tx, k.sums.Usage, `
		select tenant, to_char(day, 'YYYY-MM'), sum(charge_nanousd)::bigint from usage_days group by 1, 2`)
	if err != nil {
		return err
	}
	return k.counters(ctx, tx, shards)
}

func accounts(ctx context.Context, tx pgx.Tx, sums map[reconciliation.Account]int64, sql string) error {
	rows, err := tx.Query(ctx, sql)
	if err != nil {
		return err
	}
	var of reconciliation.Account
	var charge int64
	_, err = pgx.ForEachRow(rows, []any{&of.Tenant, &of.Period, &charge}, func() error {
		sums[of] = charge
		return nil
	})
	return err
}

// counters reads the counters of money in a month; one organization's are in one shard.
func (k *kept) counters(ctx context.Context, tx pgx.Tx, shards []int16) error {
	rows, err := tx.Query(ctx, `
		select key, settled from budget_counters where shard = any($1) and strpos(key, $2) > 0`,
		shards, reconciliation.MonthlyMark)
	if err != nil {
		return err
	}
	var key string
	var settled int64
	_, err = pgx.ForEachRow(rows, []any{&key, &settled}, func() error {
		k.sums.Counters[budget.Key(key)] += settled
		return nil
	})
	return err
}
