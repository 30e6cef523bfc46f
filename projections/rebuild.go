package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// switchBehind is how near, in events, a rebuild comes to the head before it
	// switches. What is left is folded while the live view's checkpoint is locked.
	switchBehind = pageEvents
	// switchAttempts bounds how often a switch gives way to readers that are in the
	// middle of something; each attempt waits two seconds for them.
	switchAttempts = 10
)

// ErrBusy says that another process rebuilds or verifies the same projection.
var ErrBusy = errors.New("projections: already under way elsewhere")

// Rebuild makes a view again from the log, beside live traffic, and puts it in the
// place of the live one in one transaction. However often it is run, the same log
// gives the same bytes (M15, E4). When it is interrupted, the next call goes on
// where it stopped. progress may be nil.
func (r *Rebuilder) Rebuild(ctx context.Context, p Projection, progress func(Progress)) error {
	if progress == nil {
		progress = func(Progress) {}
	}
	v := newView(p, r.log, rebuild)
	return r.only(ctx, v, func(ctx context.Context) error {
		if err := r.prepare(ctx, v, true); err != nil {
			return err
		}
		if err := r.catchUp(ctx, v, progress); err != nil {
			return err
		}
		for attempt := 1; ; attempt++ {
			err := r.switchOver(ctx, v)
			if err == nil || attempt == switchAttempts || !lockTimedOut(err) {
				return err
			}
			// The live view has moved on meanwhile.
			if err := r.catchUp(ctx, v, progress); err != nil {
				return err
			}
		}
	})
}

// catchUp fills the shadow until live traffic adds less than one page while it does.
func (r *Rebuilder) catchUp(ctx context.Context, v view, progress func(Progress)) error {
	for {
		heads, err := r.heads(ctx)
		if err != nil {
			return err
		}
		at, err := r.fill(ctx, v, heads, progress)
		if err != nil {
			return err
		}
		if heads, err = r.heads(ctx); err != nil {
			return err
		}
		if heads.sum()-at.sum() <= switchBehind {
			return nil
		}
	}
}

// switchOver replaces the live tables and checkpoints with the shadow's. It first
// locks the live checkpoints, which stops the runner between two batches, so that
// the new view starts no earlier than the old one ended.
func (r *Rebuilder) switchOver(ctx context.Context, v view) error {
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		ends, err := lockLive(ctx, tx, v.Name())
		if err != nil {
			return err
		}
		if err := r.finish(ctx, tx, v, ends); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `select projection_shadow_switch($1)`, v.Name())
		if err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `delete from projection_checkpoints where name = $1 and target = 'live'`, v.Name()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			update projection_checkpoints set target = 'live' where name = $1 and target = 'rebuild'`, v.Name())
		return err
	})
	if err != nil {
		return fmt.Errorf("switch %s: %w", v.Name(), err)
	}
	return nil
}

// lockLive holds the live view still and returns how far it has come.
func lockLive(ctx context.Context, tx pgx.Tx, name string) (positions, error) {
	rows, err := tx.Query(ctx, `
		select shard, position from projection_checkpoints
		where name = $1 and target = 'live' order by shard for update`, name)
	if err != nil {
		return nil, err
	}
	return collectPositions(rows)
}

func collectPositions(rows pgx.Rows) (positions, error) {
	at := positions{}
	var shard int16
	var position int64
	_, err := pgx.ForEachRow(rows, []any{&shard, &position}, func() error {
		at[shard] = position
		return nil
	})
	return at, err
}

// finish folds what the live view has and the shadow has not, in the transaction
// that switches.
func (r *Rebuilder) finish(ctx context.Context, tx pgx.Tx, v view, to positions) error {
	for _, shard := range r.shards {
		at, err := v.lock(ctx, tx, shard)
		if err != nil {
			return err
		}
		for at < to[shard] {
			page, err := r.log.ReadAll(ctx, shard, at, int(min(pageEvents, to[shard]-at)))
			if err != nil {
				return err
			}
			if len(page) == 0 {
				return fmt.Errorf("%w: shard %d ends at %d, the live view at %d", errLogShort, shard, at, to[shard])
			}
			batch, next, err := v.choose(page)
			if err != nil {
				return err
			}
			if err := searchPath(ctx, tx, v.schema()); err != nil {
				return err
			}
			if err := v.apply(ctx, tx, shard, next, batch); err != nil {
				return err
			}
			at = next
		}
	}
	return searchPath(ctx, tx, "public")
}

// errLogShort is a view that claims more than the log holds: another database's
// view, or a log that was restored without it.
var errLogShort = errors.New("projections: the view is ahead of the log")

func lockTimedOut(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "55P03"
}
