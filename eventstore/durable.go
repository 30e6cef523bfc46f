package eventstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// durable knows up to which position each shard's log is safe from a crash, and
// how to find out more.
//
// COMMIT makes a batch visible before it is on disk (see the package comment), so
// a reader may read what a crash would still undo. Positions up to a known one are
// safe, because PostgreSQL's log is flushed in order. Three sources move it on: a
// barrier of this process, a notification (sent after a barrier of any process),
// and, when a reader is ahead of both, a barrier of its own.
type durable struct {
	pool *pgxpool.Pool

	mu       sync.Mutex
	position []int64 // by shard
	wake     []chan struct{}
}

func newDurable(pool *pgxpool.Pool, shards int) *durable {
	d := &durable{pool: pool, position: make([]int64, shards), wake: make([]chan struct{}, shards)}
	for i := range d.wake {
		d.wake[i] = make(chan struct{})
	}
	return d
}

// advance notes that shard is safe up to position and wakes who waits for more.
func (d *durable) advance(shard int16, position int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(shard) >= len(d.position) || position <= d.position[shard] {
		return
	}
	d.position[shard] = position
	close(d.wake[shard])
	d.wake[shard] = make(chan struct{})
}

// known is the safe position so far and a channel that is closed when it moves.
func (d *durable) known(shard int16) (int64, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.position[shard], d.wake[shard]
}

// wakeAll makes every subscriber look, for when notifications may have been lost.
func (d *durable) wakeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.wake {
		close(d.wake[i])
		d.wake[i] = make(chan struct{})
	}
}

// sqlReaderBarrier reads the head and then commits something that must be
// flushed: when it returns, all that its snapshot saw is on disk. Looking at
// pg_current_wal_flush_lsn instead would cost the same trip, would not wait for a
// synchronous standby, and could wait for ever: nobody is obliged to flush the
// last, half-filled page of an open transaction.
const sqlReaderBarrier = `
select coalesce((select max(last_position) from log_batches where shard = $1), 0), pg_logical_emit_message(true, 'sluice', '')`

// ensure returns when position is safe.
func (d *durable) ensure(ctx context.Context, shard int16, position int64) error {
	if known, _ := d.known(shard); known >= position {
		return nil
	}
	var head int64
	err := d.pool.QueryRow(ctx, sqlReaderBarrier, shard).Scan(&head, nil)
	if err != nil {
		return fmt.Errorf("eventstore: barrier: %w", err)
	}
	d.advance(shard, head)
	return nil
}
