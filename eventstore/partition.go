package eventstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ensurePartitions makes the current month's partition and the next two (E7).
func ensurePartitions(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, `select log_ensure_partitions()`); err != nil {
		return fmt.Errorf("eventstore: partitions: %w", err)
	}
	return nil
}
