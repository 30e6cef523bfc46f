package chat

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// ourMeta has an id of the kind that the gateway gives: its time is the answer's.
var ourMeta = dialect.Meta{RequestID: "0193a1b2-c3d4-7000-8000-0123456789ab", Model: servedAs}

func textEvent(kind neutral.Kind, s string) neutral.Event {
	return neutral.Event{Kind: kind, Text: []byte(s)}
}

// answerEvents is an answer of another dialect with everything in it.
func answerEvents() []neutral.Event {
	return []neutral.Event{
		{Kind: neutral.Start},
		{Kind: neutral.Usage, Usage: usage.Usage{Input: usage.Of(812), CachedInput: usage.Of(512), CacheWrite5m: usage.Of(100), Output: usage.Of(1)}},
		{Kind: neutral.Ping},
		textEvent(neutral.Reasoning, "hm\n"),
		{Kind: neutral.ReasoningSeal, Seal: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "sealed"}},
		textEvent(neutral.Text, "I \"look\" 漢"),
		{Kind: neutral.ToolCallStart, Index: 0, Tool: neutral.Tool{ID: "toolu_1", Name: "f"}},
		{Kind: neutral.ToolCallDelta, Index: 0, Text: []byte(`{"a":`)},
		{Kind: neutral.ToolCallDelta, Index: 0, Text: []byte(`1}`)},
		{Kind: neutral.ToolCallEnd, Index: 0},
		{Kind: neutral.ToolCallStart, Index: 1, Tool: neutral.Tool{Name: "g"}},
		{Kind: neutral.ToolCallDelta, Index: 1, Text: []byte(`{}`)},
		{Kind: neutral.Stop, Stop: neutral.StopEnd},
		{Kind: neutral.Usage, Usage: usage.Usage{Output: usage.Of(96), Reasoning: usage.Of(40)}},
	}
}

func encodeForeign(t testing.TB, includeUsage bool, events []neutral.Event) string {
	t.Helper()
	enc := Inbound{}.NewStream(asking(includeUsage), ourMeta)
	var out []byte
	for i := range events {
		var err error
		if out, err = enc.Encode(out, &neutral.Chunk{Dialect: neutral.Messages, Raw: []byte("{}"), Events: events[i : i+1]}); err != nil {
			t.Fatal(err)
		}
	}
	return string(enc.End(out))
}

// Rules: P3, P11.
func TestChunksOfAnotherDialect_P3_P11(t *testing.T) {
	out := encodeForeign(t, true, answerEvents())
	golden(t, "foreign-stream.txt", []byte(out))
	if strings.Contains(out, "sealed") {
		t.Error("a seal went to a caller who can do nothing with it (K4)")
	}
	if hidden := encodeForeign(t, false, answerEvents()); strings.Contains(hidden, "usage") || strings.Count(hidden, "\n\n") != strings.Count(out, "\n\n")-1 {
		t.Errorf("usage that was not asked for (S8): %s", hidden)
	}
	// The role comes once and first, whether the other dialect began with framing or not.
	for _, from := range []int{0, 3, 5, 6, 12} {
		if got := encodeForeign(t, true, answerEvents()[from:]); strings.Count(got, `"role"`) != 1 || !strings.Contains(strings.SplitN(got, "\n", 2)[0], `"role"`) {
			t.Errorf("from event %d: %s", from, got)
		}
	}
}

// Usage that nobody reported is not said to be zero (M4).
func TestUnknownUsageIsNotInvented_M4(t *testing.T) {
	out := encodeForeign(t, true, []neutral.Event{textEvent(neutral.Text, "x"), {Kind: neutral.Stop, Stop: neutral.StopEnd}})
	if strings.Contains(out, "usage") {
		t.Error(out)
	}
}

// Rules: P11.
func TestReasonsOfAnotherDialect_P11(t *testing.T) {
	for _, c := range []struct {
		stop             neutral.StopReason
		sawTool, refused bool
		want             string
	}{
		{neutral.StopEnd, false, false, "stop"},
		{neutral.StopEnd, true, false, "tool_calls"},
		{neutral.StopToolCalls, true, false, "tool_calls"},
		{neutral.StopLength, true, false, "length"},
		{neutral.StopContentFilter, false, false, "content_filter"},
		{neutral.StopRefusal, false, false, "content_filter"},
		{neutral.StopRefusal, false, true, "stop"},
	} {
		if got := reasonOf(c.stop, c.sawTool, c.refused); got != c.want {
			t.Errorf("%+v gives %s", c, got)
		}
	}
}

// An image has nowhere to go in this dialect: the chunk is refused, not swallowed.
//
// Rules: P5.
func TestImagesOfAnotherDialectAreRefused_P5(t *testing.T) {
	enc := Inbound{}.NewStream(asking(true), ourMeta)
	_, err := enc.Encode(nil, &neutral.Chunk{Dialect: neutral.Generate, Events: []neutral.Event{{Kind: neutral.Image}}})
	if _, ok := errors.AsType[*unsayableError](err); !ok {
		t.Errorf("error = %v", err)
	}
}

// The same answer, streamed and whole, is read by our own decoder as what it was.
//
// Rules: P3.
func TestForeignAnswersReadBack_P3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z"\\\n 漢🦥]{1,9}`)
		events := []neutral.Event{{Kind: neutral.Start}}
		var output []neutral.Part
		want := map[neutral.Kind]string{}
		for _, kind := range []neutral.Kind{neutral.Reasoning, neutral.Text, neutral.Refusal} {
			for range rapid.IntRange(0, 3).Draw(t, "pieces") {
				s := word.Draw(t, "piece")
				events = append(events, textEvent(kind, s))
				want[kind] += s
			}
			if want[kind] != "" {
				output = append(output, neutral.Part{Kind: map[neutral.Kind]neutral.PartKind{
					neutral.Reasoning: neutral.ReasoningPart, neutral.Text: neutral.TextPart, neutral.Refusal: neutral.RefusalPart,
				}[kind], Text: want[kind]})
			}
		}
		calls := rapid.IntRange(0, 3).Draw(t, "calls")
		for i := range calls {
			name := rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "name")
			events = append(events, neutral.Event{Kind: neutral.ToolCallStart, Index: i, Tool: neutral.Tool{ID: fmt.Sprint("id", i), Name: name}},
				neutral.Event{Kind: neutral.ToolCallDelta, Index: i, Text: []byte(`{"a":`)}, neutral.Event{Kind: neutral.ToolCallDelta, Index: i, Text: []byte(`"x"}`)}, neutral.Event{Kind: neutral.ToolCallEnd, Index: i})
			output = append(output, called(fmt.Sprint("id", i), name, `{"a":"x"}`))
		}
		if len(output) == 0 {
			return
		}
		u := usage.Usage{Input: usage.Of(rapid.Int64Range(1, 99).Draw(t, "in")), Output: usage.Of(9), CachedInput: usage.Of(1), CacheWrite5m: usage.Of(2), Reasoning: usage.Of(3)}
		events = append(events, neutral.Event{Kind: neutral.Stop, Stop: neutral.StopEnd}, neutral.Event{Kind: neutral.Usage, Usage: u})

		enc := Inbound{}.NewStream(asking(true), ourMeta)
		out, err := enc.Encode(nil, &neutral.Chunk{Dialect: neutral.Messages, Events: events})
		if err != nil {
			t.Fatal(err)
		}
		req := &dialect.Request{Dialect: neutral.Messages}
		dec, agg := Outbound{}.NewStream(req, strings.NewReader(string(enc.End(out)))), Outbound{}.NewAggregate(req)
		for {
			var c neutral.Chunk
			err := dec.Next(&c)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = agg.Add(&c)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		joined, err := agg.Answer()
		if err != nil {
			t.Fatal(err)
		}
		body, err := Inbound{}.Whole(asking(true), &neutral.Answer{Dialect: neutral.Messages, Output: output, Usage: u, Stop: neutral.StopEnd}, ourMeta)
		if err != nil {
			t.Fatal(err)
		}
		whole, f := Outbound{}.DecodeWhole(req, body)
		if f != nil {
			t.Fatalf("%v in %s", f, body)
		}
		stop := neutral.StopEnd
		if calls > 0 {
			stop = neutral.StopToolCalls
		}
		for from, got := range map[string]neutral.Answer{"stream": joined, "whole": whole} {
			if diff := cmp.Diff(output, got.Output); diff != "" {
				t.Fatalf("%s: %s", from, diff)
			}
			if got.Usage != u || got.Stop != stop || got.ToolCalls != calls {
				t.Fatalf("%s: %+v", from, got)
			}
		}
	})
}

// Rules: P7.
func TestTheOfficialClientAcceptsOtherDialects_P7(t *testing.T) {
	client := official(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, encodeForeign(t, true, answerEvents()))
	})
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	defer stream.Close()
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("the client's accumulator refuses %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	got := acc.Choices[0]
	if got.Message.Content != `I "look" 漢` || got.FinishReason != "tool_calls" || len(got.Message.ToolCalls) != 2 {
		t.Errorf("the client understood %+v", got)
	}
	if call := got.Message.ToolCalls[0]; call.ID != "toolu_1" || call.Function.Name != "f" || call.Function.Arguments != `{"a":1}` {
		t.Errorf("call = %+v", call)
	}
	if call := got.Message.ToolCalls[1]; call.ID == "" || call.Function.Arguments != `{}` {
		t.Errorf("call = %+v", call)
	}
	if u := acc.Usage; u.PromptTokens != 812 || u.CompletionTokens != 96 || u.PromptTokensDetails.CachedTokens != 512 || u.CompletionTokensDetails.ReasoningTokens != 40 {
		t.Errorf("usage = %+v", u)
	}
	if acc.Created != 1733584667 {
		t.Errorf("created = %d", acc.Created)
	}
}

// The decoder of this dialect, the encoder of the neutral events behind it.
func BenchmarkEncodeForeign(b *testing.B) {
	var body []byte
	for range 200 {
		body = sse.Append(body, "", []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" some words"},"finish_reason":null}]}`))
	}
	body = sse.Append(body, "", []byte(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		dec, enc := Outbound{}.NewStream(asking(true), strings.NewReader(string(body))), Inbound{}.NewStream(asking(true), ourMeta)
		out = out[:0]
		for {
			var c neutral.Chunk
			if err := dec.Next(&c); err != nil {
				break
			}
			c.Dialect = neutral.Responses
			var err error
			if out, err = enc.Encode(out, &c); err != nil {
				b.Fatal(err)
			}
		}
		out = enc.End(out)
	}
}
