package gemini

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

func chunk(candidate string) string { return `{"candidates":[` + candidate + `],"responseId":"r"}` }

const (
	word    = `{"content":{"parts":[{"text":"hi"}]}}`
	stopped = `{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}`
	aCall   = `{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}`
)

func TestEventsOfAStream(t *testing.T) {
	h := decode(t, strings.NewReader(frame(readLines(t, "testdata/tools.chunks.txt")...))).ended(t)
	want := []neutral.Event{
		{Kind: neutral.Start},
		{Kind: neutral.ReasoningSeal, Seal: neutral.OpaqueReasoning{Issuer: neutral.Generate, ID: onCall, Signature: "T05F"}},
		{Kind: neutral.ToolCallStart, Tool: neutral.Tool{ID: "call_r-2_0", Name: "weather"}},
		{Kind: neutral.ToolCallDelta, Text: []byte(`{"city":"Graz"}`)},
		{Kind: neutral.ToolCallEnd},
		{Kind: neutral.Usage, Usage: usage.Usage{Input: usage.Of(29), Output: usage.Of(10)}},
		{Kind: neutral.ToolCallStart, Index: 1, Tool: neutral.Tool{ID: "call_r-2_1", Name: "weather"}},
		{Kind: neutral.ToolCallDelta, Index: 1, Text: []byte(`{"city":"Wien"}`)},
		{Kind: neutral.ToolCallEnd, Index: 1},
		{Kind: neutral.ToolCallStart, Index: 2, Tool: neutral.Tool{ID: "call_r-2_2", Name: "now"}},
		{Kind: neutral.ToolCallDelta, Index: 2, Text: []byte(`{}`)},
		{Kind: neutral.ToolCallEnd, Index: 2},
		{Kind: neutral.Usage, Usage: usage.Usage{Input: usage.Of(29), Output: usage.Of(25)}},
		{Kind: neutral.Stop, Stop: neutral.StopToolCalls},
		{Kind: neutral.Usage, Usage: usage.Usage{Input: usage.Of(29), Output: usage.Of(25)}},
	}
	if diff := cmp.Diff(want, h.events, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// Each finish reason that Google documents is placed; one that it does not fails the
// attempt.
//
// Rules: P11, S14.
func TestFinishReasons_P11_S14(t *testing.T) {
	ends := map[string]neutral.StopReason{
		"STOP": neutral.StopEnd, "MAX_TOKENS": neutral.StopLength, "SAFETY": neutral.StopContentFilter,
		"RECITATION": neutral.StopContentFilter, "PROHIBITED_CONTENT": neutral.StopContentFilter,
		"BLOCKLIST": neutral.StopContentFilter, "SPII": neutral.StopContentFilter, "LANGUAGE": neutral.StopContentFilter,
		"IMAGE_SAFETY": neutral.StopContentFilter, "MODEL_ARMOR": neutral.StopContentFilter,
	}
	for reason, want := range ends {
		h := decode(t, strings.NewReader(frame(chunk(word), chunk(`{"finishReason":"`+reason+`"}`)))).ended(t)
		if h.tally.Stop != want {
			t.Errorf("%s: %q, want %q", reason, h.tally.Stop, want)
		}
		if reason == "STOP" {
			continue
		}
		// After a call a length is still a length.
		h = decode(t, strings.NewReader(frame(chunk(aCall), chunk(`{"finishReason":"`+reason+`"}`)))).ended(t)
		if h.tally.Stop != want {
			t.Errorf("%s after a call: %q, want %q", reason, h.tally.Stop, want)
		}
	}
	for reason, code := range map[string]string{
		"MALFORMED_FUNCTION_CALL": "malformed_function_call", "UNEXPECTED_TOOL_CALL": "unexpected_tool_call", "OTHER": "finish_reason_other",
	} {
		decode(t, strings.NewReader(frame(chunk(word), chunk(`{"finishReason":"`+reason+`"}`)))).failed(t, failure.StreamErrorEvent, code)
	}
	decode(t, strings.NewReader(frame(chunk(`{"finishReason":"NEW_WORD"}`)))).failed(t, failure.BadPayload, "finish_reason_unknown")
	decode(t, strings.NewReader(frame(chunk(word), chunk(`{"finishReason":"FINISH_REASON_UNSPECIFIED"}`)))).failed(t, failure.StreamTruncated, "no_terminator")
}

// Whatever is wrong with a stream is a failure of its own class, and none is passed
// over.
//
// Rules: S4, S14, W8.
func TestBrokenStreams_S4_S14_W8(t *testing.T) {
	open := chunk(`{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}`)
	tests := []struct {
		name   string
		stream string
		class  failure.Class
		code   string
	}{
		{"nothing", "", failure.StreamTruncated, "no_terminator"},
		{"no finish reason", frame(chunk(word)), failure.StreamTruncated, "no_terminator"},
		{"no output", frame(chunk(stopped)), failure.EmptyCompletion, "no_output"},
		{"not JSON", frame(chunk(word), `{"candidates":[{"content":{"par`), failure.BadPayload, "malformed_event"},
		{"no stream", "<html>\n\n", failure.BadPayload, "not_a_stream"},
		{"a call cut off", frame(open, chunk(stopped)), failure.StreamTruncated, "tool_call_cut"},
		{"a call within a call", frame(open, chunk(aCall), chunk(stopped)), failure.StreamTruncated, "tool_call_cut"},
		{"a piece of no call", frame(chunk(`{"content":{"parts":[{"functionCall":{}}]}}`)), failure.BadPayload, "function_call_without_name"},
		{"arguments that are no object", frame(chunk(`{"content":{"parts":[{"functionCall":{"name":"f","args":"x"}}]}}`)), failure.BadPayload, "malformed_arguments"},
		{"a path of no kind", frame(chunk(`{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"x","stringValue":"y"}]}}]}}`)), failure.BadPayload, "malformed_arguments"},
		{"a list with a gap", frame(chunk(`{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[999999]","stringValue":"y"}]}}]}}`)), failure.BadPayload, "malformed_arguments"},
		{"two candidates", frame(chunk(word + "," + word)), failure.BadPayload, "malformed_candidates"},
		{"parts that are no list", frame(chunk(`{"content":{"parts":1}}`)), failure.BadPayload, "malformed_parts"},
		{"text that is none", frame(chunk(`{"content":{"parts":[{"text":1}]}}`)), failure.BadPayload, "malformed_text"},
		{"an error event", frame(chunk(word), `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), failure.StreamErrorEvent, "unavailable"},
		{"an error in a list", frame(`[{"error":{"code":500,"message":"x","status":"INTERNAL"}}]`), failure.StreamErrorEvent, "internal"},
		{"a throttle within", frame(`{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}`), failure.Throttled, "resource_exhausted"},
		{"a blocked prompt", frame(`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}`), failure.ContentPolicy, "prompt_blocked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			decode(t, strings.NewReader(tt.stream)).failed(t, tt.class, tt.code)
		})
	}
}

// The body's own error is passed on before the answer has ended, and is nothing after.
//
// Rules: S7.
func TestABodyThatBreaks_S7(t *testing.T) {
	broken := errors.New("connection reset")
	h := decode(t, io.MultiReader(strings.NewReader(frame(chunk(word))), errReader{broken}))
	if !errors.Is(h.err, broken) {
		t.Errorf("ended with %v", h.err)
	}
	decode(t, io.MultiReader(strings.NewReader(frame(chunk(word), chunk(stopped))), errReader{broken})).ended(t)
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// Rules: S4, W8.
func TestBrokenAnswers_S4_W8(t *testing.T) {
	tests := []struct {
		name, body string
		class      failure.Class
		code       string
	}{
		{"a page", "<html>", failure.BadPayload, "not_json"},
		{"nothing", "{}", failure.BadPayload, "no_candidates"},
		{"an error", `{"error":{"code":500,"message":"Internal error","status":"INTERNAL"}}`, failure.ServerError, "internal"},
		{"an error in a list", `[{"candidates":[]},{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`, failure.ProviderAuth, "key"},
		{"no output", `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3}}`, failure.EmptyCompletion, "no_output"},
		{"no candidate", `{"candidates":[]}`, failure.EmptyCompletion, "no_output"},
		{"a blocked prompt", `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, failure.ContentPolicy, "prompt_blocked"},
		{"a call cut off", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}`, failure.StreamTruncated, "tool_call_cut"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, f := Outbound{}.DecodeWhole(nil, []byte(tt.body))
			if f == nil || f.Class != tt.class || f.Code != tt.code {
				t.Errorf("%v, want %s: %s", f, tt.class, tt.code)
			}
		})
	}
	// An answer that a filter or a length kept empty says why.
	for _, reason := range []string{"SAFETY", "MAX_TOKENS"} {
		if answer, f := (Outbound{}).DecodeWhole(nil, []byte(`{"candidates":[{"finishReason":"`+reason+`"}]}`)); f != nil || answer.Empty {
			t.Errorf("%s: %v", reason, f)
		}
	}
}

// Ids are the same when the same answer is read again, differ within a conversation,
// and keep to what every other dialect takes.
//
// Rules: P11.
func TestIDsOfCalls_P11(t *testing.T) {
	ids := func(raw string, candidates ...string) (ids []string) {
		dec := Outbound{}.NewStream(&dialect.Request{Raw: []byte(raw)}, strings.NewReader(strings.Join(candidates, "")))
		for {
			var c neutral.Chunk
			if dec.Next(&c) != nil {
				return ids
			}
			for _, e := range c.Events {
				if e.Kind == neutral.ToolCallStart {
					ids = append(ids, e.Tool.ID)
				}
			}
		}
	}
	nameless := frame(`{"candidates":[` + aCall + `]}`)
	first, again, next := ids("turn 1", nameless, nameless), ids("turn 1", nameless, nameless), ids("turn 2", nameless)
	if diff := cmp.Diff(first, again); diff != "" || len(first) != 2 || first[0] == first[1] || next[0] == first[0] {
		t.Errorf("%v, %v, %v", first, again, next)
	}
	odd := ids("x", frame(`{"responseId":"a b/`+strings.Repeat("c", 99)+`","candidates":[`+aCall+`]}`))
	for _, id := range append(first, odd...) {
		if len(id) > 40 || !plainID(id) {
			t.Errorf("id %q", id)
		}
	}
	if own := ids("x", frame(chunk(`{"content":{"parts":[{"functionCall":{"id":"fc-7","name":"f"}}]}}`))); own[0] != "fc-7" {
		t.Errorf("Google's own id became %q", own[0])
	}
}

// Rules: M4.
func TestUsage_M4(t *testing.T) {
	of, null := usage.Of, usage.Count{State: usage.Null}
	tests := []struct {
		name, body string
		want       usage.Usage
	}{
		{
			"thoughts beside", `{"promptTokenCount":10,"candidatesTokenCount":150,"thoughtsTokenCount":8000,"totalTokenCount":8160}`,
			usage.Usage{Input: of(10), Output: of(8150), Reasoning: of(8000)},
		},
		{
			"thoughts within, by the total", `{"promptTokenCount":10,"candidatesTokenCount":150,"thoughtsTokenCount":100,"totalTokenCount":160}`,
			usage.Usage{Input: of(10), Output: of(150), Reasoning: of(100)},
		},
		{
			"thoughts alone", `{"promptTokenCount":10,"thoughtsTokenCount":100,"totalTokenCount":110}`,
			usage.Usage{Input: of(10), Output: of(100), Reasoning: of(100)},
		},
		{
			"cached is a part of the prompt", `{"promptTokenCount":100,"cachedContentTokenCount":90,"candidatesTokenCount":1}`,
			usage.Usage{Input: of(100), CachedInput: of(90), Output: of(1)},
		},
		{
			"a tool's prompt is beside", `{"promptTokenCount":100,"toolUsePromptTokenCount":7,"candidatesTokenCount":1}`,
			usage.Usage{Input: of(107), Output: of(1)},
		},
		{
			"by modality", `{"promptTokenCount":100,"candidatesTokenCount":60,"promptTokensDetails":[{"modality":"TEXT","tokenCount":40},{"modality":"AUDIO","tokenCount":50},{"modality":"IMAGE","tokenCount":10}],"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":60}]}`,
			usage.Usage{Input: of(100), AudioInput: of(50), ImageInput: of(10), Output: of(60), ImageOutput: of(60)},
		},
		{
			"modalities that are none", `{"promptTokenCount":1,"candidatesTokenCount":1,"promptTokensDetails":[{"modality":"AUDIO"},{"modality":"IMAGE","tokenCount":-1},7],"candidatesTokensDetails":{"modality":"AUDIO","tokenCount":3}}`,
			usage.Usage{Input: of(1), Output: of(1)},
		},
		{"zero, null and nothing", `{"promptTokenCount":0,"candidatesTokenCount":null}`, usage.Usage{Input: of(0), Output: null}},
		{"no counts", `{"trafficType":"ON_DEMAND","promptTokenCount":-1}`, usage.Usage{Input: null}},
	}
	for _, tt := range tests {
		r := newReader(nil)
		if f := r.read([]byte(`{"usageMetadata":` + tt.body + `}`)); f != nil {
			t.Fatal(f)
		}
		if diff := cmp.Diff(tt.want, r.events[1].Usage); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// A picture, or the run of a program, is output: an encoder that has no word for it
// refuses it, and does not send an answer without it.
//
// Rules: S1.
func TestWhatGoogleMakes_S1(t *testing.T) {
	for kind, part := range map[neutral.Kind]string{
		neutral.Image:     `{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`,
		neutral.Structure: `{"executableCode":{"language":"PYTHON","code":"1"}}`,
	} {
		h := decode(t, strings.NewReader(frame(chunk(`{"content":{"parts":[`+part+`]},"finishReason":"STOP"}`)))).ended(t)
		if h.tally.FirstOutput != kind {
			t.Errorf("%v: %+v", kind, h.tally)
		}
	}
}

// Any split of a stream gives the same events.
//
// Rules: S12.
func TestSplitAnywhere_S12(t *testing.T) {
	stream := frame(readLines(t, "testdata/text.chunks.txt")...)
	want := decode(t, strings.NewReader(stream)).ended(t)
	rapid.Check(t, func(rt *rapid.T) {
		var readers []io.Reader
		for rest := stream; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			readers = append(readers, strings.NewReader(rest[:n]))
			rest = rest[n:]
		}
		got := decode(t, io.MultiReader(readers...))
		if diff := cmp.Diff(want.events, got.events); diff != "" || !errors.Is(got.err, io.EOF) {
			rt.Fatalf("%v %s", got.err, diff)
		}
	})
}
