package projections

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// linger is the least time between two batches of one projection that has caught
	// up. A lone event is shown at once; under load, whatever a request says within
	// this time becomes one row write instead of three. With 50 ms, requests that take
	// as long were nearly all written twice, and the view cost PostgreSQL more than the
	// log did. A quarter of a second is still at once to whoever looks at a list.
	linger = 250 * time.Millisecond
	// defaultPoll finds what a lost nudge missed, and a lead that became free.
	defaultPoll = time.Second
	// firstRetry and lastRetry bound the wait after a failure. A projection that
	// cannot go on asks again this seldom, for ever: it must not load the database
	// that may be the cause, and it must recover without a restart.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// lastReconnect bounds the wait after the connection failed: the database comes
	// back by itself, and until then nothing is loaded by asking.
	lastReconnect = 5 * time.Second
)

// Options are a Runner's settings.
type Options struct {
	// Shards are the shards of the log; none means shard 0 alone.
	Shards []int16
	// Poll is how long a projection waits for a nudge before it looks by itself;
	// zero means one second.
	Poll time.Duration
	// Logger is told when a projection stops and when it goes on; nil is silent.
	Logger *slog.Logger
}

// Runner advances the projections of one process. Every worker has one; an
// advisory lock per projection makes exactly one of them lead it at a time, the
// checkpoint makes sure that it would not matter if two did.
//
// A leading projection holds one connection of the pool: the session that has the
// lock is the one that writes, so that a worker which lost its lead together with
// its connection cannot write any more.
type Runner struct {
	pool  *pgxpool.Pool
	log   Log
	opts  Options
	leads []*lead
}

// NewRunner prepares a runner; Run starts it.
func NewRunner(pool *pgxpool.Pool, log Log, opts Options, list ...Projection) *Runner {
	if len(opts.Shards) == 0 {
		opts.Shards = []int16{0}
	}
	if opts.Poll <= 0 {
		opts.Poll = defaultPoll
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runner{pool: pool, log: log, opts: opts}
	shared := newTail(log)
	for _, p := range list {
		r.leads = append(r.leads, &lead{
			view: newView(p, shared, live), pool: pool, opts: opts, nudge: make(chan struct{}, 1),
		})
	}
	return r
}

// Run advances the projections until ctx ends and returns when all have stopped.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, l := range r.leads {
		all.Go(func() { l.run(ctx) })
	}
	all.Wait()
}

// Nudge says that a shard has news up to a position. It never blocks; the numbers
// are a courtesy, the log is read.
func (r *Runner) Nudge(int16, int64) {
	for _, l := range r.leads {
		select {
		case l.nudge <- struct{}{}:
		default: // a nudge that waits already says the same
		}
	}
}

// lead is one projection of one worker.
type lead struct {
	view
	pool  *pgxpool.Pool
	opts  Options
	nudge chan struct{}
	// clean is set once this worker knows that no stall is recorded; reason is the
	// one that it recorded last.
	clean  bool
	reason string
}

func (l *lead) run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		led, err := l.tryLead(ctx)
		if led {
			retry = firstRetry
		}
		wait := l.opts.Poll
		if _, other := errors.AsType[*VersionError](err); err != nil && !other && ctx.Err() == nil {
			l.opts.Logger.Warn("projection has no lead", "projection", l.Name(), "error", err)
			wait, retry = retry, min(2*retry, lastReconnect)
		}
		pause(ctx, wait)
	}
}

// tryLead leads until ctx ends or the connection fails. led is false when another
// worker leads.
func (l *lead) tryLead(ctx context.Context) (led bool, err error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	key := "sluice projection " + l.Name()
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock(hashtextextended($1, 0))`, key).Scan(&led)
	if err != nil || !led {
		return false, err
	}
	defer func() {
		// A session that keeps the lock must not go back into the pool. The lead ends
		// mostly because ctx did, so the unlock has a moment of its own.
		unlock, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if _, failed := conn.Exec(unlock, `select pg_advisory_unlock(hashtextextended($1, 0))`, key); failed != nil {
			_ = conn.Conn().Close(unlock)
		}
	}()
	return true, l.follow(ctx, conn)
}

// follow advances the view for as long as this worker leads. It comes back for a
// connection that is gone and for a view that other releases own.
func (l *lead) follow(ctx context.Context, conn *pgxpool.Conn) error {
	retry := firstRetry
	for ctx.Err() == nil {
		began := time.Now()
		more, err := l.round(ctx, conn)
		switch {
		case errors.Is(err, errMoved):
			continue
		case err != nil:
			l.stalled(ctx, err)
			if _, other := errors.AsType[*VersionError](err); other || conn.Conn().IsClosed() {
				return err
			}
			if !more { // another shard may still have a way to go
				pause(ctx, retry)
				retry = min(2*retry, lastRetry)
			}
			continue
		}
		retry = firstRetry
		l.recovered(ctx, conn)
		if !more {
			l.waitForNews(ctx, began)
		}
	}
	return nil
}

// round takes one page of every shard. A shard that cannot go on does not keep the
// others from it.
func (l *lead) round(ctx context.Context, conn *pgxpool.Conn) (more bool, err error) {
	var failures []error
	for _, shard := range l.opts.Shards {
		_, again, err := l.advance(ctx, conn, shard, math.MaxInt64)
		more = more || again
		if err != nil {
			failures = append(failures, err)
		}
	}
	return more, errors.Join(failures...)
}

// waitForNews returns at a nudge or when it is time to look anyway, and not before
// the linger since the last look is over.
func (l *lead) waitForNews(ctx context.Context, last time.Time) {
	poll := time.NewTimer(l.opts.Poll)
	defer poll.Stop()
	select {
	case <-ctx.Done():
	case <-l.nudge:
		pause(ctx, linger-time.Since(last))
	case <-poll.C:
	}
}

// pause waits, or ends early with ctx.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
