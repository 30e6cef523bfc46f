package provider

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	role    = `data: {"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}` + "\n\n"
	hello   = `data: {"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}` + "\n\n"
	stopped = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	used    = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"
	done    = "data: [DONE]\n\n"
	comment = ": still here\n\n"

	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	whole      = `{"choices":[{"index":0,"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`
)

var outbound = map[catalog.Protocol]dialect.Outbound{catalog.OpenAI: chat.Outbound{}}

// call is a streaming attempt at an address that only a test's dialer knows.
func call(t testing.TB) Call {
	t.Helper()
	req, err := chat.Inbound{}.Parse([]byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return Call{Protocol: catalog.OpenAI, BaseURL: "http://provider.test/v1", Secret: "sk", UpstreamModel: "up", Request: req, Stream: true}
}

// scripted is a client whose provider reads one request on each connection and then
// does what the script says. The connection is closed when the script returns.
func scripted(t *testing.T, script func(conn net.Conn)) *Client {
	t.Helper()
	return dialing(t, func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			req, err := http.ReadRequest(bufio.NewReader(server))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			script(server)
		}()
		return client, nil
	})
}

func dialing(t *testing.T, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Client {
	t.Helper()
	c := New(Config{Outbound: outbound, DialContext: dial})
	t.Cleanup(c.Close)
	return c
}

func send(conn net.Conn, pieces ...string) {
	for _, p := range pieces {
		if _, err := io.WriteString(conn, p); err != nil {
			return
		}
	}
}

// hang waits until the other side is gone.
func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// pass lets virtual time go by.
func pass(d time.Duration) { <-time.After(d) }

// every sends a piece at intervals until the other side is gone.
func every(conn net.Conn, d time.Duration, piece string) {
	gone := make(chan struct{})
	go func() {
		hang(conn)
		close(gone)
	}()
	for {
		select {
		case <-time.After(d):
			send(conn, piece)
		case <-gone:
			return
		}
	}
}

// run makes a call and reads its stream to the end. It returns how many chunks
// came, how much virtual time went by, and the error that ended it.
func run(ctx context.Context, t *testing.T, c *Client, call Call) (chunks int, took time.Duration, end error) {
	t.Helper()
	began := time.Now()
	reply, f := c.Do(ctx, call)
	if f != nil {
		return 0, time.Since(began), f
	}
	defer reply.Close()
	for {
		if _, err := reply.Next(); err != nil {
			return chunks, time.Since(began), err
		}
		chunks++
	}
}

func wantFailure(t *testing.T, err error, class failure.Class, code string, billed bool) {
	t.Helper()
	f, ok := errors.AsType[*failure.Failure](err)
	if !ok || f.Class != class || f.Code != code || f.PossiblyBilled != billed {
		t.Errorf("ended with %v (%+v), want %s: %s, possibly billed %v", err, f, class, code, billed)
	}
}

func wantTook(t *testing.T, took, want time.Duration) {
	t.Helper()
	if took != want {
		t.Errorf("took %v of virtual time, want %v", took, want)
	}
}

// Rules: W11.
func TestLimitsOfSilence_W11(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		script func(net.Conn)
		chunks int
		class  failure.Class
		code   string
		took   time.Duration
	}{
		{"accepts and says nothing", Limits{}, hang, 0, failure.TimeoutFirstByte, "first_byte", 20 * time.Second},
		{"headers and nothing more", Limits{}, func(c net.Conn) { send(c, streamHead); hang(c) }, 0, failure.TimeoutFirstByte, "first_byte", 20 * time.Second},
		{"a longer limit for a long prompt", Limits{FirstByte: 90 * time.Second}, hang, 0, failure.TimeoutFirstByte, "first_byte", 90 * time.Second},
		{"comments are no output", Limits{FirstOutput: 35 * time.Second}, func(c net.Conn) {
			send(c, streamHead, comment)
			every(c, 10*time.Second, comment)
		}, 0, failure.TimeoutAttempt, "first_output", 35 * time.Second},
		{"role chunks are no output", Limits{FirstOutput: 35 * time.Second}, func(c net.Conn) {
			send(c, streamHead)
			every(c, 10*time.Second, role)
		}, 3, failure.TimeoutAttempt, "first_output", 35 * time.Second},
		{"stalls after output", Limits{}, func(c net.Conn) { send(c, streamHead, hello); hang(c) }, 1, failure.StreamTruncated, "stream_idle", 60 * time.Second},
		{"comments do not keep it alive", Limits{}, func(c net.Conn) {
			send(c, streamHead, hello)
			every(c, 25*time.Second, comment)
		}, 1, failure.StreamTruncated, "stream_idle", 60 * time.Second},
		{"role chunks do not keep it alive", Limits{}, func(c net.Conn) {
			send(c, streamHead, hello)
			every(c, 25*time.Second, role)
		}, 3, failure.StreamTruncated, "stream_idle", 60 * time.Second},
		{"output does", Limits{}, func(c net.Conn) {
			send(c, streamHead)
			for range 3 {
				send(c, hello)
				pass(50 * time.Second)
			}
			hang(c)
		}, 3, failure.StreamTruncated, "stream_idle", 160 * time.Second},
		{"thinking longer than it may pause", Limits{StreamIdle: 5 * time.Second}, func(c net.Conn) {
			send(c, streamHead, role)
			pass(120 * time.Second)
			send(c, hello)
			hang(c)
		}, 2, failure.StreamTruncated, "stream_idle", 125 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := call(t)
				call.Limits = tt.limits
				chunks, took, err := run(t.Context(), t, scripted(t, tt.script), call)
				wantFailure(t, err, tt.class, tt.code, true)
				wantTook(t, took, tt.took)
				if chunks != tt.chunks {
					t.Errorf("%d chunks, want %d", chunks, tt.chunks)
				}
			})
		})
	}
}

// A caller who takes his time slows his own stream and does not make the provider
// look silent.
//
// Rules: S9.
func TestASlowReaderIsNoSilence_S9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scripted(t, func(conn net.Conn) { send(conn, streamHead, hello, hello, hello, stopped, done) })
		reply, f := c.Do(t.Context(), call(t))
		if f != nil {
			t.Fatal(f)
		}
		defer reply.Close()
		for range 4 {
			if _, err := reply.Next(); err != nil {
				t.Fatal(err)
			}
			pass(5 * time.Minute)
		}
		if _, err := reply.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("ended with %v", err)
		}
	})
}

// Rules: S14.
func TestAFinishedAnswerDoesNotWait_S14(t *testing.T) {
	tests := []struct {
		name   string
		script func(net.Conn)
		chunks int
		took   time.Duration
	}{
		{"[DONE]", func(c net.Conn) { send(c, streamHead, hello, stopped, used, done); hang(c) }, 3, 0},
		{"no [DONE], closed", func(c net.Conn) { send(c, streamHead, hello, stopped) }, 2, 0},
		{"no [DONE], open", func(c net.Conn) { send(c, streamHead, hello, stopped); hang(c) }, 2, tailWait},
		{"usage and no [DONE], open", func(c net.Conn) { send(c, streamHead, hello, stopped, used); hang(c) }, 3, tailWaitKnown},
		{"usage comes a little late", func(c net.Conn) {
			send(c, streamHead, hello, stopped)
			pass(tailWait / 2)
			send(c, used, done)
		}, 3, tailWait / 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				chunks, took, err := run(t.Context(), t, scripted(t, tt.script), call(t))
				if !errors.Is(err, io.EOF) || chunks != tt.chunks {
					t.Errorf("%d chunks, then %v; want %d and io.EOF", chunks, err, tt.chunks)
				}
				wantTook(t, took, tt.took)
			})
		})
	}
}

// Finished and silent, but with nothing in it: still an empty completion.
//
// Rules: W8.
func TestAnEmptyAnswerIsEmptyHoweverItEnds_W8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scripted(t, func(conn net.Conn) { send(conn, streamHead, role, stopped); hang(conn) })
		_, _, err := run(t.Context(), t, c, call(t))
		wantFailure(t, err, failure.EmptyCompletion, "no_output", false)
	})
}

// Rules: W13.
func TestTransportErrorsHaveOneClass_W13(t *testing.T) {
	chunked := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	tests := []struct {
		name   string
		script func(net.Conn)
		class  failure.Class
		code   string
	}{
		{"closed before the headers", func(net.Conn) {}, failure.StreamTruncated, "connection_lost"},
		{"cut in the headers", func(c net.Conn) { send(c, "HTTP/1.1 200 OK\r\nContent-T") }, failure.StreamTruncated, "connection_lost"},
		{"cut in a chunk", func(c net.Conn) { send(c, chunked, "100\r\n", hello) }, failure.StreamTruncated, "connection_lost"},
		{"no last chunk", func(c net.Conn) { send(c, chunked, "2\r\n: \r\n") }, failure.StreamTruncated, "connection_lost"},
		{"a clean close without a terminator", func(c net.Conn) { send(c, streamHead, hello) }, failure.StreamTruncated, "no_terminator"},
		{"a page", func(c net.Conn) { send(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>") }, failure.BadPayload, "not_json"},
		{"a whole answer in place of a stream", func(c net.Conn) { send(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", whole) }, failure.BadPayload, "not_a_stream"},
		{"a page that calls itself a stream", func(c net.Conn) { send(c, streamHead, "<html>") }, failure.BadPayload, "not_json"},
		{"a page that does not end", func(c net.Conn) { send(c, streamHead, "<html>"); hang(c) }, failure.BadPayload, "not_json"},
		{"an encoding that was not asked for", func(c net.Conn) {
			send(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br\r\n\r\nxx")
		}, failure.BadPayload, "content_encoding"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, took, err := run(t.Context(), t, scripted(t, tt.script), call(t))
				wantFailure(t, err, tt.class, tt.code, true)
				if took > DefaultErrorBody {
					t.Errorf("took %v of virtual time", took)
				}
			})
		})
	}
}

// Rules: S4.
func TestAnErrorObjectUnder200IsItsOwnClass_S4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, head := range []string{"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", streamHead} {
			c := scripted(t, func(conn net.Conn) { send(conn, head, `{"error":{"code":"insufficient_quota"}}`) })
			_, _, err := run(t.Context(), t, c, call(t))
			wantFailure(t, err, failure.ProviderQuota, "funding_code", false)
		}
	})
}

// A stream is one by what it holds, whatever it calls itself.
func TestAStreamUnderAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scripted(t, func(conn net.Conn) {
			send(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", hello, stopped, done)
		})
		if chunks, _, err := run(t.Context(), t, c, call(t)); chunks != 2 || !errors.Is(err, io.EOF) {
			t.Errorf("%d chunks, then %v", chunks, err)
		}
	})
}
