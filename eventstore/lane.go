package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// batchTimeout bounds one try of a batch, its wait for the shard's lock included.
	// The session's own timeouts are shorter; this one is for a silent network.
	batchTimeout = 10 * time.Second
	// maxTries bounds reruns of a batch of which nothing was written: one for a
	// conflict, one for a lost connection or a deadlock, and one to spare.
	maxTries = 3
)

// lane writes a shard's appends of this process, one batch after the other (E6).
// It has a few connections that take turns: while one waits for the disk, the next
// batch is written on another.
type lane struct {
	shard         int16
	queue         *queue
	batch         limits
	dial          dialer
	durable       *durable
	nudge         *nudger
	settleTimeout time.Duration
	log           *slog.Logger

	// free holds the connections nobody is using.
	free chan *laneConn
	// redo holds parts of a batch that has to be split; only run touches it.
	redo [][]*entry
	// seen remembers the versions this lane wrote last; only run touches it.
	seen *versions
	// stale says that a connection was lost: after a crash of the server what was
	// seen may be gone.
	stale atomic.Bool
	// finishing counts batches between COMMIT and their barrier.
	finishing sync.WaitGroup
	stats     laneStats
}

type laneStats struct{ batches, appends, events, careful, split atomic.Int64 }

// attempt is one batch on its way through one transaction.
type attempt struct {
	batch   []*entry
	facts   facts
	verdict verdict
	hash    Hash
	// sent says that COMMIT may have reached the server.
	sent bool
}

// run is the lane's goroutine. It ends when the queue is closed and empty, or when
// ctx ends, which fails what still waits.
func (l *lane) run(ctx context.Context) {
	l.work(ctx)
	// Not deferred: a panic has to end the process. Stopping would wait for the
	// connection that was in use, for ever, in a process that takes requests.
	l.stop()
}

func (l *lane) work(ctx context.Context) {
	for {
		var c *laneConn
		select {
		case c = <-l.free:
		case <-ctx.Done():
			return
		}
		// The connection comes first: what arrives while all are busy joins.
		batch, ok := l.next(ctx)
		if !ok {
			l.free <- c
			return
		}
		l.write(ctx, c, batch)
	}
}

// next waits for something to write. There is no timer: what is there is taken.
func (l *lane) next(ctx context.Context) ([]*entry, bool) {
	if n := len(l.redo); n > 0 {
		batch := l.redo[n-1]
		l.redo = l.redo[:n-1]
		return batch, true
	}
	for {
		if batch := l.queue.next(l.batch); len(batch) > 0 {
			return batch, true
		}
		if l.queue.finished() || ctx.Err() != nil {
			return nil, false
		}
		select {
		case <-l.queue.ready:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// stop waits for barriers under way, fails what will not be written any more and
// closes the connections.
func (l *lane) stop() {
	l.queue.close()
	l.finishing.Wait()
	for _, batch := range l.redo {
		answerAll(batch, outcome{err: ErrClosed})
	}
	for {
		batch := l.queue.next(l.batch)
		if len(batch) == 0 {
			break
		}
		answerAll(batch, outcome{err: ErrClosed})
	}
	for range cap(l.free) {
		(<-l.free).close()
	}
}

// write carries one batch to its COMMIT and hands it to a finisher, which owns the
// connection from then on. Whatever happens, every entry is answered once, or is
// on redo.
func (l *lane) write(ctx context.Context, c *laneConn, batch []*entry) {
	careful := false
	for try := 1; ; try++ {
		a := &attempt{batch: batch}
		tryCtx, cancel := context.WithTimeout(ctx, batchTimeout)
		err := l.try(tryCtx, c, a, careful)
		batch = a.batch // what joined stays
		if err == nil || (a.sent && !rolledBack(err)) {
			l.finishing.Go(func() {
				defer cancel()
				l.finish(ctx, c, a, err)
				l.free <- c
			})
			return
		}
		cancel()
		switch {
		case errors.Is(err, errNothingToWrite):
			l.answer(a)
			l.free <- c
			return
		case try < maxTries && isUniqueViolation(err) && !careful:
			careful = true
			l.seen.forget()
			l.stats.careful.Add(1)
			continue
		case try < maxTries && ctx.Err() == nil && passes(err):
			continue
		}
		l.free <- c
		l.failOrSplit(batch, err)
		return
	}
}

// failOrSplit ends a batch of which nothing was written. If the database had an
// objection to something in it, the halves are tried alone, so that one bad entry
// never fails its neighbours; if the database is away, all fail.
func (l *lane) failOrSplit(batch []*entry, err error) {
	if objection(err) && len(batch) > 1 {
		half := len(batch) / 2
		l.redo = append(l.redo, batch[half:], batch[:half])
		l.stats.split.Add(1)
		return
	}
	l.log.Warn("append batch failed", "shard", l.shard, "entries", len(batch), "cause", err)
	answerAll(batch, outcome{err: fmt.Errorf("%w: %w", ErrUnavailable, err)})
}

// errNothingToWrite: every entry conflicts or was refused without a word.
var errNothingToWrite = errors.New("eventstore: nothing to write")

// try runs both trips up to the answer to COMMIT. On nil the barrier is under way
// on the connection's pipeline.
func (l *lane) try(ctx context.Context, c *laneConn, a *attempt, careful bool) error {
	if err := c.open(ctx, l.dial); err != nil {
		return err
	}
	if c.fresh || l.stale.Swap(false) {
		c.fresh = false
		l.seen.forget()
	}
	c.begin(ctx)
	err := l.trips(c, a, careful)
	if err != nil {
		c.abandon()
		if c.pg.IsClosed() {
			l.seen.forget()
		}
	}
	return err
}

func (l *lane) trips(c *laneConn, a *attempt, careful bool) error {
	keys, streams := keysOf(a.batch), l.unknown(a.batch, careful)
	if err := c.sendFacts(l.shard, keys, streams); err != nil {
		return err
	}
	var err error
	if a.facts, err = c.receiveFacts(l.shard, keys, streams); err != nil {
		return err
	}
	if !careful {
		// The wait for the lock is the moment to gather: whoever needs nothing but
		// what was read joins.
		a.batch = l.queue.takeIf(a.batch, l.batch, func(e *entry) bool { return l.covered(e, a.facts) })
	}
	a.verdict = decide(a.facts, a.batch)
	if len(a.verdict.rows) == 0 {
		return errNothingToWrite
	}
	a.hash = chainHash(a.facts.head.Hash, l.shard, a.facts.recordedAt, a.verdict.rows)
	if err := c.sendBatch(a.facts, a.verdict, a.hash); err != nil {
		return err
	}
	a.sent = true
	if err := c.sendBarrier(); err != nil {
		return err
	}
	if err := c.receive(); err != nil {
		return err
	}
	l.seen.remember(a.verdict.rows)
	return nil
}

type streamName struct {
	name string
	born time.Time
}

// unknown lists the streams whose version must be read: all, or those that are
// neither created nor known to have been at the expected version.
func (l *lane) unknown(batch []*entry, all bool) []streamName {
	var streams []streamName
	listed := map[string]bool{}
	for _, e := range batch {
		for i := range e.appends {
			p := &e.appends[i]
			if !listed[p.stream] && (all || !l.trusted(p)) {
				listed[p.stream] = true
				streams = append(streams, streamName{p.stream, p.born})
			}
		}
	}
	return streams
}

// trusted: the unique index alone arbitrates. For a version above 0 it only sees
// that nobody else followed it, so the lane must know that it was ever reached.
func (l *lane) trusted(p *pending) bool {
	return p.expected == 0 || (p.expected > 0 && l.seen.at(p.stream) == p.expected)
}

// covered: all that e's decision needs was read.
func (l *lane) covered(e *entry, f facts) bool {
	for i := range e.appends {
		p := &e.appends[i]
		if _, read := f.versions[p.stream]; !read && !l.trusted(p) {
			return false
		}
		for _, c := range p.checks {
			if _, read := f.counters[c.Key]; !read {
				return false
			}
			if _, read := f.counters[c.HeldKey]; c.HeldKey != "" && !read {
				return false
			}
		}
	}
	return true
}

// answer tells every entry what was decided. Who was answered finds the batch counted.
func (l *lane) answer(a *attempt) {
	l.stats.batches.Add(1)
	l.stats.appends.Add(int64(len(a.verdict.rows)))
	l.stats.events.Add(max(0, a.verdict.last-a.facts.head.Position))
	for i, e := range a.batch {
		e.answer(a.verdict.outcomes[i])
	}
}

func answerAll(batch []*entry, o outcome) {
	for _, e := range batch {
		e.answer(o)
	}
}

// The errors of a try. PostgreSQL's classes:
const (
	sqlUniqueViolation      = "23505"
	sqlSerializationFailure = "40001"
	sqlDeadlock             = "40P01"
)

func isUniqueViolation(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == sqlUniqueViolation
}

// rolledBack: the server itself said, in an ordinary error, that the transaction
// failed. A FATAL error may follow a commit as well as precede it.
func rolledBack(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Severity != "FATAL" && pg.Severity != "PANIC"
}

// passes: the same batch may well succeed at once.
func passes(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		// The connection broke before anything was sent to be committed.
		return !errors.Is(err, errDial) && !errors.Is(err, ErrCorrupt)
	}
	return pg.Code == sqlSerializationFailure || pg.Code == sqlDeadlock || !rolledBack(err)
}

// objection: the error is about the batch's content (data, constraint, syntax or
// privilege, size), not about the server's state.
func objection(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(pg.Code) != 5 {
		return false
	}
	switch pg.Code[:2] {
	case "22", "23", "42", "54", "XX", "P0":
		return true
	}
	return false
}
