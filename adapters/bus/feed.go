package bus

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Source is a log that tells when it has grown: the event store, which hears of its
// own commits and, by PostgreSQL's notifications, of those of other processes.
type Source interface {
	// Wait returns how far a shard is durable, as soon as that is beyond a position.
	Wait(ctx context.Context, shard int16, beyond int64) (position int64, err error)
}

// feedRetry is the wait after a source failed, so that one that cannot work is not
// asked in a loop.
const feedRetry = time.Second

// Feed announces on the bus what the source tells, until ctx ends. While a nudge is
// on its way, any number of commits become one next nudge: it says how far the log
// has come, not what happened. No shards means shard 0 alone.
func Feed(ctx context.Context, source Source, b *Bus, log *slog.Logger, shards ...int16) {
	if len(shards) == 0 {
		shards = []int16{0}
	}
	var all sync.WaitGroup
	for _, shard := range shards {
		all.Go(func() { feed(ctx, source, b, log, shard) })
	}
	all.Wait()
}

func feed(ctx context.Context, source Source, b *Bus, log *slog.Logger, shard int16) {
	var at int64
	for ctx.Err() == nil {
		position, err := source.Wait(ctx, shard, at)
		if err == nil {
			at = position
			err = b.Publish(Nudge{Shard: shard, Position: position})
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("readers were not nudged, they poll", "shard", shard, "error", err)
			select {
			case <-time.After(feedRetry):
			case <-ctx.Done():
			}
		}
	}
}
