package messages

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// withModel is a payload with nothing changed but the model's name (N23).
func withModel(t *testing.T, payload string) string {
	t.Helper()
	path := "model"
	if typeOf(payload) == "message_start" {
		path = "message.model"
	}
	if !gjson.Get(payload, path).Exists() {
		return payload
	}
	out, err := sjson.Set(payload, path, servedAs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// each runs a test for every reply of every recorded stream.
func each(t *testing.T, run func(t *testing.T, lines []string)) {
	for _, file := range recorded(t, ".chunks.txt") {
		for i, lines := range replies(t, file) {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(file), i), func(t *testing.T) { run(t, lines) })
		}
	}
}

// Rules: P4, P8.
func TestRecordedStreamsPassLosslessly_P4_P8(t *testing.T) {
	each(t, func(t *testing.T, lines []string) {
		got := through(t, strings.NewReader(frame(lines...)), false)
		if !errors.Is(got.err, io.EOF) {
			t.Fatalf("ended with %v", got.err)
		}
		if len(got.sent) != len(lines) {
			t.Fatalf("%d events of %d", len(got.sent), len(lines))
		}
		for i, line := range lines {
			if got.sent[i].Name != typeOf(line) {
				t.Errorf("event %d is named %q", i, got.sent[i].Name)
			}
			if want := withModel(t, line); want == line && got.sent[i].Data != line {
				t.Errorf("bytes changed:\n%s\n%s", line, got.sent[i].Data)
			} else {
				dialecttest.SameJSON(t, want, got.sent[i].Data)
			}
		}
		if !got.tally.Committed() || got.tally.Stop == neutral.StopNone || !got.tally.HasUsage {
			t.Errorf("tally = %+v", got.tally)
		}
	})
}

// Rules: P4, P8.
func TestRecordedAnswersPassLosslessly_P4_P8(t *testing.T) {
	for _, file := range recorded(t, ".json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answer, f := Outbound{}.DecodeWhole(asking(), body)
			if f != nil {
				t.Fatal(f)
			}
			if !answer.Usage.Usable() || answer.Empty || answer.Stop == neutral.StopNone || answer.Output != nil {
				t.Errorf("answer = %+v", answer)
			}
			got, err := Inbound{}.Whole(asking(), &answer, meta)
			if err != nil {
				t.Fatal(err)
			}
			dialecttest.SameJSON(t, withModel(t, string(body)), string(got))
		})
	}
}

// A stream that is put together must decode to what the stream said (S11).
func TestRecordedStreamsAggregate_S11(t *testing.T) {
	each(t, func(t *testing.T, lines []string) {
		dec := Outbound{}.NewStream(asking(), strings.NewReader(frame(lines...)))
		agg := Outbound{}.NewAggregate(asking())
		said := map[neutral.Kind]string{}
		for {
			var c neutral.Chunk
			if err := dec.Next(&c); err != nil {
				break
			}
			for _, e := range c.Events {
				said[e.Kind] += string(e.Text) + e.Seal.Signature + e.Seal.Redacted
			}
			if err := agg.Add(&c); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := agg.Answer()
		if err != nil {
			t.Fatal(err)
		}
		whole := answerReader{doc: answer.Raw}
		if f := whole.content(gjson.GetBytes(answer.Raw, "content")); f != nil {
			t.Fatalf("%v in %s", f, answer.Raw)
		}
		got := map[neutral.Kind]string{}
		for _, e := range whole.events {
			got[e.Kind] += string(e.Text) + e.Seal.Signature + e.Seal.Redacted
		}
		for _, kind := range []neutral.Kind{neutral.Text, neutral.Reasoning, neutral.ReasoningSeal, neutral.ToolCallDelta} {
			if got[kind] != said[kind] {
				t.Errorf("%v: whole has\n%q, stream\n%q", kind, got[kind], said[kind])
			}
		}
		tally := dec.Tally()
		if answer.Usage != tally.Usage || answer.Stop != tally.Stop || answer.ToolCalls != tally.ToolCalls || !answer.Streamed {
			t.Errorf("whole %+v, stream %+v", answer, tally)
		}
	})
}

// A recorded answer that is written anew from its events says the same (P3), in this
// protocol's order (P11).
func TestRecordedStreamsAreWrittenAnew_P3_P11(t *testing.T) {
	each(t, func(t *testing.T, lines []string) {
		first := through(t, strings.NewReader(frame(lines...)), true)
		var again []string
		for _, s := range first.sent {
			if s.Name != typeOf(s.Data) {
				t.Errorf("event %q has %s", s.Name, s.Data)
			}
			again = append(again, s.Data)
		}
		second := through(t, strings.NewReader(frame(again...)), false)
		onlyServerTools := !first.tally.Committed() || first.tally.FirstOutput == neutral.Structure
		if !errors.Is(second.err, io.EOF) && !onlyServerTools {
			t.Fatalf("what was written ends with %v:\n%s", second.err, strings.Join(again, "\n"))
		}
		for _, kind := range []neutral.Kind{neutral.Text, neutral.Reasoning, neutral.ToolCallDelta} {
			if want, got := joined(first.events, kind), joined(second.events, kind); want != got {
				t.Errorf("%v: %q became %q", kind, want, got)
			}
		}
		if first.tally.Stop != second.tally.Stop || first.tally.Usage.Input != second.tally.Usage.Input || first.tally.Usage.Output != second.tally.Usage.Output {
			t.Errorf("%+v became %+v", first.tally, second.tally)
		}
	})
}

func joined(events []neutral.Event, kind neutral.Kind) (s string) {
	for _, e := range events {
		if e.Kind == kind {
			s += string(e.Text)
		}
	}
	return s
}
