package eventstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
)

// Row is one append as stored. It and its events are valid until the function it
// was given to returns: a replay that keeps nothing allocates nothing.
type Row struct {
	Shard int16
	// Position and Version are those of the row's last event.
	Position   int64
	Events     int
	Stream     []byte
	Version    int64
	RecordedAt time.Time

	after int64 // events up to this position are not wanted
	upTo  int64 // nor those beyond this one, if it is set
	born  time.Time
	meta  []byte
	body  []byte

	// metaText and metaSeen are the last meta that was decoded: a worker's rows follow
	// one another.
	metaText []byte
	metaSeen Meta
}

// All iterates over the row's events, undecoded. An error comes last and is
// ErrCorrupt.
func (r *Row) All() iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		position, version := r.Position-int64(r.Events), r.Version-int64(r.Events)
		for raw, err := range lines(r.body) {
			if err == nil && position == r.Position {
				err = corrupt("position %d: more lines than events", r.Position)
			}
			if err != nil {
				yield(Raw{}, err)
				return
			}
			position++
			version++
			if position <= r.after || (r.upTo > 0 && position > r.upTo) {
				continue
			}
			raw.Stream, raw.RecordedAt = r.Stream, r.RecordedAt
			raw.Position, raw.StreamVersion = position, version
			if !yield(raw, nil) {
				return
			}
		}
		if position != r.Position {
			yield(Raw{}, corrupt("position %d: fewer lines than events", r.Position))
		}
	}
}

// Meta decodes who wrote the row.
func (r *Row) Meta() (Meta, error) {
	var m Meta
	if err := json.Unmarshal(r.meta, &m); err != nil {
		return Meta{}, corrupt("position %d: meta", r.Position)
	}
	return m, nil
}

// recorded copies the row's events out, with everything decoded but their data.
func (r *Row) recorded(to []Recorded) ([]Recorded, error) {
	meta, err := r.Meta()
	if err != nil {
		return to, err
	}
	own := *r
	own.body = append([]byte(nil), r.body...) // one copy holds all data of the row
	stream := string(r.Stream)
	for raw, err := range own.All() {
		if err != nil {
			return to, err
		}
		to = append(to, Recorded{
			Event: Event{
				Type: string(raw.Type), Version: raw.TypeVersion,
				At: observed(raw.ObservedMicros), Data: raw.Data[:len(raw.Data):len(raw.Data)],
			},
			Shard: r.Shard, Position: raw.Position, Stream: stream,
			StreamVersion: raw.StreamVersion, RecordedAt: r.RecordedAt, Meta: meta,
		})
	}
	return to, nil
}

// Recorded copies one of the row's events out, so that it stays valid.
func (r *Row) Recorded(raw Raw) (Recorded, error) {
	if r.metaText == nil || !bytes.Equal(r.metaText, r.meta) {
		meta, err := r.Meta()
		if err != nil {
			return Recorded{}, err
		}
		r.metaText, r.metaSeen = bytes.Clone(r.meta), meta
	}
	return Recorded{
		Event: Event{
			Type: string(raw.Type), Version: raw.TypeVersion,
			At: observed(raw.ObservedMicros), Data: append([]byte(nil), raw.Data...),
		},
		Shard: r.Shard, Position: raw.Position, Stream: string(raw.Stream),
		StreamVersion: raw.StreamVersion, RecordedAt: raw.RecordedAt, Meta: r.metaSeen,
	}, nil
}

const rowColumns = `shard, position, events, stream, version, born, recorded_at, meta, body`

// eachRow runs fn over a query's rows of rowColumns and says how many there were.
func eachRow(rows pgx.Rows, after int64, fn func(*Row) error) (n int, err error) {
	defer rows.Close()
	row := Row{after: after}
	for rows.Next() {
		v := rows.RawValues()
		if len(v) != 9 || len(v[0]) != 2 || len(v[1]) != 8 || len(v[2]) != 2 || len(v[4]) != 8 || len(v[5]) != 8 || len(v[6]) != 8 {
			return n, corrupt("a row is not in the columns' binary format")
		}
		row.Shard = int16(binary.BigEndian.Uint16(v[0]))
		row.Position = int64(binary.BigEndian.Uint64(v[1]))
		row.Events = int(binary.BigEndian.Uint16(v[2]))
		row.Stream = v[3]
		row.Version = int64(binary.BigEndian.Uint64(v[4]))
		row.born, row.RecordedAt = timeOf(v[5]), timeOf(v[6])
		row.meta, row.body = v[7], v[8]
		if err := fn(&row); err != nil {
			return n, err
		}
		n++
	}
	if err := rows.Err(); err != nil {
		return n, fmt.Errorf("eventstore: read: %w", err)
	}
	return n, nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// query asks for all columns in binary, as eachRow reads them.
func query(ctx context.Context, from querier, sql string, args ...any) (pgx.Rows, error) {
	rows, err := from.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("eventstore: read: %w", err)
	}
	return rows, nil
}
