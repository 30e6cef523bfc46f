package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

const (
	// writeBufferBytes per connection: holds a header; larger bodies pass it by.
	writeBufferBytes = 4 << 10

	// forcedGrace is what exchanges get to end after ErrShutdown: time for a last
	// event. After it their sockets are closed, which ends writes to a client that
	// does not read; closeGrace is for the unwinding.
	forcedGrace = 2 * time.Second
	closeGrace  = time.Second
)

// Server is one listener with its routes. Handle, then Serve once.
type Server struct {
	limits   Limits
	onError  func(*Request, ErrorKind) *Reply
	log      *slog.Logger
	app      *fiber.App
	route    fasthttp.RequestHandler
	base     context.Context // parent of all exchanges
	abort    context.CancelCauseFunc
	draining chan struct{} // closed when Shutdown begins

	mu       sync.Mutex
	addr     string
	ln       net.Listener
	conns    map[*conn]struct{}
	emptied  chan struct{} // closed when draining and conns is empty
	stopping bool
}

// New makes a server without touching the network.
func New(cfg Config) *Server {
	s := &Server{
		limits:   cfg.Limits.withDefaults(),
		onError:  cfg.OnError,
		log:      cfg.Logger,
		addr:     cfg.Addr,
		ln:       cfg.Listener,
		conns:    make(map[*conn]struct{}),
		draining: make(chan struct{}),
		emptied:  make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.base, s.abort = context.WithCancelCause(context.Background())
	s.app = fiber.New(fiber.Config{
		DisableStartupMessage:        true,
		CaseSensitive:                true,
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		DisableDefaultContentType:    true,
		BodyLimit:                    s.limits.BodyBytes,
		ReadBufferSize:               s.limits.HeaderBytes,
		WriteBufferSize:              writeBufferBytes,
		ReadTimeout:                  s.limits.HeaderTimeout,
		IdleTimeout:                  s.limits.IdleTimeout,
		// Connections are counted by our listener; fasthttp's own limit would
		// answer in its own words. Its workers outlive their connections a little.
		Concurrency:  2*s.limits.Conns + 64,
		ErrorHandler: s.onRouteError,
	})
	srv := s.app.Server()
	srv.ErrorHandler = s.onParseError
	srv.ConnState = s.onConnState
	srv.SecureErrorLogMessage = true
	srv.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		s.doNotRead(h)
		return fasthttp.RequestConfig{ReadTimeout: s.limits.BodyTimeout}
	}
	return s
}

// Handle registers a handler; a GET pattern answers HEAD too. Only before Serve.
func (s *Server) Handle(method, pattern string, h Handler) {
	path, names := fiberPath(pattern)
	run := func(c *fiber.Ctx) error {
		s.exchange(c, names, h)
		return nil
	}
	s.app.Add(method, path, run)
	if method == http.MethodGet {
		s.app.Add(http.MethodHead, path, run)
	}
}

// Listen binds the address, so that Addr is known and a bad address is told
// before anything else starts. Serve does it when it was not done.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		return nil
	}
	ln, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("edge: %w", err)
	}
	s.ln = ln
	return nil
}

// Addr is the bound address, nil before Listen.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln == nil {
		return nil
	}
	return s.ln.Addr()
}

// Serve answers until Shutdown is called or ctx ends, which is a shutdown without
// patience. It returns nil then, after the last exchange.
func (s *Server) Serve(ctx context.Context) error {
	if err := s.Listen(); err != nil {
		return err
	}
	s.route = s.app.Handler()
	s.app.Server().Handler = s.entry

	watched := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watchHangups(watched) })
	defer watcher.Wait()
	defer close(watched)

	stop := context.AfterFunc(ctx, func() { _ = s.Shutdown(ctx) })
	defer stop()

	err := s.app.Server().Serve(&listener{Listener: s.ln, s: s})
	if err != nil { // the listener broke
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return errors.Join(fmt.Errorf("edge: %w", err), s.Shutdown(ended))
	}
	<-s.base.Done() // Shutdown is through
	return nil
}

// Shutdown stops accepting, closes idle connections, waits for running
// exchanges until ctx ends, then ends their contexts with ErrShutdown, and
// returns within forcedGrace+closeGrace of that (O3). The error is ctx's when it
// came to that.
func (s *Server) Shutdown(ctx context.Context) error {
	s.beginDrain()
	defer s.abort(ErrShutdown)

	select {
	case <-s.emptied:
		return nil
	case <-ctx.Done():
	}
	s.abort(ErrShutdown)
	if s.waitEmpty(forcedGrace) {
		return ctx.Err()
	}
	s.mu.Lock()
	left := len(s.conns)
	for c := range s.conns {
		c.kill()
	}
	s.mu.Unlock()
	if !s.waitEmpty(closeGrace) {
		s.log.Error("exchanges did not end at shutdown", "count", left)
	}
	return ctx.Err()
}

func (s *Server) waitEmpty(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.emptied:
		return true
	case <-t.C:
		return false
	}
}

func (s *Server) beginDrain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	s.stopping = true
	close(s.draining)
	if s.ln != nil {
		_ = s.ln.Close()
	}
	for c := range s.conns {
		if !c.busy.Load() {
			c.kill()
		}
	}
	s.checkEmpty()
}

// checkEmpty is called with mu held.
func (s *Server) checkEmpty() {
	if s.stopping && len(s.conns) == 0 {
		select {
		case <-s.emptied:
		default:
			close(s.emptied)
		}
	}
}

// add counts a new connection in, or tells that it is one too many.
func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || len(s.conns) >= s.limits.Conns {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) appendRunning(dst []*conn) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.current.Load() != nil {
			dst = append(dst, c)
		}
	}
	return dst
}

// onConnState follows fasthttp: idle comes when a reply is fully written, closed
// when the connection's goroutine is done with it.
func (s *Server) onConnState(nc net.Conn, state fasthttp.ConnState) {
	c := nc.(*conn)
	switch state {
	case fasthttp.StateIdle:
		c.busy.Store(false)
		select {
		case <-s.draining:
			c.kill()
		default:
		}
	case fasthttp.StateClosed:
		s.mu.Lock()
		delete(s.conns, c)
		s.checkEmpty()
		s.mu.Unlock()
	}
}
