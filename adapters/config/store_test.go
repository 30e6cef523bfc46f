package config_test

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-gateway/sluice/eventstore"
)

var testTime = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// memoryLog keeps configuration the way the event store does: positions in one
// order, versions per stream, appends all or none.
type memoryLog struct {
	mu       sync.Mutex
	events   []eventstore.Recorded
	versions map[string]int64
	appends  int
}

func newMemoryLog() *memoryLog { return &memoryLog{versions: map[string]int64{}} }

func (l *memoryLog) ReadConfig(_ context.Context, _ int16, after int64, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.events[min(after, int64(len(l.events))):]
	return rest[:min(limit, len(rest))], nil
}

func (l *memoryLog) AppendAll(_ context.Context, appends []eventstore.Append) ([]eventstore.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range appends {
		if _, err := eventstore.Born(a.Stream); err != nil {
			return nil, err
		}
		if a.Expected != eventstore.AnyVersion && a.Expected != l.versions[a.Stream] {
			return nil, &eventstore.ConflictError{Stream: a.Stream, Expected: a.Expected, Actual: l.versions[a.Stream]}
		}
	}
	l.appends++
	for _, a := range appends {
		for _, e := range a.Events {
			l.versions[a.Stream]++
			l.events = append(l.events, eventstore.Recorded{
				Event: e, Shard: a.Shard, Position: int64(len(l.events) + 1),
				Stream: a.Stream, StreamVersion: l.versions[a.Stream], RecordedAt: e.At, Meta: a.Meta,
			})
		}
	}
	return make([]eventstore.Result, len(appends)), nil
}
