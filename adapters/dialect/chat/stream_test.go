package chat

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

const (
	role      = `{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	hello     = `{"model":"m","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}`
	stopped   = `{"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usageOnly = `{"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`
)

// open is a stream whose connection ends without a sentinel.
func open(payloads ...string) string {
	return strings.TrimSuffix(frame(payloads...), "data: [DONE]\n\n")
}

// Rules: S3, S4, S14, W8.
func TestHowStreamsEnd_S3_S4_S14_W8(t *testing.T) {
	call := `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]},"finish_reason":null}]}`
	reason := func(s string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, s)
	}
	tests := []struct {
		name, body string
		// class is empty for an answer that ends as it should.
		class failure.Class
		code  string
	}{
		{"complete", frame(role, hello, stopped, usageOnly), "", ""},
		{"no [DONE] after a finish reason", open(hello, stopped), "", ""},
		{"no [DONE], usage last", open(hello, stopped, usageOnly), "", ""},
		{"[DONE] cut off after a finish reason", open(hello, stopped) + "data: [DONE]", "", ""},
		{"[DONE] without a finish reason", frame(hello), "", ""},
		{"length without output is an answer", frame(role, reason("length")), "", ""},
		{"a filter's silence is an answer", frame(role, reason("content_filter")), "", ""},
		{"vendor's word for stop", frame(hello, reason("eos")), "", ""},

		{"cut after output", open(role, hello), failure.StreamTruncated, "no_terminator"},
		{"cut after the role", open(role), failure.StreamTruncated, "no_terminator"},
		{"nothing at all", "", failure.StreamTruncated, "no_terminator"},
		{"only comments", ": hi\n\n: hi\n\n", failure.StreamTruncated, "no_terminator"},
		{"finish event cut off", open(hello) + "data: " + stopped, failure.StreamTruncated, "no_terminator"},
		{"a page", "<html>\n<body>busy</body>\n</html>\n", failure.BadPayload, "not_a_stream"},

		{"malformed event", open(hello, `{"choices":[{"index":0,"delta":{"content":"x`, stopped), failure.BadPayload, "malformed_event"},
		{"not an object", open(hello, `["x"]`), failure.BadPayload, "malformed_event"},
		{"text is a number", open(`{"choices":[{"delta":{"content":7}}]}`), failure.BadPayload, "malformed_text"},
		{"choices is an object", open(`{"choices":{}}`), failure.BadPayload, "malformed_choices"},
		{"deep nesting", open(strings.Repeat("[", 1<<16)), failure.BadPayload, "malformed_event"},
		{"choice index beyond what clients take", open(`{"choices":[{"index":1000,"delta":{"content":"x"}}]}`), failure.BadPayload, "choice_index"},

		{"error object", open(hello, `{"error":{"message":"boom","type":"server_error"}}`), failure.StreamErrorEvent, "status"},
		{"error with choices", open(role, `{"choices":[],"error":{"message":"boom"}}`), failure.StreamErrorEvent, "status"},
		{"error is a string", open(`{"error":"boom"}`), failure.StreamErrorEvent, "status"},
		{"error event", "event: error\ndata: {\"message\":\"boom\"}\n\n", failure.StreamErrorEvent, "status"},
		{"vLLM's error", open(`{"object":"error","message":"boom","code":500}`), failure.StreamErrorEvent, "status"},
		{"funding inside a stream", open(role, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), failure.ProviderQuota, "funding_code"},
		{"throttle inside a stream", open(`{"error":{"message":"slow","code":429}}`), failure.Throttled, "status"},
		{"caller's fault inside a stream", open(`{"error":{"message":"bad","type":"invalid_request_error"}}`), failure.InvalidRequest, "type"},

		{"finish reason error", open(hello, reason("error")), failure.StreamErrorEvent, "finish_reason_error"},
		{"DeepSeek out of resources", open(hello, reason("insufficient_system_resource")), failure.StreamErrorEvent, "finish_reason_error"},
		{"finish reason unknown", open(hello, reason("banana")), failure.BadPayload, "finish_reason_unknown"},
		{"call cut, connection gone", open(call), failure.StreamTruncated, "no_terminator"},
		{"call cut, passed off as whole", open(call, reason("tool_calls")), failure.StreamTruncated, "tool_call_cut"},
		{"call cut, [DONE]", frame(call), failure.StreamTruncated, "tool_call_cut"},
		{"call cut by its length is the caller's to see", open(call, reason("length")), "", ""},

		{"empty", frame(role, stopped, usageOnly), failure.EmptyCompletion, "no_output"},
		{"only [DONE]", frame(), failure.EmptyCompletion, "no_output"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader(tt.body), iotest.OneByteReader(strings.NewReader(tt.body))} {
				got := through(t, asking(true), src)
				f, failed := errors.AsType[*failure.Failure](got.err)
				switch {
				case tt.class == "" && !errors.Is(got.err, io.EOF):
					t.Errorf("ended with %v, want as it should", got.err)
				case tt.class != "" && (!failed || f.Class != tt.class || f.Code != tt.code):
					t.Errorf("ended with %v, want %s: %s", got.err, tt.class, tt.code)
				case failed && f.PossiblyBilled != failure.Of(f.Class).MaybeBilled:
					t.Errorf("possibly billed = %v for %s (W13)", f.PossiblyBilled, f.Class)
				}
				if done := slices.Contains(got.payloads, "[DONE]"); done != (tt.class == "") {
					t.Errorf("success terminator = %v (S3)", done)
				}
			}
		})
	}
}

// Rules: S14.
func TestFinishedNeedsEveryChoice_S14(t *testing.T) {
	req := asking(true)
	req.Choices = 2
	d := Outbound{}.NewStream(req, strings.NewReader(open(
		`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`,
		`{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}`,
		`{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`,
	)))
	for _, want := range []bool{false, false, true} {
		if err := d.Next(new(neutral.Chunk)); err != nil {
			t.Fatal(err)
		}
		if d.Finished() != want {
			t.Errorf("finished = %v, want %v", d.Finished(), want)
		}
	}
}

// Output after a finish reason takes it back, for providers that repeat one.
func TestFinishIsTakenBackByOutput(t *testing.T) {
	d := Outbound{}.NewStream(asking(true), strings.NewReader(open(
		`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, hello, stopped,
	)))
	for i, want := range []bool{true, false, true} {
		if err := d.Next(new(neutral.Chunk)); err != nil {
			t.Fatal(err)
		}
		if d.Finished() != want {
			t.Errorf("finished after chunk %d = %v, want %v", i, d.Finished(), want)
		}
	}
}

// Rules: P11.
func TestToolIndexesAreDense_P11(t *testing.T) {
	tests := []struct {
		name      string
		fragments []string
		want      []string // index and id of each call, then its arguments
	}{
		{"as they should be", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":"2"}}`,
			`{"index":0,"function":{"arguments":"3"}}`, `{"index":1,"function":{"arguments":"4"}}`,
		}, []string{"0 a 13", "1 b 24"}},
		{"all at 0", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":0,"id":"b","function":{"name":"g","arguments":"2"}}`,
			`{"index":0,"function":{"arguments":"4"}}`,
		}, []string{"0 a 1", "1 b 24"}},
		{"counting content blocks", []string{
			`{"index":1,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":1,"function":{"arguments":"3"}}`,
			`{"index":5,"id":"b","function":{"name":"g","arguments":"2"}}`,
		}, []string{"0 a 13", "1 b 2"}},
		{"no index", []string{
			`{"id":"a","function":{"name":"f","arguments":"1"}}`, `{"id":"b","function":{"name":"g","arguments":"2"}}`,
		}, []string{"0 a 1", "1 b 2"}},
		{"fragments without an id continue", []string{
			`{"id":"a","function":{"name":"f","arguments":"1"}}`, `{"function":{"arguments":"2"}}`, `{"function":{"name":"","arguments":"3"}}`,
		}, []string{"0 a 123"}},
		{"the id on every fragment", []string{
			`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":0,"id":"a","function":{"arguments":"2"}}`,
		}, []string{"0 a 12"}},
		{"neither id nor index, two names", []string{
			`{"function":{"name":"f","arguments":"1"}}`, `{"function":{"name":"g","arguments":"2"}}`,
		}, []string{"0  1", "1  2"}},
		{"index, then only an id", []string{
			`{"index":0,"function":{"name":"f","arguments":"1"}}`, `{"id":"b","function":{"name":"g","arguments":"2"}}`,
		}, []string{"0  1", "1 b 2"}},
		{"-1", []string{`{"index":-1,"id":"a","function":{"name":"f","arguments":"1"}}`}, []string{"0 a 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var chunks []string
			for _, fragment := range tt.fragments {
				chunks = append(chunks, `{"choices":[{"index":0,"delta":{"tool_calls":[`+fragment+`]},"finish_reason":null}]}`)
			}
			chunks = append(chunks, stopped)
			got := through(t, asking(true), strings.NewReader(frame(chunks...)))
			if diff := cmp.Diff(tt.want, callsOf(got.events)); diff != "" {
				t.Error(diff)
			}
			for i := range tt.fragments {
				doc, _ := rawjson.Parse([]byte(got.payloads[i]))
				sent := doc.Get("choices.0.delta.tool_calls.0.index")
				if decoded := indexOf(got.events, i); sent.Raw != fmt.Sprint(decoded) {
					t.Errorf("fragment %d sent at %q, decoded at %d", i, sent.Raw, decoded)
				}
			}
			// A later, empty chunk says stop; a call was seen (K115).
			doc, _ := rawjson.Parse([]byte(got.payloads[len(tt.fragments)]))
			if reason := doc.Get("choices.0.finish_reason").Str; reason != "tool_calls" || got.tally.Stop != neutral.StopToolCalls {
				t.Errorf("finish_reason = %q, stop = %q", reason, got.tally.Stop)
			}
		})
	}
}

func callsOf(events []neutral.Event) []string {
	var calls []string
	for _, e := range events {
		switch e.Kind {
		case neutral.ToolCallStart:
			calls = append(calls, fmt.Sprintf("%d %s ", e.Index, e.Tool.ID))
		case neutral.ToolCallDelta:
			calls[e.Index] += string(e.Text)
		}
	}
	return calls
}

// indexOf is the place of the nth fragment.
func indexOf(events []neutral.Event, n int) int {
	for _, e := range events {
		if e.Kind == neutral.ToolCallDelta {
			if n--; n < 0 {
				return e.Index
			}
		}
	}
	return -1
}

// Rules: S8.
func TestUsageIsHiddenUnlessAskedFor_S8(t *testing.T) {
	withChoices := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`
	tests := []struct {
		name           string
		in             []string
		hidden, asked  []string
		reportedOutput usage.Count
	}{
		{
			"a chunk of its own",
			[]string{hello, stopped, usageOnly},
			[]string{hello, stopped},
			[]string{hello, stopped, usageOnly},
			usage.Of(1),
		},
		{
			"on the last chunk, which stays",
			[]string{hello, withChoices},
			[]string{hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`},
			[]string{hello, withChoices},
			usage.Of(1),
		},
		{
			"null, which only our asking put there",
			[]string{`{"usage":null,"model":"m","choices":[{"delta":{"content":"x"}}]}`, stopped},
			[]string{`{"model":"m","choices":[{"delta":{"content":"x"}}]}`, stopped},
			[]string{`{"usage":null,"model":"m","choices":[{"delta":{"content":"x"}}]}`, stopped},
			usage.Count{},
		},
		{
			"choices empty without usage stays",
			[]string{`{"choices":[],"prompt_filter_results":[]}`, hello, stopped},
			[]string{`{"choices":[],"prompt_filter_results":[]}`, hello, stopped},
			[]string{`{"choices":[],"prompt_filter_results":[]}`, hello, stopped},
			usage.Count{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, asked := range []bool{false, true} {
				want := tt.hidden
				if asked {
					want = tt.asked
				}
				got := through(t, asking(asked), strings.NewReader(frame(tt.in...)))
				if len(got.payloads) != len(want)+1 {
					t.Fatalf("asked %v: %d chunks, want %d: %s", asked, len(got.payloads), len(want)+1, got.payloads)
				}
				for i := range want {
					dialecttest.SameJSON(t, strings.ReplaceAll(want[i], `"model":"m"`, `"model":"`+servedAs+`"`), got.payloads[i])
				}
				if got.tally.Usage.Output != tt.reportedOutput {
					t.Errorf("asked %v: output = %+v", asked, got.tally.Usage.Output)
				}
			}
		})
	}
}

// Rules: P11.
func TestNoErrorMemberUnlessItIsOne_P11(t *testing.T) {
	for _, in := range []string{
		`{"error":null,"model":"m","choices":[{"delta":{"content":"x"}}]}`,
		`{"model":"m","error":null,"choices":[{"delta":{"content":"x"}}]}`,
		`{"model":"m","choices":[{"delta":{"content":"x"}}],"error":null}`,
		`{ "error" : null , "model":"m","choices":[{"delta":{"content":"x"}}]}`,
		`{"error":null,"usage":null,"model":"m","choices":[{"delta":{"content":"x"}}]}`,
		`{"model":"m","choices":[{"delta":{"content":"x"}}],"usage":null , "error" : "" }`,
		`{"error":false,"model":"m","usage":null,"choices":[{"delta":{"content":"x"}}],"error":{}}`,
	} {
		got := through(t, asking(false), strings.NewReader(frame(in, stopped)))
		dialecttest.SameJSON(t, `{"model":"`+servedAs+`","choices":[{"delta":{"content":"x"}}]}`, got.payloads[0])
	}
}

// Rules: P11.
func TestFinishReasonsAreTheClientsOwn_P11(t *testing.T) {
	for in, want := range map[string]string{
		`"eos"`: `"stop"`, `"model_length"`: `"length"`, `""`: `null`, `null`: `null`, `"function_call"`: `"function_call"`, `"stop"`: `"stop"`,
	} {
		got := through(t, asking(false), strings.NewReader(frame(`{"choices":[{"delta":{"content":"x"},"finish_reason":`+in+`}]}`)))
		dialecttest.SameJSON(t, `{"choices":[{"delta":{"content":"x"},"finish_reason":`+want+`}]}`, got.payloads[0])
	}
}

// Rules: S1.
func TestEveryKindOfOutputIsSeen_S1(t *testing.T) {
	tests := map[string]neutral.Kind{
		`{"role":"assistant"}`:                                   neutral.Opaque,
		`{"content":""}`:                                         neutral.Opaque,
		`{"content":null,"tool_calls":[]}`:                       neutral.Opaque,
		`{"content":"x","tool_calls":[]}`:                        neutral.Text,
		`{"reasoning_content":"x"}`:                              neutral.Reasoning,
		`{"reasoning":"x"}`:                                      neutral.Reasoning,
		`{"reasoning_details":[{"type":"reasoning.encrypted"}]}`: neutral.Opaque,
		`{"refusal":"no"}`:                                       neutral.Refusal,
		`{"tool_calls":[{"index":0,"id":"a"}]}`:                  neutral.ToolCallStart,
		`{"function_call":{"name":"f"}}`:                         neutral.ToolCallStart,
		`{"images":[{"type":"image_url"}]}`:                      neutral.Image,
		`{"audio":{"id":"a"}}`:                                   neutral.Structure,
		`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]}]}`: neutral.Reasoning,
		`{"content":[{"type":"text","text":"x"}]}`:                                  neutral.Text,
		`{"future_member":{"x":1}}`:                                                 neutral.Opaque,
	}
	for delta, want := range tests {
		d := Outbound{}.NewStream(asking(true), strings.NewReader(open(`{"choices":[{"index":0,"delta":`+delta+`}]}`)))
		if err := d.Next(new(neutral.Chunk)); err != nil {
			t.Errorf("%s: %v", delta, err)
		}
		if got := d.Tally().FirstOutput; got != want {
			t.Errorf("%s: first output %v, want %v", delta, got, want)
		}
	}
}

// Rules: S6.
func TestReasoningUnderTwoNamesCountsOnce_S6(t *testing.T) {
	got := through(t, asking(true), strings.NewReader(frame(`{"choices":[{"delta":{"reasoning":"abc","reasoning_content":"abc"}}]}`)))
	if got.tally.OutputBytes != 3 {
		t.Errorf("output bytes = %d, want 3", got.tally.OutputBytes)
	}
}

// Characters that come in two frames, or escaped, are counted as what they are.
func TestTextIsUnescaped(t *testing.T) {
	got := through(t, asking(true), strings.NewReader(frame(`{"choices":[{"delta":{"content":"a\n\u00e9\ud83e\udda5\"\\"}}]}`)))
	if text := string(got.events[0].Text); text != "a\né🦥\"\\" {
		t.Errorf("text = %q", text)
	}
}

// A request that nobody can decode is not sent as if it were one of ours.
//
// Rules: P5.
func TestRequestsWithoutADecoderAreRefused_P5(t *testing.T) {
	target := dialect.Target{BaseURL: "https://api.openai.com/v1"}
	_, err := Outbound{}.Build(&dialect.Request{Dialect: neutral.Messages}, target)
	if _, ok := errors.AsType[*foreignError](err); !ok {
		t.Errorf("error = %v", err)
	}
}

// Rules: S12.
func TestFrameAboveTheLimitFails_S12(t *testing.T) {
	body := io.MultiReader(strings.NewReader("data: "), io.LimitReader(zeros{}, sse.DefaultMaxFrame+1))
	err := Outbound{}.NewStream(asking(true), body).Next(new(neutral.Chunk))
	if f, ok := errors.AsType[*failure.Failure](err); !ok || f.Code != "frame_too_large" {
		t.Errorf("error = %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
