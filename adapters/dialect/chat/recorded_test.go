package chat

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/sjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// withModel is a payload with nothing changed but the model's name (N23).
func withModel(t *testing.T, payload string) string {
	t.Helper()
	out, err := sjson.Set(payload, "model", servedAs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Rules: P4, P8.
func TestRecordedStreamsPassLosslessly_P4_P8(t *testing.T) {
	for _, file := range recorded(t, ".chunks.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			lines := readLines(t, file)
			got := through(t, asking(true), strings.NewReader(frame(lines...)))
			if !errors.Is(got.err, io.EOF) {
				t.Fatalf("ended with %v", got.err)
			}
			if len(got.payloads) != len(lines)+1 || got.payloads[len(lines)] != "[DONE]" {
				t.Fatalf("%d events of %d", len(got.payloads), len(lines)+1)
			}
			for i, line := range lines {
				want := withModel(t, line)
				if strings.Contains(file, "mistral-tool-call") && i == 1 {
					// The one recording whose call has no index, which official clients need (P11).
					want, _ = sjson.Set(want, "choices.0.delta.tool_calls.0.index", 0)
				}
				dialecttest.SameJSON(t, want, got.payloads[i])
			}
			if !got.tally.Usage.Usable() || !got.tally.Committed() || got.tally.Stop == neutral.StopNone {
				t.Errorf("tally = %+v", got.tally)
			}
		})
	}
}

// Key order, spacing and the spelling of numbers and escapes are the provider's own:
// apart from the name no byte changes.
//
// Rules: P4.
func TestBytesStay_P4(t *testing.T) {
	in := `{ "b":1.50, "model" : "up", "a":"\u00e9\/", "choices":[{"delta":{"content":"x"},"index":0}] ,"z":1e3}`
	got := through(t, asking(true), strings.NewReader(frame(in)))
	want := strings.Replace(in, `"up"`, `"`+servedAs+`"`, 1)
	if got.payloads[0] != want {
		t.Errorf("got  %s\nwant %s", got.payloads[0], want)
	}
}

// Rules: P4, P8.
func TestRecordedAnswersPassLosslessly_P4_P8(t *testing.T) {
	for _, file := range recorded(t, ".json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answer, f := Outbound{}.DecodeWhole(asking(false), body)
			if f != nil {
				t.Fatal(f)
			}
			if !answer.Usage.Usable() || answer.Empty || answer.Stop == neutral.StopNone {
				t.Errorf("answer = %+v", answer)
			}
			got, err := Inbound{}.Whole(asking(false), &answer, meta)
			if err != nil {
				t.Fatal(err)
			}
			dialecttest.SameJSON(t, withModel(t, string(body)), string(got))
		})
	}
}

// A stream that is put together must decode to what the stream said (S11).
func TestRecordedStreamsAggregate_S11(t *testing.T) {
	for _, file := range recorded(t, ".chunks.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dec := Outbound{}.NewStream(asking(false), strings.NewReader(frame(readLines(t, file)...)))
			agg := Outbound{}.NewAggregate(asking(false))
			said := map[neutral.Kind]string{}
			for {
				var c neutral.Chunk
				if err := dec.Next(&c); err != nil {
					break
				}
				for _, e := range c.Events {
					said[e.Kind] += string(e.Text)
				}
				if err := agg.Add(&c); err != nil {
					t.Fatal(err)
				}
			}
			answer, err := agg.Answer()
			if err != nil {
				t.Fatal(err)
			}
			whole, f := Outbound{}.DecodeWhole(asking(false), answer.Raw)
			if f != nil {
				t.Fatalf("%v in %s", f, answer.Raw)
			}
			if whole.Usage != dec.Tally().Usage || whole.Stop != dec.Tally().Stop || whole.ToolCalls != dec.Tally().ToolCalls {
				t.Errorf("whole %+v, stream %+v", whole, dec.Tally())
			}
			message := said[neutral.Text] + said[neutral.Reasoning] + said[neutral.Refusal] + said[neutral.ToolCallDelta]
			if got := wholeText(t, answer.Raw); got != message {
				t.Errorf("whole has\n%q, stream\n%q", got, message)
			}
		})
	}
}

// wholeText is the text of a whole answer's first choice, by kind.
func wholeText(t *testing.T, body []byte) string {
	t.Helper()
	doc, ok := rawjson.Parse(body)
	if !ok {
		t.Fatalf("not JSON: %s", body)
	}
	m := message{doc: body, choice: &choice{}}
	if f := m.read(doc.Get("choices.0.message")); f != nil {
		t.Fatal(f)
	}
	by := map[neutral.Kind]string{}
	for _, e := range m.events {
		by[e.Kind] += string(e.Text)
	}
	return by[neutral.Text] + by[neutral.Reasoning] + by[neutral.Refusal] + by[neutral.ToolCallDelta]
}
