package edge

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Idle connections go at once, a running exchange is waited for, and its reply
// arrives with Connection: close.
//
// Rules: O3.
func TestShutdownWaitsForRunningExchanges_O3(t *testing.T) {
	running, resume := make(chan struct{}), make(chan struct{})
	s := serve(t, Config{}, func(s *Server) {
		s.Handle("POST", "/fast", ok)
		s.Handle("POST", "/slow", func(ctx context.Context, r *Request) *Reply {
			close(running)
			<-resume
			return ok(ctx, r)
		})
	})
	idle, fresh, busy := dial(t, s), dial(t, s), dial(t, s)
	idle.send(postRequest("/fast", ""))
	idle.reply()
	busy.send(postRequest("/slow", ""))
	wait(t, "the handler", running)

	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	idle.closed()
	fresh.closed()
	select {
	case err := <-down:
		t.Fatalf("returned with an exchange running: %v", err)
	default:
	}
	if nc, err := net.Dial("tcp", s.Addr().String()); err == nil {
		_ = nc.Close()
		t.Error("still accepts")
	}
	close(resume)
	if resp, body := busy.reply(); resp.StatusCode != 200 || body != `{"ok":true}` || !resp.Close {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
	if err := wait(t, "Shutdown", down); err != nil {
		t.Error(err)
	}
}

// A pipelined request was read long ago; its connection only looks idle.
//
// Rules: O3.
func TestShutdownWaitsForAPipelinedExchange_O3(t *testing.T) {
	running, resume := make(chan struct{}), make(chan struct{})
	s := serve(t, Config{}, func(s *Server) {
		s.Handle("POST", "/fast", ok)
		s.Handle("POST", "/slow", func(ctx context.Context, r *Request) *Reply {
			close(running)
			<-resume
			return ok(ctx, r)
		})
	})
	c := dial(t, s)
	c.send(postRequest("/fast", "") + postRequest("/slow", ""))
	wait(t, "the second handler", running)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	wait(t, "the drain", s.draining)
	_ = s.Addr() // waits until beginDrain is through
	close(resume)
	for range 2 {
		if resp, _ := c.reply(); resp.StatusCode != 200 {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
	if err := wait(t, "Shutdown", down); err != nil {
		t.Error(err)
	}
}

// Out of patience, a stream learns why and still gets its last event out.
//
// Rules: O3.
func TestShutdownEndsStreamsWithALastEvent_O3(t *testing.T) {
	s := serve(t, Config{}, post("/", func(context.Context, *Request) *Reply {
		return sse(func(ctx context.Context, w StreamWriter) error {
			if err := w.Write([]byte("data: 1\n\n")); err != nil {
				return err
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrShutdown) {
				t.Errorf("cause is %v", context.Cause(ctx))
			}
			return w.Write([]byte("data: last\n\n"))
		})
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	resp := c.response()
	if _, err := io.ReadFull(resp.Body, make([]byte, len("data: 1\n\n"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if rest, err := io.ReadAll(resp.Body); string(rest) != "data: last\n\n" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
}

// A stream that waits for a client which does not read cannot hear its context:
// its socket is closed under it.
//
// Rules: O3.
func TestShutdownIsBoundedByNoReader_O3(t *testing.T) {
	began, done := make(chan struct{}), make(chan error, 1)
	s := serve(t, Config{}, post("/", func(context.Context, *Request) *Reply {
		return sse(func(_ context.Context, w StreamWriter) error {
			close(began)
			err := w.Write(make([]byte, 64<<20))
			done <- err
			return err
		})
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	wait(t, "the stream", began)
	if err := s.Shutdown(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := wait(t, "the write", done); !errors.Is(err, ErrClientGone) {
		t.Errorf("write: %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	s := New(Config{Addr: "127.0.0.1:0"})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ended()); err != nil {
		t.Error(err)
	}
}

func TestShutdownBeforeServe(t *testing.T) {
	s := New(Config{Addr: "127.0.0.1:0"})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := s.Serve(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestListenTellsABadAddress(t *testing.T) {
	if err := New(Config{Addr: "127.0.0.1:-1"}).Serve(context.Background()); err == nil || !strings.HasPrefix(err.Error(), "edge: ") {
		t.Errorf("got %v", err)
	}
}

// flaky fails some accepts first, as a process out of descriptors does.
type flaky struct {
	net.Listener
	errs []error
}

func (l *flaky) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: err}
	}
	return l.Listener.Accept()
}

// fasthttp ends the server on the first of these.
func TestAcceptErrorsPass(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{Listener: &flaky{ln, []error{syscall.EMFILE, syscall.ECONNABORTED}}}, post("/", ok))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	if resp, _ := c.reply(); resp.StatusCode != 200 {
		t.Errorf("got %d", resp.StatusCode)
	}
}

func TestBrokenListenerEndsServe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Listener: &flaky{ln, []error{syscall.EINVAL}}})
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	select {
	case err := <-served:
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("got %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Serve goes on")
	}
}
