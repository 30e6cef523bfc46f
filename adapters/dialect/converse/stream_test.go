package converse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

const (
	began   = `{"messageStart":{"role":"assistant"}}`
	hello   = `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Hello"}}}`
	stopped = `{"messageStop":{"stopReason":"end_turn"}}`
	counted = `{"metadata":{"usage":{"inputTokens":3,"outputTokens":1,"totalTokens":4}}}`
	called  = `{"contentBlockStart":{"contentBlockIndex":4,"start":{"toolUse":{"toolUseId":"t1","name":"f"}}}}`
)

// failed is the failure that a stream ended with.
func failed(t *testing.T, err error) failure.Failure {
	t.Helper()
	f, ok := errors.AsType[*failure.Failure](err)
	if !ok {
		t.Fatalf("ended with %v", err)
	}
	return *f
}

// Rules: S4, S14.
func TestStreamEnds_S4_S14(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	whole := stream(t, began, hello, stopped, counted)
	for _, tt := range []struct {
		name  string
		body  []byte
		class failure.Class
		code  string
	}{
		{"no body", nil, failure.StreamTruncated, "no_terminator"},
		{"no stop reason", stream(t, began, hello, counted), failure.StreamTruncated, "no_terminator"},
		{"cut inside a frame", stream(t, began, hello)[:80], failure.StreamTruncated, "no_terminator"},
		{"wrong checksum", func() []byte { b := bytes.Clone(whole); b[len(b)-1]++; return b[:] }(), "", ""},
		{"wrong checksum before the end", func() []byte { b := stream(t, began, hello); b[len(b)-1]++; return b }(), failure.BadPayload, "malformed_frame"},
		{"not an event stream", []byte("data: {\"choices\":[]}\n\n"), failure.BadPayload, "malformed_frame"},
		{"payload that is no JSON", join(stream(t, began), event(t, "contentBlockDelta", `{"delta":{"text":"half`)), failure.BadPayload, "malformed_event"},
		{"text that is no string", join(stream(t, began), event(t, "contentBlockDelta", `{"delta":{"text":1}}`)), failure.BadPayload, "malformed_text"},
		{"unknown stop reason", stream(t, began, hello, `{"messageStop":{"stopReason":"because"}}`), failure.BadPayload, "stop_reason_unknown"},
		{"malformed output", stream(t, began, hello, `{"messageStop":{"stopReason":"malformed_tool_use"}}`), failure.StreamErrorEvent, "stop_reason_error"},
		{"no output", stream(t, began, stopped, counted), failure.EmptyCompletion, "no_output"},
		{"call without its arguments' end", stream(t, began, called,
			`{"contentBlockDelta":{"contentBlockIndex":4,"delta":{"toolUse":{"input":"{\"a\": \"}"}}}}`,
			`{"messageStop":{"stopReason":"tool_use"}}`), failure.StreamTruncated, "tool_call_cut"},
		{"unknown message type", join(stream(t, began), frame(t, map[string]string{":message-type": "x"}, []byte("{}"))), failure.BadPayload, "malformed_frame"},
		{"stop without usage", stream(t, began, hello, stopped), "", ""},
		{"usage before the stop", stream(t, began, hello, counted, stopped), "", ""},
		{"cut after the stop", append(stream(t, began, hello, stopped), whole[:9]...), "", ""},
		{"an event that is new", join(stream(t, began, hello), event(t, "somethingNew", `{"a":1}`), stream(t, stopped)), "", ""},
		{"cut for its length, with half a call", stream(t, began, called,
			`{"contentBlockDelta":{"contentBlockIndex":4,"delta":{"toolUse":{"input":"{\"a\""}}}}`,
			`{"messageStop":{"stopReason":"max_tokens"}}`), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := read(t, bytes.NewReader(tt.body))
			if tt.class == "" {
				if !errors.Is(got.err, io.EOF) {
					t.Fatalf("ended with %v", got.err)
				}
				return
			}
			if f := failed(t, got.err); f.Class != tt.class || f.Code != tt.code {
				t.Errorf("failure = %+v, want %s %s", f, tt.class, tt.code)
			}
		})
	}
}

// The loss of the connection is the body's own error; after the stop reason it no
// longer matters (S14).
func TestBrokenBody_S14(t *testing.T) {
	broken := errors.New("connection reset")
	after := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b), iotest.ErrReader(broken)) }
	cut := stream(t, began, hello)
	for _, body := range [][]byte{cut, cut[:len(cut)-7], cut[:50], {}} {
		if got := read(t, after(body)); !errors.Is(got.err, broken) {
			t.Errorf("after %d bytes: %v", len(body), got.err)
		}
	}
	if got := read(t, after(stream(t, began, hello, stopped))); !errors.Is(got.err, io.EOF) {
		t.Errorf("after the stop reason: %v", got.err)
	}
}

// An exception frame is a failure before output and after it (S4); what it names is
// kept, and what is Bedrock's own fault is a broken stream.
//
// Rules: S4, W4.
func TestExceptionFrames_S4_W4(t *testing.T) {
	for _, tt := range []struct {
		kind, message string
		class         failure.Class
	}{
		{"throttlingException", "Too many tokens, please wait before trying again.", failure.Throttled},
		{"modelStreamErrorException", "The system encountered an unexpected error", failure.StreamErrorEvent},
		{"internalServerException", "Try again", failure.StreamErrorEvent},
		{"serviceUnavailableException", "Bedrock is unable to process your request.", failure.StreamErrorEvent},
		{"modelTimeoutException", "Model processing time exceeded", failure.StreamErrorEvent},
		{"validationException", "Input is too long for requested model.", failure.ContextLength},
		{"validationException", "The value at toolConfig is wrong", failure.InvalidRequest},
		{"somethingNewException", "?", failure.StreamErrorEvent},
	} {
		for _, before := range [][]string{nil, {began}, {began, hello}} {
			body := append(stream(t, before...), exceptionFrame(t, tt.kind, tt.message)...)
			got := read(t, bytes.NewReader(append(body, stream(t, stopped)...)))
			if f := failed(t, got.err); f.Class != tt.class {
				t.Errorf("%s after %d frames: %+v", tt.kind, len(before), f)
			}
			if committed := len(before) == 2; got.tally.Committed() != committed {
				t.Errorf("%s: committed = %v", tt.kind, got.tally.Committed())
			}
		}
	}
	body := frame(t, map[string]string{":message-type": "error", ":error-code": "ThrottlingException", ":error-message": "slow down"}, nil)
	if f := failed(t, read(t, bytes.NewReader(body)).err); f.Class != failure.Throttled {
		t.Errorf("error frame: %+v", f)
	}
}

// Rules: M4.
func TestUsageIsConverted_M4(t *testing.T) {
	got := read(t, bytes.NewReader(stream(t, readLines(t, "testdata/text.chunks.txt")...)))
	want := usage.Usage{
		Input: usage.Of(150), CachedInput: usage.Of(100), CacheWrite5m: usage.Of(12), CacheWrite1h: usage.Of(30), Output: usage.Of(5),
	}
	if diff := cmp.Diff(want, got.tally.Usage); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct{ json, field string }{
		{`{"inputTokens":null}`, "null"}, {`{"inputTokens":-1}`, "negative"}, {`{"inputTokens":1.5}`, "not whole"}, {`{"inputTokens":"1"}`, "a string"},
	} {
		lines := []string{began, hello, stopped, `{"metadata":{"usage":` + tt.json + `}}`}
		if u := read(t, bytes.NewReader(stream(t, lines...))).tally.Usage; u.Input.State != usage.Null || u.Output.State != usage.Absent {
			t.Errorf("%s: %+v", tt.field, u)
		}
	}
}

// However the network cuts a stream, its events are the same (S12).
func TestAnySplitGivesTheSameEvents_S12(t *testing.T) {
	var body []byte
	for _, file := range recorded(t, ".chunks.txt")[:2] {
		body = append(body[:0:0], stream(t, readLines(t, file)...)...)
		want := read(t, bytes.NewReader(body))
		rapid.Check(t, func(rt *rapid.T) {
			var pieces []io.Reader
			for rest := body; len(rest) > 0; {
				n := rapid.IntRange(1, min(len(rest), 300)).Draw(rt, "n")
				pieces = append(pieces, bytes.NewReader(rest[:n]))
				rest = rest[n:]
			}
			got := read(t, io.MultiReader(pieces...))
			if diff := cmp.Diff(want.events, got.events); diff != "" || !errors.Is(got.err, io.EOF) {
				rt.Fatalf("%v\n%s", got.err, diff)
			}
		})
	}
}

// Ready promises that Next does not read: a stream is asked for it before each write
// to the client.
//
// Rules: S9.
func TestReadyDoesNotRead_S9(t *testing.T) {
	pulls := 0
	pieces := [][]byte{stream(t, began, hello)[:100], stream(t, began, hello)[100:], stream(t, stopped, counted)}
	body := readerFunc(func(p []byte) (int, error) {
		if pulls == len(pieces) {
			return 0, io.EOF
		}
		pulls++
		return copy(p, pieces[pulls-1]), nil
	})
	dec := Outbound{}.NewStream(nil, body)
	var c neutral.Chunk
	for {
		before, ready := pulls, dec.Ready()
		err := dec.Next(&c)
		if ready && pulls != before {
			t.Fatal("Next read although Ready")
		}
		if err != nil {
			if !errors.Is(err, io.EOF) || !ready || pulls != len(pieces) {
				t.Errorf("%v, ready %v, %d pulls", err, ready, pulls)
			}
			return
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestToolCallsAreBounded(t *testing.T) {
	lines := []string{began}
	for range maxToolCalls + 1 {
		lines = append(lines, called)
	}
	if f := failed(t, read(t, bytes.NewReader(stream(t, lines...))).err); f.Code != "too_many_tool_calls" {
		t.Errorf("failure = %+v", f)
	}
}

// Reasoning that is withheld comes as a seal, and both are put together as parts of
// their own (K4).
func TestWithheldReasoning_K4(t *testing.T) {
	got := read(t, bytes.NewReader(stream(t, began,
		`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s1"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"cmVk"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"reasoningContent":{"text":"b"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"reasoningContent":{"signature":"s2"}}}}`,
		`{"contentBlockDelta":{"contentBlockIndex":3,"delta":{"text":"c"}}}`, stopped, counted)))
	own := func(o neutral.OpaqueReasoning) neutral.OpaqueReasoning { o.Issuer = neutral.Converse; return o }
	want := []neutral.Part{
		{Kind: neutral.ReasoningPart, Text: "a", Opaque: own(neutral.OpaqueReasoning{Signature: "s1"})},
		{Kind: neutral.ReasoningPart, Opaque: own(neutral.OpaqueReasoning{Encrypted: "cmVk"})},
		{Kind: neutral.ReasoningPart, Text: "b", Opaque: own(neutral.OpaqueReasoning{Signature: "s2"})},
		{Kind: neutral.TextPart, Text: "c"},
	}
	if diff := cmp.Diff(want, got.answer.Output); diff != "" {
		t.Error(diff)
	}
}

func TestWholeFailures(t *testing.T) {
	for _, tt := range []struct {
		body  string
		class failure.Class
		code  string
	}{
		{`nothing`, failure.BadPayload, "not_json"},
		{`{"usage":{}}`, failure.BadPayload, "no_content"},
		{`{"message":"Too many requests"}`, failure.Throttled, "throttle_words"},
		{`{"__type":"InternalServerException","message":"x"}`, failure.ServerError, "internal"},
		{`{"output":{"message":{"content":[]}},"stopReason":"end_turn"}`, failure.EmptyCompletion, "no_output"},
		{`{"output":{"message":{"content":[{"text":"x"}]}},"stopReason":"new"}`, failure.BadPayload, "stop_reason_unknown"},
	} {
		if _, f := (Outbound{}).DecodeWhole(nil, []byte(tt.body)); f == nil || f.Class != tt.class || f.Code != tt.code {
			t.Errorf("%s: %+v", tt.body, f)
		}
	}
	for _, reason := range []string{"max_tokens", "content_filtered", "guardrail_intervened", "refusal"} {
		body := `{"output":{"message":{"content":[]}},"stopReason":"` + reason + `"}`
		if answer, f := (Outbound{}).DecodeWhole(nil, []byte(body)); f != nil || answer.Stop != stopReasons[reason] {
			t.Errorf("%s: %+v, %v", reason, answer, f)
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	for _, bb := range []struct{ name, payload string }{
		{"text", hello}, {"long", strings.Replace(hello, "Hello", strings.Repeat("some words of an answer ", 40), 1)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			one := line(b, bb.payload)
			dec := Outbound{}.NewStream(nil, &repeat{piece: one})
			var c neutral.Chunk
			b.SetBytes(int64(len(one)))
			b.ReportAllocs()
			for b.Loop() {
				if err := dec.Next(&c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeat is an endless stream of one event.
type repeat struct{ piece, rest []byte }

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.rest) == 0 {
			r.rest = r.piece
		}
		m := copy(p[n:], r.rest)
		r.rest = r.rest[m:]
		n += m
	}
	return n, nil
}
