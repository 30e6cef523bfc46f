package eventstore

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// proxy stands between a store and PostgreSQL and cuts a connection when told.
type proxy struct {
	url              string
	network, address string

	mu      sync.Mutex
	hold    string        // where to hold bytes back
	release chan struct{} // until this is closed
	reached chan struct{} // closed once there is something held back
	at      string
	forward bool
	dead    bool // takes no new connections after the cut
	down    bool
	cut     bool
	conns   []net.Conn
	closed  chan struct{}
}

func newProxy(t *testing.T, database string) *proxy {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{closed: make(chan struct{})}
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
		close(p.closed)
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

// holdAt holds the next message that mentions a statement, and what follows it,
// back until release is called.
func (p *proxy) holdAt(statement string) (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := make(chan struct{})
	p.hold, p.release, p.reached = statement, until, make(chan struct{})
	return func() { close(until) }
}

// awaitHeld returns once what holdAt was told of is held back.
func (p *proxy) awaitHeld(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	reached := p.reached
	p.mu.Unlock()
	select {
	case <-reached:
	case <-t.Context().Done():
		t.Fatal("it never came")
	}
}

// held splits what was sent at the message to hold back, if it is there.
func (p *proxy) held(sent []byte) (first []byte, until chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == "" {
		return sent, nil
	}
	// A Bind is its type, four bytes of length, an empty portal name, the statement's.
	at := bytes.Index(sent, []byte("\x00"+p.hold+"\x00"))
	if at < 5 || sent[at-5] != 'B' {
		return sent, nil
	}
	p.hold = ""
	close(p.reached)
	return sent[:at-5], p.release
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
		if isCancel(buf[:n]) {
			// The client cancels what it was cut off from, and may be in time: then there
			// is no commit whose answer was lost.
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
		first, until := p.held(buf[:n])
		_, err = server.Write(first)
		if until != nil && err == nil {
			select {
			case <-until:
			case <-p.closed:
			}
			_, err = server.Write(buf[len(first):n])
		}
		if err != nil {
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

// isCancel recognizes PostgreSQL's request to cancel another connection's statement.
func isCancel(sent []byte) bool {
	const cancelRequest = 80877102
	return len(sent) == 16 && binary.BigEndian.Uint32(sent[4:8]) == cancelRequest
}
