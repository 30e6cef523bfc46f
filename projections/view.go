package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore"
)

// target is which set of a projection's tables is filled.
type target string

const (
	live    target = "live"
	rebuild target = "rebuild"
	verify  target = "verify"
)

// pageEvents is how many events one transaction takes at most: large enough that
// a rebuild spends its time folding and not committing, small enough that what a
// crash repeats, and what memory holds, stays small.
const pageEvents = 5000

// errMoved says that somebody else has moved the checkpoint: another worker that
// leads now, or the switch of a rebuild. Nothing was written; look again.
var errMoved = errors.New("projections: the checkpoint was moved by somebody else")

// VersionError is a live view made by another version of the fold. A worker with
// this release must not write to it: old and new workers run side by side during
// an upgrade (O6), and the view stays the old ones' until it is rebuilt.
type VersionError struct {
	Name        string
	Have, Built int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("view %s has version %d, this release makes version %d: run sluice rebuild %s",
		e.Name, e.Have, e.Built, e.Name)
}

// beginner is a pool or a connection.
type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// view is one set of a projection's tables with its checkpoints.
type view struct {
	Projection
	selector
	log    Log
	target target
}

func newView(p Projection, log Log, t target) view {
	return view{Projection: p, selector: newSelector(p), log: log, target: t}
}

// schema is where the view's tables stand.
func (v view) schema() string {
	if v.target == live {
		return "public"
	}
	return v.Name() + "_" + string(v.target)
}

// advance takes the next page of a shard, no further than upTo, and returns how
// far the view has come and whether there may be more at once. An *EventError is
// returned with everything before that event applied.
func (v view) advance(ctx context.Context, db beginner, shard int16, upTo int64) (position int64, more bool, err error) {
	if position, err = v.checkpoint(ctx, db, shard); err != nil {
		return position, false, err
	}
	limit := int(min(pageEvents, upTo-position))
	if limit <= 0 {
		return position, false, nil
	}
	page, err := v.log.ReadAll(ctx, shard, position, limit)
	if err != nil || len(page) == 0 {
		return position, false, err
	}
	next, err := v.fold(ctx, db, shard, position, page)
	return next, err == nil && len(page) == limit, err
}

// fold applies a page in one transaction, or, when an event of it cannot be
// folded, what comes before that event.
func (v view) fold(ctx context.Context, db beginner, shard int16, position int64, page []eventstore.Recorded) (int64, error) {
	batch, next, stop := v.choose(page)
	return v.foldChosen(ctx, db, shard, chosen{batch: batch, from: position, to: next, stop: stop})
}

// chosen is what a projection wants of a page that ends at a position, and the event
// behind it that it cannot pass.
type chosen struct {
	batch    []eventstore.Recorded
	from, to int64
	stop     error
}

func (v view) foldChosen(ctx context.Context, db beginner, shard int16, c chosen) (int64, error) {
	position, batch, next, stop := c.from, c.batch, c.to, c.stop
	err := v.write(ctx, db, shard, position, next, batch)
	if head, poison, ok := before(batch, err); ok {
		next, stop = poison.Position-1, poison
		err = v.write(ctx, db, shard, position, next, head)
	}
	if err != nil {
		return position, err
	}
	return next, stop
}

// write moves view and checkpoint together, from one position to the next. The
// checkpoint's row is locked first: a rebuild that is about to switch holds it and
// then needs the tables, and taking them in the other order would be a deadlock.
func (v view) write(ctx context.Context, db beginner, shard int16, from, to int64, batch []eventstore.Recorded) error {
	if to == from {
		return nil
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		at, err := v.lock(ctx, tx, shard)
		if err != nil {
			return err
		}
		if at != from {
			return errMoved
		}
		if v.target != live {
			if err := searchPath(ctx, tx, v.schema()); err != nil {
				return err
			}
		}
		return v.apply(ctx, tx, shard, to, batch)
	})
}

// apply folds a batch and writes its checkpoint, within a transaction that holds
// the checkpoint's lock.
func (v view) apply(ctx context.Context, tx pgx.Tx, shard int16, to int64, batch []eventstore.Recorded) error {
	if len(batch) > 0 {
		if err := v.Apply(ctx, tx, batch); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		update public.projection_checkpoints set position = $4 where name = $1 and target = $2 and shard = $3`,
		v.Name(), v.target, shard, to)
	return err
}

// searchPath lets unqualified names mean one schema's tables, and only those, to
// the end of the transaction: a table that a shadow lacks must be an error, not
// the live one.
func searchPath(ctx context.Context, tx pgx.Tx, schema string) error {
	_, err := tx.Exec(ctx, `select set_config('search_path', quote_ident($1), true)`, schema)
	return err
}

// lock takes the checkpoint's row and returns its position. It also lets the
// transaction's commit not wait for the disk: a crash takes view and checkpoint
// back together, what it takes is folded again, and requests need the disk more.
func (v view) lock(ctx context.Context, tx pgx.Tx, shard int16) (position int64, err error) {
	var version int
	err = tx.QueryRow(ctx, `
		select position, version, set_config('synchronous_commit', 'off', true)
		from projection_checkpoints where name = $1 and target = $2 and shard = $3 for update`,
		v.Name(), v.target, shard).Scan(&position, &version, nil)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, errMoved
	case err != nil:
		return 0, err
	}
	return position, v.sameVersion(version)
}

// checkpoint reads how far the view has come in a shard; the first look makes it
// zero.
func (v view) checkpoint(ctx context.Context, db beginner, shard int16) (position int64, err error) {
	var version int
	// The union sees the row that the insert made, or the one that was there.
	err = db.QueryRow(ctx, `
		with made as (
			insert into projection_checkpoints (name, target, shard, version, position)
			select $1, $2, $3, $4, 0
			where not exists (select from projection_checkpoints where name = $1 and target = $2 and shard = $3)
			on conflict do nothing
			returning position, version)
		select position, version from made
		union all
		select position, version from projection_checkpoints where name = $1 and target = $2 and shard = $3
		limit 1`,
		v.Name(), v.target, shard, v.Version()).Scan(&position, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, errMoved // made by another worker in this moment
	}
	if err != nil {
		return 0, err
	}
	return position, v.sameVersion(version)
}

func (v view) sameVersion(version int) error {
	if version != v.Version() {
		return &VersionError{Name: v.Name(), Have: version, Built: v.Version()}
	}
	return nil
}
