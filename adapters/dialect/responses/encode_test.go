package responses

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := "testdata/golden/" + file
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func says(kind neutral.Kind, text string) neutral.Event {
	return neutral.Event{Kind: kind, Text: []byte(text)}
}

// encoded is a stream of foreign events as this dialect writes it.
func encoded(t testing.TB, req *dialect.Request, chunks ...[]neutral.Event) result {
	t.Helper()
	enc := Inbound{}.NewStream(req, meta)
	var out []byte
	for _, events := range chunks {
		var err error
		if out, err = enc.Encode(out, &neutral.Chunk{Dialect: neutral.Messages, Events: events}); err != nil {
			t.Fatal(err)
		}
	}
	var r result
	r.read(t, enc.End(out))
	return r
}

// turn is an answer with one of everything.
var turn = [][]neutral.Event{
	{{Kind: neutral.Start}, {Kind: neutral.Usage, Usage: usage.Usage{Input: usage.Of(30), CachedInput: usage.Of(10), Output: usage.Of(1)}}},
	{says(neutral.Reasoning, "let me "), says(neutral.Reasoning, "see")},
	{{Kind: neutral.ReasoningSeal, Seal: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "sig=="}}},
	{{Kind: neutral.Ping}},
	{says(neutral.Text, "Looking "), says(neutral.Text, "\"up\" 🦥\n")},
	{{Kind: neutral.ToolCallStart, Tool: neutral.Tool{ID: "call_a", Name: "weather"}}},
	{{Kind: neutral.ToolCallStart, Index: 1, Tool: neutral.Tool{ID: "call_b", Name: "now"}}},
	{{Kind: neutral.ToolCallDelta, Text: []byte(`{"city":`)}},
	{{Kind: neutral.ToolCallEnd, Index: 1}},
	{{Kind: neutral.ToolCallDelta, Text: []byte(`"Oslo"}`)}},
	{{Kind: neutral.ToolCallEnd}, {Kind: neutral.Stop, Stop: neutral.StopToolCalls}},
	{{Kind: neutral.Usage, Usage: usage.Usage{Output: usage.Of(20), Reasoning: usage.Of(5), CacheWrite5m: usage.Of(2)}}},
}

// Rules: P3, P11.
func TestWhatAnotherDialectSays_P3_P11(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(`{"model":"requested/name","input":"hi","stream":true,"instructions":"be brief","max_output_tokens":99,
	 "tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}],"tool_choice":"required","parallel_tool_calls":false,
	 "reasoning":{"effort":"high"},"temperature":0.50,"metadata":{"a":"b"},"store":false,"text":{"format":{"type":"text"},"verbosity":"low"},"user":null}`))
	if err != nil {
		t.Fatal(err)
	}
	got := encoded(t, req, turn...)
	golden(t, "turn.events", []byte(got.sent))
	checkProtocol(t, got)
	if last := gjson.Get(got.payloads[len(got.payloads)-1], "response"); last.Get("created_at").Int() != madeAt {
		t.Errorf("created at %s", last.Get("created_at"))
	}
}

// Rules: P11.
func TestHowAnAnswerEnds_P11(t *testing.T) {
	tests := []struct {
		stop           neutral.StopReason
		status, reason string
	}{
		{neutral.StopEnd, "completed", ""},
		{neutral.StopToolCalls, "completed", ""},
		{neutral.StopRefusal, "incomplete", "content_filter"},
		{neutral.StopLength, "incomplete", "max_output_tokens"},
		{neutral.StopContentFilter, "incomplete", "content_filter"},
	}
	for _, tt := range tests {
		got := encoded(t, asking(), []neutral.Event{says(neutral.Text, "x"), {Kind: neutral.Stop, Stop: tt.stop}})
		checkProtocol(t, got)
		last := gjson.Parse(got.payloads[len(got.payloads)-1])
		if last.Get("type").Str != "response."+tt.status || last.Get("response.status").Str != tt.status ||
			last.Get("response.incomplete_details.reason").Str != tt.reason || last.Get("response.output.0.status").Str != tt.status {
			t.Errorf("%s: %s", tt.stop, last)
		}
		whole, err := Inbound{}.Whole(asking(), &neutral.Answer{
			Dialect: neutral.Chat, Stop: tt.stop, Output: []neutral.Part{{Kind: neutral.TextPart, Text: "x"}},
		}, meta)
		if w := gjson.ParseBytes(whole); err != nil || w.Get("status").Str != tt.status || w.Get("incomplete_details.reason").Str != tt.reason {
			t.Errorf("%s: %s, %v", tt.stop, whole, err)
		}
	}
}

// The answer of another dialect is the same whether it came in pieces or whole.
//
// Rules: P3.
func TestWholesAndStreamsOfOthersAgree_P3(t *testing.T) {
	streamed := encoded(t, asking(), turn...)
	whole, err := Inbound{}.Whole(asking(), &neutral.Answer{
		Dialect: neutral.Messages, Stop: neutral.StopToolCalls,
		Usage: usage.Usage{Input: usage.Of(30), CachedInput: usage.Of(10), CacheWrite5m: usage.Of(2), Output: usage.Of(20), Reasoning: usage.Of(5)},
		Output: []neutral.Part{
			{Kind: neutral.ReasoningPart, Text: "let me see", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "sig=="}},
			{Kind: neutral.TextPart, Text: "Looking \"up\" 🦥\n"},
			{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "call_a", Name: "weather", Arguments: `{"city":"Oslo"}`}},
			{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "call_b", Name: "now"}},
		},
	}, meta)
	if err != nil {
		t.Fatal(err)
	}
	dialecttest.SameJSON(t, gjson.Get(streamed.payloads[len(streamed.payloads)-1], "response").Raw, string(whole))
}

// A stream that is given up ends in response.failed, with numbers that go on from
// those before, whoever wrote them.
//
// Rules: S3, P11.
func TestFailIsTheOneTerminalEvent_S3_P11(t *testing.T) {
	err := apierror.New(apierror.RateLimitExceeded)
	err.RequestID, err.RetryAfter = "r1", 1500*time.Millisecond
	passed := func(enc dialect.StreamEncoder, payloads ...string) []byte {
		dec := Outbound{}.NewStream(asking(), strings.NewReader(framed(payloads...)))
		var out []byte
		for {
			var c neutral.Chunk
			if dec.Next(&c) != nil {
				return out
			}
			out, _ = enc.Encode(out, &c)
		}
	}
	for name, before := range map[string]func(enc dialect.StreamEncoder) []byte{
		"nothing sent yet": func(dialect.StreamEncoder) []byte { return nil },
		"after a provider's own": func(enc dialect.StreamEncoder) []byte {
			return passed(enc, created, strings.Replace(hello, `"response.output_text.delta"`, `"response.in_progress"`, 1))
		},
		"after another dialect's": func(enc dialect.StreamEncoder) []byte {
			out, _ := enc.Encode(nil, &neutral.Chunk{Dialect: neutral.Chat, Events: []neutral.Event{says(neutral.Text, "x")}})
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			enc := Inbound{}.NewStream(asking(), meta)
			var got result
			got.read(t, enc.Fail(before(enc), err))
			terminal := gjson.Parse(got.payloads[len(got.payloads)-1])
			if got.names[0] != "response.created" || terminal.Get("type").Str != "response.failed" || terminal.Get("response.status").Str != "failed" {
				t.Errorf("sent %s", got.sent)
			}
			if e := terminal.Get("response.error"); e.Get("code").Str != "rate_limit_exceeded" || !strings.Contains(e.Get("message").Str, "try again in 1.5s") || e.Get("request_id").Str != "r1" {
				t.Errorf("error = %s", e)
			}
			if id := gjson.Get(got.payloads[0], "response.id").Str; terminal.Get("response.id").Str != id {
				t.Errorf("the failed response is %q, the created one %q", terminal.Get("response.id").Str, id)
			}
			rising(t, got)
			for _, name := range got.names[:len(got.names)-1] {
				if name == "response.failed" || name == "response.completed" {
					t.Errorf("%s is not the last", name)
				}
			}
		})
	}
}

func rising(t testing.TB, r result) {
	t.Helper()
	for i, p := range r.payloads {
		if n := gjson.Get(p, "sequence_number"); !n.Exists() || n.Int() != int64(i) {
			t.Errorf("event %d has the number %s", i, n.Raw)
		}
	}
}

// Whatever another dialect says, in whatever order: the events are a Responses stream
// whose pieces and whole are the same text.
//
// Rules: P3, P11.
func TestAnyEventsMakeAProtocol_P3_P11(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var chunks [][]neutral.Event
		calls := 0
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			e := neutral.Event{Text: []byte(rapid.StringN(0, 6, -1).Draw(rt, "text"))}
			e.Kind = rapid.SampledFrom([]neutral.Kind{
				neutral.Start, neutral.Text, neutral.Reasoning, neutral.Refusal, neutral.ReasoningSeal, neutral.ToolCallStart,
				neutral.ToolCallDelta, neutral.ToolCallEnd, neutral.Image, neutral.Structure, neutral.Ping, neutral.Opaque,
			}).Draw(rt, "kind")
			switch e.Kind {
			case neutral.ToolCallStart:
				e.Index, e.Text = calls, nil
				e.Tool = neutral.Tool{ID: fmt.Sprint("call_", calls), Name: "f"}
				calls++
			case neutral.ToolCallDelta, neutral.ToolCallEnd:
				if calls == 0 {
					continue
				}
				e.Index = rapid.IntRange(0, calls-1).Draw(rt, "call")
			case neutral.ReasoningSeal:
				e.Seal = neutral.OpaqueReasoning{Issuer: neutral.Messages, Redacted: "r"}
			}
			chunks = append(chunks, []neutral.Event{e})
		}
		chunks = append(chunks, []neutral.Event{{Kind: neutral.Stop, Stop: neutral.StopEnd}})
		got := encoded(t, asking(), chunks...)
		checkProtocol(rt, got)
	})
}

// fataler is what a check needs of a test; *rapid.T has it too.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkProtocol follows a stream as a strict client does.
func checkProtocol(t fataler, r result) {
	t.Helper()
	type openItem struct {
		item string
		text string
		done bool
	}
	var items []*openItem
	for i, p := range r.payloads {
		e := gjson.Parse(p)
		kind := e.Get("type").Str
		if !gjson.Valid(p) || r.names[i] != kind || e.Get("sequence_number").Int() != int64(i) {
			t.Fatalf("event %d, %s: %s", i, r.names[i], p)
		}
		first, last := i == 0, i == len(r.payloads)-1
		terminal := kind == "response.completed" || kind == "response.incomplete"
		if first != (kind == "response.created") || last != terminal || (i == 1) != (kind == "response.in_progress") {
			t.Fatalf("%s is event %d of %d", kind, i, len(r.payloads))
		}
		at := int(e.Get("output_index").Int())
		switch {
		case kind == "response.output_item.added":
			if at != len(items) {
				t.Fatalf("item %d is added after %d", at, len(items))
			}
			items = append(items, &openItem{})
			continue
		case terminal:
			for i, item := range e.Get("response.output").Array() {
				if !items[i].done || item.Raw != items[i].item {
					t.Fatalf("item %d was %s and is %s", i, items[i].item, item.Raw)
				}
			}
			if len(e.Get("response.output").Array()) != len(items) {
				t.Fatalf("%d items in the end, %d before", len(e.Get("response.output").Array()), len(items))
			}
			continue
		case strings.HasPrefix(kind, "response.output_item") || e.Get("item_id").Exists():
		default:
			continue
		}
		if at >= len(items) || items[at].done {
			t.Fatalf("%s of an item that is not open", kind)
		}
		item := items[at]
		switch {
		case strings.HasSuffix(kind, ".delta"):
			item.text += e.Get("delta").Str
		case kind == "response.output_item.done":
			item.item, item.done = e.Get("item").Raw, true
			said := e.Get("item.content.0.text").Str + e.Get("item.content.0.refusal").Str + e.Get("item.summary.0.text").Str + e.Get("item.arguments").Str
			if said != item.text && said != "{}" {
				t.Fatalf("item says %q, its pieces %q", said, item.text)
			}
		}
	}
}

// Seals of others travel in encrypted_content and come back to their issuer, and to
// nobody else (K4).
func TestSealsComeBackToTheirIssuer_K4(t *testing.T) {
	got := encoded(t, asking(), turn...)
	item := gjson.Get(got.payloads[len(got.payloads)-1], "response.output.0")
	body := `{"model":"m","input":[{"role":"user","content":"hi"},` + item.Raw + `,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}]}`
	req, err := Inbound{}.Parse([]byte(body))
	if err != nil || !req.Sealed {
		t.Fatalf("%+v, %v", req, err)
	}
	n, err := req.Neutral()
	if err != nil {
		t.Fatal(err)
	}
	want := []neutral.Part{
		{Kind: neutral.ReasoningPart, Text: "let me see", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "sig=="}},
		{Kind: neutral.ReasoningPart, Opaque: neutral.OpaqueReasoning{Issuer: neutral.Responses, ID: "rs_1", Encrypted: "gAAA"}},
	}
	if diff := cmp.Diff(want, n.Messages[1].Parts); diff != "" {
		t.Error(diff)
	}
	built := func(without bool) string {
		up, err := Outbound{}.Build(req, dialect.Target{BaseURL: "https://p.test/v1", UpstreamModel: "up", WithoutSeals: without})
		if err != nil {
			t.Fatal(err)
		}
		return string(up.Body)
	}
	dialecttest.SameJSON(t, `{"model":"up","input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}]}`, built(false))
	dialecttest.SameJSON(t, `{"model":"up","input":[{"role":"user","content":"hi"}]}`, built(true))
}

// An answer that could not be repeated in the terminal event is not begun without end.
//
// Rules: Z5.
func TestKeptOutputIsBounded_Z5(t *testing.T) {
	enc := Inbound{}.NewStream(asking(), meta)
	big := &neutral.Chunk{Dialect: neutral.Chat, Events: []neutral.Event{says(neutral.Text, strings.Repeat("x", maxKept/4))}}
	var err error
	var dst []byte
	for range 5 {
		dst, err = enc.Encode(dst[:0], big)
	}
	if !errors.Is(err, errTooLong) {
		t.Errorf("%v", err)
	}
}
