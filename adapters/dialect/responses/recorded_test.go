package responses

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// withModel is a payload with nothing changed but the model's name (N23).
func withModel(t *testing.T, payload, path string) string {
	t.Helper()
	if !gjson.Get(payload, path).Exists() {
		return payload
	}
	out, err := sjson.Set(payload, path, servedAs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ends reports whether a recording has its terminal event and is no failure.
func (r recording) ends() bool {
	last := gjson.Get(r.lines[len(r.lines)-1], "type").Str
	return last == "response.completed" || last == "response.incomplete"
}

// Rules: P4, P8.
func TestRecordedStreamsPassLosslessly_P4_P8(t *testing.T) {
	for _, r := range recorded(t) {
		if !r.ends() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			got := through(t, asking(), strings.NewReader(framed(r.lines...)))
			if !errors.Is(got.err, io.EOF) {
				t.Fatalf("ended with %v", got.err)
			}
			if len(got.payloads) != len(r.lines) {
				t.Fatalf("%d events of %d", len(got.payloads), len(r.lines))
			}
			for i, line := range r.lines {
				dialecttest.SameJSON(t, withModel(t, line, "response.model"), got.payloads[i])
				if got.names[i] != gjson.Get(line, "type").Str {
					t.Errorf("event %d is named %q", i, got.names[i])
				}
			}
			if !got.tally.HasUsage || !got.tally.Committed() || got.tally.Stop == neutral.StopNone {
				t.Errorf("tally = %+v", got.tally)
			}
		})
	}
}

// The one recording that fails does so before any output, after the response was
// created: a lifecycle event is no commit (S1), and the class is the inner one.
//
// Rules: S1, W4.
func TestRecordedFailureComesBeforeTheCommit_S1_W4(t *testing.T) {
	for _, r := range recorded(t) {
		if r.ends() {
			continue
		}
		got := through(t, asking(), strings.NewReader(framed(r.lines...)))
		f, ok := errors.AsType[*failure.Failure](got.err)
		if !ok || f.Class != failure.ProviderQuota || got.tally.Committed() {
			t.Errorf("%s: %v, committed %v", r.name, got.err, got.tally.Committed())
		}
	}
}

// Key order, spacing and the spelling of numbers and escapes are the provider's own:
// apart from the name no byte changes.
//
// Rules: P4.
func TestBytesStay_P4(t *testing.T) {
	in := `{ "type":"response.completed", "z":1.50, "response" : {"model" : "up","a":"\u00e9\/","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"b":1e3} }`
	got := through(t, asking(), strings.NewReader(framed(in)))
	if want := strings.Replace(in, `"up"`, `"`+servedAs+`"`, 1); got.payloads[0] != want {
		t.Errorf("got  %s\nwant %s", got.payloads[0], want)
	}
}

// Rules: P4, P8.
func TestRecordedAnswersPassLosslessly_P4_P8(t *testing.T) {
	for name, body := range wholes(t) {
		t.Run(name, func(t *testing.T) {
			answer, f := Outbound{}.DecodeWhole(asking(), []byte(body))
			if f != nil {
				t.Fatal(f)
			}
			if !answer.Usage.Output.Known() || answer.Empty || answer.Stop == neutral.StopNone || answer.Output != nil {
				t.Errorf("usage %+v, stop %q", answer.Usage, answer.Stop)
			}
			got, err := Inbound{}.Whole(asking(), &answer, meta)
			if err != nil {
				t.Fatal(err)
			}
			dialecttest.SameJSON(t, withModel(t, body, "model"), string(got))
		})
	}
}

// A stream that is put together is its own last event (S11).
func TestRecordedStreamsAggregate_S11(t *testing.T) {
	for _, r := range recorded(t) {
		if !r.ends() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			dec := Outbound{}.NewStream(asking(), strings.NewReader(framed(r.lines...)))
			agg := Outbound{}.NewAggregate(asking())
			for {
				var c neutral.Chunk
				if err := dec.Next(&c); err != nil {
					break
				}
				if err := agg.Add(&c); err != nil {
					t.Fatal(err)
				}
			}
			answer, err := agg.Answer()
			if err != nil {
				t.Fatal(err)
			}
			tally := dec.Tally()
			if answer.Usage != tally.Usage || answer.Stop != tally.Stop || answer.ToolCalls != tally.ToolCalls ||
				answer.FirstOutput == neutral.Opaque || !answer.Streamed {
				t.Errorf("whole %+v, stream %+v", answer, tally)
			}
			last := gjson.Get(r.lines[len(r.lines)-1], "response")
			if strings.Contains(string(answer.Raw), `"output":[]`) || len(last.Get("output").Array()) == len(gjson.GetBytes(answer.Raw, "output").Array()) {
				return
			}
			if last.Get("output.0").Exists() {
				t.Errorf("output became %s", answer.Raw)
			}
		})
	}
}

// Whatever a stream says in pieces, its items say in the end: whoever sees only one of
// the two sees the same.
//
// Rules: P8.
func TestStreamsAndWholesSayTheSame_P8(t *testing.T) {
	for _, r := range recorded(t) {
		if !r.ends() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			streamed := through(t, asking(), strings.NewReader(framed(r.lines...)))
			last := r.lines[len(r.lines)-1]
			done := 0
			for _, name := range streamed.names {
				if name == "response.output_item.done" {
					done++
				}
			}
			if len(gjson.Get(last, "response.output").Array()) != done {
				t.Skip("its terminal event leaves items out")
			}
			whole := through(t, asking(), strings.NewReader(framed(last)))
			want, got := joined(streamed.events), joined(whole.events)
			// Providers encrypt anew each time they are asked.
			delete(want, "seal")
			delete(got, "seal")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a provider leaves out of one event comes from another, once (P11).
func TestWhateverIsLeftOutComesLater_P11(t *testing.T) {
	lines := recorded(t)[slices.IndexFunc(recorded(t), func(r recording) bool { return strings.HasPrefix(r.name, "tools.") })].lines
	want := joined(through(t, asking(), strings.NewReader(framed(lines...))).events)
	for _, left := range []string{".delta", "_text.done", "_part.done", "arguments.done", "output_item.done", "output_item.added"} {
		var rest []string
		for _, line := range lines {
			kind := gjson.Get(line, "type").Str
			if strings.HasSuffix(kind, left) || (left == "output_item.added" && strings.Contains(kind, "arguments")) {
				continue
			}
			rest = append(rest, line)
		}
		got := through(t, asking(), strings.NewReader(framed(rest...)))
		if diff := cmp.Diff(want, joined(got.events)); diff != "" || !errors.Is(got.err, io.EOF) {
			t.Errorf("without %s: %v\n%s", left, got.err, diff)
		}
	}
}
