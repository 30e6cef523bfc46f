package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Each event is on the wire before the next one exists (P11), and the connection
// is good for another request after the stream.
func TestStreamSendsEventByEvent_P11(t *testing.T) {
	next := make(chan struct{})
	s := serve(t, Config{}, post("/", func(context.Context, *Request) *Reply {
		return sse(func(_ context.Context, w StreamWriter) error {
			for i := range 3 {
				if err := w.Write(fmt.Appendf(nil, "data: %d\n\n", i)); err != nil {
					return err
				}
				<-next
			}
			return w.Write(nil) // an empty chunk would be the end
		})
	}))
	c := dial(t, s)
	for range 2 {
		c.send(postRequest("/", "", "Accept-Encoding: gzip, br"))
		resp := c.response()
		for k, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no",
			"Content-Encoding": "", "Server": "", "Connection": "",
		} {
			if got := resp.Header.Get(k); got != want {
				t.Errorf("%s is %q", k, got)
			}
		}
		for i := range 3 {
			event := make([]byte, len("data: 0\n\n"))
			if _, err := io.ReadFull(resp.Body, event); err != nil || string(event) != fmt.Sprintf("data: %d\n\n", i) {
				t.Fatalf("got %q, %v", event, err)
			}
			next <- struct{}{}
		}
		if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
			t.Errorf("then %q, %v", rest, err)
		}
	}
}

func TestStreamKeepsEventsOfAnySize(t *testing.T) {
	var want bytes.Buffer
	for _, n := range []int{1, 100, 4000, 4096, 5000, chunkBytes, 3*chunkBytes + 7, 1 << 20} {
		want.WriteString(strings.Repeat(string(rune('a'+n%26)), n))
	}
	s := serve(t, Config{}, post("/", func(context.Context, *Request) *Reply {
		return sse(func(_ context.Context, w StreamWriter) error {
			rest := want.Bytes()
			for _, n := range []int{1, 100, 4000, 4096, 5000, chunkBytes, 3*chunkBytes + 7, 1 << 20} {
				if err := w.Write(rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		})
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	if _, body := c.reply(); body != want.String() {
		t.Errorf("got %d of %d bytes", len(body), want.Len())
	}
}

// An error must not look like the end of the answer.
func TestFailedStreamIsTruncated(t *testing.T) {
	s := serve(t, Config{}, post("/", func(context.Context, *Request) *Reply {
		return sse(func(_ context.Context, w StreamWriter) error {
			_ = w.Write([]byte("data: 1\n\n"))
			return errors.New("upstream broke")
		})
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	body, err := io.ReadAll(c.response().Body)
	if string(body) != "data: 1\n\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", body, err)
	}
}

// What a Stream owns is released by running it, so it runs even when nobody is
// to hear it; and once it returned, its writer is dead, since the writer's
// buffer belongs to another connection by then.
func TestStreamRunsExactlyOnce(t *testing.T) {
	type run struct {
		ctxErr, writeErr error
		w                StreamWriter
	}
	runs := make(chan run, 2)
	s := serve(t, Config{}, func(s *Server) {
		s.Handle("GET", "/", func(context.Context, *Request) *Reply {
			return sse(func(ctx context.Context, w StreamWriter) error {
				runs <- run{ctx.Err(), w.Write([]byte("x")), w}
				return nil
			})
		})
	})
	c := dial(t, s)
	c.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if resp, err := http.ReadResponse(c.br, &http.Request{Method: "HEAD"}); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	if r := wait(t, "HEAD's run", runs); r.ctxErr == nil || r.writeErr != ErrStreamOver {
		t.Errorf("HEAD: got %v, %v", r.ctxErr, r.writeErr)
	}
	if _, body := c.reply(); body != "x" {
		t.Errorf("GET: got %q", body)
	}
	r := wait(t, "GET's run", runs)
	if r.ctxErr != nil || r.writeErr != nil {
		t.Errorf("GET: got %v, %v", r.ctxErr, r.writeErr)
	}
	if err := r.w.Write([]byte("late")); err != ErrStreamOver {
		t.Errorf("late write: %v", err)
	}
}

// The slow reader's Write waits, which slows its upstream and nobody else's.
//
// Rules: S9.
func TestSlowReaderWaitsAlone_S9(t *testing.T) {
	const size = 64 << 20 // more than any pair of socket buffers
	began, done := make(chan struct{}, 1), make(chan error, 1)
	s := serve(t, Config{}, func(s *Server) {
		s.Handle("POST", "/slow", func(context.Context, *Request) *Reply {
			return sse(func(_ context.Context, w StreamWriter) error {
				began <- struct{}{}
				err := w.Write(make([]byte, size))
				done <- err
				return err
			})
		})
		s.Handle("POST", "/fast", func(context.Context, *Request) *Reply {
			return sse(func(_ context.Context, w StreamWriter) error {
				for range 1000 {
					if err := w.Write([]byte("data: x\n\n")); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	slow := dial(t, s)
	slow.send(postRequest("/slow", ""))
	wait(t, "the slow stream", began)
	fast := dial(t, s)
	fast.send(postRequest("/fast", ""))
	if _, body := fast.reply(); len(body) != 9000 {
		t.Errorf("fast got %d bytes", len(body))
	}
	select {
	case err := <-done:
		t.Fatalf("the slow write returned unread: %v", err)
	default:
	}
	if n, err := io.Copy(io.Discard, slow.response().Body); n != size || err != nil {
		t.Errorf("slow got %d bytes, %v", n, err)
	}
	if err := wait(t, "the slow write", done); err != nil {
		t.Error(err)
	}
}

// Rules: S9.
func TestStalledReaderIsCut_S9(t *testing.T) {
	type end struct{ write, cause error }
	ended := make(chan end, 1)
	s := serve(t, Config{Limits: Limits{WriteStall: 50 * time.Millisecond}}, post("/", func(context.Context, *Request) *Reply {
		return sse(func(ctx context.Context, w StreamWriter) error {
			err := w.Write(make([]byte, 64<<20))
			ended <- end{err, context.Cause(ctx)}
			return err
		})
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	e := wait(t, "the cut", ended)
	if e.write != ErrClientStalled || e.cause != ErrClientStalled || !errors.Is(e.cause, ErrClientGone) {
		t.Errorf("got %v, %v", e.write, e.cause)
	}
}

// The same holds for a plain body: only the end of its exchange lets a shutdown
// without a deadline return.
//
// Rules: S9.
func TestStalledReaderOfABodyIsCut_S9(t *testing.T) {
	answered := make(chan struct{})
	s := serve(t, Config{Limits: Limits{WriteStall: 50 * time.Millisecond}}, post("/", func(context.Context, *Request) *Reply {
		close(answered)
		return &Reply{Status: 200, Body: make([]byte, 64<<20)}
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	wait(t, "the handler", answered)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	if err := wait(t, "Shutdown", down); err != nil {
		t.Error(err)
	}
}

// A stream outlives every read timeout: they are over once the request is read.
//
// Rules: S9.
func TestLiveStreamIsNotCut_S9(t *testing.T) {
	const short = 100 * time.Millisecond
	s := serve(t, Config{Limits: Limits{HeaderTimeout: short, BodyTimeout: short, IdleTimeout: short, WriteStall: short}},
		post("/", func(context.Context, *Request) *Reply {
			return sse(func(ctx context.Context, w StreamWriter) error {
				tick := time.NewTicker(2 * short)
				defer tick.Stop()
				for _, size := range []int{1, 5000, 1, 5000} {
					<-tick.C
					if err := w.Write(make([]byte, size)); err != nil {
						return err
					}
				}
				return nil
			})
		}))
	c := dial(t, s)
	c.send(postRequest("/", "{}"))
	if _, body := c.reply(); len(body) != 10_002 {
		t.Errorf("got %d bytes", len(body))
	}
}

// An open stream costs at most 64 KiB, its goroutine's stack included (S9).
func TestMemoryPerStream_S9(t *testing.T) {
	const streams, budget = 500, 64 << 10
	finish := make(chan struct{})
	defer close(finish)
	s := serve(t, Config{}, post("/", func(context.Context, *Request) *Reply {
		return sse(func(ctx context.Context, w StreamWriter) error {
			err := w.Write([]byte("data: first\n\n"))
			select {
			case <-finish:
			case <-ctx.Done():
			}
			return err
		})
	}))
	request := postRequest("/", strings.Repeat("x", 20_000))
	before := memory()
	clients := make([]*client, streams)
	first := make([]byte, 1024)
	for i := range clients {
		clients[i] = dial(t, s)
		clients[i].br = nil // only the server's memory is of interest
		clients[i].send(request)
		if n, err := clients[i].Read(first); err != nil || !bytes.Contains(first[:n], []byte("200 OK")) {
			t.Fatalf("got %q, %v", first[:n], err)
		}
	}
	per := (memory() - before) / streams
	t.Logf("%d bytes per open stream", per)
	if per > budget {
		t.Errorf("an open stream costs %d bytes", per)
	}
}

// memory is what the heap and the stacks hold after a collection.
func memory() int64 {
	runtime.GC()
	runtime.GC() // the second empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
