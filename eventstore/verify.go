package eventstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// ChainError says where the log is not what was written: events changed, removed
// or inserted (E9).
type ChainError struct {
	Shard int16
	// Position is that of the first event that cannot be trusted; the fault is in the
	// batch it is in or in front of it.
	Position int64
	Reason   string
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("eventstore: chain of shard %d broken at position %d: %s", e.Shard, e.Position, e.Reason)
}

// ChainReport says what a verification covered.
type ChainReport struct {
	// Head is the end of the verified chain, to be kept elsewhere.
	Head    Head
	Batches int64
	Rows    int64
	// Unverifiable counts batches with rows in detached partitions: their links were
	// followed, their content could not be checked.
	Unverifiable int64
}

const (
	sqlBatches = `select first_position, last_position, hash_format, hash, recorded_at from log_batches
where shard = $1 and last_position > $2 order by last_position limit $3`

	sqlChainRows = `select ` + rowColumns + ` from log_events
where shard = $1 and position > $2 and position <= $3 order by position`

	// One statement, one snapshot: appends that go on beside it do not show.
	sqlBeyondHead = `select min(position) from log_events
where shard = $1 and position > (select coalesce(max(last_position), 0) from log_batches where shard = $1)`

	sqlDetached = `select first_position, last_position from log_detached where shard = $1`

	// chainPage is how many batches are verified between two looks at the table.
	chainPage = 500
)

// VerifyChain recomputes the chain of a shard from its first batch to its head
// and returns *ChainError at the first event or batch that was changed, removed or
// inserted. known, if not zero, is a head kept elsewhere: it must lie on the chain,
// which also finds a log that was cut off or written anew. progress, if not nil,
// hears of each page's last position. Appends may go on meanwhile.
func (s *Store) VerifyChain(ctx context.Context, shard int16, known Head, progress func(position int64)) (ChainReport, error) {
	v := &chainVerifier{store: s, known: known}
	v.report.Head.Shard = shard
	var err error
	if v.detached, err = s.detachedRanges(ctx, shard); err != nil {
		return v.report, err
	}
	for {
		n, err := v.page(ctx)
		if err != nil {
			return v.report, err
		}
		if n == 0 {
			break
		}
		if progress != nil {
			progress(v.report.Head.Position)
		}
	}
	if known.Position > v.report.Head.Position || (known.Position > 0 && !v.knownSeen) {
		return v.report, &ChainError{shard, known.Position, "the head that was kept is not on the chain"}
	}
	var beyond *int64
	if err := s.pool.QueryRow(ctx, sqlBeyondHead, shard).Scan(&beyond); err != nil {
		return v.report, fmt.Errorf("eventstore: chain: %w", err)
	}
	if beyond != nil {
		return v.report, &ChainError{shard, *beyond, "events after the last batch"}
	}
	// A head that is kept elsewhere must not be one that a crash takes back.
	return v.report, s.durable.ensure(ctx, shard, v.report.Head.Position)
}

type positions struct{ first, last int64 }

func (s *Store) detachedRanges(ctx context.Context, shard int16) ([]positions, error) {
	rows, err := s.pool.Query(ctx, sqlDetached, shard)
	if err != nil {
		return nil, fmt.Errorf("eventstore: chain: %w", err)
	}
	ranges, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p positions, err error) {
		err = row.Scan(&p.first, &p.last)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("eventstore: chain: %w", err)
	}
	return ranges, nil
}

type chainVerifier struct {
	store     *Store
	known     Head
	knownSeen bool
	detached  []positions
	report    ChainReport
}

// storedBatch is a row of log_batches and the rows of the log found for it.
type storedBatch struct {
	first, last int64
	format      int16
	hash        []byte
	recordedAt  time.Time
	rows        []row
	reason      string // why its rows cannot be right, if so
}

// page verifies the next batches and says how many there were.
func (v *chainVerifier) page(ctx context.Context) (int, error) {
	shard, after := v.report.Head.Shard, v.report.Head.Position
	rows, err := v.store.pool.Query(ctx, sqlBatches, shard, after, chainPage)
	if err != nil {
		return 0, fmt.Errorf("eventstore: chain: %w", err)
	}
	batches, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b storedBatch, err error) {
		err = row.Scan(&b.first, &b.last, &b.format, &b.hash, &b.recordedAt)
		return b, err
	})
	if err != nil || len(batches) == 0 {
		return 0, err
	}
	events, err := query(ctx, v.store.pool, sqlChainRows, shard, after, batches[len(batches)-1].last)
	if err != nil {
		return 0, err
	}
	next := 0
	_, err = eachRow(events, 0, func(r *Row) error {
		for r.Position > batches[next].last {
			if err := v.batch(&batches[next]); err != nil {
				return err
			}
			next++
		}
		batches[next].take(r)
		v.report.Rows++
		return nil
	})
	if err != nil {
		return 0, err
	}
	for ; next < len(batches); next++ {
		if err := v.batch(&batches[next]); err != nil {
			return 0, err
		}
	}
	return len(batches), nil
}

func (b *storedBatch) take(r *Row) {
	if !r.RecordedAt.Equal(b.recordedAt) {
		b.reason = "recorded times differ"
	}
	b.rows = append(b.rows, row{
		position: r.Position, events: int16(r.Events), stream: string(r.Stream),
		version: r.Version, born: r.born, meta: string(r.meta), body: string(r.body),
	})
}

// batch checks one batch against the chain so far and moves the chain on.
func (v *chainVerifier) batch(b *storedBatch) error {
	shard, at := v.report.Head.Shard, v.report.Head.Position
	switch {
	case b.first != at+1:
		return &ChainError{shard, at + 1, "a batch is missing or was inserted"}
	case b.format != hashFormat:
		return &ChainError{shard, b.first, fmt.Sprintf("hash format %d is unknown", b.format)}
	case len(b.hash) != len(Hash{}):
		return &ChainError{shard, b.first, "the hash is not a hash"}
	}
	stored := Hash(b.hash)
	switch {
	case b.reason == "" && chainHash(v.report.Head.Hash, shard, b.recordedAt, b.rows) == stored:
	case v.inDetached(b):
		v.report.Unverifiable++
	default:
		return v.explain(b)
	}
	v.report.Batches++
	v.report.Head = Head{Shard: shard, Position: b.last, Hash: stored}
	b.rows = nil
	if v.known.Position == b.last {
		v.knownSeen = v.known.Hash == stored
	}
	return nil
}

// explain finds the position that is wrong in a batch whose hash is.
func (v *chainVerifier) explain(b *storedBatch) error {
	at := b.first - 1
	for _, r := range b.rows {
		switch start := r.position - int64(r.events); {
		case start > at:
			return &ChainError{v.report.Head.Shard, at + 1, "events are missing"}
		case start < at:
			return &ChainError{v.report.Head.Shard, start + 1, "events were inserted"}
		}
		at = r.position
	}
	if at != b.last {
		return &ChainError{v.report.Head.Shard, at + 1, "events are missing"}
	}
	return &ChainError{v.report.Head.Shard, b.first, "events, or the batch's hash, were changed"}
}

// inDetached: rows are missing, and a detached partition may hold them. Rows that
// are there must still be in order.
func (v *chainVerifier) inDetached(b *storedBatch) bool {
	at, missing := b.first-1, false
	for _, r := range b.rows {
		start := r.position - int64(r.events)
		if start < at {
			return false
		}
		missing = missing || start > at
		at = r.position
	}
	if b.reason != "" || (!missing && at == b.last) {
		return false
	}
	return slices.ContainsFunc(v.detached, func(p positions) bool { return p.first <= b.last && b.first <= p.last })
}
