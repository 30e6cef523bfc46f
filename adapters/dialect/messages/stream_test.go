package messages

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

const (
	begin     = `{"type":"message_start","message":{"model":"up","content":[],"stop_reason":null,"usage":{"input_tokens":7,"output_tokens":1}}}`
	openText  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	hello     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`
	closeText = `{"type":"content_block_stop","index":0}`
	openTool  = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`
	halfInput = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`
	endTurn   = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`
	finished  = `{"type":"message_stop"}`
)

func withReason(reason string) string { return strings.Replace(endTurn, "end_turn", reason, 1) }

// Truncations, error events, malformed events and missing ends are noticed, and each
// is named (S4, S14, W8).
func TestBrokenStreams_S4_S14_W8(t *testing.T) {
	errorEvent := func(kind string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"x"}}`
	}
	tests := []struct {
		name  string
		lines []string
		class failure.Class
		code  string
	}{
		{"cut in text", []string{begin, openText, hello}, failure.StreamTruncated, "no_terminator"},
		{"no stop reason", []string{begin, openText, hello, closeText, finished}, failure.StreamTruncated, "no_terminator"},
		{"cut call", []string{begin, openTool, halfInput, closeText, withReason("tool_use"), finished}, failure.StreamTruncated, "tool_call_cut"},
		{"nothing at all", nil, failure.StreamTruncated, "no_terminator"},
		{"no output", []string{begin, endTurn, finished}, failure.EmptyCompletion, "no_output"},
		{"overloaded first", []string{errorEvent("overloaded_error")}, failure.StreamErrorEvent, "type"},
		{"error after output", []string{begin, openText, hello, errorEvent("api_error")}, failure.StreamErrorEvent, "type"},
		{"throttle inside", []string{begin, errorEvent("rate_limit_error")}, failure.Throttled, "type"},
		{"not JSON", []string{begin, `{"type":`}, failure.BadPayload, "malformed_event"},
		{"unknown reason", []string{begin, openText, hello, closeText, withReason("error"), finished}, failure.BadPayload, "stop_reason_unknown"},
		{"second start", []string{begin, begin}, failure.BadPayload, "second_message_start"},
		{"no start", []string{openText}, failure.BadPayload, "no_message_start"},
		{"delta without block", []string{begin, hello}, failure.BadPayload, "block_not_open"},
		{"delta after its block", []string{begin, openText, closeText, hello}, failure.BadPayload, "block_not_open"},
		{"falling index", []string{begin, openText, closeText, openText}, failure.BadPayload, "block_index"},
		{"thinking in text", []string{begin, openText, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x"}}`}, failure.BadPayload, "delta_does_not_fit"},
		{"arguments in text", []string{begin, openText, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"x"}}`}, failure.BadPayload, "delta_does_not_fit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := through(t, strings.NewReader(frame(tt.lines...)), false)
			f, ok := errors.AsType[*failure.Failure](got.err)
			if !ok || f.Class != tt.class || f.Code != tt.code {
				t.Fatalf("ended with %v, want %s: %s", got.err, tt.class, tt.code)
			}
			for _, s := range got.sent {
				if s.Name == "message_stop" {
					t.Error("a broken stream was ended as a whole one (S3)")
				}
			}
		})
	}
}

// A stop reason is enough: what became of the connection afterwards, or whether it is
// left open, matters to nobody (S7, S14).
func TestCompleteStreams_S7_S14(t *testing.T) {
	broken := errors.New("reset")
	open, closer := io.Pipe()
	defer closer.Close()
	whole := frame(begin, openText, hello, closeText, endTurn)
	for name, body := range map[string]io.Reader{
		"no message_stop": strings.NewReader(whole),
		"broken after":    io.MultiReader(strings.NewReader(whole), iotest.ErrReader(broken)),
		"[DONE]":          strings.NewReader(whole + "data: [DONE]\n\n"),
		"left open":       io.MultiReader(strings.NewReader(whole+frame(finished)), open),
	} {
		got := through(t, body, false)
		if !errors.Is(got.err, io.EOF) || got.sent[len(got.sent)-1].Name != "message_stop" || len(got.sent) != 6 {
			t.Errorf("%s: %v, %v", name, got.err, got.sent)
		}
	}
	got := through(t, io.MultiReader(strings.NewReader(frame(begin, openText, hello)), iotest.ErrReader(broken)), false)
	if !errors.Is(got.err, broken) {
		t.Errorf("a break before the end is %v", got.err)
	}
}

func TestCutByLengthIsAnAnswer(t *testing.T) {
	got := through(t, strings.NewReader(frame(begin, openTool, halfInput, closeText, withReason("max_tokens"), finished)), false)
	if !errors.Is(got.err, io.EOF) || got.tally.Stop != neutral.StopLength {
		t.Errorf("%v, %+v", got.err, got.tally)
	}
}

// What blocks say, in order: signed, redacted and signed but empty thinking, calls
// with dense indexes, without arguments, and whole in their start.
//
// Rules: P11, K4.
func TestEvents_P11_K4(t *testing.T) {
	got := through(t, strings.NewReader(frame(replies(t, "testdata/thinking-tools.chunks.txt")[0]...)), false)
	var seals, calls []string
	for _, e := range got.events {
		switch e.Kind {
		case neutral.ReasoningSeal:
			seals = append(seals, e.Seal.Signature+e.Seal.Redacted)
			if e.Seal.Issuer != neutral.Messages {
				t.Errorf("issuer %q", e.Seal.Issuer)
			}
		case neutral.ToolCallStart:
			if e.Index != len(calls) {
				t.Errorf("call %d has index %d", len(calls), e.Index)
			}
			calls = append(calls, e.Tool.ID+" "+e.Tool.Name+" ")
		case neutral.ToolCallDelta:
			calls[e.Index] += string(e.Text)
		}
	}
	if diff := cmp.Diff([]string{"SIG==", "REDACTED==", "EMPTY=="}, seals); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`toolu_a weather {"city":"Brno"}`, `toolu_b now {}`, `toolu_c roll {"player":"p1"}`}, calls); diff != "" {
		t.Error(diff)
	}
	want := usage.Usage{Input: usage.Of(3), Output: usage.Of(77), Reasoning: usage.Of(20)}
	if diff := cmp.Diff(want, got.tally.Usage); diff != "" {
		t.Error(diff)
	}
}

// However the body is cut into reads, the events are the same (S12).
func TestStreamSplitAnywhere_S12(t *testing.T) {
	for _, file := range []string{"testdata/text.chunks.txt", "testdata/thinking-tools.chunks.txt"} {
		body := frame(replies(t, file)[0]...)
		want := through(t, strings.NewReader(body), true)
		rapid.Check(t, func(rt *rapid.T) {
			at := rapid.IntRange(0, len(body)).Draw(rt, "at")
			got := through(t, io.MultiReader(strings.NewReader(body[:at]), iotest.OneByteReader(strings.NewReader(body[at:]))), true)
			if diff := cmp.Diff(want.sent, got.sent); diff != "" {
				rt.Fatal(diff)
			}
			if diff := cmp.Diff(want.events, got.events); diff != "" {
				rt.Fatal(diff)
			}
		})
	}
}

// written encodes events of another dialect, one a chunk.
func written(t testing.TB, events ...neutral.Event) []sent {
	t.Helper()
	enc := Inbound{}.NewStream(asking(), meta)
	var out []byte
	for _, e := range events {
		var err error
		if out, err = enc.Encode(out, &neutral.Chunk{Dialect: neutral.Chat, Events: []neutral.Event{e}}); err != nil {
			t.Fatal(err)
		}
	}
	return readSent(enc.End(out))
}

// Rules: P11.
func TestBlocksOfAForeignAnswer_P11(t *testing.T) {
	text := func(s string) neutral.Event { return neutral.Event{Kind: neutral.Text, Text: []byte(s)} }
	got := written(t,
		neutral.Event{Kind: neutral.Start},
		neutral.Event{Kind: neutral.Reasoning, Text: []byte("hm")},
		neutral.Event{Kind: neutral.ReasoningSeal, Seal: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "SIG"}},
		text("a\n"), text(""), text("b"),
		neutral.Event{Kind: neutral.ToolCallStart, Tool: neutral.Tool{ID: "functions.f:0", Name: "f"}},
		neutral.Event{Kind: neutral.ToolCallStart, Index: 1, Tool: neutral.Tool{ID: "c1", Name: "g"}},
		neutral.Event{Kind: neutral.ToolCallDelta, Index: 1, Text: []byte(`{"b"`)},
		neutral.Event{Kind: neutral.ToolCallDelta, Index: 0, Text: []byte(`{}`)},
		neutral.Event{Kind: neutral.ToolCallDelta, Index: 1, Text: []byte(`:1}`)},
		neutral.Event{Kind: neutral.Stop, Stop: neutral.StopEnd},
		neutral.Event{Kind: neutral.Usage, Usage: usage.Usage{Input: usage.Of(100), CachedInput: usage.Of(60), CacheWrite5m: usage.Of(30), Output: usage.Of(5)}},
	)
	want := []sent{
		{"message_start", `{"type":"message_start","message":{"id":"msg_req","type":"message","role":"assistant","model":"requested/name","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":345,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}`},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SIG"}}`},
		{"content_block_stop", `{"type":"content_block_stop","index":0}`},
		{"content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n"}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}`},
		{"content_block_stop", `{"type":"content_block_stop","index":1}`},
		{"content_block_start", `{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"functions_2ef_3a0","name":"f","input":{}}}`},
		{"content_block_start", `{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"c1","name":"g","input":{}}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"b\""}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":":1}"}}`},
		{"content_block_stop", `{"type":"content_block_stop","index":2}`},
		{"content_block_stop", `{"type":"content_block_stop","index":3}`},
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":10,"cache_creation_input_tokens":30,"cache_read_input_tokens":60,"output_tokens":5}}`},
		{"message_stop", `{"type":"message_stop"}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Rules: P11.
func TestStopReasonsOfForeignAnswers_P11(t *testing.T) {
	refused := written(t, neutral.Event{Kind: neutral.Refusal, Text: []byte("no")}, neutral.Event{Kind: neutral.Stop, Stop: neutral.StopEnd})
	if delta := refused[len(refused)-2].Data; !strings.Contains(delta, `"stop_reason":"refusal"`) {
		t.Errorf("a refusal in words: %s", delta)
	}
	for stop, want := range map[neutral.StopReason]string{
		neutral.StopEnd: "end_turn", neutral.StopLength: "max_tokens", neutral.StopToolCalls: "tool_use",
		neutral.StopRefusal: "refusal", neutral.StopContentFilter: "refusal", neutral.StopNone: "end_turn",
	} {
		all := written(t, neutral.Event{Kind: neutral.Text, Text: []byte("12345")}, neutral.Event{Kind: neutral.Stop, Stop: stop})
		delta := all[len(all)-2].Data
		if !strings.Contains(delta, `"stop_reason":"`+want+`"`) {
			t.Errorf("%q: %s", stop, delta)
		}
		if !strings.Contains(delta, `"input_tokens":345`) || !strings.Contains(delta, `"output_tokens":2}`) {
			t.Errorf("without a report the counts are the estimates: %s", delta)
		}
	}
}

// Any order of events comes out as a stream that the protocol's own reader takes.
//
// Rules: P11.
func TestAnyEventsMakeAValidStream_P11(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var events []neutral.Event
		calls := 0
		for range rapid.IntRange(1, 20).Draw(rt, "events") {
			text := []byte(rapid.String().Draw(rt, "text"))
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				events = append(events, neutral.Event{Kind: neutral.Text, Text: text})
			case 1:
				events = append(events, neutral.Event{Kind: neutral.Reasoning, Text: text})
			case 2:
				events = append(events, neutral.Event{Kind: neutral.ReasoningSeal, Seal: neutral.OpaqueReasoning{Issuer: neutral.Generate, Signature: "s"}})
			case 3:
				events = append(events, neutral.Event{Kind: neutral.ToolCallStart, Index: calls, Tool: neutral.Tool{Name: "f"}},
					neutral.Event{Kind: neutral.ToolCallDelta, Index: calls, Text: []byte(`{"a":1}`)})
				calls++
			case 4:
				events = append(events, neutral.Event{Kind: neutral.Refusal, Text: text})
			case 5:
				events = append(events, neutral.Event{Kind: neutral.Usage, Usage: usage.Usage{Output: usage.Of(1)}})
			}
		}
		events = append(events, neutral.Event{Kind: neutral.Text, Text: []byte("x")}, neutral.Event{Kind: neutral.Stop, Stop: neutral.StopEnd})
		var lines []string
		for _, s := range written(t, events...) {
			lines = append(lines, s.Data)
		}
		got := through(t, strings.NewReader(frame(lines...)), false)
		if !errors.Is(got.err, io.EOF) || got.tally.ToolCalls != calls {
			rt.Fatalf("%v:\n%s", got.err, strings.Join(lines, "\n"))
		}
		if want := joined(events, neutral.Reasoning); joined(got.events, neutral.Reasoning) != want {
			rt.Fatalf("reasoning %q became %q", want, joined(got.events, neutral.Reasoning))
		}
	})
}

// Rules: S3, S10.
func TestFailAndKeepAlive_S3_S10(t *testing.T) {
	enc := Inbound{}.NewStream(asking(), meta)
	out := readSent(enc.Fail(enc.KeepAlive(nil), apierror.New(apierror.UpstreamTruncated)))
	if len(out) != 2 || out[0] != (sent{"ping", `{"type":"ping"}`}) || out[1].Name != "error" || typeOf(out[1].Data) != "error" {
		t.Errorf("%v", out)
	}
}

// Anthropic's input leaves out what was read from and written to a cache; inside, all
// is in (M4, P6). A total of writes without a split is at the default lifetime.
func TestUsage_M4_P6(t *testing.T) {
	null := usage.Count{State: usage.Null}
	tests := []struct {
		reports []string
		want    usage.Usage
	}{
		{
			[]string{`{"input_tokens":3,"cache_creation_input_tokens":12304,"cache_read_input_tokens":0,"output_tokens":550}`},
			usage.Usage{Input: usage.Of(12307), CachedInput: usage.Of(0), CacheWrite5m: usage.Of(12304), Output: usage.Of(550)},
		},
		{
			[]string{
				`{"input_tokens":10,"cache_creation_input_tokens":30,"cache_read_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":1}`,
				`{"output_tokens":40}`,
			},
			usage.Usage{Input: usage.Of(45), CachedInput: usage.Of(5), CacheWrite5m: usage.Of(10), CacheWrite1h: usage.Of(20), Output: usage.Of(40)},
		},
		{
			[]string{`{"input_tokens":10,"output_tokens":1}`, `{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":2}`, `{"input_tokens":null,"output_tokens":3}`},
			usage.Usage{Input: usage.Of(14), CachedInput: usage.Of(4), Output: usage.Of(3)},
		},
		{[]string{`{"input_tokens":0,"output_tokens":0}`}, usage.Usage{Input: usage.Of(0), Output: usage.Of(0)}},
		{[]string{`{"input_tokens":null,"output_tokens":-1}`}, usage.Usage{Input: null, Output: null}},
		{[]string{`{}`}, usage.Usage{}},
	}
	for _, tt := range tests {
		var r reported
		for _, s := range tt.reports {
			r.read(gjson.Parse(s))
		}
		if diff := cmp.Diff(tt.want, r.neutral()); diff != "" {
			t.Errorf("%v: %s", tt.reports, diff)
		}
	}
}
