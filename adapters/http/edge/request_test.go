package edge

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestCarriesEverything(t *testing.T) {
	got := make(chan *Request, 1)
	s := serve(t, Config{}, post("/v1/models/{id}/{rest...}", func(ctx context.Context, r *Request) *Reply {
		got <- r
		return ok(ctx, r)
	}))
	c := dial(t, s)
	c.send(postRequest("/v1/models/meta%2Fllama-3.1/a/b?x=1&x=2", "hello", "X-Two: a", "x-two: b", "User-Agent:  test ", "Content-Type: application/json"))
	if resp, body := c.reply(); resp.StatusCode != 200 || body != `{"ok":true}` {
		t.Fatalf("got %d %q", resp.StatusCode, body)
	}
	r := wait(t, "request", got)
	if r.Method != "POST" || r.Path != "/v1/models/meta%2Fllama-3.1/a/b" || string(r.Body) != "hello" {
		t.Errorf("got %s %s %q", r.Method, r.Path, r.Body)
	}
	if r.RemoteAddr != c.LocalAddr().String() || r.At.IsZero() {
		t.Errorf("got RemoteAddr %q At %v", r.RemoteAddr, r.At)
	}
	if diff := cmp.Diff(map[string]string{"id": "meta/llama-3.1", "rest": "a/b"}, r.Params); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1", "2"}, r.Query["x"]); diff != "" {
		t.Error(diff)
	}
	want := http.Header{
		"Host": {"x"}, "Content-Length": {"5"}, "X-Two": {"a", "b"},
		"User-Agent": {"test"}, "Content-Type": {"application/json"},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Error(diff)
	}
}

// fasthttp parses the next request into the memory of the last: kept strings
// would read "omega".
func TestRequestSurvivesTheNextOneOnTheConnection(t *testing.T) {
	got := make(chan *Request, 2)
	s := serve(t, Config{}, post("/org/{id}", func(ctx context.Context, r *Request) *Reply {
		got <- r
		return ok(ctx, r)
	}))
	c := dial(t, s)
	send := func(word string) *Request {
		c.send(postRequest("/org/"+word+"?q="+word, word, "X-Word: "+word))
		c.reply()
		return wait(t, "request", got)
	}
	words := func(r *Request) []string {
		return []string{r.Path, r.Params["id"], r.Query.Get("q"), r.Header.Get("X-Word"), string(r.Body)}
	}
	first := send("alpha")
	want := []string{"/org/alpha", "alpha", "alpha", "alpha", "alpha"}
	send("omega")
	if diff := cmp.Diff(want, words(first)); diff != "" {
		t.Error(diff)
	}
}

func TestRouting(t *testing.T) {
	s := serve(t, Config{}, func(s *Server) {
		s.Handle("GET", "/v1/models/{id}", ok)
		s.Handle("POST", "/v1/x:generate", ok)
	})
	for _, tc := range []struct {
		request, status, allow, body string
	}{
		{"GET /v1/models/gpt-4.1", "200 OK", "", `{"ok":true}`},
		{"HEAD /v1/models/gpt-4.1", "200 OK", "", ""},
		{"GET /v1/models/a/b", "404 Not Found", "", `{"kind":"not_found","path":"/v1/models/a/b"}`},
		{"GET /V1/models/a", "404 Not Found", "", `{"kind":"not_found","path":"/V1/models/a"}`},
		{"DELETE /v1/models/a", "405 Method Not Allowed", "GET, HEAD", `{"kind":"method_not_allowed","path":"/v1/models/a"}`},
		{"BREW /v1/models/a", "405 Method Not Allowed", "", `{"kind":"method_not_allowed","path":"/v1/models/a"}`},
		{"OPTIONS /v1/models/a", "204 No Content", "GET, HEAD", ""},
		{"POST /v1/x:generate", "200 OK", "", `{"ok":true}`},
		{"POST /v1/xygenerate", "404 Not Found", "", `{"kind":"not_found","path":"/v1/xygenerate"}`},
	} {
		t.Run(tc.request, func(t *testing.T) {
			c := dial(t, s)
			c.send(tc.request + " HTTP/1.1\r\nHost: x\r\n\r\n")
			resp, err := http.ReadResponse(c.br, &http.Request{Method: strings.Fields(tc.request)[0]})
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.Status != tc.status || string(body) != tc.body || resp.Header.Get("Allow") != tc.allow {
				t.Errorf("got %s, Allow %q, %q", resp.Status, resp.Header.Get("Allow"), body)
			}
		})
	}
}

// Nothing in a reply names the software, and repeated reply headers stay apart.
func TestReplyHeaderIsTheHandlersAlone(t *testing.T) {
	s := serve(t, Config{}, post("/", func(context.Context, *Request) *Reply {
		return &Reply{Status: 201, Header: http.Header{"X-Two": {"a", "b"}, "Content-Length": {"99"}}, Body: []byte("x")}
	}))
	c := dial(t, s)
	c.send(postRequest("/", ""))
	resp, body := c.reply()
	resp.Header.Del("Date")
	if diff := cmp.Diff(http.Header{"X-Two": {"a", "b"}, "Content-Length": {"1"}}, resp.Header); diff != "" || body != "x" {
		t.Error(body, diff)
	}
}

// Rules: Z5.
func TestMalformedRequests_Z5(t *testing.T) {
	s := serve(t, Config{Limits: Limits{HeaderBytes: 4096}}, post("/", func(context.Context, *Request) *Reply {
		t.Error("handler was called")
		return nil
	}))
	for name, tc := range map[string]struct {
		raw  string
		kind ErrorKind
	}{
		"not http":            {"garbage\r\n\r\n", Malformed},
		"two lengths":         {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 3\r\n\r\nabc", Malformed},
		"length and chunked":  {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Malformed},
		"unknown coding":      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", Malformed},
		"folded header":       {"POST / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", Malformed},
		"header too large":    {"POST / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 5000) + "\r\n\r\n", HeaderTooLarge},
		"endless header line": {"POST / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 50000), HeaderTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			c.send(tc.raw)
			resp, body := c.reply()
			if resp.StatusCode != tc.kind.Status() || !strings.Contains(body, tc.kind.String()) || !resp.Close {
				t.Errorf("got %d %s, close %v", resp.StatusCode, body, resp.Close)
			}
			c.closed()
		})
	}
}

func TestFiberPath(t *testing.T) {
	path, names := fiberPath("/v1/{a}/x:y/{b...}")
	if path != `/v1/:a/x\:y/+` || !cmp.Equal(names, []string{"a", "b"}) {
		t.Errorf("got %s %v", path, names)
	}
	for _, bad := range []string{"/{", "/{}", "/{a...}/b", "/{a}/{a}"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", bad)
				}
			}()
			fiberPath(bad)
		}()
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add("Host: x\r\nA: b\r\na: c\r\n\r\n")
	f.Add(": x\r\n")
	f.Fuzz(func(t *testing.T, raw string) {
		h, _ := parseHeader(raw)
		for k := range maps.Keys(h) {
			if len(h[k]) == 0 || strings.ContainsAny(k, "\n: \t") {
				t.Errorf("got %q: %q", k, h[k])
			}
		}
	})
}
