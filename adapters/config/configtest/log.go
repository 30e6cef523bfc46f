// Package configtest keeps configuration in memory the way the event store keeps it,
// for tests.
package configtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-gateway/sluice/eventstore"
)

// Log has positions in one order, versions per stream, and appends all or none. It
// is safe for concurrent use as long as the fields are only read when nobody
// appends.
type Log struct {
	mu     sync.Mutex
	away   error
	Events []eventstore.Recorded
	// Versions is where each stream is.
	Versions map[string]int64
	// Appends counts the batches that were written.
	Appends int
	// Before, when set, runs in front of every append, without the lock.
	Before func()
}

// NewLog is an empty log.
func NewLog() *Log { return &Log{Versions: map[string]int64{}} }

// Away makes every read fail with err from now on; nil ends that.
func (l *Log) Away(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = err
}

// ReadConfig implements config.Log.
func (l *Log) ReadConfig(ctx context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error) {
	return l.ReadAll(ctx, shard, after, limit)
}

// ReadAll returns what follows a position.
func (l *Log) ReadAll(_ context.Context, _ int16, after int64, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away != nil {
		return nil, l.away
	}
	rest := l.Events[min(after, int64(len(l.Events))):]
	return rest[:min(limit, len(rest))], nil
}

// ReadStream returns the events of one stream.
func (l *Log) ReadStream(_ context.Context, stream string, from int64, limit int) ([]eventstore.Recorded, error) {
	if _, err := eventstore.Born(stream); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []eventstore.Recorded
	for _, e := range l.Events {
		if e.Stream == stream && e.StreamVersion >= from && len(list) < limit {
			list = append(list, e)
		}
	}
	return list, nil
}

// AppendAll implements config.Log.
func (l *Log) AppendAll(_ context.Context, appends []eventstore.Append) ([]eventstore.Result, error) {
	if l.Before != nil {
		l.Before()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range appends {
		if _, err := eventstore.Born(a.Stream); err != nil {
			return nil, err
		}
		if a.Expected != eventstore.AnyVersion && a.Expected != l.Versions[a.Stream] {
			return nil, &eventstore.ConflictError{Stream: a.Stream, Expected: a.Expected, Actual: l.Versions[a.Stream]}
		}
	}
	l.Appends++
	for _, a := range appends {
		for _, e := range a.Events {
			l.Versions[a.Stream]++
			l.Events = append(l.Events, eventstore.Recorded{
				Event: e, Shard: a.Shard, Position: int64(len(l.Events) + 1),
				Stream: a.Stream, StreamVersion: l.Versions[a.Stream], RecordedAt: e.At, Meta: a.Meta,
			})
		}
	}
	return make([]eventstore.Result, len(appends)), nil
}

// Append writes one decision.
func (l *Log) Append(ctx context.Context, a eventstore.Append) (eventstore.Result, error) {
	results, err := l.AppendAll(ctx, []eventstore.Append{a})
	if err != nil {
		return eventstore.Result{}, err
	}
	return results[0], nil
}

// ReadKind returns the newest streams of a kind, as the event store does.
func (l *Log) ReadKind(_ context.Context, kind, before string, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := map[string][]eventstore.Recorded{}
	for _, e := range l.Events {
		if strings.HasPrefix(e.Stream, kind+"/") && (before == "" || e.Stream < before) {
			of[e.Stream] = append(of[e.Stream], e)
		}
	}
	names := slices.Sorted(maps.Keys(of))
	slices.Reverse(names)
	var found []eventstore.Recorded
	for _, name := range names[:min(limit, len(names))] {
		found = append(found, of[name]...)
	}
	return found, nil
}
