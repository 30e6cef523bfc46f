package eventstore

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// The statements of a batch. READ COMMITTED gives every statement its own
// snapshot, so what follows the lock sees all that was committed before the lock
// was had; under REPEATABLE READ the snapshot would be older than the lock.
//
// The lock is an advisory one: it writes nothing, waits in order of arrival, is
// released by COMMIT only after the batch is visible, and cannot grow dead tuples
// while a long transaction holds vacuum back, as a head row would. Its first number
// is any that nobody else in the database uses.
const (
	sqlLock = `select pg_advisory_xact_lock(1819502195, $1)`

	// The clock is read after the lock, and one that was set back is not believed:
	// recorded_at follows the order of the log.
	sqlHead = `
select greatest(clock_timestamp(), b.recorded_at), coalesce(b.last_position, 0), coalesce(b.hash, decode(repeat('00', 32), 'hex'))
from (values (1)) as always(row)
left join (select last_position, hash, recorded_at from log_batches where shard = $1 order by last_position desc limit 1) b on true`

	sqlCounters = `select key, held, settled from budget_counters where shard = $1 and key = any($2)`

	// One descent of log_events_decided_once per stream, in one partition.
	sqlVersions = `
select wanted.stream, coalesce(latest.version, 0)
from unnest($1::timestamptz[], $2::text[]) as wanted(born, stream)
left join lateral (
    select e.version from log_events e
    where e.born = wanted.born and e.stream = wanted.stream
    order by e.version - e.events desc limit 1
) latest on true`

	// The whole batch in one statement: each costs a portal, an executor and a
	// snapshot, and small batches are mostly that. Counters come merged and in key
	// order (R6).
	sqlBatch      = batchBegins + batchEnds
	sqlBatchMarks = batchBegins + marksWritten + batchEnds

	batchBegins = `
with rows as (
    insert into log_events (shard, position, events, stream, version, born, recorded_at, meta, body)
    select $1, r.position, r.events, r.stream, r.version, r.born, $2, r.meta, r.body
    from unnest($3::bigint[], $4::smallint[], $5::text[], $6::bigint[], $7::timestamptz[], $8::text[], $9::text[])
         as r(position, events, stream, version, born, meta, body)
), counters as (
    insert into budget_counters as c (shard, key, held, settled)
    select $1, d.key, d.held, d.settled from unnest($10::text[], $11::bigint[], $12::bigint[]) as d(key, held, settled)
    on conflict (shard, key) do update set held = c.held + excluded.held, settled = c.settled + excluded.settled
)`
	batchEnds = `
insert into log_batches (shard, first_position, last_position, hash_format, hash, recorded_at)
values ($1, $13, $14, $15, $16, $2)`

	// An empty transaction that has something to flush: a transactional message is
	// in PostgreSQL's log and nowhere else.
	sqlBarrier = `select set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'sluice', '')`

	// Settles what became of a batch whose connection was lost: its hash is there or
	// it is not.
	sqlLookup = `select hash from log_batches where shard = $1 and last_position = $2`
)

// laneSettings are for the session of a lane connection. The timeouts bound what a
// stalled process or a stuck lock can do to all others.
const laneSettings = `
set application_name = 'sluice-lane';
set role sluice_app;
set default_transaction_isolation = 'read committed';
set idle_in_transaction_session_timeout = '1s';
set lock_timeout = '3s';
set statement_timeout = '5s';
set synchronous_commit = off;
set plan_cache_mode = force_generic_plan;
set timezone = 'UTC';
`

// statements are a connection's prepared statements.
type statements struct {
	begin, commit, rollback, lock, head, headWindows, counters *pgconn.StatementDescription
	versions, batch, batchMarks, barrier, lookup               *pgconn.StatementDescription
}

func prepare(ctx context.Context, conn *pgconn.PgConn) (*statements, error) {
	s := &statements{}
	for _, p := range []struct {
		name string
		into **pgconn.StatementDescription
		sql  string
		oids []uint32
	}{
		{"begin", &s.begin, `begin`, nil},
		{"commit", &s.commit, `commit`, nil},
		{"rollback", &s.rollback, `rollback`, nil},
		{"lock", &s.lock, sqlLock, []uint32{pgtype.Int4OID}},
		{"head", &s.head, sqlHead, []uint32{pgtype.Int2OID}},
		{"head_windows", &s.headWindows, sqlHeadWindows, []uint32{pgtype.Int2OID, pgtype.TextArrayOID, pgtype.Int8ArrayOID}},
		{"counters", &s.counters, sqlCounters, []uint32{pgtype.Int2OID, pgtype.TextArrayOID}},
		{"versions", &s.versions, sqlVersions, nil},
		{"batch", &s.batch, sqlBatch, nil},
		{"batch_marks", &s.batchMarks, sqlBatchMarks, nil},
		{"barrier", &s.barrier, sqlBarrier, nil},
		{"lookup", &s.lookup, sqlLookup, []uint32{pgtype.Int2OID, pgtype.Int8OID}},
	} {
		description, err := conn.Prepare(ctx, "sluice_"+p.name, p.sql, p.oids)
		if err != nil {
			return nil, err
		}
		*p.into = description
	}
	return s, nil
}

// binaryFormat is for all parameters and all columns: one element stands for all.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// args encodes parameters in binary. An encoding error is a programming error and
// is kept for the caller's one check.
type args struct {
	types  *pgtype.Map
	values [][]byte
	err    error
}

func (a *args) add(oid uint32, value any) {
	encoded, err := a.types.Encode(oid, pgtype.BinaryFormatCode, value, nil)
	a.err = errors.Join(a.err, err)
	a.values = append(a.values, encoded)
}

// sendFacts queues the first trip.
func (c *laneConn) sendFacts(shard int16, keys []string, streams []streamName) error {
	lock, head := args{types: c.types}, args{types: c.types}
	lock.add(pgtype.Int4OID, int32(shard))
	head.add(pgtype.Int2OID, shard)
	c.pipeline.SendQueryStatement(c.statements.begin, nil, nil, nil)
	c.pipeline.SendQueryStatement(c.lock, lock.values, binaryFormat, binaryFormat)
	if trailing, reach := windowKeys(keys); len(trailing) > 0 {
		head.add(pgtype.TextArrayOID, trailing)
		head.add(pgtype.Int8ArrayOID, reach)
		c.pipeline.SendQueryStatement(c.headWindows, head.values, binaryFormat, binaryFormat)
	} else {
		c.pipeline.SendQueryStatement(c.head, head.values, binaryFormat, binaryFormat)
	}
	counters := args{types: c.types}
	if len(keys) > 0 {
		counters.add(pgtype.Int2OID, shard)
		counters.add(pgtype.TextArrayOID, keys)
		c.pipeline.SendQueryStatement(c.counters, counters.values, binaryFormat, binaryFormat)
	}
	versions := args{types: c.types}
	if len(streams) > 0 {
		born, names := make([]time.Time, len(streams)), make([]string, len(streams))
		for i, s := range streams {
			born[i], names[i] = s.born, s.name
		}
		versions.add(pgtype.TimestamptzArrayOID, born)
		versions.add(pgtype.TextArrayOID, names)
		c.pipeline.SendQueryStatement(c.versions, versions.values, binaryFormat, binaryFormat)
	}
	if err := errors.Join(lock.err, head.err, counters.err, versions.err); err != nil {
		return err
	}
	return c.pipeline.Sync()
}

// receiveFacts reads the first trip's answers.
func (c *laneConn) receiveFacts(shard int16, keys []string, streams []streamName) (facts, error) {
	f := facts{
		shard:    shard,
		counters: make(map[budget.Key]budget.Counter, len(keys)),
		versions: make(map[string]int64, len(streams)),
	}
	f.head.Shard = shard
	windows := windowScan{types: c.types}
	steps := []func([][]byte) error{nil, nil, func(v [][]byte) error { return errors.Join(f.scanHead(v), windows.scan(v)) }}
	if len(keys) > 0 {
		// A counter that has no row yet reads zero: the shard's lock is held, so
		// nobody else can be making it.
		for _, k := range keys {
			f.counters[budget.Key(k)] = budget.Counter{}
		}
		steps = append(steps, f.scanCounter)
	}
	if len(streams) > 0 {
		steps = append(steps, f.scanVersion)
	}
	if err := c.receive(steps...); err != nil {
		return f, err
	}
	trailing, _ := windowKeys(keys)
	return f, seeThrough(f.counters, trailing, windows.passed, windows.oldest)
}

// windowScan keeps the windows that came with the head until the counters are there.
type windowScan struct {
	types  *pgtype.Map
	passed []int64
	oldest []*time.Time
}

func (w *windowScan) scan(v [][]byte) error {
	if len(v) != headColumns+2 {
		return nil
	}
	return errors.Join(
		w.types.Scan(pgtype.Int8ArrayOID, pgtype.BinaryFormatCode, v[headColumns], &w.passed),
		w.types.Scan(pgtype.TimestamptzArrayOID, pgtype.BinaryFormatCode, v[headColumns+1], &w.oldest))
}

// headColumns are those of sqlHead.
const headColumns = 3

func (f *facts) scanHead(v [][]byte) error {
	if len(v) < headColumns || len(v[0]) != 8 || len(v[1]) != 8 || len(v[2]) != len(Hash{}) {
		return corrupt("head of shard %d", f.shard)
	}
	f.recordedAt = timeOf(v[0])
	f.head.Position = int64(binary.BigEndian.Uint64(v[1]))
	f.head.Hash = Hash(v[2])
	return nil
}

func (f *facts) scanCounter(v [][]byte) error {
	f.counters[budget.Key(v[0])] = budget.Counter{
		Held:    int64(binary.BigEndian.Uint64(v[1])),
		Settled: int64(binary.BigEndian.Uint64(v[2])),
	}
	return nil
}

func (f *facts) scanVersion(v [][]byte) error {
	f.versions[string(v[0])] = int64(binary.BigEndian.Uint64(v[1]))
	return nil
}

// sendBatch queues the second trip: the batch and COMMIT.
func (c *laneConn) sendBatch(f facts, v verdict, hash Hash) error {
	n := len(v.rows)
	positions, events, streams, versions := make([]int64, n), make([]int16, n), make([]string, n), make([]int64, n)
	born, metas, bodies := make([]time.Time, n), make([]string, n), make([]string, n)
	for i, r := range v.rows {
		positions[i], events[i], streams[i], versions[i] = r.position, r.events, r.stream, r.version
		born[i], metas[i], bodies[i] = r.born, r.meta, r.body
	}
	n = len(v.deltas)
	keys, held, settled := make([]string, n), make([]int64, n), make([]int64, n)
	for i, d := range v.deltas {
		keys[i], held[i], settled[i] = string(d.Key), d.Held, d.Settled
	}
	a := args{types: c.types}
	a.add(pgtype.Int2OID, f.shard)
	a.add(pgtype.TimestamptzOID, f.recordedAt)
	a.add(pgtype.Int8ArrayOID, positions)
	a.add(pgtype.Int2ArrayOID, events)
	a.add(pgtype.TextArrayOID, streams)
	a.add(pgtype.Int8ArrayOID, versions)
	a.add(pgtype.TimestamptzArrayOID, born)
	a.add(pgtype.TextArrayOID, metas)
	a.add(pgtype.TextArrayOID, bodies)
	a.add(pgtype.TextArrayOID, keys)
	a.add(pgtype.Int8ArrayOID, held)
	a.add(pgtype.Int8ArrayOID, settled)
	a.add(pgtype.Int8OID, f.head.Position+1)
	a.add(pgtype.Int8OID, v.last)
	a.add(pgtype.Int2OID, int16(hashFormat))
	a.add(pgtype.ByteaOID, hash[:])
	statement := c.batch
	if marked, at := marksOf(v.deltas, f.recordedAt); len(marked) > 0 {
		statement = c.batchMarks
		a.add(pgtype.TextArrayOID, marked)
		a.add(pgtype.TimestamptzArrayOID, at)
	}
	// Before anything is queued: an incomplete batch must not meet its COMMIT.
	if a.err != nil {
		return a.err
	}
	c.pipeline.SendQueryStatement(statement, a.values, binaryFormat, binaryFormat)
	c.pipeline.SendQueryStatement(c.commit, nil, nil, nil)
	c.pipeline.SendPipelineSync()
	return nil
}

// sendBarrier queues what makes the batch durable.
func (c *laneConn) sendBarrier() error {
	c.pipeline.SendQueryStatement(c.barrier, nil, nil, nil)
	return c.pipeline.Sync()
}

// receive reads results up to the next synchronization point: one for each step,
// which gets every row (nil: rows are of no interest). The first error is
// returned after the rest has been read.
func (c *laneConn) receive(steps ...func([][]byte) error) error {
	var first error
	step := 0
	for {
		results, err := c.pipeline.GetResults()
		if err != nil {
			if first == nil {
				first = err
			}
			if c.pg.IsClosed() {
				return first
			}
			continue
		}
		switch r := results.(type) {
		case *pgconn.PipelineSync:
			return first
		case *pgconn.ResultReader:
			for r.NextRow() {
				if first == nil && step < len(steps) && steps[step] != nil {
					first = steps[step](r.Values())
				}
			}
			if _, err := r.Close(); err != nil && first == nil {
				first = err
			}
			step++
		case nil:
			if first == nil {
				first = errors.New("eventstore: the server ended a pipeline early")
			}
			return first
		}
	}
}

// postgresEpochMicros is 2000-01-01, where PostgreSQL's timestamps count from.
const postgresEpochMicros = 946_684_800_000_000

func timeOf(binaryMicros []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(binaryMicros)) + postgresEpochMicros).UTC()
}

// keysOf lists the counters that a batch's checks ask about, in order.
func keysOf(batch []*entry) []string {
	keys := map[string]bool{}
	for _, e := range batch {
		for i := range e.appends {
			for _, c := range e.appends[i].checks {
				keys[string(c.Key)] = true
				if c.HeldKey != "" {
					keys[string(c.HeldKey)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
