// Package holds keeps the meter holds that nobody has resolved: the tokens of attempts
// whose usage never arrived (D2). A hold that is resolved leaves the table; that it was
// there stands in its request's trail.
package holds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// errStray is a meter hold outside a request's stream.
var errStray = errors.New("holds: a meter hold of no request")

// Projection keeps the table meter_holds.
type Projection struct{}

// Name implements projections.Projection.
func (Projection) Name() string { return "meter_holds" }

// Version implements projections.Projection.
func (Projection) Version() int { return 1 }

// Types implements projections.Projection.
func (Projection) Types() []string { return []string{"meter_hold_placed", "meter_hold_resolved"} }

// Money implements projections.Projection: tokens that are held are part of a limit.
func (Projection) Money() bool { return true }

// Apply implements projections.Projection. Holds are rare: one statement each.
func (Projection) Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	for _, rec := range batch {
		e, err := projections.Decode(rec)
		if err != nil {
			return err
		}
		id, ok := requests.ID(rec.Stream)
		if !ok {
			return projections.At(rec, errStray)
		}
		switch e := e.(type) {
		case request.MeterHoldPlaced:
			_, err = tx.Exec(ctx, `
				insert into meter_holds (request_id, attempt, tenant, key, model, tokens, placed_at)
				values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`,
				id, e.Attempt, e.Tenant, e.Key, e.Model, e.Tokens, projections.ObservedAt(rec))
		case request.MeterHoldResolved:
			_, err = tx.Exec(ctx, `delete from meter_holds where request_id = $1 and attempt = $2`, id, e.Attempt)
		}
		if err != nil {
			return fmt.Errorf("meter holds: %w", err)
		}
	}
	return nil
}

var _ projections.Projection = Projection{}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Hold is an unresolved meter hold.
type Hold struct {
	RequestID uuid.UUID
	Attempt   int
	Tenant    string
	PlacedAt  time.Time
}

// Oldest are the holds that were placed before a time, oldest first.
func Oldest(ctx context.Context, db Querier, before time.Time, limit int) ([]Hold, error) {
	rows, err := db.Query(ctx, `
		select request_id, attempt, tenant, placed_at from meter_holds
		where placed_at < $1 order by placed_at, request_id, attempt limit $2`, before, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Hold])
}

// Sum is what an organization's unresolved holds come to.
type Sum struct {
	Attempts int64 `json:"attempts"`
	Tokens   int64 `json:"tokens"`
}

// Unresolved sums an organization's holds.
func Unresolved(ctx context.Context, db Querier, tenant string) (Sum, error) {
	rows, err := db.Query(ctx, `select count(*), coalesce(sum(tokens), 0)::bigint from meter_holds where tenant = $1`, tenant)
	if err != nil {
		return Sum{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Sum])
}
