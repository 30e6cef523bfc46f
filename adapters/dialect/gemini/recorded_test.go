package gemini

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// saidBy reads a recording a second time, in the plainest way, for what its answer must
// say. Arguments that come in pieces are left to tests of their own.
type plainReading struct {
	text, thoughts string
	calls          []string
	seals          int
	in, out        int64
}

func plainly(lines []string) (p plainReading) {
	for _, line := range lines {
		for _, part := range gjson.Get(line, "candidates.0.content.parts").Array() {
			if part.Get("thought").Bool() {
				p.thoughts += part.Get("text").Str
			} else {
				p.text += part.Get("text").Str
			}
			if name := part.Get("functionCall.name").Str; name != "" {
				p.calls = append(p.calls, name)
			}
			if part.Get("thoughtSignature").Exists() {
				p.seals++
			}
		}
		if u := gjson.Get(line, "usageMetadata.promptTokenCount"); u.Exists() {
			p.in = u.Int()
			p.out = gjson.Get(line, "usageMetadata.totalTokenCount").Int() - p.in
		}
	}
	return p
}

func ofAnswer(a neutral.Answer) (p plainReading) {
	for _, part := range a.Output {
		switch part.Kind {
		case neutral.TextPart:
			p.text += part.Text
		case neutral.ReasoningPart:
			p.thoughts += part.Text
			if part.Opaque.Signature != "" {
				p.seals++
			}
		case neutral.ToolCallPart:
			p.calls = append(p.calls, part.Call.Name)
			if !gjson.Valid(part.Call.Arguments) {
				p.calls = append(p.calls, "bad arguments: "+part.Call.Arguments)
			}
		}
	}
	p.in, p.out = a.Usage.Input.N, a.Usage.Output.N
	return p
}

// Rules: P8.
func TestRecordedStreamsDecode_P8(t *testing.T) {
	for _, file := range recordedFiles(t, ".chunks.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			lines := readLines(t, file)
			h := decode(t, strings.NewReader(frame(lines...))).ended(t)
			want := plainly(lines)
			if diff := cmp.Diff(want, ofAnswer(h.answer), cmp.AllowUnexported(plainReading{})); diff != "" {
				t.Error(diff)
			}
			stop := neutral.StopEnd
			if len(want.calls) > 0 {
				stop = neutral.StopToolCalls
			}
			if h.tally.Stop != stop || !h.tally.Usage.Usable() || !h.tally.Committed() || h.tally.ToolCalls != len(want.calls) {
				t.Errorf("tally = %+v", h.tally)
			}
			// However the bytes come, the events are the same.
			again := decode(t, iotest.OneByteReader(strings.NewReader(frame(lines...)))).ended(t)
			if diff := cmp.Diff(h.events, again.events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Rules: P8.
func TestRecordedAnswersDecode_P8(t *testing.T) {
	for _, file := range recordedFiles(t, ".json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answer, f := Outbound{}.DecodeWhole(foreign(&neutral.Request{}), body)
			if f != nil {
				t.Fatal(f)
			}
			if diff := cmp.Diff(plainly([]string{string(body)}), ofAnswer(answer), cmp.AllowUnexported(plainReading{})); diff != "" {
				t.Error(diff)
			}
			if answer.Empty || answer.Stop == neutral.StopNone || !answer.Usage.Usable() {
				t.Errorf("answer = %+v", answer)
			}
		})
	}
}

// Arguments that come in pieces are put together into what the model meant.
//
// Rules: P11.
func TestArgumentsInPieces_P11(t *testing.T) {
	tests := map[string][]string{
		"testdata/pieces.chunks.txt": {`{"dish":{"name":"Lasagna","steps":["boil \"it\"",null],"vegan":false},"for how many":4}`},
		"../../../../shared/fixtures/provider-streams/google/google-stream-tool-call-arguments.chunks.txt": {
			`{"location":"Boston"}`, `{"location":"San Francisco"}`,
		},
	}
	for file, want := range tests {
		if _, err := os.Stat(file); err != nil {
			t.Logf("not here: %s", file)
			continue
		}
		var got []string
		for _, part := range decode(t, strings.NewReader(frame(readLines(t, file)...))).ended(t).answer.Output {
			if part.Kind == neutral.ToolCallPart {
				got = append(got, part.Call.Arguments)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}

// What a model signed goes back to it in the next turn, each signature on the part
// that it stood on, whatever the part was (K4).
func TestSignaturesReturnToTheirParts_K4(t *testing.T) {
	for _, file := range recordedFiles(t, ".chunks.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			lines := readLines(t, file)
			answer := decode(t, strings.NewReader(frame(lines...))).ended(t).answer
			body := build(t, &neutral.Request{Messages: []neutral.Message{user(said("q")), assistant(answer.Output...)}}, "gemini-2.5-pro")
			var want, got [][2]string
			for _, line := range lines {
				for _, p := range gjson.Get(line, "candidates.0.content.parts").Array() {
					if s := p.Get("thoughtSignature").Str; s != "" {
						want = append(want, [2]string{p.Get("functionCall.name").Str, s})
					}
				}
			}
			for _, p := range gjson.Get(body, "contents.1.parts").Array() {
				if s := p.Get("thoughtSignature").Str; s != "" {
					got = append(got, [2]string{p.Get("functionCall.name").Str, s})
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s", diff, body)
			}
		})
	}
}
