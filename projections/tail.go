package projections

import (
	"context"
	"sync"

	"github.com/sluice-gateway/sluice/eventstore"
)

// tail lets the projections of a runner share what they read at the end of the log:
// they are woken together and want the same events, and reading them once a
// projection was most of what following the log cost. One that is behind reads for
// itself and does not disturb the others.
type tail struct {
	Log
	mu    sync.Mutex
	pages map[int16]tailPage
}

// tailPage are the events that follow a position; at most pageEvents of them.
type tailPage struct {
	after  int64
	events []eventstore.Recorded
}

func (p tailPage) end() int64 { return p.after + int64(len(p.events)) }

func newTail(log Log) *tail { return &tail{Log: log, pages: map[int16]tailPage{}} }

// ReadAll implements Log. The events are shared: nobody may change them.
func (t *tail) ReadAll(ctx context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error) {
	t.mu.Lock()
	page := t.pages[shard]
	if after < page.after { // behind
		t.mu.Unlock()
		return t.Log.ReadAll(ctx, shard, after, limit)
	}
	defer t.mu.Unlock()
	var have []eventstore.Recorded
	if after < page.end() {
		have = page.events[after-page.after:]
	}
	if len(have) >= limit {
		return have[:limit:limit], nil
	}
	// Also asked when something was there: fewer than limit means the end of the log.
	news, err := t.Log.ReadAll(ctx, shard, after+int64(len(have)), limit-len(have))
	if err != nil {
		return nil, err
	}
	all := append(have[:len(have):len(have)], news...)
	t.pages[shard] = tailPage{after: after, events: all}
	return all, nil
}
