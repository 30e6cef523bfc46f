package eventstore

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// holdShard takes the shard's lock as another process would, until release. queued
// returns once a lane waits for it.
func holdShard(t *testing.T, url string) (queued, release func()) {
	t.Helper()
	conn := connect(t, url)
	mustExec(t, conn, `begin`)
	mustExec(t, conn, `select pg_advisory_xact_lock(1819502195, 0)`)
	queued = func() {
		for waits := false; !waits; {
			err := conn.QueryRow(t.Context(), `
				select exists (select from pg_locks where locktype = 'advisory' and not granted
				               and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return queued, func() { mustExec(t, conn, `commit`) }
}

// await spins until cond holds; the test's own timeout bounds it.
func await(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

// waiting says how many entries are in the queue.
func waiting(s *Store) int {
	q := s.lanes[0].queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting[Admission]) + len(q.waiting[Settlement])
}

// goAppend appends concurrently; the errors arrive on the channel in any order.
func goAppend(ctx context.Context, s *Store, appends ...Append) <-chan error {
	errs := make(chan error, len(appends))
	for _, a := range appends {
		go func() {
			_, err := s.Append(ctx, a)
			errs <- err
		}()
	}
	return errs
}

// While one batch cannot be written, all that arrives gathers; then it goes in one
// or two. No timer is involved, so one append alone goes alone.
//
// Rules: E6.
func TestAppendsShareABatchAndALoneOneDoesNotWait_E6(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url, LaneConns: 1})
	for range 3 {
		mustAppend(t, s, newRequest(), 0, 1)
	}
	if got := s.Stats(); got.Batches != 3 || got.Appends != 3 {
		t.Fatalf("three appends one after the other: %+v", got)
	}
	queued, release := holdShard(t, url)
	first := goAppend(t.Context(), s, Append{Stream: newRequest(), Events: happened(1)})
	queued()
	const callers = 50
	appends := make([]Append, callers)
	for i := range appends {
		appends[i] = Append{Stream: newRequest(), Events: happened(1)}
	}
	rest := goAppend(t.Context(), s, appends...)
	await(func() bool { return waiting(s) == callers })
	release()
	for range callers {
		if err := <-rest; err != nil {
			t.Error(err)
		}
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	// All fifty join the batch that waits for the lock.
	if got := s.Stats(); got.Batches != 4 || got.Appends != 3+1+callers {
		t.Errorf("%+v", got)
	}
}

// The lane's own wait: it returns what is there, and waits only for nothing.
//
// Rules: E6.
func TestLaneTakesALoneEntryAtOnce_E6(t *testing.T) {
	l := &lane{queue: newQueue(limits{10, 1000}), batch: limits{10, 1000}}
	e := &entry{events: 1, bytes: 1}
	if err := l.queue.put(e); err != nil {
		t.Fatal(err)
	}
	batch, ok := l.next(t.Context())
	if !ok || len(batch) != 1 || batch[0] != e {
		t.Fatalf("took %v, %t", batch, ok)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if batch, ok := l.next(ctx); ok {
		t.Fatalf("took %v of nothing", batch)
	}
}

// An append that the database refuses or that conflicts fails alone, in whatever
// company it was written.
//
// Rules: E2, E6.
func TestOneBadAppendDoesNotFailItsNeighbours_E2_E6(t *testing.T) {
	full := budget.Delta{Key: "k", Held: math.MaxInt64}
	for _, c := range []struct {
		name string
		bad  func(t *testing.T, other *Store) Append
		is   func(error) bool
	}{
		{
			"database refuses", func(t *testing.T, other *Store) Append {
				a := Append{Stream: newRequest(), Events: happened(1), Deltas: []budget.Delta{full}}
				if _, err := other.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				a.Stream = newRequest()
				return a // the counter overflows
			},
			func(err error) bool { return errors.Is(err, ErrUnavailable) },
		},
		{
			"stream exists", func(t *testing.T, other *Store) Append {
				a := Append{Stream: newRequest(), Events: happened(3)}
				if _, err := other.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				return a
			},
			func(err error) bool { got, ok := errors.AsType[*ConflictError](err); return ok && got.Actual == 3 },
		},
		{
			"refusal cannot be stored", func(t *testing.T, _ *Store) Append {
				return Append{
					Stream: newRequest(), Events: happened(1),
					Checks: []budget.Check{{Key: "none", Limit: 0, Ask: 1}},
					Refuse: func(budget.Refusal) ([]Event, []budget.Delta) { return []Event{{Type: "No"}}, nil },
				}
			},
			func(err error) bool { return errors.Is(err, ErrInvalid) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := pgtest.NewDatabase(t)
			s, other := openStore(t, Config{URL: url, LaneConns: 1}), openStore(t, Config{URL: url})
			bad := c.bad(t, other)
			queued, release := holdShard(t, url)
			appends := []Append{bad}
			for range 9 {
				appends = append(appends, Append{Stream: newRequest(), Events: happened(1)})
			}
			// Busy the lane first, so that the rest is one batch.
			first := goAppend(t.Context(), s, Append{Stream: newRequest(), Events: happened(1)})
			queued()
			errs := goAppend(t.Context(), s, appends...)
			await(func() bool { return waiting(s) == len(appends) })
			release()
			failed := 0
			for range appends {
				if err := <-errs; err != nil {
					failed++
					if !c.is(err) {
						t.Errorf("unexpected %v", err)
					}
				}
			}
			if err := <-first; err != nil || failed != 1 {
				t.Errorf("%d failed, first %v", failed, err)
			}
			if _, err := s.VerifyChain(t.Context(), 0, Head{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A caller that gives up while its append waits knows that nothing was written;
// one whose append is being written does not.
func TestGivingUpBeforeAndAfterTheLaneTookIt(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url, LaneConns: 1, BatchEvents: 1})
	queued, release := holdShard(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	taken, left := newRequest(), newRequest()
	beingWritten := goAppend(ctx, s, Append{Stream: taken, Events: happened(1)})
	queued()
	inQueue := goAppend(ctx, s, Append{Stream: left, Events: happened(1)})
	await(func() bool { return waiting(s) == 1 })
	cancel()
	if err := <-beingWritten; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("being written: %v", err)
	}
	if err := <-inQueue; errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("queued: %v", err)
	}
	if got := s.Stats(); got.QueuedEvents != 0 || got.QueuedBytes != 0 {
		t.Errorf("room is not free again: %+v", got)
	}
	release()
	mustAppend(t, s, newRequest(), 0, 1)
	if found, err := s.ReadStream(t.Context(), left, 1, 1); err != nil || len(found) != 0 {
		t.Errorf("a withdrawn append was written: %v, %v", found, err)
	}
}

func TestCloseWritesWhatIsQueued(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url, LaneConns: 1})
	queued, release := holdShard(t, url)
	appends := make([]Append, 20)
	for i := range appends {
		appends[i] = Append{Stream: newRequest(), Events: happened(1)}
	}
	first := goAppend(t.Context(), s, Append{Stream: newRequest(), Events: happened(1)})
	queued()
	errs := goAppend(t.Context(), s, appends...)
	await(func() bool { return waiting(s) == len(appends) })
	var closing sync.WaitGroup
	closing.Go(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	q := s.lanes[0].queue
	await(func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.closed })
	if _, err := s.Append(t.Context(), appends[0]); !errors.Is(err, ErrClosed) {
		t.Errorf("append while closing: %v", err)
	}
	release()
	closing.Wait()
	for range appends {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// Overload turns admissions away while there is still room for settlements.
func TestQueueKeepsRoomForSettlements(t *testing.T) {
	q := newQueue(limits{events: 100, bytes: 1000})
	put := func(p Priority, events, bytes int) error {
		return q.put(&entry{priority: p, events: events, bytes: bytes})
	}
	for _, c := range []struct {
		priority      Priority
		events, bytes int
		err           error
	}{
		{Admission, 75, 10, nil},
		{Admission, 1, 10, ErrOverloaded},
		{Settlement, 20, 10, nil},
		{Settlement, 6, 10, ErrOverloaded},
		{Settlement, 1, 981, ErrOverloaded},
		{Settlement, 1, 980, nil},
	} {
		if err := put(c.priority, c.events, c.bytes); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	// Settlements are written first; one larger than a batch is a batch.
	batch := q.next(limits{events: 10, bytes: 1000})
	if len(batch) != 1 || batch[0].priority != Settlement || batch[0].events != 20 {
		t.Errorf("first batch %+v", batch)
	}
	if err := put(Admission, 1, 1); !errors.Is(err, ErrOverloaded) {
		t.Errorf("76 events of admissions' 75: %v", err)
	}
	q.close()
	if err := put(Settlement, 1, 1); !errors.Is(err, ErrClosed) || q.finished() {
		t.Errorf("closed: %v, finished %t", err, q.finished())
	}
	q.next(limits{events: 1000, bytes: 10_000})
	if !q.finished() {
		t.Error("a closed and empty queue is not finished")
	}
}

// One append may be larger than the queue where nothing else waits, as a configuration
// is that is applied whole. What can never be written is told apart from what can later.
//
// Rules: C2, C13.
func TestALargeAppendWaitsAlone_C2_C13(t *testing.T) {
	q := newQueue(limits{events: 100, bytes: 1000})
	put := func(p Priority, events, bytes int) error {
		return q.put(&entry{priority: p, events: events, bytes: bytes})
	}
	if err := put(Admission, maxAloneEvents, 1000); err != nil {
		t.Errorf("nothing else waits: %v", err)
	}
	if err := put(Settlement, 1, 1); !errors.Is(err, ErrOverloaded) {
		t.Errorf("behind it: %v", err)
	}
	if batch := q.next(limits{events: 1, bytes: 1}); len(batch) != 1 {
		t.Errorf("batch %+v", batch)
	}
	for _, never := range []limits{{events: maxAloneEvents + 1, bytes: 1}, {events: 1, bytes: 1001}} {
		err := put(Settlement, never.events, never.bytes)
		if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Events != never.events || !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", never, err)
		}
	}
}
