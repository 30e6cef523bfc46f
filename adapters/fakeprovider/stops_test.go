package fakeprovider

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// The text ends before the first of the caller's stop sequences, in every protocol that
// has them, unless the plan says that it goes on.
func TestStopSequencesEndTheText(t *testing.T) {
	for name, c := range map[string]struct {
		d                  dialect
		path, body, reason string
	}{
		"chat, a list": {chat{}, "/", `{"model":"m","messages":[{"role":"user","content":"u"}],"stop":["lazy","fox"]}`, `"finish_reason":"stop"`},
		"chat, a text": {chat{}, "/", `{"model":"m","messages":[{"role":"user","content":"u"}],"stop":"fox"}`, `"finish_reason":"stop"`},
		"messages":     {messages{}, "/", `{"model":"m","messages":[{"role":"user","content":"u"}],"stop_sequences":["fox"]}`, `"stop_reason":"stop_sequence","stop_sequence":"fox"`},
		"gemini":       {gemini{}, "m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"u"}]}],"generationConfig":{"stopSequences":["fox"]}}`, `"finishReason":"STOP"`},
		"converse":     {converse{}, "/", `{"messages":[{"role":"user","content":[{"text":"u"}]}],"inferenceConfig":{"stopSequences":["fox"]}}`, `"stopReason":"stop_sequence"`},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.SetPathValue("call", c.path)
		r.Header.Set("Authorization", "Bearer k")
		in, err := c.d.parse(r, []byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for outcome, stops := range map[string]bool{"ok": true, "no-stop": false} {
			p, err := parseOutcome(outcome)
			if err != nil {
				t.Fatal(err)
			}
			a := makeAnswer(p, in, callFacts{sequence: 1}, 0)
			text, whole := strings.Join(a.text, ""), string(c.d.whole(a))
			if strings.HasSuffix(text, "the quick brown ") != stops || strings.Contains(text, "lazy") == stops || stops && !strings.Contains(whole, c.reason) {
				t.Errorf("%s, %s: %q in %s", name, outcome, text, whole)
			}
		}
	}
}

// A prompt can be counted otherwise than it is, and what a schema asks for be missing.
func TestOtherTokenizersAndSchemas(t *testing.T) {
	in := request{model: "m", promptTokens: 100, tools: []tool{{name: "f", parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}, toolChoice: "required"}
	for outcome, want := range map[string]string{"input:120": `120 {"a":"text"}`, "off-schema": `100 {"unexpected":true}`} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, in, callFacts{sequence: 1}, 0)
		if got := itoa(a.usage.input) + " " + a.calls[0].whole(); got != want {
			t.Errorf("%s: %s", outcome, got)
		}
	}
	p, _ := parseOutcome("off-schema")
	if got := strings.Join(makeAnswer(p, request{schema: []byte(`{"type":"object"}`)}, callFacts{}, 0).text, ""); got != offSchema {
		t.Errorf("structured output %s", got)
	}
}
