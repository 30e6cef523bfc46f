package edge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(
		m,
		// fasthttp's worker pool looks for its end every 10 s, and its clock for
		// the Date header runs as long as the process.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	)
}

// patience is how long a test waits for what must come; it only shows in failures.
const patience = 20 * time.Second

func wait[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// kindReply renders an error so that tests see kind and path.
func kindReply(r *Request, k ErrorKind) *Reply {
	return &Reply{
		Status: k.Status(),
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   fmt.Appendf(nil, `{"kind":%q,"path":%q}`, k, r.Path),
	}
}

func ok(context.Context, *Request) *Reply {
	return &Reply{Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"ok":true}`)}
}

// serve runs a server for the test and shuts it down after it.
func serve(t testing.TB, cfg Config, routes func(*Server)) *Server {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.OnError == nil {
		cfg.OnError = kindReply
	}
	s := New(cfg)
	routes(s)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ended)
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("Serve did not return")
		}
	})
	return s
}

func post(pattern string, h Handler) func(*Server) {
	return func(s *Server) { s.Handle("POST", pattern, h) }
}

// client is a bare TCP client: what it sends and when is up to the test.
type client struct {
	t testing.TB
	*net.TCPConn
	br *bufio.Reader
}

func dial(t testing.TB, s *Server) *client {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, TCPConn: nc.(*net.TCPConn), br: bufio.NewReader(nc)}
}

func (c *client) send(raw string) {
	c.t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		c.t.Fatal(err)
	}
}

// response reads the head of the next response.
func (c *client) response() *http.Response {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		c.t.Fatalf("reading response: %v", err)
	}
	return resp
}

// reply reads a whole response.
func (c *client) reply() (*http.Response, string) {
	c.t.Helper()
	resp := c.response()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("reading body: %v", err)
	}
	return resp, string(body)
}

// closed waits for the server's close, with nothing before it.
func (c *client) closed() {
	c.t.Helper()
	b, err := c.br.ReadByte()
	var ne net.Error
	switch {
	case err == nil:
		c.t.Fatalf("got byte %q instead of a close", b)
	case errors.As(err, &ne) && ne.Timeout():
		c.t.Fatal("connection stayed open")
	}
}

func postRequest(path, body string, header ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), lines(header), body)
}

func lines(header []string) string {
	var b strings.Builder
	for _, h := range header {
		b.WriteString(h + "\r\n")
	}
	return b.String()
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
