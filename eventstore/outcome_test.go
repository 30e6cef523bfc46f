package eventstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/eventstore/pgserver"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/migrations"
)

// A connection lost around the commit leaves the outcome open; the lane looks the
// batch up and answers with what is true.
//
// Rules: E11.
func TestLaneSettlesLostCommitItself_E11(t *testing.T) {
	for _, c := range []struct {
		name    string
		forward bool // the COMMIT reaches the server
		written bool
	}{
		{"the answer was lost", true, true},
		{"the commit was lost", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy := newProxy(t, pgtest.NewDatabase(t))
			s := openStore(t, Config{URL: proxy.url})
			mustAppend(t, s, newRequest(), 0, 1)
			stream := newRequest()
			proxy.cutAt("sluice_commit", c.forward, false)
			r, err := s.Append(t.Context(), Append{Stream: stream, Events: happened(2)})
			found, readErr := s.ReadStream(t.Context(), stream, 1, 10)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if c.written {
				if err != nil || r.Position != 3 || len(found) != 2 {
					t.Fatalf("%+v, %v, found %d", r, err, len(found))
				}
			} else if !errors.Is(err, ErrUnavailable) || len(found) != 0 {
				t.Fatalf("%v, found %d", err, len(found))
			}
			if !proxy.wasCut() {
				t.Fatal("the connection was never cut")
			}
			mustAppend(t, s, newRequest(), 0, 1) // the lane goes on
		})
	}
}

// Rules: E11.
func TestOutcomeIsUnknownWhenNobodyAnswers_E11(t *testing.T) {
	proxy := newProxy(t, pgtest.NewDatabase(t))
	s := openStore(t, Config{URL: proxy.url, settleTimeout: 200 * time.Millisecond})
	mustAppend(t, s, newRequest(), 0, 1)
	proxy.cutAt("sluice_commit", true, true)
	_, err := s.Append(t.Context(), Append{Stream: newRequest(), Events: happened(1)})
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	// With the database away nothing is sent, so nothing is unknown.
	_, err = s.Append(t.Context(), Append{Stream: newRequest(), Events: happened(1)})
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
}

// A connection lost before anything was sent to be committed is made again, and
// the caller does not notice.
func TestLostConnectionBeforeCommitIsRetried(t *testing.T) {
	proxy := newProxy(t, pgtest.NewDatabase(t))
	s := openStore(t, Config{URL: proxy.url})
	mustAppend(t, s, newRequest(), 0, 1)
	proxy.cutAt("sluice_head", true, false)
	if r := mustAppend(t, s, newRequest(), 0, 1); r.Position != 2 || !proxy.wasCut() {
		t.Fatalf("%+v, cut %t", r, proxy.wasCut())
	}
}

// The server dies under load. What was answered is there, what was delivered is
// there and the same, and the chain holds: though COMMIT alone does not wait for
// the disk.
//
// Rules: E3, E11.
func TestNothingAnsweredOrDeliveredIsLostToACrash_E3_E11(t *testing.T) {
	server, database := newSlowToFlush(t)
	s := openStore(t, Config{URL: database})
	other := openStore(t, Config{URL: database})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var answered, delivered []Recorded
	var stop atomic.Bool
	enough := make(chan struct{})
	subscribed := make(chan error, 1)
	// The subscriber is of another process than most batches it reads.
	go func() {
		subscribed <- other.Subscribe(ctx, 0, 0, func(_ context.Context, events []Recorded) error {
			mu.Lock()
			defer mu.Unlock()
			delivered = append(delivered, events...)
			return nil
		}, SubscribeOptions{})
	}()
	var writers sync.WaitGroup
	for w := range 16 {
		by := s
		if w == 0 {
			by = other
		}
		writers.Go(func() {
			for !stop.Load() {
				stream := newRequest()
				r, err := by.Append(ctx, Append{Stream: stream, Events: happened(1)})
				if err != nil {
					continue // the crash; what was not answered may be either way
				}
				mu.Lock()
				answered = append(answered, Recorded{Stream: stream, Position: r.Position})
				if len(answered) == crashAfter {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	stop.Store(true)
	writers.Wait()
	s.pool.Reset() // its connections are to the dead server; each would fail once
	if _, err := s.VerifyChain(ctx, 0, Head{}, nil); err != nil {
		t.Fatal(err)
	}
	inLog := readEverything(t, s)
	cancel()
	<-subscribed
	mu.Lock()
	defer mu.Unlock()
	mustHold(t, "answered", inLog, answered)
	mustHold(t, "delivered", inLog, delivered)
	t.Logf("%d in the log, %d answered, %d delivered", len(inLog), len(answered), len(delivered))
}

// mustHold checks that the log has, at their positions, the streams of others.
func mustHold(t *testing.T, what string, inLog, others []Recorded) {
	t.Helper()
	for _, o := range others {
		if o.Position > int64(len(inLog)) || inLog[o.Position-1].Stream != o.Stream {
			t.Fatalf("%s position %d is lost or another", what, o.Position)
		}
	}
}

// newSlowToFlush starts a server that keeps what is committed without waiting in
// memory for as long as it may, so that what nobody flushed is lost when it is killed.
func newSlowToFlush(t *testing.T) (*pgserver.Server, string) {
	t.Helper()
	server := pgtest.NewServer(t, pgserver.Options{Durable: true})
	database := server.URL("")
	if _, err := migrations.Migrate(t.Context(), database, false); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, database)
	mustExec(t, conn, `alter system set wal_writer_delay = '10s'`)
	mustExec(t, conn, `alter system set wal_writer_flush_after = '1GB'`)
	mustExec(t, conn, `select pg_reload_conf()`)
	return server, database
}

// Between COMMIT and barrier a batch is visible but not durable. Its caller is not
// answered, and a reader gets it only once it cannot be lost any more.
//
// Rules: E3.
func TestReadersAndCallersWaitForTheDisk_E3(t *testing.T) {
	_, database := newSlowToFlush(t)
	proxy := newProxy(t, database)
	writer, reader := openStore(t, Config{URL: proxy.url}), openStore(t, Config{URL: database})
	conn := connect(t, database)
	for _, c := range []struct {
		name string
		read func(after int64) (int, error)
	}{
		{"ReadAll", func(after int64) (int, error) {
			events, err := reader.ReadAll(t.Context(), 0, after, 10)
			return len(events), err
		}},
		{"Subscribe", func(after int64) (int, error) {
			n, enough := 0, errors.New("enough")
			err := reader.Subscribe(t.Context(), 0, after, func(_ context.Context, events []Recorded) error {
				n += len(events)
				return enough
			}, SubscribeOptions{})
			if errors.Is(err, enough) {
				err = nil
			}
			return n, err
		}},
		{"Head", func(after int64) (int, error) {
			head, err := reader.Head(t.Context(), 0)
			return int(head.Position - after), err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := mustAppend(t, writer, newRequest(), 0, 1).Position
			release := proxy.holdAt("sluice_barrier")
			answered := make(chan error, 1)
			go func() {
				_, err := writer.Append(t.Context(), Append{Stream: newRequest(), Events: happened(1)})
				answered <- err
			}()
			for visible := false; !visible; {
				err := conn.QueryRow(t.Context(), `select exists (select from log_events where position > $1)`, before).Scan(&visible)
				if err != nil {
					t.Fatal(err)
				}
			}
			var lsn string
			var durable bool
			err := conn.QueryRow(t.Context(), `select lsn::text, lsn <= pg_current_wal_flush_lsn() from pg_current_wal_insert_lsn() lsn`).Scan(&lsn, &durable)
			if err != nil || durable {
				t.Fatalf("the batch is durable before its barrier (%v): this test tests nothing", err)
			}
			select {
			case err := <-answered:
				t.Fatalf("answered before the barrier: %v", err)
			default:
			}
			if n, err := c.read(before); err != nil || n != 1 {
				t.Fatalf("read %d events, %v", n, err)
			}
			err = conn.QueryRow(t.Context(), `select $1::pg_lsn <= pg_current_wal_flush_lsn()`, lsn).Scan(&durable)
			if err != nil || !durable {
				t.Errorf("delivered before it was durable, %v", err)
			}
			release()
			if err := <-answered; err != nil {
				t.Error(err)
			}
		})
	}
}

func readEverything(t *testing.T, s *Store) []Recorded {
	t.Helper()
	var all []Recorded
	for {
		page, err := s.ReadAll(t.Context(), 0, int64(len(all)), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// crashAfter is how many appends are answered before the server is killed.
const crashAfter = 2000
