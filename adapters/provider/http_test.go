package provider

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/network/networktest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// server is a provider on loopback, for what needs real HTTP connections.
func server(t *testing.T, handler http.HandlerFunc) (*Client, Call) {
	t.Helper()
	s := httptest.NewServer(handler)
	c := New(Config{Outbound: outbound, InternalHosts: network.MustHosts("127.0.0.1")})
	t.Cleanup(func() { c.Close(); s.Close() })
	call := call(t)
	call.BaseURL = s.URL + "/v1"
	return c, call
}

// The end of the body comes after the sentinel, and the connection serves again only
// if somebody waits for it.
func TestConnectionsServeAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		late  time.Duration
		dials int
	}{
		{"at once", 0, 1},
		{"a little later", reuseWait / 2, 1},
		{"too late to wait for", 2 * reuseWait, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials := 0
				c := dialing(t, func(context.Context, string, string) (net.Conn, error) {
					dials++
					client, server := net.Pipe()
					go serveForEver(server, tt.late)
					return client, nil
				})
				for range 3 {
					if _, _, err := run(t.Context(), t, c, call(t)); !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
				}
				if dials != tt.dials {
					t.Errorf("3 calls took %d connections, want %d", dials, tt.dials)
				}
				c.Close()
				synctest.Wait()
				pass(time.Second)
			})
		})
	}
}

// serveForEver answers one request after the other, each with the end of its body
// some time after the sentinel.
func serveForEver(conn net.Conn, late time.Duration) {
	defer conn.Close()
	requests := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		body := hello + stopped + done
		send(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
			fmt.Sprintf("%x\r\n%s\r\n", len(body), body))
		pass(late)
		send(conn, "0\r\n\r\n")
	}
}

// Rules: Z1.
func TestRedirectsAreNotFollowed_Z1(t *testing.T) {
	var calls atomic.Int64
	c, call := server(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, _, err := run(t.Context(), t, c, call)
	wantFailure(t, err, failure.BadPayload, "redirect", false)
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
}

// A provider that is led to sends the request nowhere else, least of all inside.
//
// Rules: Z1.
func TestAProviderCannotRedirectInside_Z1(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(inside.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		c, call := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside.URL, status) })
		_, _, err := run(t.Context(), t, c, call)
		wantFailure(t, err, failure.BadPayload, "redirect", false)
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests went inside", asked.Load())
	}
}

// Nobody is called inside the own network unless an operator opened it, whatever the
// base URL says; what is not called cannot have been billed (W13).
//
// Rules: Z1, W13.
func TestNobodyInsideIsCalled_Z1_W13(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(s.Close)
	at := strings.TrimPrefix(s.URL, "http://127.0.0.1")
	resolver := networktest.Resolver(t, map[string][]string{"provider.example": {"127.0.0.1"}, "mapped.example": {"64:ff9b::7f00:1"}})
	for baseURL, code := range map[string]string{
		s.URL: "inside", "http://localhost" + at: "inside", "http://2130706433" + at: "inside", "http://[::ffff:127.0.0.1]" + at: "inside",
		"http://１２７。0。0。１" + at: "inside", "http://0x7f.1" + at: "inside", "http://localhost." + at: "inside", "http://[::1%25lo]" + at: "inside",
		"http://provider.example." + at: "resolved_inside", "http://mapped.example." + at: "resolved_inside",
	} {
		c := New(Config{Outbound: outbound, Resolver: resolver, InternalHosts: network.MustHosts("127.0.0.2")})
		call := call(t)
		call.BaseURL = baseURL + "/v1"
		if refused := c.Refuses(call.BaseURL); refused != (code == "inside") {
			t.Errorf("%s: refused beforehand: %v", baseURL, refused)
		}
		_, _, err := run(t.Context(), t, c, call)
		wantFailure(t, err, failure.BaseURLRefused, code, false)
		c.Close()
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests went inside", asked.Load())
	}
}

func TestGzipIsReadThoughNotAskedFor(t *testing.T) {
	c, call := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = io.WriteString(zw, hello+stopped+done)
		_ = zw.Close()
	})
	if chunks, _, err := run(t.Context(), t, c, call); chunks != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("%d chunks, then %v", chunks, err)
	}
}

// Each call that the provider sees is one attempt: net/http must not send one again
// on its own, which it would after a lost reply to a request with an idempotency key
// on a connection that had served before.
//
// Rules: O10.
func TestOneAttemptIsOneCall_O10(t *testing.T) {
	var calls atomic.Int64
	c, call := server(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Idempotency-Key") != "once" {
			t.Errorf("idempotency key = %q", r.Header.Get("Idempotency-Key"))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, hello+stopped+done)
	})
	call.IdempotencyKey = "once"
	if _, _, err := run(t.Context(), t, c, call); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	_, _, err := run(t.Context(), t, c, call)
	wantFailure(t, err, failure.StreamTruncated, "connection_lost", true)
	if n := calls.Load(); n != 2 {
		t.Errorf("the provider saw %d calls, want 2", n)
	}
}

// Rules: Z4.
func TestOnlyWhatIsAllowedIsSent_Z4(t *testing.T) {
	if New(Config{}).transport.Proxy != nil {
		t.Error("a proxy nobody configured")
	}
	var names []string
	c, call := server(t, func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			names = append(names, name)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, hello+stopped+done)
	})
	if _, _, err := run(t.Context(), t, c, call); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	slices.Sort(names)
	want := []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "User-Agent"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownProtocol(t *testing.T) {
	c := New(Config{Outbound: outbound})
	unknown, ok := errors.AsType[*UnknownProtocolError](second(c.Outbound(catalog.Bedrock)))
	if !ok || unknown.Protocol != catalog.Bedrock {
		t.Errorf("error = %v", unknown)
	}
	bad := call(t)
	bad.Protocol = catalog.Bedrock
	_, f := c.Do(t.Context(), bad)
	wantFailure(t, f, failure.DeploymentGone, "unknown_protocol", false)
	bad = call(t)
	bad.BaseURL = "provider.test"
	_, f = c.Do(t.Context(), bad)
	wantFailure(t, f, failure.DeploymentGone, "request_not_buildable", false)
}

func second[T any](_ T, err error) error { return err }
