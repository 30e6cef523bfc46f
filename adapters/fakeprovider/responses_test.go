package fakeprovider

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The order and the sums of a stream are the protocol's.
func TestResponsesStreams(t *testing.T) {
	const text = "output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done"
	const reasoning = "output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done"
	for outcome, want := range map[string]string{
		"words:1":             "created in_progress " + text + " completed",
		"reasoning:1+words:1": "created in_progress " + reasoning + " " + text + " completed",
		"refusal:1":           "created in_progress output_item.added content_part.added refusal.delta refusal.done content_part.done output_item.done completed",
		"tool+whole-call":     "created in_progress output_item.added function_call_arguments.done output_item.done completed",
		"words:1+no-role":     text + " completed",
		"empty+no-done":       "created in_progress",
		"empty+no-finish":     "created in_progress",
		"empty+finish:length": "created in_progress incomplete",
	} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, request{model: "m", promptTokens: 7}, callFacts{sequence: 1}, 0)
		var names []string
		tokens := 0
		for i, e := range (responses{}).events(a) {
			var data struct {
				Type     string
				Sequence int `json:"sequence_number"`
			}
			if err := json.Unmarshal(e.data, &data); err != nil || data.Type != e.name || data.Sequence != i {
				t.Errorf("%s: event %s has %s, %v", outcome, e.name, e.data, err)
			}
			names, tokens = append(names, strings.TrimPrefix(e.name, "response.")), tokens+e.tokens
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", outcome, got, want)
		}
		if tokens != a.usage.output {
			t.Errorf("%s delivers %d tokens of %d", outcome, tokens, a.usage.output)
		}
	}
}

// The terminal event has what the whole answer has.
func TestResponsesStreamsEndInTheWhole(t *testing.T) {
	for _, outcome := range []string{"words:3+cached:2", "reasoning:2+text-tool", "tools:2", "finish:content_filter", "usage:zero", "usage:null", "usage:absent"} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, request{model: "m", promptTokens: 7}, callFacts{sequence: 1}, 0)
		events := responses{}.events(a)
		var last struct{ Response json.RawMessage }
		if err := json.Unmarshal(events[len(events)-1].data, &last); err != nil {
			t.Fatal(err)
		}
		if whole := string(responses{}.whole(a)); whole != string(last.Response) {
			t.Errorf("%s:\nwhole %s\n last %s", outcome, whole, last.Response)
		}
	}
}

func TestResponsesRequests(t *testing.T) {
	in, err := responses{}.parse(nil, []byte(`{"model":"m","instructions":"abcd","max_output_tokens":9,"tools":[{"type":"function","name":"f","parameters":{}}],`+
		`"tool_choice":{"type":"function","name":"f"},"text":{"format":{"type":"json_schema","schema":{}}},`+
		`"input":[{"role":"user","content":[{"type":"input_text","text":"abcd"},{"type":"input_image"}]},{"type":"function_call","arguments":"{}"},`+
		`{"type":"function_call_output","output":[{"type":"input_text","text":"ab"},{"type":"input_image"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if in.promptTokens != promptTokens(12, 3, 2, 1) || in.images != 2 || !in.toolAnswered || in.toolChoice != "f" ||
		in.maxTokens != 9 || in.lastUser != "abcd" || string(in.schema) != "{}" {
		t.Errorf("request = %+v", in)
	}
	if in, err = (responses{}).parse(nil, []byte(`{"input":"abcd","tool_choice":"required"}`)); err != nil || in.lastUser != "abcd" || in.toolChoice != "required" || in.messages != 1 {
		t.Errorf("request = %+v, %v", in, err)
	}
}

// Every failure that the grammar knows can be told inside a stream, as either event.
func TestResponsesFailures(t *testing.T) {
	a := &answer{id: "fake-1", model: `m"`}
	for kind, forms := range chatFailures {
		for form := range forms {
			f := failure{kind: kind, form: form}
			if status, _ := (responses{}).failure(f, callFacts{model: "m"}); http.StatusText(status) == "" && status != 529 {
				t.Errorf("%s %s has the status %d", kind, form, status)
			}
			for _, bare := range []bool{false, true} {
				e := responses{}.errorEvent(f, a, bare)
				var data struct{ Type string }
				if err := json.Unmarshal(e.data, &data); err != nil || data.Type != e.name || !slices.Contains([]string{"error", "response.failed"}, e.name) {
					t.Errorf("%s %s: %s, %v", kind, form, e.data, err)
				}
			}
		}
	}
	if e := (responses{}).errorEvent(failure{kind: "invalid", form: "seal"}, a, false); !strings.Contains(string(e.data), `"code":"invalid_encrypted_content"`) {
		t.Errorf("sealed reasoning is rejected with %s", e.data)
	}
}
