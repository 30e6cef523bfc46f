package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// What was never reached cannot have been billed.
//
// Rules: W13.
func TestNotReached_W13(t *testing.T) {
	tests := []struct {
		code string
		err  error
	}{
		{"refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		{"dns", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}},
		{"tls", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}},
		{"not_connected", errors.New("no route to host")},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			c := dialing(t, func(context.Context, string, string) (net.Conn, error) { return nil, tt.err })
			_, _, err := run(t.Context(), t, c, call(t))
			wantFailure(t, err, failure.ConnectError, tt.code, false)
		})
	}
}

// Rules: W11.
func TestConnectLimit_W11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dialing(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		_, took, err := run(t.Context(), t, c, call(t))
		wantFailure(t, err, failure.ConnectError, "connect_timeout", false)
		wantTook(t, took, DefaultConnect)
	})
}

// Rules: W4, W11.
func TestErrorBodiesAreReadWithinLimits_W4_W11(t *testing.T) {
	head := "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 5000\r\n\r\n"
	tests := []struct {
		name   string
		script func(net.Conn)
		class  failure.Class
		took   time.Duration
	}{
		{"stalled: the status and the headers speak", func(c net.Conn) { send(c, head); hang(c) }, failure.Throttled, DefaultErrorBody},
		{"stalled late: so does what came", func(c net.Conn) {
			send(c, head, `{"error":{"code":"insufficient_quota"}}`)
			hang(c)
		}, failure.ProviderQuota, DefaultErrorBody},
		{"read to the end", func(c net.Conn) {
			send(c, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n\r\n", `{"error":{"code":"insufficient_quota"}}`)
		}, failure.ProviderQuota, 0},
		{"endless: no more than the limit", func(c net.Conn) {
			send(c, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n\r\n")
			for {
				if _, err := io.WriteString(c, strings.Repeat("x", 4096)); err != nil {
					return
				}
			}
		}, failure.ServerError, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, took, err := run(t.Context(), t, scripted(t, tt.script), call(t))
				f, ok := errors.AsType[*failure.Failure](err)
				if !ok || f.Class != tt.class || f.Status < 400 {
					t.Fatalf("failure = %+v, want %s", f, tt.class)
				}
				if f.Retry.After != 7*time.Second {
					t.Errorf("retry = %+v", f.Retry)
				}
				wantTook(t, took, tt.took)
			})
		})
	}
}

// Rules: S7, W10.
func TestWhoEndedIt_S7_W10(t *testing.T) {
	own := &failure.Failure{Class: failure.DeadlineExceeded, Code: "first_output_deadline"}
	tests := []struct {
		name  string
		cause error
		class failure.Class
		code  string
	}{
		{"the client left", errors.New("hung up"), failure.ClientCancelled, ""},
		{"the deadline", context.DeadlineExceeded, failure.DeadlineExceeded, ""},
		{"a named reason", own, failure.DeadlineExceeded, "first_output_deadline"},
	}
	scripts := map[string]func(net.Conn){
		"before the headers": func(net.Conn) {},
		"before the output":  func(c net.Conn) { send(c, streamHead) },
		"in the output":      func(c net.Conn) { send(c, streamHead, hello) },
	}
	for when, script := range scripts {
		for _, tt := range tests {
			t.Run(tt.name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					var gone atomic.Int64
					began := time.Now()
					c := scripted(t, func(conn net.Conn) {
						script(conn)
						hang(conn)
						gone.Store(int64(time.Since(began)))
					})
					time.AfterFunc(3*time.Second, func() { cancel(tt.cause) })
					_, _, err := run(ctx, t, c, call(t))
					wantFailure(t, err, tt.class, tt.code, true)
					synctest.Wait()
					if gone := time.Duration(gone.Load()); gone != 3*time.Second {
						t.Errorf("upstream was let go after %v, want at once", gone)
					}
				})
			})
		}
	}
}

// Rules: S7.
func TestCloseEndsTheUpstreamCallAtOnce_S7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		c := scripted(t, func(conn net.Conn) {
			send(conn, streamHead, hello)
			hang(conn)
			close(gone)
		})
		reply, f := c.Do(t.Context(), call(t))
		if f != nil {
			t.Fatal(f)
		}
		if _, err := reply.Next(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		reply.Close()
		reply.Close()
		<-gone
		wantTook(t, time.Since(began), 0)
	})
}

// Rules: S7.
func TestDrain_S7(t *testing.T) {
	limits := DrainLimits{Time: 30 * time.Second, Bytes: 1 << 20}
	tests := []struct {
		name   string
		limits DrainLimits
		script func(net.Conn)
		ended  bool
		took   time.Duration
	}{
		{"to the usage", limits, func(c net.Conn) {
			send(c, streamHead, hello)
			pass(10 * time.Second)
			send(c, hello, stopped, used, done)
		}, true, 10 * time.Second},
		{"no longer than its time", limits, func(c net.Conn) {
			send(c, streamHead, hello)
			every(c, 9*time.Second, hello)
		}, false, 30 * time.Second},
		{"no further than its bytes", DrainLimits{Time: 30 * time.Second, Bytes: 290}, func(c net.Conn) {
			send(c, streamHead, hello)
			every(c, time.Second, hello)
		}, false, 4 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reply, f := scripted(t, tt.script).Do(t.Context(), call(t))
				if f != nil {
					t.Fatal(f)
				}
				defer reply.Close()
				if _, err := reply.Next(); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if ended := reply.Drain(tt.limits); ended != tt.ended {
					t.Errorf("ended = %v, want %v", ended, tt.ended)
				}
				wantTook(t, time.Since(began), tt.took)
				if got := reply.Tally(); got.HasUsage != tt.ended {
					t.Errorf("tally = %+v", got)
				}
			})
		})
	}
}

func wholeCall(t *testing.T) Call {
	c := call(t)
	c.Stream = false
	return c
}

// Rules: S11, W11.
func TestWholeAnswers_S11_W11(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
	tests := []struct {
		name   string
		script func(net.Conn)
		class  failure.Class
		code   string
		took   time.Duration
	}{
		{"an answer", func(c net.Conn) { pass(400 * time.Second); send(c, head, whole) }, "", "", 400 * time.Second},
		{"silence", hang, failure.TimeoutFirstByte, "whole_answer", 600 * time.Second},
		{"stalled in its middle", func(c net.Conn) { send(c, head, whole[:20]); hang(c) }, failure.TimeoutAttempt, "whole_answer", 600 * time.Second},
		{"cut, by its length", func(c net.Conn) {
			send(c, "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", whole)
		}, failure.StreamTruncated, "connection_lost", 0},
		{"cut, by its brackets", func(c net.Conn) { send(c, head, whole[:40]) }, failure.BadPayload, "not_json", 0},
		{"a page", func(c net.Conn) { send(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>") }, failure.BadPayload, "not_json", 0},
		{"above the limit", func(c net.Conn) {
			send(c, head)
			for {
				if _, err := io.WriteString(c, strings.Repeat(" ", 1<<20)); err != nil {
					return
				}
			}
		}, failure.BadPayload, "reply_too_large", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var answer neutral.Answer
				reply, f := scripted(t, tt.script).Do(t.Context(), wholeCall(t))
				if f == nil {
					defer reply.Close()
					answer, f = reply.Answer()
				}
				wantTook(t, time.Since(began), tt.took)
				if tt.class == "" {
					if f != nil || string(answer.Raw) != whole || answer.Usage.Input.N != 3 {
						t.Errorf("answer = %+v, %v", answer, f)
					}
					return
				}
				wantFailure(t, f, tt.class, tt.code, true)
			})
		})
	}
}

// A stream that is asked for on behalf of a caller who wants it whole is whole or
// nothing.
//
// Rules: S3, S11.
func TestAggregatedAnswers_S3_S11(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script func(net.Conn)
		class  failure.Class
	}{
		{"whole", func(c net.Conn) { send(c, streamHead, role, hello, hello, stopped, used, done) }, ""},
		{"cut", func(c net.Conn) { send(c, streamHead, role, hello) }, failure.StreamTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reply, f := scripted(t, tt.script).Do(t.Context(), call(t))
				if f != nil {
					t.Fatal(f)
				}
				defer reply.Close()
				answer, f := reply.Answer()
				if tt.class != "" {
					if f == nil || f.Class != tt.class || answer.Raw != nil {
						t.Errorf("half an answer: %s, %v", answer.Raw, f)
					}
					return
				}
				if f != nil || !strings.Contains(string(answer.Raw), `"content":"hellohello"`) || answer.Usage.Output.N != 1 || !answer.Streamed {
					t.Errorf("answer = %s %+v, %v", answer.Raw, answer, f)
				}
			})
		})
	}
}
