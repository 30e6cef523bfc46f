package edge

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func echo(_ context.Context, r *Request) *Reply {
	return &Reply{Status: 200, Body: r.Body}
}

func pack(t testing.TB, coding string, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		zw, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = zw
	default:
		return string(body)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func chunkedRequest(path, body string, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n%s\r\n", path, lines(header))
	for len(body) > 0 {
		n := min(len(body), 3000)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// The limit holds for what is sent and for what it unpacks to, whatever the
// framing, to the byte; a body within it leaves the connection usable.
//
// Rules: Z5.
func TestBodyLimit_Z5(t *testing.T) {
	const limit = 100_000
	s := serve(t, Config{Limits: Limits{BodyBytes: limit}}, post("/echo", echo))
	framings := map[string]func(string, string, ...string) string{"length": postRequest, "chunked": chunkedRequest}
	for framing, request := range framings {
		for _, coding := range []string{"identity", "gzip", "zstd", "br"} {
			for _, size := range []int{1, 8 << 10, 70_000, limit, limit + 1, 20 * limit} {
				t.Run(fmt.Sprint(framing, " ", coding, " ", size), func(t *testing.T) {
					c := dial(t, s)
					body := strings.Repeat("x", size)
					raw := request("/echo", pack(t, coding, []byte(body)), "Content-Encoding: "+coding)
					sent := make(chan struct{})
					go func() {
						defer close(sent)
						_, _ = io.WriteString(c, raw) // the server may refuse half-way
					}()
					resp, got := c.reply()
					if size > limit {
						if resp.StatusCode != 413 || got != `{"kind":"body_too_large","path":"/echo"}` || !resp.Close {
							t.Fatalf("got %d %s", resp.StatusCode, got)
						}
						c.closed()
						wait(t, "the sender", sent)
						return
					}
					if resp.StatusCode != 200 || got != body {
						t.Fatalf("got %d, %d bytes", resp.StatusCode, len(got))
					}
					wait(t, "the sender", sent)
					c.send(postRequest("/echo", "again"))
					if _, got := c.reply(); got != "again" {
						t.Errorf("then got %q", got)
					}
				})
			}
		}
	}
}

// Most clients send all of the body before they read. To close at once would
// reset the connection and take the refusal with it.
//
// Rules: Z5.
func TestRefusalReachesAClientStillSending_Z5(t *testing.T) {
	s := serve(t, Config{Limits: Limits{BodyBytes: 1000}}, post("/echo", echo))
	c := dial(t, s)
	c.send(postRequest("/echo", strings.Repeat("x", 16<<20))) // more than the sockets hold
	if resp, body := c.reply(); resp.StatusCode != 413 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

// A body that is too long by its own word is refused before a byte of it: a client may
// wait for the answer to send it. What follows on the connection is never taken for the
// next request, whatever was asked for.
//
// Rules: Z5.
func TestRefusalDoesNotWaitForTheBody_Z5(t *testing.T) {
	s := serve(t, Config{Limits: Limits{BodyBytes: 100_000}}, post("/echo", echo))
	for _, request := range []struct {
		line   string
		status int
	}{{"POST /echo", 413}, {"POST /nowhere", 404}, {"PUT /echo", 405}, {"OPTIONS /echo", 204}} {
		for _, length := range []string{"100001", "999999999999999999"} {
			for _, header := range []string{"", "Expect: 100-continue\r\n"} {
				t.Run(request.line+" "+length+" "+header, func(t *testing.T) {
					c := dial(t, s)
					c.send(request.line + " HTTP/1.1\r\nHost: x\r\n" + header + "Content-Length: " + length + "\r\n\r\n")
					resp, body := c.reply()
					if resp.StatusCode != request.status || !resp.Close {
						t.Fatalf("got %d %s, close %v", resp.StatusCode, body, resp.Close)
					}
					c.send(postRequest("/echo", "smuggled"))
					c.closed()
				})
			}
		}
	}
}

// A zstd stream may be padded with frames that unpack to nothing.
//
// Rules: Z5.
func TestBodyLimitCountsTheWire_Z5(t *testing.T) {
	const limit = 10_000
	s := serve(t, Config{Limits: Limits{BodyBytes: limit}}, post("/echo", echo))
	frame := binary.LittleEndian.AppendUint32(nil, 0x184D2A50)
	frame = binary.LittleEndian.AppendUint32(frame, 2*limit)
	frame = append(frame, make([]byte, 2*limit)...)
	c := dial(t, s)
	c.send(chunkedRequest("/echo", string(frame)+pack(t, "zstd", []byte("hello")), "Content-Encoding: zstd"))
	if resp, body := c.reply(); resp.StatusCode != 413 {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

// 256 MiB that travel as some KiB never exist here.
//
// Rules: Z5.
func TestCompressionBombStaysSmall_Z5(t *testing.T) {
	const limit = 1 << 20
	s := serve(t, Config{Limits: Limits{BodyBytes: limit}}, post("/echo", echo))
	for _, coding := range []string{"gzip", "zstd", "br"} {
		t.Run(coding, func(t *testing.T) {
			raw := postRequest("/echo", pack(t, coding, make([]byte, 256<<20)), "Content-Encoding: "+coding)
			c := dial(t, s)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			c.send(raw)
			resp, body := c.reply()
			runtime.ReadMemStats(&after)
			if resp.StatusCode != 413 {
				t.Fatalf("got %d %s", resp.StatusCode, body)
			}
			// Everything allocated on the way, not just held at once: the body as it
			// doubles (twice the limit) and the decoder with its window.
			if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
				t.Errorf("allocated %d bytes", used)
			}
		})
	}
}

// Rules: Z5.
func TestUnusableBodies_Z5(t *testing.T) {
	s := serve(t, Config{}, post("/echo", func(context.Context, *Request) *Reply {
		t.Error("handler was called")
		return nil
	}))
	for name, tc := range map[string]struct {
		raw  string
		kind ErrorKind
	}{
		"unknown encoding":  {postRequest("/echo", "x", "Content-Encoding: deflate"), UnsupportedEncoding},
		"two encodings":     {postRequest("/echo", "x", "Content-Encoding: gzip, gzip"), UnsupportedEncoding},
		"two lines of them": {postRequest("/echo", "x", "Content-Encoding: gzip", "Content-Encoding: br"), UnsupportedEncoding},
		"not gzip":          {postRequest("/echo", "hello hello", "Content-Encoding: gzip"), Malformed},
		"not zstd":          {postRequest("/echo", "hello hello", "Content-Encoding: zstd"), Malformed},
		"not brotli":        {postRequest("/echo", "\xff\xff\xff\xff\xff\xff", "Content-Encoding: br"), Malformed},
		"half a gzip":       {postRequest("/echo", pack(t, "gzip", []byte("hello"))[:12], "Content-Encoding: gzip"), Malformed},
		"broken chunks":     {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n", Malformed},
		"declared too long": {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + strings.Repeat("x", 10_000), BodyTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			c.send(tc.raw)
			resp, body := c.reply()
			if resp.StatusCode != tc.kind.Status() || !strings.Contains(body, tc.kind.String()) || !strings.Contains(body, "/echo") {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
			c.closed()
		})
	}
}

// fasthttp reports the end of the connection as the end of the body: without
// our own count half a prompt would be served, and paid for.
func TestTruncatedBodyIsNotServed(t *testing.T) {
	s := serve(t, Config{}, post("/echo", func(context.Context, *Request) *Reply {
		t.Error("handler was called")
		return nil
	}))
	large := strings.Repeat("x", 20_000)
	for name, raw := range map[string]string{
		"short":           "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
		"past 8 KiB":      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n" + large,
		"between chunks":  "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"within a chunk":  "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhalf",
		"within the head": "POST /echo HTTP/1.1\r\nHo",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			c.send(raw)
			_ = c.CloseWrite()
			c.closed()
		})
	}
}

// fasthttp does not read the body of a GET to its end: what is left would be
// answered as a request.
func TestUnreadBodyIsNeverTheNextRequest(t *testing.T) {
	s := serve(t, Config{}, func(s *Server) {
		s.Handle("GET", "/get", ok)
		s.Handle("DELETE", "/smuggled", func(context.Context, *Request) *Reply {
			t.Error("smuggled request was served")
			return nil
		})
	})
	smuggled := "DELETE /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	padding := strings.Repeat("x", 8<<10)
	for name, raw := range map[string]string{
		"GET, chunked":   "GET /get HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled,
		"GET, long":      fmt.Sprintf("GET /get HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s%s", len(padding)+len(smuggled), padding, smuggled),
		"no such path":   fmt.Sprintf("POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s%s", len(padding)+len(smuggled), padding, smuggled),
		"no such method": "BREW /get HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled,
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			c.send(raw)
			if resp, _ := c.reply(); !resp.Close {
				t.Errorf("got %d without Connection: close", resp.StatusCode)
			}
			c.closed()
		})
	}
}

func TestExpectContinue(t *testing.T) {
	s := serve(t, Config{}, post("/echo", echo))
	c := dial(t, s)
	c.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	if resp := c.response(); resp.StatusCode != 100 {
		t.Fatalf("got %d", resp.StatusCode)
	}
	c.send("hello")
	if resp, body := c.reply(); resp.StatusCode != 200 || body != "hello" {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
}

// Rules: Z5.
func TestSlowClientsAreClosed_Z5(t *testing.T) {
	const short = 50 * time.Millisecond
	handled := post("/echo", echo)
	large := "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("x", 10_000)
	for _, tc := range []struct {
		name, raw string
		limits    Limits
		reply     string // "" for none
	}{
		{"nothing sent", "", Limits{HeaderTimeout: short}, ""},
		{"half a header", "POST /echo HTTP/1.1\r\nHo", Limits{HeaderTimeout: short}, `{"kind":"timeout","path":""}`},
		{"half a body", large, Limits{HeaderTimeout: time.Hour, BodyTimeout: short}, `{"kind":"timeout","path":"/echo"}`},
		{"half a small body", large[:100], Limits{HeaderTimeout: time.Hour, BodyTimeout: short}, `{"kind":"timeout","path":""}`},
		{"half a chunk", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhalf", Limits{HeaderTimeout: time.Hour, BodyTimeout: short}, `{"kind":"timeout","path":"/echo"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, serve(t, Config{Limits: tc.limits}, handled))
			c.send(tc.raw)
			if tc.reply != "" {
				if resp, body := c.reply(); resp.StatusCode != 408 || body != tc.reply {
					t.Errorf("got %d %s", resp.StatusCode, body)
				}
			}
			c.closed()
		})
	}
	t.Run("idle", func(t *testing.T) {
		c := dial(t, serve(t, Config{Limits: Limits{IdleTimeout: short}}, handled))
		c.send(postRequest("/echo", "x"))
		c.reply()
		c.closed()
	})
}

func FuzzReadBounded(f *testing.F) {
	f.Add([]byte("hello"), 3)
	f.Fuzz(func(t *testing.T, body []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		got, err := readBounded(bytes.NewReader(body), -1, limit)
		switch {
		case len(body) > limit && err == nil:
			t.Errorf("%d bytes passed a limit of %d", len(body), limit)
		case len(body) <= limit && (err != nil || !bytes.Equal(got, body)):
			t.Errorf("got %d of %d bytes, %v", len(got), len(body), err)
		}
		if cap(got) > limit+4096 {
			t.Errorf("took %d bytes under a limit of %d", cap(got), limit)
		}
	})
}
