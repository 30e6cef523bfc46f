package projections

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Rebuilder makes views again, beside the live ones.
type Rebuilder struct {
	pool   *pgxpool.Pool
	log    Log
	shards []int16
}

// NewRebuilder prepares rebuilds and verifications; no shards means shard 0 alone.
func NewRebuilder(pool *pgxpool.Pool, log Log, shards ...int16) *Rebuilder {
	if len(shards) == 0 {
		shards = []int16{0}
	}
	return &Rebuilder{pool: pool, log: log, shards: shards}
}

// Progress tells how far a rebuild has come. Total grows with live traffic.
type Progress struct {
	Projection string `json:"projection"`
	Done       int64  `json:"done"`
	Total      int64  `json:"total"`
}

// positions are places in the log, by shard.
type positions map[int16]int64

func (p positions) sum() (n int64) {
	for _, at := range p {
		n += at
	}
	return n
}

// heads are the ends of the log.
func (r *Rebuilder) heads(ctx context.Context) (positions, error) {
	ends := make(positions, len(r.shards))
	for _, shard := range r.shards {
		head, err := r.log.Head(ctx, shard)
		if err != nil {
			return nil, err
		}
		ends[shard] = head.Position
	}
	return ends, nil
}

// only lets one process at a time work on a projection's shadow of one kind.
func (r *Rebuilder) only(ctx context.Context, v view, work func(context.Context) error) error {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	key := "sluice shadow " + v.schema()
	var mine bool
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock(hashtextextended($1, 0))`, key).Scan(&mine)
	if err != nil {
		return err
	}
	if !mine {
		return fmt.Errorf("%w: %s of %s", ErrBusy, v.target, v.Name())
	}
	defer func() {
		unlock, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if _, failed := conn.Exec(unlock, `select pg_advisory_unlock(hashtextextended($1, 0))`, key); failed != nil {
			_ = conn.Conn().Close(unlock)
		}
	}()
	return work(ctx)
}

// prepare makes the shadow's empty tables, or keeps what an interrupted rebuild of
// the same version left: its checkpoint says how far that came.
func (r *Rebuilder) prepare(ctx context.Context, v view, resume bool) error {
	var newest int64
	if resume {
		var err error
		if newest, err = r.newest(ctx, v); err != nil {
			return err
		}
	}
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if resume {
			if kept, err := resumable(ctx, tx, v, newest); err != nil || kept {
				return err
			}
		}
		if err := searchPath(ctx, tx, "public"); err != nil {
			return err
		}
		if err := drop(ctx, tx, v); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select projection_shadow_create($1, $2)`, v.Name(), v.target); err != nil {
			return err
		}
		if !resume {
			return nil // told later, when it is known what the live view was told
		}
		return r.foresee(ctx, tx, v, newest)
	})
}

// resumable reports whether a shadow is there that the same release began, told of the
// same configuration as one that begins now.
func resumable(ctx context.Context, tx pgx.Tx, v view, newest int64) (bool, error) {
	var there, other bool
	err := tx.QueryRow(ctx, `
		select exists (select from pg_namespace where nspname = $3),
		       exists (select from projection_checkpoints where name = $1 and target = $2 and version <> $4)`,
		v.Name(), v.target, v.schema(), v.Version()).Scan(&there, &other)
	if err != nil || !there || other {
		return false, err
	}
	f, ok := v.Projection.(Foreseeing)
	if !ok {
		return true, nil
	}
	if err := searchPath(ctx, tx, v.schema()); err != nil {
		return false, err
	}
	told, err := f.Foreseen(ctx, tx)
	return told == newest, err
}

// newest is what a view that is made now would be told up to.
func (r *Rebuilder) newest(ctx context.Context, v view) (int64, error) {
	if f, ok := v.Projection.(Foreseeing); ok {
		return f.Newest(ctx, r.log)
	}
	return 0, nil
}

// foresee tells a shadow's empty tables what stands in the log up to a position.
func (r *Rebuilder) foresee(ctx context.Context, tx pgx.Tx, v view, upTo int64) error {
	f, ok := v.Projection.(Foreseeing)
	if !ok {
		return nil
	}
	if err := searchPath(ctx, tx, v.schema()); err != nil {
		return err
	}
	return f.Foresee(ctx, tx, r.log, upTo)
}

// drop removes a shadow with its checkpoints.
func drop(ctx context.Context, tx pgx.Tx, v view) error {
	if _, err := tx.Exec(ctx, `select projection_shadow_drop($1, $2)`, v.Name(), v.target); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `delete from projection_checkpoints where name = $1 and target = $2`, v.Name(), v.target)
	return err
}

// discard drops a shadow that has served its purpose, also when ctx has ended.
func (r *Rebuilder) discard(ctx context.Context, v view) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error { return drop(ctx, tx, v) })
}

// discardTimeout bounds the cleaning up after an interrupt.
const discardTimeout = 10 * time.Second

// fill advances a shadow to the given places, no further.
func (r *Rebuilder) fill(ctx context.Context, v view, to positions, progress func(Progress)) (positions, error) {
	at := make(positions, len(to))
	for _, shard := range r.shards {
		told := func(position int64) {
			at[shard] = position
			progress(Progress{Projection: v.Name(), Done: at.sum(), Total: to.sum()})
		}
		err := r.fillShard(ctx, v, shard, to[shard], told)
		if err != nil {
			return at, fmt.Errorf("rebuild %s: %w", v.Name(), err)
		}
	}
	return at, nil
}

func (r *Rebuilder) fillShard(ctx context.Context, v view, shard int16, to int64, told func(int64)) error {
	log, skims := r.log.(skimmer)
	if skims {
		return r.skimShard(ctx, v, log, shard, to, told)
	}
	for more := true; more; {
		var at int64
		var err error
		at, more, err = v.advance(ctx, r.pool, shard, to)
		if err != nil {
			return err
		}
		told(at)
	}
	return nil
}

// skimEvents is how many events of the log one transaction of a rebuild passes: few of
// them are any one projection's.
const skimEvents = 8 * pageEvents

// skimShard reads the next page while the one before it is written.
func (r *Rebuilder) skimShard(ctx context.Context, v view, log skimmer, shard int16, to int64, told func(int64)) error {
	at, err := v.checkpoint(ctx, r.pool, shard)
	if err != nil {
		return err
	}
	told(at)
	type page struct {
		chosen
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	pages := make(chan page)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	reading.Go(func() {
		defer close(pages)
		for from := at; from < to; {
			p := page{chosen: chosen{from: from}}
			p.batch, p.to, p.stop, p.err = v.skim(ctx, log, shard, from, min(from+skimEvents, to))
			from = p.to
			select {
			case pages <- p:
			case <-ctx.Done():
				return
			}
			if p.err != nil || p.stop != nil {
				return
			}
		}
	})
	for p := range pages {
		if p.err != nil {
			return p.err
		}
		at, err := v.foldChosen(ctx, r.pool, shard, p.chosen)
		if err != nil {
			return err
		}
		told(at)
	}
	return ctx.Err()
}
