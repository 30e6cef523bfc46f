package edge

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// writePieceBytes is what must be taken within Limits.WriteStall, so that a
	// large body to a slow client is cut for standing still, not for being large.
	writePieceBytes = 16 << 10

	// After a request that was not read to its end we still read for a while:
	// closing a socket with unread bytes resets it, and the reset destroys the
	// error reply on its way. Bounded in time and bytes.
	lingerTimeout = 2 * time.Second
	lingerBytes   = 2 * DefaultBodyBytes

	// Pause after a failed accept (no descriptors left), as in net/http.
	acceptRetryMin = 5 * time.Millisecond
	acceptRetryMax = time.Second
)

// conn is a client's connection as fasthttp sees it.
type conn struct {
	net.Conn
	raw    syscall.RawConn // nil when there is no descriptor to watch
	remote string
	stall  time.Duration

	// current is the exchange that runs, nil between two.
	current atomic.Pointer[exchange]
	// busy: bytes of a request arrived and its reply is not written yet.
	busy atomic.Bool
	// eof: the client closed its sending half.
	eof atomic.Bool
	// linger: there are unread bytes, see lingerTimeout.
	linger atomic.Bool

	// hold keeps the next write for the one after it, held is what is kept. Only
	// whoever writes touches them.
	hold bool
	held []byte

	close    sync.Once
	closeErr error
}

func newConn(nc net.Conn, stall time.Duration) *conn {
	c := &conn{Conn: nc, remote: nc.RemoteAddr().String(), stall: stall}
	under := nc
	if t, ok := under.(interface{ NetConn() net.Conn }); ok { // *tls.Conn
		under = t.NetConn()
	}
	if sc, ok := under.(syscall.Conn); ok {
		c.raw, _ = sc.SyscallConn()
	}
	return c
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.busy.Store(true)
	}
	if err == io.EOF {
		c.eof.Store(true)
	}
	return n, err
}

// joinNext lets the next write go out together with the one after it, which must
// be sure to follow at once: fasthttp makes two system calls where one will do, and
// each wakes the client.
func (c *conn) joinNext() { c.hold = true }

// flush sends what is held, when nothing follows it after all.
func (c *conn) flush() {
	c.hold = false
	if len(c.held) > 0 {
		_, _ = c.Write(nil)
	}
}

// Write bounds each piece by the stall time instead of the whole reply by a
// WriteTimeout.
func (c *conn) Write(p []byte) (int, error) {
	if c.hold {
		c.hold = false
		c.held = append(c.held, p...)
		return len(p), nil
	}
	if held := c.held; len(held) > 0 {
		c.held = nil
		return len(p), c.writeBuffers(net.Buffers{held, p})
	}
	var n int
	for piece := range slices.Chunk(p, writePieceBytes) {
		c.extendWrite()
		m, err := c.Conn.Write(piece)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// writeBuffers writes all of them with one system call where the connection can.
func (c *conn) writeBuffers(b net.Buffers) error {
	if held := c.held; len(held) > 0 {
		c.held = nil
		b = slices.Insert(b, 0, held)
	}
	c.extendWrite()
	_, err := b.WriteTo(c.Conn)
	return err
}

func (c *conn) extendWrite() { _ = c.Conn.SetWriteDeadline(time.Now().Add(c.stall)) }

// SetReadDeadline never fails: fasthttp panics when it does, and on a connection
// that we closed under it, it would. The next Read says the same.
func (c *conn) SetReadDeadline(t time.Time) error {
	_ = c.Conn.SetReadDeadline(t)
	return nil
}

// Close is fasthttp's: the exchange is over.
func (c *conn) Close() error {
	c.close.Do(func() {
		if c.linger.Load() && !c.eof.Load() {
			c.drain()
		}
		c.closeErr = c.Conn.Close()
	})
	return c.closeErr
}

// kill closes at once, from any goroutine; reads and writes under way fail.
func (c *conn) kill() {
	_ = c.Conn.Close()
	c.close.Do(func() {})
}

func (c *conn) drain() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTimeout))
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// listener hands conns to fasthttp and keeps their number bounded.
type listener struct {
	net.Listener
	s *Server
}

// Accept returns io.EOF, which ends fasthttp's loop quietly, once the listener is
// closed, and tries again after any error that passes.
func (l *listener) Accept() (net.Conn, error) {
	pause := acceptRetryMin
	for {
		nc, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = acceptRetryMin
			c := newConn(nc, l.s.limits.WriteStall)
			if l.s.add(c) {
				return c, nil
			}
			l.s.refuse(c)
		case errors.Is(err, net.ErrClosed):
			return nil, io.EOF
		case isTemporary(err):
			l.s.log.Warn("accept failed, trying again", "error", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-l.s.draining:
				return nil, io.EOF
			}
			pause = min(2*pause, acceptRetryMax)
		default:
			return nil, err
		}
	}
}

func isTemporary(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refuse answers a connection over the limit. It runs in the accept loop: the
// reply fits the empty send buffer of a new socket and never waits.
func (s *Server) refuse(c *conn) {
	reply := s.render(&Request{RemoteAddr: c.remote, At: time.Now()}, Overloaded)
	head := &http.Response{
		StatusCode: reply.Status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header: reply.Header, Body: http.NoBody, ContentLength: int64(len(reply.Body)),
	}
	head.Body = bodyOf(reply.Body)
	_ = head.Write(c)
	c.kill()
}
