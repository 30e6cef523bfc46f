package eventstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// Counters that are read through a trailing window (see budget.Window): the marks
// beside them, read with the head and written with the batch, so that the decision, the
// events and the window have one clock, the database's, whoever wrote (R1, R5).

const (
	// windowColumns are, in the order of the keys asked, what of each counter has left
	// its window and when the oldest in it came. now is the clock of the query around.
	windowColumns = `
select array_agg(coalesce(m.settled, c.settled, 0) order by w.n) as passed, array_agg(m.at order by w.n) as oldest
from unnest($2::text[], $3::bigint[]) with ordinality as w(key, reach, n)
left join budget_counters c on c.shard = $1 and c.key = w.key
left join lateral (
    select m.settled, m.at from budget_marks m
    where m.shard = $1 and m.key = w.key and m.at > clock.now - w.reach * interval '1 microsecond'
    order by m.at limit 1
) m on true`

	// sqlHeadWindows is sqlHead with windows read at the very clock that the batch will
	// carry.
	sqlHeadWindows = `
with clock as materialized (select clock_timestamp() as now)
select greatest(clock.now, b.recorded_at), coalesce(b.last_position, 0), coalesce(b.hash, decode(repeat('00', 32), 'hex')), w.passed, w.oldest
from clock
left join (select last_position, hash, recorded_at from log_batches where shard = $1 order by last_position desc limit 1) b on true
left join lateral (` + windowColumns + `) w on true`

	// sqlWindows reads windows alone, at a clock of its own.
	sqlWindows = `
with clock as materialized (select clock_timestamp() as now)
select clock.now, w.passed, w.oldest from clock left join lateral (` + windowColumns + `) w on true`

	// marksWritten goes into the batch's statement: the subquery sees the counter as it
	// was before it. The first mark of a moment stands.
	marksWritten = `, marks as (
    insert into budget_marks (shard, key, at, settled)
    select $1, m.key, m.at, coalesce((select c.settled from budget_counters c where c.shard = $1 and c.key = m.key), 0)
    from unnest($17::text[], $18::timestamptz[]) as m(key, at)
    on conflict do nothing
)`
)

// windowKeys are the trailing ones among keys, with their reach in microseconds.
func windowKeys(keys []string) (trailing []string, reach []int64) {
	for _, k := range keys {
		if w, ok := budget.WindowOf(budget.Key(k)); ok {
			trailing, reach = append(trailing, k), append(reach, w.Reach().Microseconds())
		}
	}
	return trailing, reach
}

// marksOf are the marks that a batch's deltas need.
func marksOf(deltas []budget.Delta, recordedAt time.Time) (keys []string, at []time.Time) {
	for _, d := range deltas {
		if w, ok := budget.WindowOf(d.Key); ok && d.Settled != 0 {
			keys, at = append(keys, string(d.Key)), append(at, w.Mark(recordedAt))
		}
	}
	return keys, at
}

// seeThrough puts windows into counters.
func seeThrough(counters map[budget.Key]budget.Counter, keys []string, passed []int64, oldest []*time.Time) error {
	if len(passed) != len(keys) || len(oldest) != len(keys) {
		return corrupt("%d windows of %d", len(passed), len(keys))
	}
	for i, k := range keys {
		c := counters[budget.Key(k)]
		c.Passed, c.Oldest = passed[i], time.Time{}
		if oldest[i] != nil {
			c.Oldest = oldest[i].UTC()
		}
		counters[budget.Key(k)] = c
	}
	return nil
}

// queryRower is a pool or a transaction.
type queryRower interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readWindows puts the windows of the trailing counters among counters into them, and
// tells at which moment.
func readWindows(ctx context.Context, db queryRower, shard int16, counters map[budget.Key]budget.Counter) (time.Time, error) {
	names := make([]string, 0, len(counters))
	for k := range counters {
		names = append(names, string(k))
	}
	keys, reach := windowKeys(names)
	var now time.Time
	var passed []int64
	var oldest []*time.Time
	if err := db.QueryRow(ctx, sqlWindows, shard, keys, reach).Scan(&now, &passed, &oldest); err != nil {
		return time.Time{}, fmt.Errorf("eventstore: windows: %w", err)
	}
	return now.UTC(), seeThrough(counters, keys, passed, oldest)
}

const (
	// sweepEvery is how often marks of the past are swept away: a busy minute leaves
	// some thousand.
	sweepEvery = time.Minute
	// sqlSweep keeps what any window can reach, and a minute for a clock that was set
	// back. Of requests a minute the marks are the most and go sooner. One process at a
	// time: the others would only wait for its rows.
	sqlSweep = `
delete from budget_marks
where (select pg_try_advisory_xact_lock(1819502196, 0))
  and (at < clock_timestamp() - $1 * interval '1 microsecond'
       or key like '%/minute/trailing' and at < clock_timestamp() - interval '3 minutes')`
)

// sweep removes marks that have left every window. Marks are no events: they are made
// again from the log (E4).
func (s *Store) sweep(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, sqlSweep, (budget.MaxReach + time.Minute).Microseconds())
	return err
}
