package eventstore

import (
	"context"
	"strings"
)

// sqlKind finds the last streams of a kind by name, and then their rows: two walks of
// the unique index over (born, stream, version - events), of which a stream's first row
// has zero. As a join the planner might walk all streams of all kinds.
//
//	Sort
//	  InitPlan 1 (returns $0)
//	    ->  Limit
//	          ->  Index Scan Backward using log_events_state_born_stream_expr_idx ...
//	                Index Cond: born = .. AND stream > .. AND stream < .. AND (version - events) = 0
//	  ->  Index Scan using log_events_state_born_stream_expr_idx ...
//	        Index Cond: born = .. AND stream = ANY ($0)
const sqlKind = `select ` + rowColumns + ` from log_events
where born = $1 and stream = any (array(
    select s.stream from log_events s
    where s.born = $1 and s.stream > $2 and s.stream < $3 and s.version - s.events = 0
    order by s.stream desc limit $4))
order by stream desc, version limit $5`

// maxKindStreams bounds one page of streams.
const maxKindStreams = 100

// ReadKind returns all events of the last streams of a kind, by the names of the
// streams: at most limit of them (no more than 100), and none that does not come before
// the given stream; empty means from the end. The streams are in descending order and
// the events of each in theirs. It is for kinds whose streams are short, named in the
// order of time, and neither requests nor configuration.
func (s *Store) ReadKind(ctx context.Context, kind, before string, limit int) ([]Recorded, error) {
	born, err := Born(kind + "/x")
	if err != nil {
		return nil, err
	}
	if !born.Equal(stateBorn) {
		return nil, invalid("streams of kind %q are not listed", kind)
	}
	prefix := kind + "/"
	if before == "" {
		before = kind + string(rune('/'+1)) // behind everything that begins with the prefix
	} else if !strings.HasPrefix(before, prefix) {
		return nil, invalid("stream %.40q is not of kind %q", before, kind)
	}
	if limit <= 0 {
		return nil, nil
	}
	rows, err := query(ctx, s.pool, sqlKind, born, prefix, before, min(limit, maxKindStreams), maxPage)
	if err != nil {
		return nil, err
	}
	var found []Recorded
	ends := map[int16]int64{}
	_, err = eachRow(rows, 0, func(r *Row) error {
		found, err = r.recorded(found)
		ends[r.Shard] = max(ends[r.Shard], r.Position)
		return err
	})
	if err != nil {
		return nil, err
	}
	for shard, end := range ends {
		if err := s.durable.ensure(ctx, shard, end); err != nil {
			return nil, err
		}
	}
	return found, nil
}
