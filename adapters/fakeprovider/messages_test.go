package fakeprovider

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// The order and the sums of a stream are the protocol's.
func TestMessagesStreams(t *testing.T) {
	for outcome, want := range map[string]string{
		"words:2":             "message_start content_block_start content_block_delta content_block_delta content_block_stop message_delta message_stop",
		"reasoning:1+words:1": "message_start content_block_start content_block_delta content_block_delta content_block_stop content_block_start content_block_delta content_block_stop message_delta message_stop",
		"tool+whole-call":     "message_start content_block_start content_block_stop message_delta message_stop",
		"empty+no-done":       "message_start message_delta",
	} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, request{model: "m", promptTokens: 7}, callFacts{sequence: 1}, 0)
		var names []string
		tokens := 0
		for _, e := range (messages{}).events(a) {
			var data struct{ Type string }
			if err := json.Unmarshal(e.data, &data); err != nil || data.Type != e.name {
				t.Errorf("%s: event %s has %s, %v", outcome, e.name, e.data, err)
			}
			names, tokens = append(names, e.name), tokens+e.tokens
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", outcome, got, want)
		}
		if tokens != a.usage.output {
			t.Errorf("%s delivers %d tokens of %d", outcome, tokens, a.usage.output)
		}
	}
}

func TestMessagesUsageStandsBesideTheCache(t *testing.T) {
	for outcome, want := range map[string]string{
		"words:2+cached:3":         `{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"output_tokens":2,"service_tier":"standard"}`,
		"words:2+usage:null":       `null`,
		"words:2+usage:absent":     ``,
		"words:2+usage:zero":       `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"service_tier":"standard"}`,
		"usage:cached-over-prompt": `{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":15,"output_tokens":16,"service_tier":"standard"}`,
	} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ Usage json.RawMessage }
		a := makeAnswer(p, request{model: "m", promptTokens: 7}, callFacts{sequence: 1}, 0)
		if err := json.Unmarshal((messages{}).whole(a), &body); err != nil || string(body.Usage) != want {
			t.Errorf("%s: %s, %v", outcome, body.Usage, err)
		}
	}
}

func TestMessagesRequests(t *testing.T) {
	in, err := messages{}.parse(nil, []byte(`{"model":"m","system":[{"type":"text","text":"abcd"}],"max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"f"},`+
		`"messages":[{"role":"user","content":"hi"},{"role":"user","content":[{"type":"tool_result","content":[{"type":"image"},{"type":"text","text":"abcdef"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if in.promptTokens != promptTokens(12, 2, 1, 1) || in.images != 1 || !in.toolAnswered || in.toolChoice != "f" || in.maxTokens != 9 || in.lastUser != "abcdef" {
		t.Errorf("request = %+v", in)
	}
}

// Every failure that the grammar knows has a body in this protocol.
func TestMessagesFailures(t *testing.T) {
	for kind, forms := range chatFailures {
		if _, ok := messagesFailures[kind][""]; !ok {
			t.Errorf("%s has no wording", kind)
		}
		for form := range forms {
			status, _ := messages{}.failure(failure{kind: kind, form: form}, callFacts{model: "m"})
			if http.StatusText(status) == "" && status != 529 {
				t.Errorf("%s %s: status %d", kind, form, status)
			}
		}
	}
	for _, bare := range []bool{false, true} {
		e := messages{}.errorEvent(failure{kind: "bad_gateway"}, &answer{}, bare)
		if e.name != "error" || !json.Valid(e.data) {
			t.Errorf("error event %s %s", e.name, e.data)
		}
	}
}

func FuzzMessagesRequest(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}],"max_tokens":3}`)
	f.Fuzz(func(t *testing.T, body string) {
		in, err := messages{}.parse(nil, []byte(body))
		if err != nil {
			return
		}
		p, err := parseOutcome("reasoning:2+text-tool")
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, in, callFacts{sequence: 1}, 0)
		if whole := (messages{}).whole(a); !json.Valid(whole) {
			t.Errorf("whole: %s", whole)
		}
		for _, e := range (messages{}).events(a) {
			if !json.Valid(e.data) {
				t.Errorf("event: %s", e.data)
			}
		}
	})
}
