package eventstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// The partition by a literal, and the rows by the predicate of an index that holds no
// others: the cost is that of what is returned.
//
//	Limit
//	  ->  Index Scan Backward using log_events_recent_circuits on log_events_state log_events
//	        Index Cond: (recorded_at >= (now() - make_interval(secs => $1)))
const sqlRecentCircuits = `select ` + rowColumns + ` from log_events
where born = '1970-01-02 00:00:00+00' and stream >= 'circuit/' and stream < 'circuit0'
and recorded_at >= now() - make_interval(secs => $1)
order by recorded_at desc limit $2`

// RecentCircuits returns what circuits said lately, in the order of the log: at most
// limit rows, the newest, no older than within by the database's clock. Nothing waits
// for it to be durable: it is a worker's memory of how routes fared, and no record.
func (s *Store) RecentCircuits(ctx context.Context, within time.Duration, limit int) ([]Recorded, error) {
	rows, err := query(ctx, s.pool, sqlRecentCircuits, within.Seconds(), min(limit, maxPage))
	if err != nil {
		return nil, err
	}
	var found []Recorded
	if _, err = eachRow(rows, 0, func(r *Row) error {
		r.after = r.Position - int64(r.Events)
		found, err = r.recorded(found)
		return err
	}); err != nil {
		return nil, fmt.Errorf("eventstore: recent circuits: %w", err)
	}
	slices.SortFunc(found, func(a, b Recorded) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Position, b.Position))
	})
	return found, nil
}
