package projections

import (
	"context"
	"errors"
	"fmt"

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
}

// OK reports whether the two agree.
func (v Verification) OK() bool { return v.Live == v.Rebuilt }

// Digest identifies the content of a view's tables, in whatever order rows lie.
type Digest struct {
	Rows int64  `json:"rows"`
	Sum  string `json:"sum"`
}

// Verify makes a view again up to where the live one stands and compares. It holds
// nothing up: the live side is read in one snapshot. progress may be nil.
func (r *Rebuilder) Verify(ctx context.Context, p Projection, progress func(Progress)) (Verification, error) {
	report := Verification{Projection: p.Name()}
	events, err := r.Beside(ctx, p, AsLive, progress,
		func(ctx context.Context, tx pgx.Tx) (err error) {
			report.Live, err = digest(ctx, tx, p.Name())
			return err
		},
		func(ctx context.Context, tx pgx.Tx) (err error) {
			report.Rebuilt, err = digest(ctx, tx, p.Name())
			return err
		})
	report.Events = events
	return report, err
}

// Look reads a view's tables by their unqualified names.
type Look func(ctx context.Context, tx pgx.Tx) error

// Foresight is what a view that is made beside the live one is told (Foreseeing).
type Foresight bool

const (
	// AsLive tells it what the live view was told: the two must be equal.
	AsLive Foresight = false
	// AsRebuilt tells it what a rebuild would be told now.
	AsRebuilt Foresight = true
)

// Beside makes a view again beside the live one, up to the same position, lets the
// caller look at both, and throws the new one away: a rebuild without its switch.
// It returns how many events of the log the two were made from.
func (r *Rebuilder) Beside(ctx context.Context, p Projection, told Foresight, progress func(Progress), asIs, rebuilt Look) (events int64, err error) {
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
			if at, err = r.livePositions(ctx, tx, p); err != nil {
				return err
			}
			if f, ok := p.(Foreseeing); ok && told == AsLive {
				if newest, err = f.Foreseen(ctx, tx); err != nil {
					return err
				}
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
func (r *Rebuilder) livePositions(ctx context.Context, tx pgx.Tx, p Projection) (positions, error) {
	rows, err := tx.Query(ctx, `
		select shard, position, version from projection_checkpoints where name = $1 and target = 'live'`, p.Name())
	if err != nil {
		return nil, err
	}
	at := positions{}
	var shard int16
	var position int64
	var version int
	_, err = pgx.ForEachRow(rows, []any{&shard, &position, &version}, func() error {
		at[shard] = position
		if version != p.Version() {
			return &VersionError{Name: p.Name(), Have: version, Built: p.Version()}
		}
		return nil
	})
	return at, err
}

// digest sums a 64-bit hash of every row: order does not matter, one pass, no sort
// and no string of the size of the table. It finds drift, which is not malice; the
// log's own chain is for that (E9).
func digest(ctx context.Context, tx pgx.Tx, name string) (Digest, error) {
	rows, err := tx.Query(ctx, `select table_name from public.projection_tables where name = $1 order by table_name`, name)
	if err != nil {
		return Digest{}, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return Digest{}, err
	}
	// A row's text shows times in the session's zone.
	if _, err := tx.Exec(ctx, `set local timezone = 'UTC'`); err != nil {
		return Digest{}, err
	}
	var all Digest
	for _, table := range tables {
		var count int64
		var sum string
		err := tx.QueryRow(ctx, fmt.Sprintf(
			`select count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)::text from %s t`,
			pgx.Identifier{table}.Sanitize())).Scan(&count, &sum)
		if err != nil {
			return Digest{}, err
		}
		all.Rows += count
		all.Sum += table + ":" + sum + " "
	}
	return all, nil
}
