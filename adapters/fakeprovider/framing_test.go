package fakeprovider_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

// identities are what differs between two calls for the same answer.
var identities = regexp.MustCompile(`fake-\d+|"created":\d+|"model":"[^"]*"|model=\S+`)

func anonymous(events []string) []string {
	out := make([]string, len(events))
	for i, event := range events {
		out[i] = identities.ReplaceAllString(strings.ReplaceAll(event, "\n", ""), "X")
	}
	return out
}

// TestFramings_S12 sends the same answer in every framing: a reader that
// follows the standard sees the same events.
//
// Rules: S12.
func TestFramings_S12(t *testing.T) {
	tests := []struct{ model, sign string }{
		{"fake-crlf", "}\r\n\r\n"},
		{"fake-cr", "}\r\r"},
		{"fake-mixed", "}\r\r\n"},
		{"fake-no-space", `data:{"id"`},
		{"fake-multi-line", "\",\ndata: \"object\""},
		{"fake-comments", ": PROCESSING\n\n"},
		{"fake-fields", "event: message\nid: 3\nretry: 3000\ndata: "},
		{"fake-bom", "\xEF\xBB\xBFdata"},
		{"fake-split:1", "data"},
		{"fake-split-at:100", "data"},
		{"fake-crlf+split:3+comments+bom+multi-line+no-space+fields", "\r\ndata:\"object\""},
		{"fake-cr+multi-line+comments", "\rdata: \"object\""},
	}
	c := start(t, fakeprovider.Options{})
	want := anonymous(sseData(c.call("fake-ok", true).body))
	for _, test := range tests {
		r := c.call(test.model, true)
		if got := anonymous(sseData(r.body)); r.err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: error %v\n got %q\nwant %q", test.model, r.err, got, want)
		}
		if !bytes.Contains(r.body, []byte(test.sign)) {
			t.Errorf("%s: no %q in %q", test.model, test.sign, r.body)
		}
	}
}

// TestUnendedEvent_S12: the last event has no blank line, so it does not count.
//
// Rules: S12.
func TestUnendedEvent_S12(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for _, model := range []string{"fake-unended", "fake-unended+no-done"} {
		r := c.call(model, true)
		all := strings.Count(string(r.body), "data: ")
		if got := len(sseData(r.body)); r.err != nil || got != all-1 {
			t.Errorf("%s: %d of %d events dispatched", model, got, all)
		}
	}
}

// TestSplitsCutCharacters_S12 checks that one byte a write is what arrives:
// every chunk of the transfer encoding is one byte, characters notwithstanding.
//
// Rules: S12.
func TestSplitsCutCharacters_S12(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	got, err := raw(t, c.server, "fake-cjk+words:3+split:1+cut:3:close", true)
	if err != nil || !strings.Contains(got, "你好") || !strings.Contains(got, "🙂") {
		t.Errorf("error %v, %q", err, got)
	}
	wire, _ := raw(t, c.server, "fake-cjk+words:3+split:1+cut:3", true)
	_, body, _ := strings.Cut(wire, "\r\n\r\n")
	for len(body) > 0 {
		if !strings.HasPrefix(body, "1\r\n") || len(body) < 6 || body[4:6] != "\r\n" {
			t.Fatalf("not a chunk of one byte: %q", body[:min(len(body), 20)])
		}
		body = body[6:]
	}
}

// TestSplitAtEveryByte_S12 cuts a stream in two at each of its bytes.
//
// Rules: S12.
func TestSplitAtEveryByte_S12(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	want := ""
	for at := 1; at < 700; at += 7 {
		r := c.call(fmt.Sprintf("fake-cjk+words:4+split-at:%03d", at), true)
		got := strings.Join(anonymous(sseData(r.body)), "\n")
		if want == "" {
			want = got
		}
		if r.err != nil || got != want || !utf8.ValidString(got) {
			t.Fatalf("at %d: error %v\n got %q\nwant %q", at, r.err, got, want)
		}
	}
}

// TestBigLines_S12 sends one event above the sizes at which readers stop.
//
// Rules: S12.
func TestBigLines_S12(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for model, size := range map[string]int{"fake-big:64k": 64 << 10, "fake-big:1m": 1 << 20, "fake-big:20m": 20 << 20} {
		for _, stream := range []bool{false, true} {
			if got := c.answer(chatBody(model, stream), stream); len(got.content) != size {
				t.Errorf("%s stream=%v: %d bytes of content", model, stream, len(got.content))
			}
		}
	}
}

// TestGzip compresses although nobody asked.
func TestGzip(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for model, status := range map[string]int{"fake-gzip": 200, "fake-429:1+gzip": 429} {
		for _, stream := range []bool{false, true} {
			r := c.call(model, stream)
			z, err := gzip.NewReader(bytes.NewReader(r.body))
			if err != nil || r.header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("%s: %v, %v", model, err, r.header)
			}
			plain, err := io.ReadAll(z)
			if err != nil || r.status != status || !bytes.Contains(plain, []byte("{")) {
				t.Errorf("%s: status %d, %v, %q", model, r.status, err, plain)
			}
		}
	}
}

// TestPace measures waits by the bubble's clock, which moves only by them.
func TestPace(t *testing.T) {
	for model, want := range map[string]string{
		"fake-ok":               "0s",
		"fake-delay:20ms":       "20ms",
		"fake-words:3+gap:10ms": "60ms", // role, three words, finish, usage, [DONE]: six gaps
		"fake-delay:1s+500":     "1s",
	} {
		t.Run(model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startInMemory(t, fakeprovider.Options{})
				from := time.Now()
				if r := c.call(model, true); r.err != nil {
					t.Fatal(r.err)
				}
				if got := time.Since(from).String(); got != want {
					t.Errorf("took %s, want %s", got, want)
				}
			})
		})
	}
}

// TestDrip_O9 gives 64 bytes a second, and bills what a caller that leaves has
// been given.
//
// Rules: O9.
func TestDrip_O9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startInMemory(t, fakeprovider.Options{})
		from := time.Now()
		r := c.call("fake-drip:64:1s", true)
		writes := (len(r.body) + 63) / 64
		if took := time.Since(from); r.err != nil || took != time.Duration(writes-1)*time.Second {
			t.Errorf("%d bytes took %s, error %v", len(r.body), took, r.err)
		}
		if last := c.lastCall(); last.BilledOutputTokens != 16 {
			t.Errorf("bill of all: %+v", last)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		r = c.post(ctx, chatBody("fake-drip:64:1s", true), "k")
		chunks, _ := c.chunks(r.body)
		if last := c.lastCall(); last.BilledOutputTokens != gather(chunks).outputs || last.BilledOutputTokens == 0 {
			t.Errorf("bill of a part: %+v for %q", last, r.body)
		}
	})
}
