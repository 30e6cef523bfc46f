package eventstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// collect subscribes until it has seen the position, and returns everything seen.
func collect(ctx context.Context, s *Store, upTo *atomic.Int64) ([]Recorded, error) {
	var seen []Recorded
	errDone := errors.New("done")
	err := s.Subscribe(ctx, 0, 0, func(_ context.Context, events []Recorded) error {
		seen = append(seen, events...)
		if end := upTo.Load(); end > 0 && seen[len(seen)-1].Position >= end {
			return errDone
		}
		return nil
	}, SubscribeOptions{Limit: 37})
	if errors.Is(err, errDone) {
		err = nil
	}
	return seen, err
}

// Writers of two processes append to streams of their own while transactions are
// held open in the same and in another database and the lanes' backends are
// killed. A subscriber must see each committed event once, in one order, gapless,
// and each stream in its order.
//
// Rules: E3, E11.
func TestSubscriberSeesEveryEventOnceInOrder_E3_E11(t *testing.T) {
	url, elsewhere := pgtest.NewDatabase(t), pgtest.NewDatabase(t)
	stores := []*Store{openStore(t, Config{URL: url}), openStore(t, Config{URL: url})}

	// Open write transactions: what reading by transaction id would wait for.
	for i, u := range []string{url, elsewhere} {
		held := connect(t, u)
		mustExec(t, held, `create table if not exists held (n int)`)
		mustExec(t, held, `begin`)
		mustExec(t, held, `insert into held values ($1)`, i)
	}

	var end atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var subscribers errgroup.Group
	seen := make([][]Recorded, 3)
	for i := range seen {
		subscribers.Go(func() (err error) {
			seen[i], err = collect(ctx, stores[i%2], &end)
			return err
		})
	}

	written := &ledger{versions: map[string]int64{}}
	killing, stopKilling := context.WithCancel(ctx)
	var killer sync.WaitGroup
	var killed int
	killer.Go(func() { killed = killLanes(killing, t, url) })
	const writers, appends = 16, 60
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { written.write(t, stores[w%2], w, appends) })
	}
	wg.Wait()
	stopKilling()
	killer.Wait()

	last := mustAppend(t, stores[0], newRequest(), 0, 1)
	written.add("last", 1)
	end.Store(last.Position)
	// One more wakes a subscriber that had already seen the last.
	mustAppend(t, stores[0], newRequest(), 0, 1)
	if err := subscribers.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range seen {
		checkOrder(t, seen[i][:last.Position], written.events)
	}
	if killed == 0 {
		t.Error("no backend was killed")
	}
	t.Logf("%d backends killed, %d outcomes looked up by callers", killed, written.unknown)
}

// ledger is what the writers know to be in the log.
type ledger struct {
	mu       sync.Mutex
	events   int64
	unknown  int
	versions map[string]int64
}

func (l *ledger) add(stream string, events int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events += events
	l.versions[stream] += events
}

// write appends to two streams in turn until each append is known to be written. A
// caller who does not know the outcome reads the stream, as ErrOutcomeUnknown says.
func (l *ledger) write(t *testing.T, s *Store, writer, appends int) {
	streams := [2]string{newRequest(), fmt.Sprintf("circuit/endpoint/%d", writer)}
	var version [2]int64
	for n := 0; n < appends; {
		i := n % 2
		events := int64(1 + rand.IntN(3))
		_, err := s.Append(t.Context(), Append{Stream: streams[i], Expected: version[i], Events: happened(int(events))})
		switch {
		case errors.Is(err, ErrOutcomeUnknown):
			l.mu.Lock()
			l.unknown++
			l.mu.Unlock()
			found, readErr := s.ReadStream(t.Context(), streams[i], version[i]+1, 10)
			if readErr != nil || len(found) == 0 {
				continue
			}
		case errors.Is(err, ErrUnavailable):
			continue // nothing was written: again
		case err != nil:
			t.Errorf("append %d of writer %d: %v", n, writer, err)
			return
		}
		version[i] += events
		l.add(streams[i], events)
		n++
	}
}

// killLanes ends a random backend of the lanes each time the log has moved on, and
// says how many it ended.
func killLanes(ctx context.Context, t *testing.T, url string) (killed int) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Errorf("killer: %v", err)
		return 0
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var before int64
	for ctx.Err() == nil {
		var now int64
		if err := conn.QueryRow(ctx, `select coalesce(max(last_position), 0) from log_batches`).Scan(&now); err != nil {
			continue
		}
		if now < before+40 {
			continue
		}
		before = now
		tag, err := conn.Exec(ctx, `
			select pg_terminate_backend(pid) from (
				select pid from pg_stat_activity
				where datname = current_database() and application_name = 'sluice-lane'
				order by random() limit 1) victim`)
		if err == nil {
			killed += int(tag.RowsAffected())
		}
	}
	return killed
}

func checkOrder(t *testing.T, seen []Recorded, events int64) {
	t.Helper()
	if int64(len(seen)) != events {
		t.Errorf("saw %d events, %d were written", len(seen), events)
	}
	versions := map[string]int64{}
	for i, e := range seen {
		if e.Position != int64(i+1) {
			t.Fatalf("event %d has position %d", i+1, e.Position)
		}
		versions[e.Stream]++
		if e.StreamVersion != versions[e.Stream] {
			t.Fatalf("position %d: %s at version %d, want %d", e.Position, e.Stream, e.StreamVersion, versions[e.Stream])
		}
	}
}
