package fakeprovider

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a stream delivers, piece by piece, and how it ends.
func TestGeminiStreams(t *testing.T) {
	for outcome, want := range map[string]string{
		"words:2":             "text text STOP",
		"reasoning:1+words:1": "thought text STOP",
		"tools:2":             "call call STOP",
		"refusal:1":           "text STOP",
		"empty":               "STOP",
		"words:1+no-done":     "text",
		"words:1+no-finish":   "text",
		"finish:length":       strings.Repeat("text ", defaultWords) + "MAX_TOKENS",
		"finish:SAFETY":       strings.Repeat("text ", defaultWords) + "SAFETY",
	} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, request{model: "m", promptTokens: 7}, callFacts{sequence: 1}, 0)
		var said []string
		tokens := 0
		for _, e := range (gemini{}).events(a) {
			said, tokens = append(said, geminiKind(t, e.data)), tokens+e.tokens
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", outcome, got, want)
		}
		if tokens != a.usage.output {
			t.Errorf("%s delivers %d tokens of %d", outcome, tokens, a.usage.output)
		}
	}
}

// geminiKind is what a chunk says in a word.
func geminiKind(t *testing.T, data []byte) string {
	t.Helper()
	var c struct {
		Candidates []struct {
			FinishReason string
			Content      struct {
				Parts []struct {
					Thought      bool
					FunctionCall *struct{}
				}
			}
		}
	}
	if err := json.Unmarshal(data, &c); err != nil || len(c.Candidates) != 1 || len(c.Candidates[0].Content.Parts) != 1 {
		t.Fatalf("%v: %s", err, data)
	}
	switch part := c.Candidates[0].Content.Parts[0]; {
	case c.Candidates[0].FinishReason != "":
		return c.Candidates[0].FinishReason
	case part.FunctionCall != nil:
		return "call"
	case part.Thought:
		return "thought"
	default:
		return "text"
	}
}

func TestGeminiUsageStandsBesideTheThoughts(t *testing.T) {
	for outcome, want := range map[string]string{
		"words:2+cached:3":    `{"promptTokenCount":7,"cachedContentTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":0,"totalTokenCount":9}`,
		"words:2+reasoning:4": `{"promptTokenCount":7,"cachedContentTokenCount":0,"candidatesTokenCount":2,"thoughtsTokenCount":4,"totalTokenCount":13}`,
		"words:2+usage:null":  `null`, "words:2+usage:absent": ``,
		"words:2+usage:zero": `{"promptTokenCount":0,"cachedContentTokenCount":0,"candidatesTokenCount":0,"thoughtsTokenCount":0,"totalTokenCount":0}`,
	} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, request{model: "m", promptTokens: 7}, callFacts{sequence: 1}, 0)
		events := gemini{}.events(a)
		for _, data := range [][]byte{gemini{}.whole(a), events[len(events)-1].data} {
			var body struct{ UsageMetadata json.RawMessage }
			if err := json.Unmarshal(data, &body); err != nil || string(body.UsageMetadata) != want {
				t.Errorf("%s: %s, %v", outcome, body.UsageMetadata, err)
			}
		}
	}
}

func geminiCall(body, call string) (request, error) {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.SetPathValue("call", call)
	return gemini{}.parse(r, []byte(body))
}

func TestGeminiRequests(t *testing.T) {
	in, err := geminiCall(`{"systemInstruction":{"parts":[{"text":"abcd"}]},"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}],`+
		`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},"generationConfig":{"maxOutputTokens":9,"responseMimeType":"application/json"},`+
		`"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"no"}]},{"role":"user","parts":[{"inlineData":{}},{"functionResponse":{"response":{"a":1}}}]}]}`, "fake-429:2:streamGenerateContent")
	if err != nil {
		t.Fatal(err)
	}
	if in.model != "fake-429:2" || !in.stream || in.promptTokens != promptTokens(15, 3, 1, 1) || !in.toolAnswered || in.toolChoice != "f" ||
		in.maxTokens != 9 || in.lastUser != "hi" || !in.jsonObject || string(in.tools[0].parameters) != `{"type":"object"}` {
		t.Errorf("request = %+v", in)
	}
	for _, call := range []string{"m", "m:countTokens"} {
		if _, err := geminiCall(`{}`, call); err == nil {
			t.Errorf("%s was taken", call)
		}
	}
}

// Every failure that the grammar knows has a body in every protocol, whoever's form it
// is: a status of 0 would end the server.
func TestEveryFormIsSaidByEveryDialect(t *testing.T) {
	for _, table := range failureTables {
		for kind, forms := range table {
			if _, ok := geminiFailures[kind][""]; !ok {
				t.Errorf("%s has no wording", kind)
			}
			for form := range forms {
				for _, d := range []dialect{chat{}, messages{}, gemini{}} {
					if status, _ := d.failure(failure{kind: kind, form: form}, callFacts{model: "m"}); status < 300 {
						t.Errorf("%T, %s %s: status %d", d, kind, form, status)
					}
				}
			}
		}
	}
}

func TestGeminiErrorEvents(t *testing.T) {
	for _, bare := range []bool{false, true} {
		if e := (gemini{}).errorEvent(failure{kind: "bad_gateway"}, &answer{}, bare); !json.Valid(e.data) || strings.HasPrefix(string(e.data), "[") != bare {
			t.Errorf("error event %s", e.data)
		}
	}
}

func FuzzGeminiRequest(f *testing.F) {
	f.Add(`{"contents":[{"parts":[{"functionResponse":{}}]}],"generationConfig":{"responseSchema":{"type":"OBJECT"}}}`, "m:generateContent")
	f.Fuzz(func(t *testing.T, body, call string) {
		in, err := geminiCall(body, call)
		if err != nil {
			return
		}
		p, err := parseOutcome("reasoning:2+text-tool")
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, in, callFacts{sequence: 1}, 0)
		if whole := (gemini{}).whole(a); !json.Valid(whole) {
			t.Errorf("whole: %s", whole)
		}
		for _, e := range (gemini{}).events(a) {
			if !json.Valid(e.data) {
				t.Errorf("event: %s", e.data)
			}
		}
	})
}
