package responses

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
	created   = `{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"up","status":"in_progress","output":[]}}`
	hello     = `{"type":"response.output_text.delta","sequence_number":1,"output_index":0,"content_index":0,"delta":"hello"}`
	added     = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}`
	call      = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}`
	half      = `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\":"}`
	completed = `{"type":"response.completed","sequence_number":2,"response":{"id":"r","model":"up","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":1,"total_tokens":4}}}`
)

func incomplete(reason string) string {
	return `{"type":"response.incomplete","response":{"id":"r","status":"incomplete","incomplete_details":{"reason":"` + reason + `"},"output":[]}}`
}

func gaveUp(code string) string {
	return `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"` + code + `","message":"boom"}}}`
}

// Rules: S1, S3, S4, S14, W8.
func TestHowStreamsEnd_S1_S3_S4_S14_W8(t *testing.T) {
	tests := []struct {
		name, body string
		// class is empty for an answer that ends as it should.
		class failure.Class
		code  string
	}{
		{"complete", framed(created, added, hello, completed), "", ""},
		{"its connection cut after the terminal event", framed(hello, completed) + "data: {", "", ""},
		{"a sentinel after the terminal event", framed(hello, completed) + "data: [DONE]\n\n", "", ""},
		{"out of tokens", framed(created, hello, incomplete("max_output_tokens")), "", ""},
		{"length without output is an answer", framed(created, incomplete("max_output_tokens")), "", ""},
		{"a filter's silence is an answer", framed(created, incomplete("content_filter")), "", ""},
		{"a call cut by its length is the caller's to see", framed(call, half, incomplete("max_output_tokens")), "", ""},
		{"only the whole in the end", framed(strings.Replace(completed, `"output":[]`, `"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]`, 1)), "", ""},

		{"cut after output", framed(created, hello), failure.StreamTruncated, "no_terminator"},
		{"cut after the lifecycle", framed(created), failure.StreamTruncated, "no_terminator"},
		{"nothing at all", "", failure.StreamTruncated, "no_terminator"},
		{"another dialect's sentinel is no end", framed(created, hello) + "data: [DONE]\n\n", failure.StreamTruncated, "no_terminator"},
		{"terminal event cut off", framed(hello) + "data: " + completed, failure.StreamTruncated, "no_terminator"},
		{"a page", "<html>\n<body>busy</body>\n</html>\n", failure.BadPayload, "not_a_stream"},
		{"a call that never ended", framed(call, half, completed), failure.StreamTruncated, "tool_call_cut"},

		{"malformed event", framed(hello) + "data: {\"type\":\"response.output\n\n", failure.BadPayload, "malformed_event"},
		{"no type", framed(hello, `{"delta":"x"}`), failure.BadPayload, "malformed_event"},
		{"text is a number", framed(`{"type":"response.output_text.delta","delta":7}`), failure.BadPayload, "malformed_text"},
		{"item is a string", framed(`{"type":"response.output_item.added","item":"x"}`), failure.BadPayload, "malformed_item"},
		{"terminal event without a response", framed(hello, `{"type":"response.completed"}`), failure.BadPayload, "malformed_response"},
		{"arguments of no call", framed(created, half), failure.BadPayload, "arguments_without_call"},
		{"an unknown reason", framed(hello, incomplete("banana")), failure.BadPayload, "incomplete_reason_unknown"},
		{"deep nesting", framed(`{"type":"x","a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`), failure.BadPayload, "malformed_event"},

		{"error before created", framed(`{"type":"error","code":"server_error","message":"boom","param":null}`), failure.StreamErrorEvent, "server_code"},
		{"error after created", framed(created, `{"type":"error","error":{"type":"server_error","code":null,"message":"boom"}}`), failure.StreamErrorEvent, "status"},
		{"error named by its event alone", framed(created) + "event: error\ndata: {\"message\":\"boom\"}\n\n", failure.StreamErrorEvent, "status"},
		{"error of another shape", framed(created, `{"error":{"message":"boom"}}`), failure.StreamErrorEvent, "status"},
		{"funding after created", framed(created, gaveUp("insufficient_quota")), failure.ProviderQuota, "funding_code"},
		{"throttled after created", framed(created, gaveUp("rate_limit_exceeded")), failure.Throttled, "throttle_code"},
		{"overloaded after created", framed(created, gaveUp("server_is_overloaded")), failure.StreamErrorEvent, "overloaded"},
		{"failed after output", framed(created, hello, gaveUp("server_error")), failure.StreamErrorEvent, "server_code"},
		{"failed without a word", framed(`{"type":"response.failed","response":{"error":null}}`), failure.StreamErrorEvent, "response_failed"},
		{"cancelled", framed(created, `{"type":"response.cancelled","response":{}}`), failure.StreamErrorEvent, "response_failed"},
		{"the caller's fault inside a stream", framed(created, gaveUp("invalid_prompt")), failure.InvalidRequest, "input_code"},
		{"reasoning that cannot be read (K5)", framed(created, gaveUp("invalid_encrypted_content")), failure.InvalidRequest, "encrypted_content"},

		{"empty", framed(created, completed), failure.EmptyCompletion, "no_output"},
		{"only withheld reasoning", framed(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}}`, completed), failure.EmptyCompletion, "no_output"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader(tt.body), iotest.OneByteReader(strings.NewReader(tt.body))} {
				got := through(t, asking(), src)
				f, failed := errors.AsType[*failure.Failure](got.err)
				switch {
				case tt.class == "" && !errors.Is(got.err, io.EOF):
					t.Errorf("ended with %v, want as it should", got.err)
				case tt.class != "" && (!failed || f.Class != tt.class || f.Code != tt.code):
					t.Errorf("ended with %v, want %s: %s", got.err, tt.class, tt.code)
				case failed && f.PossiblyBilled != failure.Of(f.Class).MaybeBilled:
					t.Errorf("possibly billed = %v for %s (W13)", f.PossiblyBilled, f.Class)
				case failed && f.SealRejected != (f.Code == "encrypted_content"):
					t.Errorf("seal rejected = %v (K5)", f.SealRejected)
				}
				if strings.Contains(got.sent, "[DONE]") {
					t.Error("another dialect's sentinel was sent")
				}
			}
		})
	}
}

// Rules: S1, W11.
func TestEventsOfAStream_S1_W11(t *testing.T) {
	seal := neutral.OpaqueReasoning{Issuer: neutral.Responses, ID: "rs", Encrypted: "gAAA"}
	tests := []struct {
		payload string
		want    []neutral.Event
	}{
		{created, []neutral.Event{{Kind: neutral.Start}}},
		{added, []neutral.Event{{Kind: neutral.Opaque}}},
		{hello, []neutral.Event{{Kind: neutral.Text, Text: []byte("hello")}}},
		{`{"type":"response.refusal.delta","delta":"no\n"}`, []neutral.Event{{Kind: neutral.Refusal, Text: []byte("no\n")}}},
		{`{"type":"response.reasoning_text.delta","delta":"hm"}`, []neutral.Event{{Kind: neutral.Reasoning, Text: []byte("hm")}}},
		{`{"type":"response.output_text.delta","delta":""}`, []neutral.Event{{Kind: neutral.Opaque}}},
		{call, []neutral.Event{{Kind: neutral.ToolCallStart, Tool: neutral.Tool{ID: "a", Name: "f"}}}},
		{
			`{"type":"response.output_item.done","item":{"type":"custom_tool_call","call_id":"c","name":"patch","input":"*** {"}}`,
			[]neutral.Event{
				{Kind: neutral.ToolCallStart, Tool: neutral.Tool{ID: "c", Name: "patch"}},
				{Kind: neutral.ToolCallDelta, Text: []byte("*** {")},
				{Kind: neutral.ToolCallEnd},
			},
		},
		{
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"gAAA"}}`,
			[]neutral.Event{{Kind: neutral.Reasoning, Text: []byte("s")}, {Kind: neutral.ReasoningSeal, Seal: seal}},
		},
		{`{"type":"response.output_item.added","item":{"type":"web_search_call"}}`, []neutral.Event{{Kind: neutral.Opaque}}},
		{`{"type":"response.web_search_call.searching","output_index":0}`, []neutral.Event{{Kind: neutral.Opaque}}},
		{`{"type":"response.output_item.done","item":{"type":"web_search_call"}}`, []neutral.Event{{Kind: neutral.Structure}}},
		{`{"type":"response.shell_call_command.delta","delta":"ls"}`, []neutral.Event{{Kind: neutral.Structure}}},
		{`{"type":"response.image_generation_call.partial_image","partial_image_b64":"AA"}`, []neutral.Event{{Kind: neutral.Image}}},
		{`{"type":"response.of_tomorrow"}`, []neutral.Event{{Kind: neutral.Opaque}}},
		{
			incomplete("content_filter"), []neutral.Event{{Kind: neutral.Stop, Stop: neutral.StopContentFilter}},
		},
		{
			strings.Replace(completed, `"input_tokens":3`, `"input_tokens":3,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":1},"output_tokens_details":{"reasoning_tokens":1}`, 1),
			[]neutral.Event{
				{Kind: neutral.Usage, Usage: usage.Usage{
					Input: usage.Of(3), CachedInput: usage.Of(2), CacheWrite5m: usage.Of(1), Output: usage.Of(1), Reasoning: usage.Of(1),
				}},
				{Kind: neutral.Stop, Stop: neutral.StopEnd},
			},
		},
	}
	for _, tt := range tests {
		dec := Outbound{}.NewStream(asking(), strings.NewReader(framed(tt.payload)))
		var c neutral.Chunk
		if err := dec.Next(&c); err != nil {
			t.Errorf("%s: %v", tt.payload, err)
			continue
		}
		if diff := cmp.Diff(tt.want, kept(c.Events)); diff != "" {
			t.Errorf("%s\n%s", tt.payload, diff)
		}
	}
}

// Some count reasoning beside the output: the total tells.
//
// Rules: M4.
func TestReasoningCountsInside_M4(t *testing.T) {
	one := func(u string) string {
		return strings.Replace(completed, `{"input_tokens":3,"output_tokens":1,"total_tokens":4}`, u, 1)
	}
	for in, want := range map[string]int64{
		`{"input_tokens":12,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":340},"total_tokens":354}`: 342,
		`{"input_tokens":12,"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":21}`:    9,
		`{"output_tokens":2,"output_tokens_details":{"reasoning_tokens":340}}`:                                      342,
		`{"output_tokens":0}`: 0,
	} {
		if got := through(t, asking(), strings.NewReader(framed(hello, one(in)))); got.tally.Usage.Output != usage.Of(want) {
			t.Errorf("%s: %+v", in, got.tally.Usage)
		}
	}
}

// Parts of a summary are paragraphs; in a dialect with one text they stay apart.
func TestSummariesKeepTheirParagraphs(t *testing.T) {
	part := func(i, s string) string {
		return `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":` + i + `,"delta":"` + s + `"}`
	}
	body := framed(`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","summary":[]}}`, part("0", "a"), part("1", "b"), completed)
	dec := Outbound{}.NewStream(fromElsewhere(), strings.NewReader(body))
	var events []neutral.Event
	for {
		var c neutral.Chunk
		if err := dec.Next(&c); err != nil {
			break
		}
		events = append(events, kept(c.Events)...)
	}
	if got := joined(events)["reasoning"]; got != "a\n\nb" {
		t.Errorf("reasoning = %q", got)
	}
}

// Wherever a stream is cut into reads, it says the same (S12).
func TestAnySplitSaysTheSame_S12(t *testing.T) {
	all := recorded(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := all[rapid.IntRange(0, min(len(all)-1, 12)).Draw(rt, "recording")]
		body := framed(r.lines...)
		want := through(t, asking(), strings.NewReader(body))
		got := through(t, asking(), &cutting{rest: []byte(body), t: rt})
		if diff := cmp.Diff(want.events, got.events); diff != "" || want.sent != got.sent {
			rt.Fatal(diff)
		}
	})
}

// cutting reads as much at a time as is drawn.
type cutting struct {
	rest []byte
	t    *rapid.T
	cuts int
}

func (c *cutting) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := len(c.rest)
	if c.cuts++; c.cuts < 20 {
		n = rapid.IntRange(1, min(len(c.rest), 600)).Draw(c.t, "cut")
	}
	n = copy(p, c.rest[:min(n, len(p))])
	c.rest = c.rest[n:]
	return n, nil
}

// Rules: W4, K5.
func TestClassify_W4_K5(t *testing.T) {
	tests := []struct {
		status int
		body   string
		class  failure.Class
		code   string
	}{
		{400, `{"error":{"message":"The encrypted content gAAA could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`, failure.InvalidRequest, "encrypted_content"},
		{400, `{"error":{"message":"Previous response with id 'x' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`, failure.InvalidRequest, "input_code"},
		{400, `{"error":{"message":"x","type":"image_generation_user_error","code":"image_content_policy_violation"}}`, failure.ContentPolicy, "policy_code"},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, failure.ProviderQuota, "funding_code"},
		{400, `{"error":{"message":"Unsupported parameter","type":"invalid_request_error","param":"temperature","code":null}}`, failure.InvalidRequest, "status"},
		{503, `<html>`, failure.ServerError, "status"},
		{500, `{"error":{"message":"x","type":"server_error","code":"server_error"}}`, failure.ServerError, "server_code"},
	}
	for _, tt := range tests {
		f := Outbound{}.Classify(refusal(tt.status, tt.body))
		if f.Class != tt.class || f.Code != tt.code || f.Status != tt.status {
			t.Errorf("%s: %+v", tt.body, f)
		}
		if (f.Relay != nil) != (f.Class == failure.InvalidRequest || f.Class == failure.ContentPolicy) {
			t.Errorf("%s: relay = %+v (D7)", tt.body, f.Relay)
		}
		if f.SealRejected != strings.Contains(tt.body, "encrypted") {
			t.Errorf("%s: seal rejected = %v (K5)", tt.body, f.SealRejected)
		}
	}
}

// Rules: S4, W8.
func TestDecodeWholeRefuses_S4_W8(t *testing.T) {
	tests := []struct {
		body  string
		class failure.Class
		code  string
	}{
		{`{`, failure.BadPayload, "not_json"},
		{`{"object":"response"}`, failure.BadPayload, "no_output_list"},
		{`{"status":"queued","output":[]}`, failure.BadPayload, "response_not_ended"},
		{`{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"},"output":[]}`, failure.Throttled, "throttle_code"},
		{`{"status":"failed","error":null,"output":[]}`, failure.ServerError, "response_failed"},
		{`{"error":{"message":"boom"}}`, failure.ServerError, "status"},
		{`{"status":"completed","output":[]}`, failure.EmptyCompletion, "no_output"},
		{`{"status":"incomplete","incomplete_details":{"reason":"banana"},"output":[]}`, failure.BadPayload, "incomplete_reason_unknown"},
		{`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":7}]}]}`, failure.BadPayload, "malformed_text"},
	}
	for _, tt := range tests {
		_, f := Outbound{}.DecodeWhole(asking(), []byte(tt.body))
		if f == nil || f.Class != tt.class || f.Code != tt.code {
			t.Errorf("%s: %v", tt.body, f)
		}
	}
	if a, f := (Outbound{}).DecodeWhole(asking(), []byte(`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`)); f != nil || a.Stop != neutral.StopLength {
		t.Errorf("%+v, %v", a, f)
	}
}

// What a stream remembers is bounded, however many things begin in it (Z5).
func TestStreamsAreBounded_Z5(t *testing.T) {
	for name, payload := range map[string]string{
		"too_many_items":      `{"type":"response.output_item.added","output_index":N,"item":{"type":"message"}}`,
		"too_many_tool_calls": `{"type":"response.output_item.added","output_index":N,"item":{"type":"function_call","call_id":"a","name":"f"}}`,
		"too_many_parts":      `{"type":"response.output_text.delta","output_index":0,"content_index":N,"delta":"x"}`,
	} {
		var body bytes.Buffer
		for n := range maxParts + 1 {
			body.WriteString(framed(strings.Replace(payload, "N", itoa(n), 1)))
		}
		got := through(t, asking(), &body)
		if f, ok := errors.AsType[*failure.Failure](got.err); !ok || f.Code != name {
			t.Errorf("%s: ended with %v", name, got.err)
		}
	}
}
