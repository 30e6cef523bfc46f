// Package projectiontest is what the tests of read models share: a log in memory,
// random lives of requests, and a pool with the rights of a worker.
package projectiontest

import (
	"context"
	"strings"
	"sync"

	"github.com/sluice-gateway/sluice/eventstore"
)

// Log is a log in memory. It keeps the promises of the real one: gapless positions
// per shard, in the order of appending.
type Log struct {
	mu     sync.Mutex
	shards map[int16][]eventstore.Recorded
}

// NewLog makes a log of the given events; positions are assigned in order.
func NewLog(events ...eventstore.Recorded) *Log {
	l := &Log{shards: map[int16][]eventstore.Recorded{}}
	l.Append(events...)
	return l
}

// Append adds events at the end of their shards and returns them as recorded.
func (l *Log) Append(events ...eventstore.Recorded) []eventstore.Recorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	added := make([]eventstore.Recorded, len(events))
	for i, e := range events {
		e.Position = int64(len(l.shards[e.Shard]) + 1)
		l.shards[e.Shard] = append(l.shards[e.Shard], e)
		added[i] = e
	}
	return added
}

// ReadAll implements projections.Log.
func (l *Log) ReadAll(_ context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.shards[shard]
	after = min(after, int64(len(events)))
	return append([]eventstore.Recorded(nil), events[after:min(after+int64(limit), int64(len(events)))]...), nil
}

// ReadConfig implements projections.Log.
func (l *Log) ReadConfig(_ context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []eventstore.Recorded
	for _, e := range l.shards[shard] {
		kind, _, _ := strings.Cut(e.Stream, "/")
		if e.Position > after && kind != "request" && kind != "bill" && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}

// Head implements projections.Log.
func (l *Log) Head(_ context.Context, shard int16) (eventstore.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return eventstore.Head{Shard: shard, Position: int64(len(l.shards[shard]))}, nil
}
