package harness

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Wire stands between a worker and PostgreSQL. It can hold the database's answers back
// and cut every connection: then nobody knows what became of what was being written.
type Wire struct {
	// URL is the database's address through the wire.
	URL string

	network, address string
	running          sync.WaitGroup

	mu    sync.Mutex
	open  map[*wireConn]bool
	ended bool
	// held is closed when answers go on; nil while none are held back.
	held chan struct{}
	// kept counts the answers that came while they were held back.
	kept int
}

// wireConn is one connection through the wire; gone is closed with it.
type wireConn struct {
	client, server net.Conn
	gone           chan struct{}
	once           sync.Once
}

func (c *wireConn) close() {
	c.once.Do(func() {
		close(c.gone)
		_ = c.client.Close()
		_ = c.server.Close()
	})
}

// NewWire lays a wire to a database; it ends with the test.
func NewWire(t testing.TB, database string) *Wire {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{open: map[*wireConn]bool{}}
	w.network, w.address = pgconn.NetworkAddress(config.Host, config.Port)
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password),
		Host: listener.Addr().String(), Path: config.Database, RawQuery: "sslmode=disable",
	}
	w.URL = u.String()
	w.running.Go(func() { w.accept(listener) })
	t.Cleanup(func() {
		_ = listener.Close()
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.Cut()
		w.running.Wait()
	})
	return w
}

// Hold keeps back what the database answers, while it goes on hearing.
func (w *Wire) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held, w.kept = make(chan struct{}), 0
	}
}

// Kept is how many answers are held back.
func (w *Wire) Kept() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept
}

// Release lets answers through again, those held back first.
func (w *Wire) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// Cut ends every connection; what was held back is lost. New ones are let through.
func (w *Wire) Cut() {
	w.mu.Lock()
	for c := range w.open {
		c.close()
	}
	w.mu.Unlock()
	w.Release()
}

func (w *Wire) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed
		}
		w.running.Go(func() { w.serve(client) })
	}
}

func (w *Wire) serve(client net.Conn) {
	server, err := net.Dial(w.network, w.address)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &wireConn{client: client, server: server, gone: make(chan struct{})}
	defer c.close()
	w.mu.Lock()
	w.open[c] = true
	ended := w.ended
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.open, c)
		w.mu.Unlock()
	}()
	if ended {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() { w.answer(c) })
	_, _ = io.Copy(server, client)
	c.close()
	answers.Wait()
}

// answer carries the database's answers to the client.
func (w *Wire) answer(c *wireConn) {
	defer c.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.server.Read(buf)
		if err != nil || !w.pass(c) {
			return
		}
		if _, err := c.client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// pass waits while answers are held back; false when the connection ended meanwhile.
func (w *Wire) pass(c *wireConn) bool {
	w.mu.Lock()
	held := w.held
	if held != nil {
		w.kept++
	}
	w.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-c.gone:
		}
	}
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}
