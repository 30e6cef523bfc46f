package secrets

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Querier is a pool or a connection.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Installation is the secret that all workers on one database share, for keyed
// hashes. It stands beside the log and never in it.
func Installation(ctx context.Context, db Querier) ([]byte, error) {
	var secret []byte
	if err := db.QueryRow(ctx, "select secret from installation").Scan(&secret); err != nil {
		return nil, fmt.Errorf("read the installation's secret: %w", err)
	}
	return secret, nil
}
