package eventstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-gateway/sluice/eventstore/pgserver"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/migrations"
)

// A connection lost around the commit leaves the outcome open; the lane looks the
// batch up and answers with what is true.
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
func TestNothingAnsweredOrDeliveredIsLostToACrash_E3_E11(t *testing.T) {
	server := pgtest.NewServer(t, pgserver.Options{Durable: true})
	database := server.URL("")
	if _, err := migrations.Migrate(t.Context(), database, false); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, Config{URL: database})
	other := openStore(t, Config{URL: database})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var answered, delivered []Recorded
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
		writers.Go(func() {
			for {
				stream := newRequest()
				by := s
				if w == 0 {
					by = other
				}
				r, err := by.Append(ctx, Append{Stream: stream, Events: happened(1)})
				if err != nil {
					return // the crash; what was not answered may be either way
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
	writers.Wait()
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifyChain(ctx, 0, Head{}, nil); err != nil {
		t.Fatal(err)
	}
	inLog := readEverything(t, s)
	for _, a := range answered {
		if a.Position > int64(len(inLog)) || inLog[a.Position-1].Stream != a.Stream {
			t.Fatalf("answered position %d is lost", a.Position)
		}
	}
	cancel()
	<-subscribed
	mu.Lock()
	defer mu.Unlock()
	for i, d := range delivered {
		if i >= len(inLog) || d.Position != inLog[i].Position || d.Stream != inLog[i].Stream {
			t.Fatalf("delivered position %d is lost or another", d.Position)
		}
	}
	t.Logf("%d in the log, %d answered, %d delivered", len(inLog), len(answered), len(delivered))
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

// proxy stands between a store and PostgreSQL and cuts a connection when told.
type proxy struct {
	url              string
	network, address string

	mu      sync.Mutex
	at      string
	forward bool
	dead    bool // takes no new connections after the cut
	down    bool
	cut     bool
	conns   []net.Conn
}

func newProxy(t *testing.T, database string) *proxy {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password),
		Host: listener.Addr().String(), Path: config.Database, RawQuery: "sslmode=disable",
	}
	p.url = u.String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		serving.Wait()
	})
	return p
}

// cutAt cuts the next connection whose client mentions a statement, after the
// server has answered or before it hears of it; dead makes it the last.
func (p *proxy) cutAt(statement string, forward, dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.forward, p.dead, p.cut = statement, forward, dead, false
}

func (p *proxy) wasCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	down := p.down
	p.mu.Unlock()
	if down {
		return
	}
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			server.Close()
			<-answers
			return
		}
		if p.hit(buf[:n]) {
			client.Close() // before the server can answer
			if p.forward {
				_, _ = server.Write(buf[:n])
				// The server reads to the end, then hangs up.
				if w, ok := server.(interface{ CloseWrite() error }); ok {
					_ = w.CloseWrite()
				}
			} else {
				server.Close()
			}
			<-answers
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			<-answers
			return
		}
	}
}

// hit says that this is where to cut. Preparing a statement mentions it too, but
// with its text.
func (p *proxy) hit(sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == "" || p.cut || !bytes.Contains(sent, []byte("\x00"+p.at+"\x00")) {
		return false
	}
	p.cut, p.down = true, p.dead
	return true
}
