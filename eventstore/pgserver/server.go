package pgserver

import (
	"context"
	"errors"
	"net/url"
	"sync"
)

// ErrNotOwned is returned by Kill, Start and Restart of a server that was given
// by address: somebody else runs it.
var ErrNotOwned = errors.New("this PostgreSQL was given by address and is not ours to stop or start")

// errStopped is returned by Start, Restart and Kill after Stop.
var errStopped = errors.New("this PostgreSQL was stopped for good")

// Server is a PostgreSQL that accepts connections, until Stop or Kill. It is
// safe for concurrent use.
type Server struct {
	mu      sync.Mutex
	backend backend
	choice  string
	stopped bool
}

// backend is how one kind of server is run. Server calls one method at a time.
type backend interface {
	// url is the maintenance database's address, as superuser or owner.
	url() *url.URL
	// start returns once the server accepts connections; a no-op if it does.
	start(context.Context) error
	// stop ends the server in good order, quickly when ctx is done. The data
	// stays. A no-op if it does not run.
	stop(context.Context) error
	// kill ends the server as a power cut would.
	kill() error
	// close gives back locks and temporary directories.
	close() error
}

// Description says in one line which PostgreSQL was chosen, without secrets.
func (s *Server) Description() string { return s.choice }

// URL is the address of a database on this server, as its superuser or owner.
// An empty name means the database the server came with: the one in the given
// address, or "postgres". Restart can change it when the server runs in Docker.
func (s *Server) URL(database string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := *s.backend.url()
	if database != "" {
		u.Path = "/" + database
	}
	return u.String()
}

// Stop ends the server for good and removes what was temporary. It is quick:
// sessions are cut, not waited for, and when ctx is done before the server has
// written its last checkpoint it is killed. A second Stop does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	return errors.Join(s.backend.stop(ctx), s.backend.close())
}

// Kill ends the server as a power cut would: no checkpoint, no goodbye. It
// returns when the last of its processes is gone, so that Start can follow.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	return s.backend.kill()
}

// Start runs the server again on the same data after Kill, or after it died by
// itself, and returns when it accepts connections.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	return s.backend.start(ctx)
}

// Restart stops the server in good order and starts it again on the same data.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	if err := s.backend.stop(ctx); err != nil {
		return err
	}
	return s.backend.start(ctx)
}
