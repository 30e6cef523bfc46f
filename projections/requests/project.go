package requests

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// Projection keeps the table requests.
type Projection struct{}

// Name implements projections.Projection.
func (Projection) Name() string { return "requests" }

// Version implements projections.Projection.
func (Projection) Version() int { return 1 }

// Types implements projections.Projection.
func (Projection) Types() []string { return types }

// Money implements projections.Projection: the amounts here are shown, bills and
// budgets are what counts, so an event of a newer release does not stop the list.
func (Projection) Money() bool { return false }

// Apply implements projections.Projection. However many events of a request a
// batch holds, its row is written once; rows that earlier batches began are read
// first, so that the fold is in one place, in Go.
func (Projection) Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	rows, err := begun(ctx, tx, batch)
	if err != nil {
		return err
	}
	var order []uuid.UUID
	touched := make(map[uuid.UUID]bool, len(batch))
	for _, rec := range batch {
		id, ok := ID(rec.Stream)
		if !ok {
			continue
		}
		if !touched[id] {
			touched[id] = true
			order = append(order, id)
		}
		if rows[id], err = Fold(rows[id], rec); err != nil {
			return err
		}
	}
	changed := make([]Row, len(order))
	for i, id := range order {
		changed[i] = rows[id]
	}
	if len(changed) == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, upsertSQL, arrays(changed)...)
	return err
}

// begun reads the rows that the batch goes on with; what it opens itself is not
// there yet.
func begun(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) (map[uuid.UUID]Row, error) {
	opened := make(map[uuid.UUID]bool, len(batch))
	var ids []uuid.UUID
	for _, rec := range batch {
		id, ok := ID(rec.Stream)
		if !ok || opened[id] {
			continue
		}
		opened[id] = true
		if rec.StreamVersion > 1 {
			ids = append(ids, id)
		}
	}
	rows := make(map[uuid.UUID]Row, len(opened))
	if len(ids) == 0 {
		return rows, nil
	}
	found, err := tx.Query(ctx, "select "+columnList+" from requests where id = any($1)", ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(found, scanRow)
	for _, row := range list {
		rows[row.ID] = row
	}
	return rows, err
}

func scanRow(from pgx.CollectableRow) (Row, error) {
	var row Row
	err := from.Scan(targets(&row)...)
	row.At = row.At.UTC()
	return row, err
}

var _ projections.Projection = Projection{}
