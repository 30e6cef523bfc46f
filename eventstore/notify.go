package eventstore

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Workers tell each other by NOTIFY how far the log is durable. That only shortens
// a wait: whoever reads also polls.

// nudgePause is the least time between two notifications of a process. A lone
// append is told at once; under load one notification stands for many batches,
// since each wakes a backend and a process per worker.
const nudgePause = 20 * time.Millisecond

const sqlNotify = `select pg_notify('sluice_log', payload) from unnest($1::text[]) payload`

// nudger sends notifications. It is not part of the lane's transaction: NOTIFY
// holds a lock of the whole database until its commit is done, and around a
// barrier that would let only one process at a time wait for the disk.
type nudger struct {
	pool *pgxpool.Pool
	some chan struct{}

	mu       sync.Mutex
	position []int64 // by shard, to be told
	told     []int64
}

func newNudger(pool *pgxpool.Pool, shards int) *nudger {
	return &nudger{
		pool: pool, some: make(chan struct{}, 1),
		position: make([]int64, shards), told: make([]int64, shards),
	}
}

// note asks for shard's position to be told. It never waits.
func (n *nudger) note(shard int16, position int64) {
	n.mu.Lock()
	n.position[shard] = max(n.position[shard], position)
	n.mu.Unlock()
	select {
	case n.some <- struct{}{}:
	default:
	}
}

func (n *nudger) run(ctx context.Context, log *slog.Logger) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-n.some:
		case <-ctx.Done():
			return
		}
		_, err := n.pool.Exec(ctx, sqlNotify, n.payloads())
		if err != nil && ctx.Err() == nil {
			log.Warn("readers were not notified, they poll", "cause", err)
		}
		pause.Reset(nudgePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// payloads lists shard:position for each shard that has news.
func (n *nudger) payloads() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var news []string
	for shard, position := range n.position {
		if position > n.told[shard] {
			n.told[shard] = position
			news = append(news, strconv.Itoa(shard)+":"+strconv.FormatInt(position, 10))
		}
	}
	return news
}

const (
	listenRetryMin = 100 * time.Millisecond
	listenRetryMax = 5 * time.Second
)

// listen turns notifications into wake-ups, on a connection of its own that it
// makes again when it is lost. Nothing depends on it but latency.
func (s *Store) listen(ctx context.Context) {
	retry := listenRetryMin
	for {
		heard, err := s.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			retry = listenRetryMin
		}
		s.log.Warn("notifications are lost, polling goes on", "cause", err)
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return
		}
		retry = min(2*retry, listenRetryMax)
	}
}

func (s *Store) listenOnce(ctx context.Context) (heard bool, err error) {
	conn, err := pgx.Connect(ctx, s.config.URL)
	if err != nil {
		return false, err
	}
	defer func() { closeConn(conn.PgConn()) }()
	if _, err := conn.Exec(ctx, `set role sluice_app; listen sluice_log`, pgx.QueryExecModeSimpleProtocol); err != nil {
		return false, err
	}
	// What was committed while nobody listened.
	s.durable.wakeAll()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		if shard, position, ok := parseNotification(n.Payload); ok {
			s.durable.advance(shard, position)
		}
	}
}

// parseNotification reads shard:position.
func parseNotification(payload string) (shard int16, position int64, ok bool) {
	left, right, ok := strings.Cut(payload, ":")
	if !ok {
		return 0, 0, false
	}
	n, err := strconv.ParseInt(left, 10, 16)
	if err != nil || n < 0 {
		return 0, 0, false
	}
	position, err = strconv.ParseInt(right, 10, 64)
	return int16(n), position, err == nil
}
