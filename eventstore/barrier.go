package eventstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// settleTimeout bounds how long an unknown outcome is looked into: as long as a
	// small PostgreSQL takes to come back from a crash.
	settleTimeout = 10 * time.Second
	settlePause   = 50 * time.Millisecond
)

// finish takes a batch from the answer to its COMMIT to the answers to its
// callers. lost is what went wrong around the commit, nil if it was acknowledged.
func (l *lane) finish(ctx context.Context, c *laneConn, a *attempt, lost error) {
	if lost == nil {
		if lost = c.receive(); lost == nil {
			l.written(a)
			_ = c.pipeline.Close()
			c.pipeline = nil
			return
		}
		c.abandon()
	}
	// Committed or not, flushed or not: only the log can tell.
	c.close()
	l.stale.Store(true)
	written, err := l.settle(ctx, c, a)
	l.log.Warn("connection lost around a commit", "shard", l.shard, "entries", len(a.batch),
		"written", written, "settled", err == nil, "cause", lost)
	switch {
	case err != nil:
		answerAll(a.batch, outcome{err: fmt.Errorf("%w: %w", ErrOutcomeUnknown, lost)})
	case written:
		l.written(a)
	default:
		answerAll(a.batch, outcome{err: fmt.Errorf("%w: %w", ErrUnavailable, lost)})
	}
}

// written tells readers and callers of a batch that is durable.
func (l *lane) written(a *attempt) {
	l.durable.advance(l.shard, a.verdict.last)
	l.answer(a)
	l.nudge.note(l.shard, a.verdict.last)
}

// settle asks the log whether the batch is there, for a bounded time. The shard's
// lock is taken first: only when it is had is the lost transaction surely over.
// Then a barrier: what is there must also stay there.
func (l *lane) settle(ctx context.Context, c *laneConn, a *attempt) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.settleTimeout)
	defer cancel()
	for {
		written, err = l.lookup(ctx, c, a)
		if err == nil {
			return written, nil
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return false, err
		}
	}
}

func (l *lane) lookup(ctx context.Context, c *laneConn, a *attempt) (written bool, err error) {
	if err := c.open(ctx, l.dial); err != nil {
		return false, err
	}
	c.begin(ctx)
	defer c.abandon()
	lock, lookup := args{types: c.types}, args{types: c.types}
	lock.add(pgtype.Int4OID, int32(l.shard))
	lookup.add(pgtype.Int2OID, l.shard)
	lookup.add(pgtype.Int8OID, a.verdict.last)
	c.pipeline.SendQueryStatement(c.statements.begin, nil, nil, nil)
	c.pipeline.SendQueryStatement(c.lock, lock.values, binaryFormat, binaryFormat)
	c.pipeline.SendQueryStatement(c.lookup, lookup.values, binaryFormat, binaryFormat)
	c.pipeline.SendQueryStatement(c.commit, nil, nil, nil)
	c.pipeline.SendPipelineSync()
	if err := c.sendBarrier(); err != nil {
		return false, err
	}
	err = c.receive(nil, nil, func(v [][]byte) error {
		written = bytes.Equal(v[0], a.hash[:])
		return nil
	})
	if err != nil {
		return false, err
	}
	return written, c.receive() // the barrier
}
