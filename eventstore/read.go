package eventstore

import (
	"context"
	"fmt"
)

const (
	// Merge append over the partitions' (shard, position) indexes; no sort, stops at
	// the limit.
	//
	//	Limit
	//	  ->  Merge Append
	//	        Sort Key: log_events."position"
	//	        ->  Index Scan using log_events_config_shard_position_idx ...
	//	        ->  Index Scan using log_events_2026_11_shard_position_idx ...
	sqlAll = `select ` + rowColumns + ` from log_events
where shard = $1 and position > $2 order by position limit $3`

	// The bounds are literals: the planner leaves one partition and no others.
	sqlConfig = `select ` + rowColumns + ` from log_events
where born = '1970-01-01 00:00:00+00' and shard = $1 and position > $2 order by position limit $3`

	// One partition, two descents: where the row that holds version $3 begins, and the
	// rows from there.
	//
	//	Limit
	//	  InitPlan 1 (returns $0)
	//	    ->  Limit
	//	          ->  Index Scan Backward using log_events_2026_11_born_stream_expr_idx ...
	//	  ->  Index Scan using log_events_2026_11_born_stream_expr_idx ...
	//	        Index Cond: born = .. AND stream = .. AND (version - events) >= COALESCE($0, 0)
	sqlStream = `select ` + rowColumns + ` from log_events
where born = $1 and stream = $2 and version - events >= coalesce((
    select b.version - b.events from log_events b
    where b.born = $1 and b.stream = $2 and b.version - b.events < $3
    order by b.version - b.events desc limit 1), 0)
order by version - events limit $4`

	// As sqlAll, up to the last row that may begin before the end of a range.
	sqlRange = `select ` + rowColumns + ` from log_events
where shard = $1 and position > $2 and position < $4 order by position limit $3`

	sqlHeadOf = `select last_position, hash from log_batches where shard = $1 order by last_position desc limit 1`
)

// maxPage bounds what one read returns, in rows.
const maxPage = 10_000

// Head is the end of a shard's log, durable; the zero Head but for its shard if the
// log is empty.
func (s *Store) Head(ctx context.Context, shard int16) (Head, error) {
	head := Head{Shard: shard}
	rows, err := s.pool.Query(ctx, sqlHeadOf, shard)
	if err != nil {
		return head, fmt.Errorf("eventstore: head: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var hash []byte
		if err := rows.Scan(&head.Position, &hash); err != nil {
			return head, fmt.Errorf("eventstore: head: %w", err)
		}
		if len(hash) != len(head.Hash) {
			return head, corrupt("head of shard %d", shard)
		}
		head.Hash = Hash(hash)
	}
	if err := rows.Err(); err != nil {
		return head, fmt.Errorf("eventstore: head: %w", err)
	}
	return head, s.durable.ensure(ctx, shard, head.Position)
}

// ReadStream returns up to limit events of a stream from fromVersion (the first is
// 1) on, in order; none if there are none.
func (s *Store) ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]Recorded, error) {
	born, err := Born(stream)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	fromVersion = max(fromVersion, 1)
	limit = min(limit, maxPage)
	rows, err := query(ctx, s.pool, sqlStream, born, stream, fromVersion, limit)
	if err != nil {
		return nil, err
	}
	var found []Recorded
	_, err = eachRow(rows, 0, func(r *Row) error {
		if r.Version < fromVersion {
			return nil
		}
		// Versions before the first wanted one, as positions.
		r.after = r.Position - (r.Version - fromVersion + 1)
		found, err = r.recorded(found)
		return err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	last := found[len(found)-1]
	if err := s.durable.ensure(ctx, last.Shard, last.Position); err != nil {
		return nil, err
	}
	return found[:min(limit, len(found))], nil
}

// ReadAll returns events of a shard after a position, in order: up to limit of
// them, none at the end of the log. Positions are gapless; *GapError otherwise.
func (s *Store) ReadAll(ctx context.Context, shard int16, after int64, limit int) ([]Recorded, error) {
	found, err := s.read(ctx, sqlAll, shard, after, limit)
	if err != nil {
		return nil, err
	}
	if err := assertGapless(shard, after, found); err != nil {
		return nil, err
	}
	return found, nil
}

// ReadConfig returns configuration events of a shard after a position, in order,
// without touching anything else: what a starting worker reads. Positions are the
// log's, so they have gaps.
func (s *Store) ReadConfig(ctx context.Context, shard int16, after int64, limit int) ([]Recorded, error) {
	return s.read(ctx, sqlConfig, shard, after, limit)
}

// read is a page, once it is durable.
func (s *Store) read(ctx context.Context, sql string, shard int16, after int64, limit int) ([]Recorded, error) {
	found, err := s.page(ctx, sql, shard, after, limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if err := s.durable.ensure(ctx, shard, found[len(found)-1].Position); err != nil {
		return nil, err
	}
	return found, nil
}

// page reads what is visible, durable or not.
func (s *Store) page(ctx context.Context, sql string, shard int16, after int64, limit int) ([]Recorded, error) {
	if limit <= 0 {
		return nil, nil
	}
	limit = min(limit, maxPage)
	rows, err := query(ctx, s.pool, sql, shard, after, limit)
	if err != nil {
		return nil, err
	}
	var found []Recorded
	_, err = eachRow(rows, after, func(r *Row) error {
		found, err = r.recorded(found)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found[:min(limit, len(found))], nil
}

// rangePage is how many rows one page of ReadRange asks for: large enough that the
// trip and the descent do not count, small enough that no snapshot is held long.
const rangePage = 5_000

// ReadRange gives fn every row of a shard with events after one position up to
// another, in order and asserting that none is missing. It decodes nothing, and a
// rebuild may read several ranges at once. Only durable rows are given.
func (s *Store) ReadRange(ctx context.Context, shard int16, after, upTo int64, fn func(*Row) error) error {
	if after >= upTo {
		return nil
	}
	if err := s.durable.ensure(ctx, shard, upTo); err != nil {
		return err
	}
	if known, _ := s.durable.known(shard); known < upTo {
		return fmt.Errorf("eventstore: shard %d ends at %d, not %d", shard, known, upTo)
	}
	return s.readRange(ctx, s.pool, shard, after, upTo, fn)
}

func (s *Store) readRange(ctx context.Context, from querier, shard int16, after, upTo int64, fn func(*Row) error) error {
	for first := true; after < upTo; first = false {
		rows, err := query(ctx, from, sqlRange, shard, after, rangePage, upTo+maxAppendEvents)
		if err != nil {
			return err
		}
		n, err := eachRow(rows, after, func(r *Row) error {
			if after >= upTo {
				return nil // the page reaches a little further than the range
			}
			start := r.Position - int64(r.Events)
			// Only the first row of a range may begin before it.
			if start != after && (!first || start > after || r.Position <= after) {
				return &GapError{Shard: shard, Want: after + 1, Have: start + 1}
			}
			first = false
			after = r.Position
			r.upTo = upTo
			return fn(r)
		})
		if err != nil {
			return err
		}
		if n == 0 && after < upTo {
			return &GapError{Shard: shard, Want: after + 1}
		}
	}
	return nil
}
