package fakeprovider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

// raw sends one call over TCP and returns every byte that came back, and how
// the connection ended.
func raw(t *testing.T, s *fakeprovider.Server, model string, stream bool) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := chatBody(model, stream)
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: fake\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	return string(all), err
}

const lastChunk = "0\r\n\r\n"

// TestNoReply_W13 ends the connection in place of a reply.
//
// Rules: W13.
func TestNoReply_W13(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	if got, err := raw(t, c.server, "fake-close", true); got != "" || err != nil {
		t.Errorf("close: %q, %v", got, err)
	}
	if got, err := raw(t, c.server, "fake-reset", true); got != "" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %q, %v", got, err)
	}
	if last := c.lastCall(); last.Status != 0 || last.Outcome != "reset" || last.ClientGone {
		t.Errorf("ledger: %+v", last)
	}
}

// TestCutStreams_S4 looks at the bytes on the wire of each way in which a
// stream can stop after two chunks of output.
//
// Rules: S4.
func TestCutStreams_S4(t *testing.T) {
	tests := []struct {
		how     string
		chunked bool
		ended   bool // with the last chunk of a chunked body
		err     error
		tail    string
	}{
		{"eof", true, true, nil, lastChunk},
		{"close", false, false, nil, "}\n\n"},
		{"fin", true, false, nil, "}\n\n\r\n"},
		{"chunk", true, false, nil, "400\r\ndata: {\"id\":"},
		{"rst", true, false, syscall.ECONNRESET, ""},
	}
	c := start(t, fakeprovider.Options{})
	for _, test := range tests {
		t.Run(test.how, func(t *testing.T) {
			c := c.on(t)
			got, err := raw(t, c.server, "fake-cut:2:"+test.how, true)
			if !errors.Is(err, test.err) {
				t.Errorf("ended with %v, want %v", err, test.err)
			}
			if chunked := strings.Contains(got, "Transfer-Encoding: chunked"); chunked != test.chunked {
				t.Errorf("chunked %v: %s", chunked, got)
			}
			if strings.HasSuffix(got, lastChunk) != test.ended || !strings.HasSuffix(got, test.tail) {
				t.Errorf("tail %q", got[max(0, len(got)-40):])
			}
			if n := strings.Count(got, `"content":" `) + strings.Count(got, `"content":"m`); n != 2 {
				t.Errorf("%d chunks of output, want 2", n)
			}
			if strings.Contains(got, "[DONE]") || strings.Contains(got, `"stop"`) {
				t.Error("a cut stream looks finished")
			}
			if last := c.lastCall(); last.BilledOutputTokens != 2 || last.BilledInputTokens == 0 {
				t.Errorf("bill: %+v", last)
			}
		})
	}
}

// TestCutWholeAnswers_W13: what was announced does not arrive, or what arrives
// is half an answer. The provider made it in full and bills it in full.
//
// Rules: W13.
func TestCutWholeAnswers_W13(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for how, want := range map[string]error{
		"eof": nil, "close": nil, "fin": io.ErrUnexpectedEOF, "chunk": io.ErrUnexpectedEOF, "rst": syscall.ECONNRESET,
	} {
		r := c.call("fake-cut:2:"+how, false)
		if !errors.Is(r.err, want) || json.Valid(r.body) {
			t.Errorf("%s: error %v, body %s", how, r.err, r.body)
		}
		if last := c.lastCall(); last.BilledOutputTokens != 16 {
			t.Errorf("%s: %d tokens billed, want all 16", how, last.BilledOutputTokens)
		}
	}
}

// TestSilence_W11 is every way to keep a caller waiting: each ends when the
// caller gives up, and the ledger says so.
//
// Rules: W11.
func TestSilence_W11(t *testing.T) {
	tests := []struct {
		model  string
		status int
		output int // chunks of output before the silence, in a stream
	}{
		{"fake-silence", 0, 0},
		{"fake-delay:1h", 0, 0},
		{"fake-headers", 200, 0},
		{"fake-trickle:1s", 200, 0},
		{"fake-stall:3", 200, 3},
		{"fake-stall:0", 200, 0},
		{"fake-gap:8s", 200, 2}, // role, 8 s, one, 8 s, two
	}
	for _, test := range tests {
		t.Run(test.model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startInMemory(t, fakeprovider.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				r := c.post(ctx, chatBody(test.model, true), "k")
				if !errors.Is(r.err, context.DeadlineExceeded) || r.status != test.status {
					t.Fatalf("status %d, error %v", r.status, r.err)
				}
				chunks, _ := c.chunks(r.body)
				if got := gather(chunks).outputs; got != test.output {
					t.Errorf("%d chunks of output, want %d", got, test.output)
				}
				last := c.lastCall()
				if !last.ClientGone || last.BilledOutputTokens != test.output {
					t.Errorf("ledger: %+v", last)
				}
				synctest.Wait()
				if stats := c.server.Stats(); stats.OpenCalls != 0 || stats.OpenStreams != 0 {
					t.Errorf("still open: %+v", stats)
				}
			})
		})
	}
}

// TestTrickleSendsOnlyComments_W11: bytes keep coming, output never does.
//
// Rules: W11.
func TestTrickleSendsOnlyComments_W11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startInMemory(t, fakeprovider.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		r := c.post(ctx, chatBody("fake-trickle:1s", true), "k")
		if got := string(r.body); got != strings.Repeat(": PROCESSING\n\n", 5) {
			t.Errorf("body %q", got)
		}
	})
}

// TestNotTheProtocol_W2 is 200 with something else than an answer.
//
// Rules: W2.
func TestNotTheProtocol_W2(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for _, stream := range []bool{false, true} {
		if r := c.call("fake-html", stream); r.status != 200 || !strings.HasPrefix(string(r.body), "<!doctype") || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
			t.Errorf("html: %d %v %s", r.status, r.header, r.body)
		}
		if r := c.call("fake-empty-body", stream); r.status != 200 || len(r.body) != 0 || r.err != nil {
			t.Errorf("empty body: %d %q %v", r.status, r.body, r.err)
		}
	}
	if r := c.call("fake-malformed:2", false); json.Valid(r.body) || r.err != nil {
		t.Errorf("malformed: %s", r.body)
	}
}

// TestMalformedEvent_S14 puts an event that is not JSON after two good ones;
// the rest follows.
//
// Rules: S14.
func TestMalformedEvent_S14(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	r := c.call("fake-malformed:2", true)
	var before, after, broken int
	for _, data := range sseData(r.body) {
		switch {
		case data == "[DONE]":
		case !json.Valid([]byte(data)):
			broken++
		case gather([]chunk{c.decode([]byte(data))}).outputs == 0:
		case broken == 0:
			before++
		default:
			after++
		}
	}
	if before != 2 || broken != 1 || after != 14 {
		t.Errorf("%d good, %d broken, %d good", before, broken, after)
	}
}

// TestErrorEvents_W2 tells a failure inside a 200, before any output and after.
//
// Rules: W2.
func TestErrorEvents_W2(t *testing.T) {
	tests := []struct {
		model   string
		outputs int
		events  int // all of them
		code    any
		finish  string
		billed  int
	}{
		{"fake-error:first:overloaded", 0, 1, "overloaded", "", 0},
		{"fake-error:first:funding", 0, 1, "insufficient_quota", "", 0},
		{"fake-error:0:throttled", 0, 2, "rate_limit_exceeded", "", 0}, // the role comes first
		{"fake-error:3", 3, 5, nil, "", 3},
		{"fake-error:3:bad_gateway", 3, 5, 502.0, "", 3},
		{"fake-error:2:finish", 2, 4, 502.0, "error", 2},
		{"fake-bare-error:2:overloaded", 2, 4, "overloaded", "", 2},
	}
	c := start(t, fakeprovider.Options{})
	for _, test := range tests {
		t.Run(test.model, func(t *testing.T) {
			c := c.on(t)
			r := c.call(test.model, true)
			chunks, done := c.chunks(r.body)
			got := gather(chunks)
			if r.status != http.StatusOK || done || len(chunks) != test.events || got.outputs != test.outputs {
				t.Errorf("status %d, done %v, %d events, %d outputs: %s", r.status, done, len(chunks), got.outputs, r.body)
			}
			if got.failure == nil || got.failure.Code != test.code || got.finish != test.finish {
				t.Errorf("error %+v, finish %q", got.failure, got.finish)
			}
			if named := strings.Contains(string(r.body), "event: error\n"); named != strings.Contains(test.model, "bare") {
				t.Errorf("named event %v: %s", named, r.body)
			}
			if last := c.lastCall(); last.BilledOutputTokens != test.billed || (last.BilledInputTokens > 0) != (test.billed > 0) {
				t.Errorf("bill: %+v", last)
			}
		})
	}
}

// TestErrorInsideWhole200_W2 is the twin without a stream.
//
// Rules: W2.
func TestErrorInsideWhole200_W2(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	r := c.call("fake-error:first:overloaded", false)
	if got := c.decode(r.body); r.status != http.StatusOK || got.Error == nil || got.Error.Code != "overloaded" || got.Choices != nil {
		t.Errorf("status %d, body %s", r.status, r.body)
	}
	if got := c.answer(chatBody("fake-error:1:finish", false), false); got.finish != "error" || got.content == "" {
		t.Errorf("finish %q", got.finish)
	}
}

// TestUnfinishedStreams_S14 lacks the sentinel, the finish reason, or both.
//
// Rules: S14.
func TestUnfinishedStreams_S14(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for model, want := range map[string]struct {
		done   bool
		finish string
	}{
		"fake-ok":                {true, "stop"},
		"fake-no-done":           {false, "stop"},
		"fake-no-finish":         {true, ""},
		"fake-no-finish+no-done": {false, ""},
		"fake-finish:error":      {true, "error"},
		"fake-finish:banana":     {true, "banana"},
	} {
		r := c.call(model, true)
		chunks, done := c.chunks(r.body)
		got := gather(chunks)
		if r.err != nil || done != want.done || got.finish != want.finish || got.outputs != 16 {
			t.Errorf("%s: error %v, done %v, finish %q, %d outputs", model, r.err, done, got.finish, got.outputs)
		}
	}
}

// TestToolCut_S4 stops in the middle of a call's arguments, also when they are
// as short as arguments can be.
//
// Rules: S4.
func TestToolCut_S4(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for _, parameters := range []string{`{"type":"object","properties":{"city":{"type":"string"}}}`, `{}`} {
		body := strings.TrimSuffix(chatBody("fake-tool-cut", true), "}") +
			`,"tools":[{"type":"function","function":{"name":"f","parameters":` + parameters + `}}]}`
		r := c.post(t.Context(), body, "k")
		chunks, done := c.chunks(r.body)
		got := gather(chunks)
		if !errors.Is(r.err, io.ErrUnexpectedEOF) || done || len(got.calls) != 1 || got.finish != "" {
			t.Fatalf("error %v, %+v", r.err, got)
		}
		if cut := got.calls[0].Function.Arguments; cut == "" || json.Valid([]byte(cut)) {
			t.Errorf("arguments %q are not cut in their middle", cut)
		}
	}
}
