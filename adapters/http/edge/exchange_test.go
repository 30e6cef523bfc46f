package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// buffer is a bytes.Buffer that the server's goroutines may log into.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func sse(run func(context.Context, StreamWriter) error) *Reply {
	return &Reply{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Stream: run}
}

// phases are the moments in which a client can leave. Each handler reports where
// it is, then waits for its context and reports the cause.
func phases(at chan<- struct{}, cause chan<- error) map[string]Handler {
	await := func(ctx context.Context) error {
		at <- struct{}{}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return context.Cause(ctx)
	}
	return map[string]Handler{
		"handler works": func(ctx context.Context, r *Request) *Reply {
			_ = await(ctx)
			return nil
		},
		"before the first byte": func(context.Context, *Request) *Reply {
			return sse(func(ctx context.Context, _ StreamWriter) error { return await(ctx) })
		},
		"mid-stream": func(context.Context, *Request) *Reply {
			return sse(func(ctx context.Context, w StreamWriter) error {
				if err := w.Write([]byte("data: 1\n\n")); err != nil {
					return err
				}
				return await(ctx)
			})
		},
	}
}

// Rules: S7.
func TestHangupEndsTheContextInEveryPhase_S7(t *testing.T) {
	if 2*hangupInterval >= time.Second {
		t.Error("a hang-up may be noticed too late")
	}
	leave := map[string]func(*client){
		"close":      func(c *client) { _ = c.Close() },
		"half-close": func(c *client) { _ = c.CloseWrite() },
		"reset": func(c *client) {
			_ = c.SetLinger(0)
			_ = c.Close()
		},
	}
	at, cause := make(chan struct{}, 1), make(chan error, 1)
	for phase, h := range phases(at, cause) {
		s := serve(t, Config{}, post("/", h))
		for way, goAway := range leave {
			t.Run(phase+"/"+way, func(t *testing.T) {
				c := dial(t, s)
				c.send(postRequest("/", "{}"))
				wait(t, "the phase", at)
				select {
				case err := <-cause:
					t.Fatalf("ended before the client left: %v", err)
				default:
				}
				goAway(c)
				if err := wait(t, "the context's end", cause); !errors.Is(err, ErrClientGone) {
					t.Errorf("cause is %v", err)
				}
			})
		}
	}
}

// A request that waits behind the running one makes the socket readable, which
// is all that a watcher without POLLRDHUP would see.
//
// Rules: S7.
func TestPipelinedBytesAreNoHangup_S7(t *testing.T) {
	running, resume := make(chan struct{}, 2), make(chan struct{})
	s := serve(t, Config{}, post("/", func(ctx context.Context, r *Request) *Reply {
		running <- struct{}{}
		select {
		case <-resume:
		case <-ctx.Done():
			t.Error(context.Cause(ctx))
		}
		return ok(ctx, r)
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	wait(t, "the handler", running)
	c.send(postRequest("/", ""))
	conns := s.appendRunning(nil)
	if len(conns) != 1 || hungUp(conns[0]) {
		t.Fatalf("%d exchanges run, hung up", len(conns))
	}
	close(resume)
	for range 2 {
		if resp, _ := c.reply(); resp.StatusCode != 200 {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
}

func TestContextEndsWithTheExchange(t *testing.T) {
	ended := make(chan context.Context, 1)
	s := serve(t, Config{}, post("/", func(ctx context.Context, r *Request) *Reply {
		ended <- ctx
		return ok(ctx, r)
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	c.reply()
	ctx := wait(t, "the handler", ended)
	wait(t, "the context", ctx.Done())
	if err := context.Cause(ctx); err != context.Canceled {
		t.Errorf("cause is %v", err)
	}
}

func TestPanicsEndOnlyTheirExchange(t *testing.T) {
	var log buffer
	s := serve(t, Config{Logger: logTo(&log)}, func(s *Server) {
		s.Handle("POST", "/handler", func(context.Context, *Request) *Reply { panic("the prompt") })
		s.Handle("POST", "/nil", func(context.Context, *Request) *Reply { return nil })
		s.Handle("POST", "/stream", func(context.Context, *Request) *Reply {
			return sse(func(_ context.Context, w StreamWriter) error {
				_ = w.Write([]byte("data: 1\n\n"))
				panic("the prompt")
			})
		})
	})
	for _, path := range []string{"/handler", "/nil"} {
		c := dial(t, s)
		c.send(postRequest(path, ""))
		if resp, body := c.reply(); resp.StatusCode != 500 || body != fmt.Sprintf(`{"kind":"panic","path":%q}`, path) {
			t.Errorf("%s: got %d %s", path, resp.StatusCode, body)
		}
	}
	c := dial(t, s)
	c.send(postRequest("/stream", ""))
	body, err := io.ReadAll(c.response().Body)
	if string(body) != "data: 1\n\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("stream: got %q, %v", body, err)
	}
	if out := log.String(); strings.Count(out, "level=ERROR") != 3 || strings.Contains(out, "the prompt") {
		t.Errorf("log is %s", out)
	}
}

func TestPanicInErrorRendererFallsBack(t *testing.T) {
	s := serve(t, Config{OnError: func(*Request, ErrorKind) *Reply { panic("again") }}, func(*Server) {})
	c := dial(t, s)
	c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp, body := c.reply(); resp.StatusCode != 404 || body != "Not Found\n" {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
}

// Rules: Z5.
func TestConnectionsAreBounded_Z5(t *testing.T) {
	s := serve(t, Config{Limits: Limits{Conns: 1}}, post("/", ok))
	first := dial(t, s)
	first.send(postRequest("/", ""))
	first.reply()
	second := dial(t, s)
	if resp, body := second.reply(); resp.StatusCode != 503 || !strings.Contains(body, "overloaded") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	second.closed()
	first.send(postRequest("/", ""))
	if resp, _ := first.reply(); resp.StatusCode != 200 {
		t.Errorf("the first then got %d", resp.StatusCode)
	}
}
