package projections

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Verification says whether a view is what the log adds up to (E4).
type Verification struct {
	Projection string `json:"projection"`
	// Events is how many events of the log were compared: the live view's position.
	Events int64 `json:"events"`
	// Live and Rebuilt are digests of the two sets of tables.
	Live    Digest `json:"live"`
	Rebuilt Digest `json:"rebuilt"`
	// Drifted is how many rows differ; Drifts names the first hundred.
	Drifted int64      `json:"drifted,omitempty"`
	Drifts  []RowDrift `json:"drifts,omitempty"`
}

// OK reports whether the two agree.
func (v Verification) OK() bool { return v.Live == v.Rebuilt }

// Digest identifies the content of a view's tables, in whatever order rows lie.
type Digest struct {
	Rows int64  `json:"rows"`
	Sum  string `json:"sum"`
}

// ErrReplaced says that a rebuild has put another view in place while one was verified.
var ErrReplaced = errors.New("projections: the view was rebuilt meanwhile")

// Verify makes a view again up to where the live one stands, compares, and names the
// rows that differ. It holds nothing up: the two are compared in one snapshot, in which
// the last events are folded as well. progress may be nil. The error is ErrBusy while
// another process verifies the same view, a *VersionError for one that another release
// made, and ErrReplaced.
func (r *Rebuilder) Verify(ctx context.Context, p Projection, progress func(Progress)) (Verification, error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	report := Verification{Projection: p.Name()}
	v := newView(p, r.log, verify)
	err := r.only(ctx, v, func(ctx context.Context) (err error) {
		// Not resumed: it ends where the live view stands today.
		if err := r.prepare(ctx, v, false); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.discard(ctx, v)) }()
		var told int64
		err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			if told, err = foreseen(ctx, tx, p); err != nil {
				return err
			}
			return r.foresee(ctx, tx, v, told)
		})
		if err != nil {
			return err
		}
		if err := r.follow(ctx, v, progress); err != nil {
			return err
		}
		return r.compare(ctx, v, told, &report)
	})
	return report, err
}

// follow fills a shadow until the live view is less than one page ahead.
func (r *Rebuilder) follow(ctx context.Context, v view, progress func(Progress)) error {
	for {
		to, err := r.livePositions(ctx, r.pool, v)
		if err != nil {
			return err
		}
		at, err := r.fill(ctx, v, to, progress)
		if err != nil {
			return err
		}
		now, err := r.livePositions(ctx, r.pool, v)
		if err != nil || now.sum()-at.sum() <= pageEvents {
			return err
		}
	}
}

// compare folds what the shadow lacks and compares the two, in one snapshot. Nothing of
// it is kept: the shadow is thrown away anyway.
func (r *Rebuilder) compare(ctx context.Context, v view, told int64, report *Verification) error {
	tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	at, err := r.livePositions(ctx, tx, v)
	if err != nil {
		return err
	}
	now, err := foreseen(ctx, tx, v.Projection)
	if err != nil {
		return err
	}
	if now != told {
		return ErrReplaced
	}
	if err := r.finish(ctx, tx, v, at); err != nil {
		return err
	}
	report.Events = at.sum()
	tables, err := tablesOf(ctx, tx, v.Name())
	if err != nil {
		return err
	}
	if report.Live, err = digest(ctx, tx, "public", tables); err != nil {
		return err
	}
	if report.Rebuilt, err = digest(ctx, tx, v.schema(), tables); err != nil || report.OK() {
		return err
	}
	report.Drifted, report.Drifts, err = rowDrifts(ctx, tx, v.schema(), tables)
	return err
}

// foreseen is up to where the live view was told what stands later in the log.
func foreseen(ctx context.Context, tx pgx.Tx, p Projection) (int64, error) {
	f, ok := p.(Foreseeing)
	if !ok {
		return 0, nil
	}
	if err := searchPath(ctx, tx, "public"); err != nil {
		return 0, err
	}
	return f.Foreseen(ctx, tx)
}

// Look reads a view's tables by their unqualified names.
type Look func(ctx context.Context, tx pgx.Tx) error

// Beside makes a view again beside the live one, up to the same position and told of
// everything that a rebuild would be told now, lets the caller look at both, and throws
// the new one away: a rebuild without its switch. It returns how many events of the log
// the two were made from.
func (r *Rebuilder) Beside(ctx context.Context, p Projection, progress func(Progress), asIs, rebuilt Look) (events int64, err error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	v := newView(p, r.log, verify)
	err = r.only(ctx, v, func(ctx context.Context) (err error) {
		// Not resumed: it ends where the live view stands today.
		if err := r.prepare(ctx, v, false); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.discard(ctx, v)) }()
		newest, err := r.newest(ctx, v)
		if err != nil {
			return err
		}
		var at positions
		err = r.look(ctx, "public", func(ctx context.Context, tx pgx.Tx) error {
			if at, err = r.livePositions(ctx, tx, v); err != nil {
				return err
			}
			return asIs(ctx, tx)
		})
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error { return r.foresee(ctx, tx, v, newest) })
		if err != nil {
			return err
		}
		events = at.sum()
		if _, err := r.fill(ctx, v, at, progress); err != nil {
			return err
		}
		return r.look(ctx, v.schema(), rebuilt)
	})
	return events, err
}

// look gives a view's tables, and its positions, of one moment.
func (r *Rebuilder) look(ctx context.Context, schema string, at Look) error {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, r.pool, snapshot, func(tx pgx.Tx) error {
		if err := searchPath(ctx, tx, schema); err != nil {
			return err
		}
		return at(ctx, tx)
	})
}

// livePositions reads the live view's checkpoints and refuses a view that another
// version of the fold made: it would differ, and not by a fault.
func (r *Rebuilder) livePositions(ctx context.Context, from querier, v view) (positions, error) {
	rows, err := from.Query(ctx, `
		select shard, position, version from public.projection_checkpoints where name = $1 and target = 'live'`, v.Name())
	if err != nil {
		return nil, err
	}
	at := positions{}
	var shard int16
	var position int64
	var version int
	_, err = pgx.ForEachRow(rows, []any{&shard, &position, &version}, func() error {
		at[shard] = position
		return v.sameVersion(version)
	})
	return at, err
}
