package pgtest

import (
	"context"

	"github.com/sluice-gateway/sluice/migrations"
)

// migrate brings a database to the current schema.
func migrate(ctx context.Context, url string) error {
	_, err := migrations.Migrate(ctx, url, false)
	return err
}
