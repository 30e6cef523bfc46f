package eventstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// Effects says what one event does to the counters: the same function whose result
// went into Append.Deltas. It must depend on the event alone. An error, for example
// for an unknown type, stops the fold with its position (E8).
type Effects func(Raw) ([]budget.Delta, error)

// Rebuild says how far a fold came and what it found.
type Rebuild struct {
	// Position is the last event that was folded.
	Position int64
	// Counters is how many counters are not zero.
	Counters int
	// Digest is the SHA-256, in hex, over all that are not zero, in key order.
	Digest string
}

// Drift is a counter that is not what the log says.
type Drift struct {
	Key        budget.Key
	Live, Fold budget.Counter
}

// Comparison is a shard's live counters against a fold of its log at one moment.
type Comparison struct {
	Fold Rebuild
	// LiveDigest equals Fold.Digest if nothing drifted.
	LiveDigest string
	// Drifts lists up to maxDrifts counters that differ, in key order.
	Drifts []Drift
}

const (
	// lockedTail is how many events may be left to fold when the shard's lock is
	// taken: some ten milliseconds' worth.
	lockedTail = 10_000
	// maxCatchUps bounds the rounds of a fold that appends outrun. Replay is some
	// fifty times faster than appending, so three or four suffice.
	maxCatchUps = 20
	maxDrifts   = 100

	sqlLiveCounters = `select key, held, settled from budget_counters where shard = $1`
)

// RebuildCounters makes a shard's counters again from its log, beside live
// traffic (E4): it folds in memory until little is left, takes the shard's lock,
// folds the rest and replaces the table's rows. Appends wait for that last step
// only.
func (s *Store) RebuildCounters(ctx context.Context, shard int16, effects Effects, progress func(position, head int64)) (Rebuild, error) {
	f, err := s.foldToTail(ctx, shard, effects, progress)
	if err != nil {
		return Rebuild{}, err
	}
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// Appends wait behind this transaction: it may not wait or stall for long.
		if _, err := tx.Exec(ctx, `set local lock_timeout = '3s'`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = '1s'`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlLock, int32(shard)); err != nil {
			return err
		}
		if err := f.tail(ctx, s, tx); err != nil {
			return err
		}
		return f.replace(ctx, tx)
	})
	if err != nil {
		return Rebuild{}, fmt.Errorf("eventstore: rebuild counters of shard %d: %w", shard, err)
	}
	return f.result(), nil
}

// CompareCounters folds the log and compares with the live counters at the same
// moment, digest by digest (E4). One snapshot holds both, so appends go on.
func (s *Store) CompareCounters(ctx context.Context, shard int16, effects Effects, progress func(position, head int64)) (Comparison, error) {
	f, err := s.foldToTail(ctx, shard, effects, progress)
	if err != nil {
		return Comparison{}, err
	}
	var live, fold map[budget.Key]budget.Counter
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		if err := f.tail(ctx, s, tx); err != nil {
			return err
		}
		live, fold, _, err = f.both(ctx, tx)
		return err
	})
	if err != nil {
		return Comparison{}, fmt.Errorf("eventstore: compare counters of shard %d: %w", shard, err)
	}
	c := Comparison{Fold: f.result(), LiveDigest: digestCounters(live)}
	c.Drifts = drifts(live, fold)
	c.Drifts = c.Drifts[:min(len(c.Drifts), maxDrifts)]
	return c, nil
}

// counterFold is a fold of a shard's log up to a position.
type counterFold struct {
	shard    int16
	effects  Effects
	position int64
	book     *budget.Book
}

// both are the live counters and the fold's at one moment, trailing ones through their
// window.
func (f *counterFold) both(ctx context.Context, tx pgx.Tx) (live, fold map[budget.Key]budget.Counter, now time.Time, err error) {
	live = map[budget.Key]budget.Counter{}
	rows, err := tx.Query(ctx, sqlLiveCounters, f.shard)
	if err != nil {
		return nil, nil, now, err
	}
	if err := scanCounters(rows, live); err != nil {
		return nil, nil, now, err
	}
	if now, err = readWindows(ctx, tx, f.shard, live); err != nil {
		return nil, nil, now, err
	}
	return live, f.book.At(now), now, nil
}

// foldToTail folds until at most lockedTail events are left.
func (s *Store) foldToTail(ctx context.Context, shard int16, effects Effects, progress func(position, head int64)) (*counterFold, error) {
	f := &counterFold{shard: shard, effects: effects, book: budget.NewBook()}
	for range maxCatchUps {
		head, err := s.Head(ctx, shard)
		if err != nil {
			return nil, err
		}
		left := head.Position - f.position
		if err := s.ReadRange(ctx, shard, f.position, head.Position, f.row); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(f.position, head.Position)
		}
		if left <= lockedTail {
			return f, nil
		}
	}
	return nil, fmt.Errorf("eventstore: shard %d: appends outrun the fold", shard)
}

func (f *counterFold) row(r *Row) error {
	for raw, err := range r.All() {
		if err != nil {
			return err
		}
		deltas, err := f.effects(raw)
		if err != nil {
			return fmt.Errorf("position %d: %w", raw.Position, err)
		}
		f.book.Apply(deltas, raw.RecordedAt)
		f.position = raw.Position
	}
	return nil
}

// tail folds what tx sees beyond the fold.
func (f *counterFold) tail(ctx context.Context, s *Store, tx pgx.Tx) error {
	var head int64
	err := tx.QueryRow(ctx, `select coalesce(max(last_position), 0) from log_batches where shard = $1`, f.shard).Scan(&head)
	if err != nil {
		return err
	}
	return s.readRange(ctx, tx, f.shard, f.position, head, f.row)
}

// sqlSetCounters writes values, where a batch adds; sqlSetMarks writes the marks of
// counters whose old ones sqlDropMarks has taken away.
const (
	sqlSetCounters = `
insert into budget_counters (shard, key, held, settled)
select $1, c.key, c.held, c.settled from unnest($2::text[], $3::bigint[], $4::bigint[]) as c(key, held, settled)
on conflict (shard, key) do update set held = excluded.held, settled = excluded.settled`
	sqlDropMarks = `delete from budget_marks where shard = $1 and key = any($2)`
	sqlSetMarks  = `
insert into budget_marks (shard, key, at, settled)
select $1, m.key, m.at, m.settled from unnest($2::text[], $3::timestamptz[], $4::bigint[]) as m(key, at, settled)`
)

// replace writes the counters that differ, which are few or none: the lock is held.
// Marks are written again for all whose window differs, and for those alone.
func (f *counterFold) replace(ctx context.Context, tx pgx.Tx) error {
	live, fold, now, err := f.both(ctx, tx)
	if err != nil {
		return err
	}
	wrong := drifts(live, fold)
	names, held, settled := make([]string, len(wrong)), make([]int64, len(wrong)), make([]int64, len(wrong))
	var marked []string
	var at []time.Time
	var before []int64
	for i, d := range wrong {
		names[i], held[i], settled[i] = string(d.Key), d.Fold.Held, d.Fold.Settled
		if _, ok := budget.WindowOf(d.Key); !ok {
			continue
		}
		for _, m := range f.book.Marks(d.Key, now) {
			marked, at, before = append(marked, string(d.Key)), append(at, m.At), append(before, m.Settled)
		}
	}
	if _, err := tx.Exec(ctx, sqlSetCounters, f.shard, names, held, settled); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlDropMarks, f.shard, names); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sqlSetMarks, f.shard, marked, at, before)
	return err
}

func (f *counterFold) result() Rebuild {
	r := Rebuild{Position: f.position, Digest: digestCounters(f.book.Counters)}
	for _, c := range f.book.Counters {
		if c != (budget.Counter{}) {
			r.Counters++
		}
	}
	return r
}

func digestCounters(counters map[budget.Key]budget.Counter) string {
	h := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(counters)) {
		// A counter back at zero and one that never was are the same.
		if c := counters[k]; c.Held != 0 || c.Settled != 0 {
			fmt.Fprintf(h, "%d %s %d %d\n", len(k), k, c.Held, c.Settled)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// drifts lists the counters that differ, in key order.
func drifts(live, fold map[budget.Key]budget.Counter) []Drift {
	var found []Drift
	for k, c := range live {
		if c != fold[k] {
			found = append(found, Drift{Key: k, Live: c, Fold: fold[k]})
		}
	}
	for k, c := range fold {
		if _, both := live[k]; !both && c != (budget.Counter{}) {
			found = append(found, Drift{Key: k, Fold: c})
		}
	}
	slices.SortFunc(found, func(a, b Drift) int { return cmp.Compare(a.Key, b.Key) })
	return found
}
