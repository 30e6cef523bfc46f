package converse

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// said is what a recorded stream holds, read in the simplest way there is.
type said struct {
	text, reasoning, signature string
	calls                      []neutral.ToolCall
	stop                       string
	input, output              int64
	reported                   bool
}

func readRecorded(t *testing.T, lines []string) (s said) {
	t.Helper()
	at := map[int]int{}
	for _, l := range lines {
		var e struct {
			ContentBlockStart struct {
				ContentBlockIndex int
				Start             struct {
					ToolUse *struct{ ToolUseID, Name string }
				}
			}
			ContentBlockDelta struct {
				ContentBlockIndex int
				Delta             struct {
					Text             string
					ToolUse          struct{ Input string }
					ReasoningContent struct{ Text, Signature string }
				}
			}
			MessageStop struct{ StopReason string }
			Metadata    struct {
				Usage *struct{ InputTokens, OutputTokens, CacheReadInputTokens, CacheWriteInputTokens int64 }
			}
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		if tool := e.ContentBlockStart.Start.ToolUse; tool != nil {
			at[e.ContentBlockStart.ContentBlockIndex] = len(s.calls)
			s.calls = append(s.calls, neutral.ToolCall{ID: tool.ToolUseID, Name: tool.Name})
		}
		d := e.ContentBlockDelta.Delta
		s.text, s.reasoning, s.signature = s.text+d.Text, s.reasoning+d.ReasoningContent.Text, s.signature+d.ReasoningContent.Signature
		if d.ToolUse.Input != "" {
			s.calls[at[e.ContentBlockDelta.ContentBlockIndex]].Arguments += d.ToolUse.Input
		}
		s.stop += e.MessageStop.StopReason
		if u := e.Metadata.Usage; u != nil {
			s.reported, s.input, s.output = true, u.InputTokens+u.CacheReadInputTokens+u.CacheWriteInputTokens, u.OutputTokens
		}
	}
	return s
}

// Everything that a recorded stream says is in its events and in the answer that is
// put together from them, tool calls counted from 0 whatever block they are in.
//
// Rules: P11, S11.
func TestRecordedStreamsDecode_P11_S11(t *testing.T) {
	for _, file := range recorded(t, ".chunks.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			lines := readLines(t, file)
			want := readRecorded(t, lines)
			got := read(t, bytes.NewReader(stream(t, lines...)))
			if !errors.Is(got.err, io.EOF) {
				t.Fatalf("ended with %v", got.err)
			}
			var text, reasoning, signature strings.Builder
			var calls []neutral.ToolCall
			for _, e := range got.events {
				switch e.Kind {
				case neutral.Text:
					text.Write(e.Text)
				case neutral.Reasoning:
					reasoning.Write(e.Text)
				case neutral.ReasoningSeal:
					signature.WriteString(e.Seal.Signature)
				case neutral.ToolCallStart:
					if e.Index != len(calls) {
						t.Errorf("call %d has index %d", len(calls), e.Index)
					}
					calls = append(calls, neutral.ToolCall{ID: e.Tool.ID, Name: e.Tool.Name})
				case neutral.ToolCallDelta:
					calls[e.Index].Arguments += string(e.Text)
				}
			}
			if text.String() != want.text || reasoning.String() != want.reasoning || signature.String() != want.signature {
				t.Errorf("text %q, reasoning %q, signature %q; want %+v", text.String(), reasoning.String(), signature.String(), want)
			}
			if diff := cmp.Diff(want.calls, calls); diff != "" {
				t.Error(diff)
			}
			if stop := stopReasons[want.stop]; got.tally.Stop != stop || got.answer.Stop != stop {
				t.Errorf("stop %q, %q; want %q", got.tally.Stop, got.answer.Stop, stop)
			}
			if u := got.tally.Usage; want.reported != got.tally.HasUsage || u.Input.N != want.input || u.Output.N != want.output {
				t.Errorf("usage %+v; want %+v", u, want)
			}
			checkAnswer(t, want, got.answer)
		})
	}
}

func checkAnswer(t *testing.T, want said, got neutral.Answer) {
	t.Helper()
	var text, reasoning string
	var calls []neutral.ToolCall
	for _, p := range got.Output {
		switch p.Kind {
		case neutral.TextPart:
			text += p.Text
		case neutral.ReasoningPart:
			reasoning += p.Text
			if p.Opaque.Signature != want.signature {
				t.Errorf("whole: signature %q", p.Opaque.Signature)
			}
		case neutral.ToolCallPart:
			if p.Call.Arguments == "{}" && want.calls[len(calls)].Arguments == "" {
				p.Call.Arguments = "" // what the dialects of callers want there
			}
			calls = append(calls, p.Call)
		}
	}
	if text != want.text || reasoning != want.reasoning || !cmp.Equal(want.calls, calls) || !got.Streamed || got.Empty {
		t.Errorf("whole: %+v; want %+v", got, want)
	}
}

func TestRecordedAnswersDecode(t *testing.T) {
	for _, file := range recorded(t, ".json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answer, f := Outbound{}.DecodeWhole(nil, body)
			if f != nil {
				t.Fatal(f)
			}
			if !answer.Usage.Usable() || answer.Empty || answer.Stop == neutral.StopNone {
				t.Errorf("answer = %+v", answer)
			}
			// Written as an assistant's turn again, it is what was sent.
			turns := arrange([]neutral.Message{{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: "x"}}}, {Role: neutral.Assistant, Parts: answer.Output}}, false)
			w := writer{model: modelOf("anthropic.claude"), names: map[string]int{}, dst: []byte{' '}}
			w.turn(turns[1])
			var recorded struct {
				Output struct{ Message json.RawMessage }
			}
			if err := json.Unmarshal(body, &recorded); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(recorded.Output.Message), `"toolUse"`) {
				// The order of blocks is the dialect's for requests: text before calls.
				if got := strings.Count(string(w.dst), `"toolUse"`); got != answer.ToolCalls {
					t.Errorf("%d calls in %s", got, w.dst)
				}
				return
			}
			dialecttest.SameJSON(t, string(recorded.Output.Message), string(w.dst))
		})
	}
}

// Whole, with all that is counted and sealed.
//
// Rules: M4, K4.
func TestWholeAnswer_M4_K4(t *testing.T) {
	body, err := os.ReadFile("testdata/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	answer, f := Outbound{}.DecodeWhole(nil, body)
	if f != nil {
		t.Fatal(f)
	}
	want := []neutral.Part{
		{Kind: neutral.ReasoningPart, Text: "One city.", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Converse, Signature: "c2lnbmVk"}},
		{Kind: neutral.ReasoningPart, Opaque: neutral.OpaqueReasoning{Issuer: neutral.Converse, Encrypted: "b3BhcXVl"}},
		{Kind: neutral.TextPart, Text: "Looking."},
		{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "tooluse_a1", Name: "weather", Arguments: `{"city":"Oslo"}`}},
	}
	if diff := cmp.Diff(want, answer.Output); diff != "" {
		t.Error(diff)
	}
	u := answer.Usage
	if u.Input.N != 81 || u.CachedInput.N != 64 || !u.CacheWrite5m.Known() || u.CacheWrite5m.N != 0 || u.Output.N != 40 {
		t.Errorf("usage = %+v", u)
	}
	if answer.Stop != neutral.StopToolCalls || answer.ToolCalls != 1 || answer.FirstOutput != neutral.Reasoning {
		t.Errorf("answer = %+v", answer)
	}
}
