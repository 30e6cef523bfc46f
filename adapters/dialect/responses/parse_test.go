package responses

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// full is a request with one of everything that other dialects can say.
const full = `{
 "model":"fable-5","stream":true,"max_output_tokens":20,"instructions":"be \"good\"\n漢","future_field":{"x":[1]},
 "prompt_cache_key":"k1","safety_identifier":"u1","metadata":{"b":"1","a":"2"},"temperature":0.70,"top_p":1,"store":false,
 "include":["reasoning.encrypted_content"],"parallel_tool_calls":false,"truncation":"disabled",
 "reasoning":{"effort":"high","summary":"auto"},
 "text":{"verbosity":"low","format":{"type":"json_schema","name":"s","strict":true,"schema":{"type":"object"}}},
 "tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false},{"type":"function","name":"g"}],
 "tool_choice":{"type":"function","name":"f"},
 "input":[
  {"role":"developer","content":"and brief"},
  {"type":"message","role":"user","content":[{"type":"input_text","text":"look"},
   {"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"},
   {"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAAAAAA"}]},
  {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"gAAA"},
  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"let me"},{"type":"refusal","refusal":"no"}]},
  {"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"},
  {"type":"function_call","call_id":"b","name":"g","arguments":"{}"},
  {"type":"function_call_output","call_id":"a","output":"one"},
  {"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"two"},{"type":"input_image","image_url":"data:image/png;base64,BBBB"}]},
  {"role":"user","content":"go on"}
 ]}`

// Rules: N21, A6.
func TestParse_N21_A6(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &dialect.Request{
		Dialect: neutral.Responses, Model: "fable-5", Stream: true, IncludeUsage: true, MaxOutputTokens: 20, Choices: 1, Sealed: true,
		Seal:  neutral.OpaqueReasoning{Issuer: neutral.Responses, ID: "rs_1", Encrypted: "gAAA"},
		Needs: []catalog.Capability{catalog.Tools, catalog.Images, catalog.StructuredOutput, catalog.ReasoningOutput},
		Hints: dialect.Hints{PromptCacheKey: "k1", User: "u1"},
		Parts: dialect.Parts{Messages: 9, Tools: 2, Images: 2, Documents: []int64{6}, Base64Bytes: 4},
	}
	got := *req
	got.Raw, got.Parts.Spans, got.Neutral = nil, nil, nil
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Error(diff)
	}
	var texts []string
	for text := range req.Texts() {
		texts = append(texts, string(text))
	}
	wantTexts := []string{
		"be \"good\"\n漢", `{"type":"json_schema","name":"s","strict":true,"schema":{"type":"object"}}`,
		`{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false}`, `{"type":"function","name":"g"}`,
		"and brief", "look", "hm", "so", "let me", "no", "f", `{"x":1}`, "g", "{}", "one", "two", "go on",
	}
	if diff := cmp.Diff(wantTexts, texts); diff != "" {
		t.Error(diff)
	}
	if string(req.Raw) != full {
		t.Error("the caller's bytes were changed (W14)")
	}
}

func TestParseDefaults(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(`{"model":"m","input":"x","stream":null,"tools":[],"reasoning":{"effort":null,"summary":null},"text":{"format":{"type":"text"}},"background":false,"previous_response_id":null,"conversation":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if req.Stream || len(req.Needs) != 0 || len(req.Features) != 0 || req.MaxOutputTokens != 0 || req.Parts.Messages != 1 || req.Sealed {
		t.Errorf("request = %+v", req)
	}
}

// Rules: Z5.
func TestParseRefusesWithTheField_Z5(t *testing.T) {
	with := func(fields string) string { return `{"model":"m","input":"x",` + fields + `}` }
	items := func(list string) string { return `{"model":"m","input":[` + list + `]}` }
	tests := []struct{ name, body, param string }{
		{"empty", ``, ""},
		{"not JSON", `{"model":`, ""},
		{"not UTF-8", "{\"model\":\"\xff\"}", ""},
		{"deep", `{"model":"m","x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, ""},
		{"no model", `{"input":"x"}`, "model"},
		{"no input", `{"model":"m"}`, "input"},
		{"no items", items(``), "input"},
		{"model twice", `{"model":"m","model":"n","input":"x"}`, "model"},
		{"long model", `{"model":"` + strings.Repeat("m", inbound.MaxName+1) + `","input":"x"}`, "model"},
		{"input is a number", `{"model":"m","input":7}`, "input"},
		{"an item is a string", items(`"x"`), "input[0]"},
		{"a message without a role", items(`{"role":"user","content":"x"},{"content":"x"}`), "input[1].role"},
		{"content is a number", items(`{"role":"user","content":7}`), "input[0].content"},
		{"a part is a string", items(`{"role":"user","content":["x"]}`), "input[0].content[0]"},
		{"an output is an object", items(`{"type":"function_call_output","call_id":"a","output":{}}`), "input[0].output"},
		{"stream is a word", with(`"stream":"yes"`), "stream"},
		{"no tokens", with(`"max_output_tokens":0`), "max_output_tokens"},
		{"tools is an object", with(`"tools":{}`), "tools"},
		{"a tool is a string", with(`"tools":[{"type":"function"},"x"]`), "tools[1]"},
		{"tool_choice is a number", with(`"tool_choice":1`), "tool_choice"},
		{"text is a string", with(`"text":"x"`), "text"},
		{"reasoning is a string", with(`"reasoning":"high"`), "reasoning"},
		{"include is a string", with(`"include":"x"`), "include"},
		{"store is a word", with(`"store":"yes"`), "store"},
		{"background", with(`"background":true`), "background"},
		{"nothing stored", with(`"previous_response_id":"resp_1"`), "previous_response_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Inbound{}.Parse([]byte(tt.body))
			inv, ok := errors.AsType[*dialect.InvalidError](err)
			if !ok || inv.Param != tt.param || inv.Message == "" {
				t.Errorf("%+v", err)
			}
		})
	}
}

// Rules: P5.
func TestWhatStaysInThisDialect_P5(t *testing.T) {
	tests := []struct {
		body string
		want dialect.Feature
	}{
		{`"input":"x","tools":[{"type":"custom","name":"patch"}]`, dialect.CustomTools},
		{`"input":"x","tools":[{"type":"web_search"}]`, dialect.ServerTools},
		{`"input":"x","tool_choice":{"type":"allowed_tools","tools":[]}`, dialect.AllowedTools},
		{`"input":"x","tool_choice":{"type":"file_search"}`, dialect.ServerTools},
		{`"input":"x","top_logprobs":3`, dialect.LogProbs},
		{`"input":"x","include":["message.output_text.logprobs"]`, dialect.LogProbs},
		{`"input":"x","conversation":"conv_1"`, dialect.StoredState},
		{`"prompt":{"id":"pmpt_1"}`, dialect.StoredState},
		{`"input":[{"type":"item_reference","id":"msg_1"}]`, dialect.StoredState},
		{`"input":[{"type":"custom_tool_call_output","call_id":"a","output":"x"}]`, dialect.CustomTools},
		{`"input":[{"type":"web_search_call","id":"ws_1"}]`, dialect.ServerTools},
		{`"input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]`, dialect.StoredFiles},
		{`"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]`, dialect.StoredFiles},
		{`"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x.test/a.png"}]}]`, dialect.ImageURLs},
		{`"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://x.test/a.pdf"}]}]`, dialect.DocumentURLs},
		{`"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]`, dialect.AudioInput},
	}
	for _, tt := range tests {
		req, err := Inbound{}.Parse([]byte(`{"model":"m",` + tt.body + `}`))
		if err != nil || !slices.Equal(req.Features, []dialect.Feature{tt.want}) {
			t.Errorf("%s: %+v, %v", tt.body, req, err)
			continue
		}
		if up, err := (Outbound{}).Build(req, dialect.Target{BaseURL: "https://p.test", UpstreamModel: "m"}); err != nil {
			t.Errorf("%s: its own dialect: %v, %v (P4)", tt.body, up, err)
		}
	}
}

// Rules: P3.
func TestNeutral_P3(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	got, err := req.Neutral()
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	text := func(s string) neutral.Part { return neutral.Part{Kind: neutral.TextPart, Text: s} }
	want := &neutral.Request{
		System: []neutral.Part{text("be \"good\"\n漢"), text("and brief")},
		Messages: []neutral.Message{
			{Role: neutral.User, Parts: []neutral.Part{
				text("look"),
				{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: "AAAA", Detail: "low"}},
				{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "AAAAAAAA", Name: "a.pdf"}},
			}},
			{Role: neutral.Assistant, Parts: []neutral.Part{
				{Kind: neutral.ReasoningPart, Text: "hm\n\nso", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Responses, ID: "rs_1", Encrypted: "gAAA"}},
				text("let me"),
				{Kind: neutral.RefusalPart, Text: "no"},
				{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}},
				{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "b", Name: "g", Arguments: `{}`}},
			}},
			{Role: neutral.User, Parts: []neutral.Part{
				{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "a", Name: "f", Parts: []neutral.Part{text("one")}}},
				{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "b", Name: "g", Parts: []neutral.Part{
					text("two"), {Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: "BBBB"}},
				}}},
				text("go on"),
			}},
		},
		Tools: []neutral.ToolDefinition{
			{Name: "f", Description: "d", Schema: []byte(`{"type":"object"}`), Strict: &no}, {Name: "g"},
		},
		Choice: neutral.ToolChoice{Mode: neutral.ChoiceNamed, Name: "f"}, ParallelCalls: &no,
		Format:          &neutral.Format{Name: "s", Schema: []byte(`{"type":"object"}`), Strict: &yes},
		Reasoning:       &neutral.ReasoningOptions{Effort: "high", Summary: "auto"},
		MaxOutputTokens: 20, Stream: true, User: "u1", Metadata: []byte(`{"b":"1","a":"2"}`),
		Sampling: neutral.Sampling{Temperature: "0.70", TopP: "1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Rules: Z5.
func TestNeutralRefusesWithTheField_Z5(t *testing.T) {
	content := func(part string) string { return `"input":[{"role":"user","content":[` + part + `]}]` }
	for body, param := range map[string]string{
		content(`{"type":"input_image","image_url":"data:image/png;base64,A!AA"}`):   "input[0].content[0].image_url",
		content(`{"type":"input_image","image_url":"data:image/png,raw"}`):           "input[0].content[0].image_url",
		content(`{"type":"input_image"}`):                                            "input[0].content[0].image_url",
		content(`{"type":"input_text","text":"x"},{"type":"input_file"}`):            "input[0].content[1].file_data",
		content(`{"type":"hologram"}`):                                               "input[0].content[0]",
		`"input":[{"role":"critic","content":"x"}]`:                                  "input[0].role",
		`"input":"x","tool_choice":"perhaps"`:                                        "tool_choice",
		`"input":"x","text":{"format":{"type":"json_schema","name":"s"}}`:            "text.format.schema",
		`"input":"x","text":{"format":{"type":"grammar"}}`:                           "text.format.type",
		`"input":"x","tools":[{"type":"function","name":"f"},{"type":"web_search"}]`: "tools[1]",
	} {
		req, err := Inbound{}.Parse([]byte(`{"model":"m",` + body + `}`))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		_, err = req.Neutral()
		if inv, ok := errors.AsType[*dialect.InvalidError](err); !ok || inv.Param != param {
			t.Errorf("%s: %+v", body, err)
		}
	}
}
