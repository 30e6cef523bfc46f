package eventstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to open a Store. Zero values take the defaults.
type Config struct {
	// URL is a PostgreSQL connection string. Its user must be a member of sluice_app,
	// as the user that migrated is.
	URL string
	// Shards is how many shards this process appends to, 1 by default.
	Shards int
	// LaneConns is how many connections a lane alternates between, 3 by default: one
	// writes, the others wait for the disk.
	LaneConns int
	// ReadConns bounds the connections for reading, 4 by default.
	ReadConns int
	// QueueEvents and QueueBytes bound what waits in a lane's queue: 16,384 events
	// and 64 MiB by default, about a second of writing.
	QueueEvents, QueueBytes int
	// BatchEvents and BatchBytes bound a batch: 1,024 events and 4 MiB by default. A
	// larger batch holds the shard's lock longer than it saves.
	BatchEvents, BatchBytes int
	// Logger hears of trouble; slog.Default by default.
	Logger *slog.Logger

	// settleTimeout is a test's; settleTimeout by default.
	settleTimeout time.Duration
}

func (c Config) withDefaults() Config {
	set := func(value *int, to int) {
		if *value <= 0 {
			*value = to
		}
	}
	set(&c.Shards, 1)
	set(&c.LaneConns, 3)
	set(&c.ReadConns, 4)
	set(&c.QueueEvents, 16<<10)
	set(&c.QueueBytes, 64<<20)
	set(&c.BatchEvents, 1<<10)
	set(&c.BatchBytes, 4<<20)
	if c.settleTimeout <= 0 {
		c.settleTimeout = settleTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Store is the log. It is safe for concurrent use; Close it.
type Store struct {
	config  Config
	pool    *pgxpool.Pool
	lanes   []*lane
	durable *durable
	nudge   *nudger
	log     *slog.Logger

	stopLanes context.CancelFunc
	stopRest  context.CancelFunc
	running   sync.WaitGroup // lanes
	rest      sync.WaitGroup // listener, nudger, upkeep
	closing   sync.Once
}

// Open connects, makes the partitions of the coming months and starts the lanes.
// The schema must be there (package migrations). The caller's context bounds only
// the opening.
func Open(ctx context.Context, config Config) (*Store, error) {
	config = config.withDefaults()
	laneConfig, err := pgconn.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("eventstore: %w", err)
	}
	pool, err := openPool(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := ensurePartitions(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	s := &Store{config: config, pool: pool, durable: newDurable(pool, config.Shards), nudge: newNudger(pool, config.Shards), log: config.Logger}
	laneCtx, stopLanes := context.WithCancel(context.Background())
	restCtx, stopRest := context.WithCancel(context.Background())
	s.stopLanes, s.stopRest = stopLanes, stopRest
	for shard := range config.Shards {
		l := s.newLane(int16(shard), dialer{laneConfig})
		s.lanes = append(s.lanes, l)
		s.running.Go(func() { l.run(laneCtx) })
	}
	s.rest.Go(func() { s.listen(restCtx) })
	s.rest.Go(func() { s.nudge.run(restCtx, s.log) })
	s.rest.Go(func() {
		s.every(restCtx, upkeepEvery, "partitions of the coming months were not made", func(ctx context.Context) error {
			return ensurePartitions(ctx, s.pool)
		})
	})
	s.rest.Go(func() { s.every(restCtx, sweepEvery, "marks of the past were not swept", s.sweep) })
	return s, nil
}

func (s *Store) newLane(shard int16, dial dialer) *lane {
	l := &lane{
		shard:         shard,
		queue:         newQueue(limits{s.config.QueueEvents, s.config.QueueBytes}),
		batch:         limits{s.config.BatchEvents, s.config.BatchBytes},
		dial:          dial,
		durable:       s.durable,
		nudge:         s.nudge,
		settleTimeout: s.config.settleTimeout,
		log:           s.log,
		free:          make(chan *laneConn, s.config.LaneConns),
		seen:          newVersions(maxSeenStreams),
	}
	for range s.config.LaneConns {
		l.free <- &laneConn{}
	}
	return l
}

func openPool(ctx context.Context, config Config) (*pgxpool.Pool, error) {
	poolConfig, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("eventstore: %w", err)
	}
	poolConfig.MaxConns = int32(config.ReadConns)
	poolConfig.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// A reader's barrier must be one, whatever the server's default is.
		_, err := conn.Exec(ctx, "set role sluice_app; set synchronous_commit = on; set timezone = 'UTC'",
			pgx.QueryExecModeSimpleProtocol)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, fmt.Errorf("eventstore: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return pool, nil
}

// upkeepEvery is how often the coming months' partitions are looked after. They
// are made two months ahead, so a failed day costs nothing.
const upkeepEvery = 24 * time.Hour

// every does something from time to time until ctx ends. What fails is tried again the
// next time.
func (s *Store) every(ctx context.Context, period time.Duration, failed string, do func(context.Context) error) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn(failed, "cause", err)
			}
		}
	}
}

// Close refuses new appends, writes what is queued and ends every goroutine. If
// ctx ends first, what is left in the queue is answered ErrClosed and what is being
// written ErrOutcomeUnknown.
func (s *Store) Close(ctx context.Context) error {
	var err error
	s.closing.Do(func() {
		for _, l := range s.lanes {
			l.queue.close()
		}
		drained := make(chan struct{})
		go func() { s.running.Wait(); close(drained) }()
		select {
		case <-drained:
		case <-ctx.Done():
			err = fmt.Errorf("eventstore: close: %w", ctx.Err())
			s.stopLanes()
			<-drained
		}
		s.stopLanes()
		s.stopRest()
		s.rest.Wait()
		s.pool.Close()
	})
	return err
}

// Stats are counts since Open, over all lanes.
type Stats struct {
	// Batches is how many transactions wrote or decided something, Appends how many
	// rows and Events how many events they wrote.
	Batches, Appends, Events int64
	// Careful counts batches rerun with all versions read, Split those cut in halves.
	Careful, Split int64
	// QueuedEvents and QueuedBytes wait now.
	QueuedEvents, QueuedBytes int
}

// Stats reads the counts.
func (s *Store) Stats() Stats {
	var out Stats
	for _, l := range s.lanes {
		out.Batches += l.stats.batches.Load()
		out.Appends += l.stats.appends.Load()
		out.Events += l.stats.events.Load()
		out.Careful += l.stats.careful.Load()
		out.Split += l.stats.split.Load()
		l.queue.mu.Lock()
		out.QueuedEvents += l.queue.events
		out.QueuedBytes += l.queue.bytes
		l.queue.mu.Unlock()
	}
	return out
}
