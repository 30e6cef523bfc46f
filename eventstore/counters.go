package eventstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// Counters reads a shard's counters as they are now, trailing ones through their
// window; a counter nobody has written reads zero. For display: decisions are made in the append.
func (s *Store) Counters(ctx context.Context, shard int16, keys []budget.Key) (map[budget.Key]budget.Counter, error) {
	counters := make(map[budget.Key]budget.Counter, len(keys))
	names := make([]string, len(keys))
	for i, k := range keys {
		counters[k] = budget.Counter{}
		names[i] = string(k)
	}
	rows, err := s.pool.Query(ctx, sqlCounters, shard, names)
	if err != nil {
		return nil, fmt.Errorf("eventstore: counters: %w", err)
	}
	if err := scanCounters(rows, counters); err != nil {
		return counters, err
	}
	_, err = readWindows(ctx, s.pool, shard, counters)
	return counters, err
}

// scanCounters reads key, held, settled into a map and closes rows.
func scanCounters(rows pgx.Rows, into map[budget.Key]budget.Counter) error {
	defer rows.Close()
	for rows.Next() {
		var key string
		var c budget.Counter
		if err := rows.Scan(&key, &c.Held, &c.Settled); err != nil {
			return fmt.Errorf("eventstore: counters: %w", err)
		}
		into[budget.Key(key)] = c
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("eventstore: counters: %w", err)
	}
	return nil
}
