package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// full has everything that another dialect can say too.
const full = `{
 "model":"fable-5","stream":true,"max_tokens":10,"max_completion_tokens":20,"temperature":0.70,"top_p":1,"top_k":40,"seed":7,
 "frequency_penalty":0.5,"presence_penalty":-0.5,"stop":["a","b"],"user":"u1","metadata":{"k":"v"},"reasoning_effort":"high","parallel_tool_calls":false,
 "response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","b":1,"a":2},"strict":true}},
 "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","z":1,"a":2},"strict":true},"cache_control":{"type":"ephemeral"}},
  {"name":"cursor","input_schema":{"type":"object"}}],
 "tool_choice":{"type":"function","function":{"name":"f"}},
 "system":[{"type":"text","text":"editor"}],
 "messages":[
  {"role":"system","content":"be \"good\"\n漢"},
  {"role":"developer","content":[{"type":"text","text":"kind","cache_control":{"type":"ephemeral","ttl":"1h"}}]},
  {"role":"user","content":[{"type":"text","text":"look"},{"type":"text","text":""},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}},
    {"type":"image_url","image_url":{"url":"https://x.test/a.png"}},
    {"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAAAAAA"}},
    {"type":"image","source":{"type":"base64","media_type":"image/gif","data":"BBBB"}}]},
  {"role":"assistant","content":"I look","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":""}}]},
  {"role":"tool","tool_call_id":"c1","content":"one"},
  {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"},{"type":"image_url","image_url":{"url":"data:image/png;base64,CCCC"}}]},
  {"role":"user","content":"and?"},
  {"role":"assistant","content":null,"refusal":"no"},
  {"role":"assistant","content":null,"function_call":{"name":"h","arguments":"{}"}},
  {"role":"function","name":"h","content":"old"}
 ]}`

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

func said(s string) neutral.Part { return neutral.Part{Kind: neutral.TextPart, Text: s} }

func picture(data string) neutral.Part {
	return neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: data}}
}

func answered(id, name string, parts ...neutral.Part) neutral.Part {
	return neutral.Part{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: id, Name: name, Parts: parts}}
}

func called(id, name, arguments string) neutral.Part {
	return neutral.Part{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: id, Name: name, Arguments: arguments}}
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
	kind := said("kind")
	kind.Cache = &neutral.CacheMarker{TTL: "1h"}
	low := picture("AAAA")
	low.Media.Detail = "low"
	want := &neutral.Request{
		System: []neutral.Part{said("editor"), said("be \"good\"\n漢"), kind},
		Messages: []neutral.Message{
			{Role: neutral.User, Parts: []neutral.Part{
				said("look"), low,
				{Kind: neutral.ImagePart, Media: neutral.Media{URL: "https://x.test/a.png"}},
				{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "AAAAAAAA", Name: "a.pdf"}},
				{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/gif", Base64: "BBBB"}},
			}},
			{Role: neutral.Assistant, Parts: []neutral.Part{
				{Kind: neutral.ReasoningPart, Text: "hm"},
				said("I look"), called("c1", "f", `{"a":1}`), called("c2", "g", ""),
			}},
			{Role: neutral.User, Parts: []neutral.Part{answered("c1", "f", said("one")), answered("c2", "g", said("two"), picture("CCCC")), said("and?")}},
			{Role: neutral.Assistant, Parts: []neutral.Part{{Kind: neutral.RefusalPart, Text: "no"}}},
			{Role: neutral.Assistant, Parts: []neutral.Part{called("call_8", "h", "{}")}},
			{Role: neutral.User, Parts: []neutral.Part{answered("call_8", "h", said("old"))}},
		},
		Tools: []neutral.ToolDefinition{
			{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object","z":1,"a":2}`), Strict: yes(), Cache: &neutral.CacheMarker{}},
			{Name: "cursor", Schema: json.RawMessage(`{"type":"object"}`)},
		},
		Choice: neutral.ToolChoice{Mode: neutral.ChoiceNamed, Name: "f"}, ParallelCalls: no(),
		Format:    &neutral.Format{Name: "s", Schema: json.RawMessage(`{"type":"object","b":1,"a":2}`), Strict: yes()},
		Reasoning: &neutral.ReasoningOptions{Effort: "high"}, MaxOutputTokens: 20,
		Sampling: neutral.Sampling{Temperature: "0.70", TopP: "1", TopK: "40", Seed: "7", FrequencyPenalty: "0.5", PresencePenalty: "-0.5"},
		Stop:     []string{"a", "b"}, Stream: true, User: "u1", Metadata: json.RawMessage(`{"k":"v"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if string(req.Raw) != full {
		t.Error("the caller's bytes were changed (W14)")
	}
}

// What cannot be understood for another dialect is named, and nothing of it is sent.
//
// Rules: P5.
func TestNeutralRefusesWithTheField_P5(t *testing.T) {
	user := func(part string) string {
		return `{"model":"m","messages":[{"role":"user","content":[` + part + `]}]}`
	}
	for body, param := range map[string]string{
		user(`{"type":"hologram","data":"x"}`):                                                          "messages[0].content[0].type",
		user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,@@@@"}}`):                   "messages[0].content[0].image_url.url",
		user(`{"type":"image_url","image_url":{"url":"data:image/png,AAAA"}}`):                          "messages[0].content[0].image_url.url",
		user(`{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}`):                           "messages[0].content[0].image_url.url",
		user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"a b"}}`):       "messages[0].content[0].source",
		user(`{"type":"input_audio","input_audio":{"format":"midi","data":"AAAA"}}`):                    "messages[0].content[0].input_audio",
		`{"model":"m","messages":[{"role":"critic","content":"x"}]}`:                                    "messages[0].role",
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]}`:      "messages[0].tool_calls[0].id",
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{}}]}]}`:       "messages[0].tool_calls[0].function.name",
		`{"model":"m","messages":[{"role":"user"}],"tools":[{"type":"function","function":{}}]}`:        "tools[0].function.name",
		`{"model":"m","messages":[{"role":"user"}],"tools":[{"function":{"name":"f","parameters":1}}]}`: "tools[0].function.parameters",
		`{"model":"m","messages":[{"role":"user"}],"tool_choice":"whatever"}`:                           "tool_choice",
		`{"model":"m","messages":[{"role":"user"}],"temperature":"hot"}`:                                "temperature",
		`{"model":"m","messages":[{"role":"user"}],"stop":[1]}`:                                         "stop[0]",
	} {
		req, err := Inbound{}.Parse([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		_, err = req.Neutral()
		if inv, ok := errors.AsType[*dialect.InvalidError](err); !ok || inv.Param != param {
			t.Errorf("%s: %v, want a word about %s", body, err, param)
		}
	}
}

// What other dialects cannot say is noticed when the request is read, so that their
// routes are skipped and not called with something else (N21, P5).
func TestFeatures_P5(t *testing.T) {
	for fields, want := range map[string][]dialect.Feature{
		`"n":2`: {dialect.SeveralChoices}, `"n":1`: nil,
		`"logprobs":true`: {dialect.LogProbs}, `"logprobs":false`: nil,
		`"modalities":["text","audio"]`: {dialect.AudioOutput}, `"modalities":["text"]`: nil,
		`"tools":[{"type":"custom","custom":{"name":"x"}}]`:        {dialect.CustomTools},
		`"tools":[{"type":"web_search"}]`:                          {dialect.ServerTools},
		`"tools":[{"type":"function","function":{}},{"name":"f"}]`: nil,
		`"web_search_options":{}`:                                  {dialect.ServerTools},
		`"tool_choice":{"type":"allowed_tools"}`:                   {dialect.AllowedTools},
		`"tool_choice":"auto"`:                                     nil,
	} {
		req, err := Inbound{}.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],` + fields + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, req.Features); diff != "" {
			t.Errorf("%s: %s", fields, diff)
		}
	}
	for part, want := range map[string][]dialect.Feature{
		`{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}`:          {dialect.ImageURLs},
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`:    nil,
		`{"type":"file","file":{"file_id":"f"}}`:                                   {dialect.StoredFiles},
		`{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}`:  nil,
		`{"type":"document","source":{"type":"url","url":"https://x.test/a.pdf"}}`: {dialect.DocumentURLs},
		`{"type":"input_audio","input_audio":{"format":"wav","data":"AAAA"}}`:      {dialect.AudioInput},
		`{"type":"text","text":"x"}`:                                               nil,
	} {
		req, err := Inbound{}.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":[` + part + `]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, req.Features); diff != "" {
			t.Errorf("%s: %s", part, diff)
		}
	}
}

// A picture is a view of the caller's bytes, not a copy (S12).
func TestNeutralDoesNotCopyPictures(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 4<<20) + `"}}]}]}`)
	req, err := Inbound{}.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	perRun := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := req.Neutral(); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if perRun > 64<<10 {
		t.Errorf("decoding allocates %d bytes beside a 4 MiB picture", perRun)
	}
	foreign := *req
	foreign.Dialect = neutral.Messages
	perRun = testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (Outbound{}).Build(&foreign, dialect.Target{BaseURL: "https://api.openai.com/v1"}); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if perRun > int64(len(body))*5/4 {
		t.Errorf("a request of %d bytes is said in %d: more than its own size", len(body), perRun)
	}
}
