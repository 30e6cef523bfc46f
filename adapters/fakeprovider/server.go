package fakeprovider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a server. The zero value is a working provider.
type Options struct {
	// Script is in force from the start.
	Script Script
	// Default is the sequence for models whose name does not begin with
	// "fake-". Empty: "ok".
	Default string
	// Models are listed by GET /v1/models; every other name works as well.
	// Empty: one model for each fault.
	Models []string
	// LedgerCalls is how many calls the ledger keeps; 0: DefaultLedgerCalls.
	LedgerCalls int
	// MaxBodyBytes bounds a request's body; 0: 64 MiB, above any gateway's.
	MaxBodyBytes int64
}

const (
	defaultMaxBodyBytes = 64 << 20
	// readHeaderTimeout ends connections that never finish their headers.
	readHeaderTimeout = 30 * time.Second
)

// Server is the provider. Make it with [New], run it with Serve or use it as
// an http.Handler, and end it with Close.
type Server struct {
	options  Options
	director *director
	ledger   *ledger
	mux      *http.ServeMux
	http     *http.Server

	// closing ends every wait; calls are the handlers that Close waits for,
	// and no handler enters after closed is set.
	closing context.Context
	close   context.CancelFunc
	gate    sync.RWMutex
	closed  bool
	calls   sync.WaitGroup
	address atomic.Pointer[string]

	connections, openCalls, openStreams atomic.Int64
}

// New makes a server. It fails when the script or the default sequence names
// a fault that does not exist.
func New(options Options) (*Server, error) {
	if options.MaxBodyBytes <= 0 {
		options.MaxBodyBytes = defaultMaxBodyBytes
	}
	d, err := newDirector(options.Default)
	if err != nil {
		return nil, fmt.Errorf("fakeprovider: default: %w", err)
	}
	if err := d.setScript(options.Script); err != nil {
		return nil, fmt.Errorf("fakeprovider: script: %w", err)
	}
	s := &Server{options: options, director: d, ledger: newLedger(options.LedgerCalls), mux: http.NewServeMux()}
	s.closing, s.close = context.WithCancel(context.Background())
	for _, dialect := range dialects() {
		dialect.register(s.mux, s)
	}
	s.registerControl()
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		ConnState:         s.countConnections,
		BaseContext:       func(net.Listener) context.Context { return context.WithValue(s.closing, servedBy{}, s) },
	}
	return s, nil
}

// servedBy keys the server whose closing ends a request's context.
type servedBy struct{}

// ServeHTTP serves model calls and the control paths under /_fake/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Serve answers on a listener until Close, then returns nil.
func (s *Server) Serve(listener net.Listener) error {
	address := listener.Addr().String()
	s.address.Store(&address)
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("fakeprovider: %w", err)
	}
	return nil
}

// URL is the address served last, "http://127.0.0.1:12345"; empty before
// Serve.
func (s *Server) URL() string {
	if address := s.address.Load(); address != nil {
		return "http://" + *address
	}
	return ""
}

// Close ends every connection and every wait at once, silent and stalled
// calls included, and returns when their handlers are gone.
func (s *Server) Close() error {
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	s.close()
	err := s.http.Close()
	s.calls.Wait()
	return err
}

// enter lets a call in unless the server is closed; leave follows.
func (s *Server) enter() bool {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	s.openCalls.Add(1)
	return true
}

func (s *Server) leave() {
	s.openCalls.Add(-1)
	s.calls.Done()
}

// SetScript replaces the script.
func (s *Server) SetScript(script Script) error { return s.director.setScript(script) }

// Reset empties the ledger and starts every sequence again.
func (s *Server) Reset() {
	s.director.reset()
	s.ledger.reset()
}

// Ledger copies the calls that arrived, oldest first.
func (s *Server) Ledger() Ledger { return s.ledger.snapshot(0, 0) }

// Await returns nil as soon as the condition holds for the ledger's calls,
// else the context's error. The condition is asked again after each change.
func (s *Server) Await(ctx context.Context, holds func([]Call) bool) error {
	return s.ledger.await(ctx, holds)
}

// Stats are what is open now, for checks that nothing leaks.
type Stats struct {
	OpenConnections int64 `json:"open_connections"`
	OpenCalls       int64 `json:"open_calls"`
	OpenStreams     int64 `json:"open_streams"`
	TotalCalls      int64 `json:"total_calls"` // since the last reset
}

// Stats counts what is open. Connections are known only under Serve.
func (s *Server) Stats() Stats {
	return Stats{
		OpenConnections: s.connections.Load(),
		OpenCalls:       s.openCalls.Load(),
		OpenStreams:     s.openStreams.Load(),
		TotalCalls:      s.ledger.snapshot(0, 1).Total,
	}
}

func (s *Server) countConnections(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		// A hijacked connection is closed in the same breath.
		s.connections.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}
