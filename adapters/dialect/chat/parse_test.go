package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Rules: N21, A6.
func TestParse_N21_A6(t *testing.T) {
	body := `{
	 "model":"fable-5", "stream":true, "stream_options":{"include_usage":true}, "max_tokens":10, "max_completion_tokens":20, "n":2,
	 "user":"u1", "prompt_cache_key":"k1", "reasoning_effort":"high", "future_field":{"x":[1]},
	 "response_format":{"type":"json_schema","json_schema":{"name":"s"}},
	 "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"name":"cursor","input_schema":{}}],
	 "tool_choice":{}, "system":[{"type":"text","text":"ignored by us"}],
	 "messages":[
	  {"role":"system","content":"be \"good\"\n漢"},
	  {"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
	    {"type":"file","file":{"file_data":"data:application/pdf;base64,AAAAAAAA"}},{"type":"file","file":{"file_id":"file-1"}},
	    {"type":"input_audio","input_audio":{"data":"BBBB","format":"wav"}}]},
	  {"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},
	  {"role":"tool","tool_call_id":"a","content":""}
	 ]}`
	req, err := Inbound{}.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := &dialect.Request{
		Dialect: neutral.Chat, Model: "fable-5", Stream: true, IncludeUsage: true, MaxOutputTokens: 20, Choices: 2,
		Needs:    []catalog.Capability{catalog.Tools, catalog.Images, catalog.StructuredOutput, catalog.ReasoningOutput},
		Features: []dialect.Feature{dialect.SeveralChoices, dialect.StoredFiles, dialect.AudioInput},
		Hints:    dialect.Hints{PromptCacheKey: "k1", User: "u1"},
		Parts:    dialect.Parts{Messages: 4, Tools: 2, Images: 1, Documents: []int64{6, 0}, Base64Bytes: 6},
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
		`{"name":"s"}`, `{"name":"f","parameters":{"type":"object"}}`, `{"name":"cursor","input_schema":{}}`,
		"be \"good\"\n漢", "look", "f", "{}",
	}
	if diff := cmp.Diff(wantTexts, texts); diff != "" {
		t.Error(diff)
	}
	if string(req.Raw) != body {
		t.Error("the caller's bytes were changed (W14)")
	}
}

func TestParseDefaults(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":null,"n":null,"tools":[],"reasoning_effort":"none","max_tokens":5,"response_format":{"type":"text"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if req.Stream || req.IncludeUsage || req.Choices != 1 || len(req.Needs) != 0 || req.MaxOutputTokens != 5 {
		t.Errorf("request = %+v", req)
	}
}

// Rules: Z5.
func TestParseRefusesWithTheField_Z5(t *testing.T) {
	with := func(fields string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"}],` + fields + `}`
	}
	tests := []struct{ name, body, param string }{
		{"empty", ``, ""},
		{"not JSON", `{"model":`, ""},
		{"trailing", `{"model":"m"} x`, ""},
		{"an array", `[]`, ""},
		{"not UTF-8", "{\"model\":\"\xff\"}", ""},
		{"too deep", with(`"x":` + strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth)), ""},
		{"far too deep", strings.Repeat("[", 1<<20), ""},
		{"no model", `{"messages":[{"role":"user"}]}`, "model"},
		{"empty model", `{"model":"","messages":[{"role":"user"}]}`, "model"},
		{"model is a number", `{"model":5,"messages":[{"role":"user"}]}`, "model"},
		{"model too long", `{"model":"` + strings.Repeat("m", inbound.MaxName+1) + `","messages":[{"role":"user"}]}`, "model"},
		{"model twice", with(`"model":"other"`), "model"},
		{"model twice, once escaped", with(`"mod\u0065l":"other"`), "model"},
		{"no messages", `{"model":"m"}`, "messages"},
		{"no message", `{"model":"m","messages":[]}`, "messages"},
		{"messages is text", `{"model":"m","messages":"hi"}`, "messages"},
		{"a message is text", `{"model":"m","messages":["hi"]}`, "messages[0]"},
		{"no role", `{"model":"m","messages":[{"role":"user"},{"content":"x"}]}`, "messages[1].role"},
		{"content is a number", `{"model":"m","messages":[{"role":"user","content":5}]}`, "messages[0].content"},
		{"content twice", `{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}`, "messages[0].content"},
		{"a part is text", `{"model":"m","messages":[{"role":"user","content":["x"]}]}`, "messages[0].content[0]"},
		{"tool_calls is an object", `{"model":"m","messages":[{"role":"assistant","tool_calls":{}}]}`, "messages[0].tool_calls"},
		{"stream is text", with(`"stream":"true"`), "stream"},
		{"stream twice", with(`"stream":true,"stream":false`), "stream"},
		{"stream_options is true", with(`"stream_options":true`), "stream_options"},
		{"include_usage is 1", with(`"stream_options":{"include_usage":1}`), "stream_options.include_usage"},
		{"include_usage twice", with(`"stream_options":{"include_usage":true,"include_usage":false}`), "stream_options.include_usage"},
		{"max_tokens is 0", with(`"max_tokens":0`), "max_tokens"},
		{"max_tokens is text", with(`"max_tokens":"5"`), "max_tokens"},
		{"max_completion_tokens is half", with(`"max_completion_tokens":1.5`), "max_completion_tokens"},
		{"n is 1000", with(`"n":1000`), "n"},
		{"tools is an object", with(`"tools":{}`), "tools"},
		{"a tool is text", with(`"tools":[{},"x"]`), "tools[1]"},
		{"response_format is text", with(`"response_format":"json"`), "response_format"},
		{"user is a number", with(`"user":5`), "user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Inbound{}.Parse([]byte(tt.body))
			wrong, ok := errors.AsType[*dialect.InvalidError](err)
			if !ok || wrong.Param != tt.param || wrong.Message == "" {
				t.Errorf("error = %#v, want an InvalidError at %q", err, tt.param)
			}
		})
	}
}

// What the caller wrote must not come back in a message that may be logged (E10).
func TestParseErrorsDoNotQuoteTheCaller_E10(t *testing.T) {
	_, err := Inbound{}.Parse([]byte(`{"model":{"canary":1},"messages":[]}`))
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error = %v", err)
	}
}

// Rules: S8, P12, W14.
func TestBuild_S8_P12_W14(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"x"}]`
	tests := []struct {
		name, in string
		stream   bool
		want     string
	}{
		{
			"model and usage", `{"model":"m",` + messages + `,"stream":true}`, true,
			`{"model":"up/1",` + messages + `,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			"spacing and order stay", "{ \"z\":1.0 ,\n" + messages + ", \"model\" : \"m\" , \"stream\":true ,\"a\":\"\\u00e9\" }", true,
			"{ \"z\":1.0 ,\n" + messages + ", \"model\" : \"up/1\" , \"stream\":true ,\"a\":\"\\u00e9\" ,\"stream_options\":{\"include_usage\":true}}",
		},
		{
			"asked for already", `{"model":"m",` + messages + `,"stream":true,"stream_options":{"include_usage":true}}`, true,
			`{"model":"up/1",` + messages + `,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		{
			"declined", `{"model":"m","stream_options":{"include_usage":false,"x":1},` + messages + `,"stream":true}`, true,
			`{"model":"up/1","stream_options":{"include_usage":true,"x":1},` + messages + `,"stream":true}`,
		},
		{
			"other options", `{"model":"m","stream_options":{"x":1},` + messages + `,"stream":true}`, true,
			`{"model":"up/1","stream_options":{"include_usage":true,"x":1},` + messages + `,"stream":true}`,
		},
		{
			"no options", `{"model":"m","stream_options":{},` + messages + `,"stream":true}`, true,
			`{"model":"up/1","stream_options":{"include_usage":true},` + messages + `,"stream":true}`,
		},
		{
			"null options", `{"model":"m","stream_options":null,` + messages + `,"stream":true}`, true,
			`{"model":"up/1","stream_options":{"include_usage":true},` + messages + `,"stream":true}`,
		},
		{"whole", `{"model":"m",` + messages + `}`, false, `{"model":"up/1",` + messages + `}`},
		{"whole for a caller who asked so", `{"model":"m","stream":false,` + messages + `}`, false, `{"model":"up/1","stream":false,` + messages + `}`},
		{
			"a stream for a caller who wants it whole (S11)", `{"model":"m","stream":false,` + messages + `}`, true,
			`{"model":"up/1","stream":true,` + messages + `,"stream_options":{"include_usage":true}}`,
		},
		{"options without a stream", `{"stream_options":{"include_usage":true},"model":"m",` + messages + `}`, false, `{"model":"up/1",` + messages + `}`},
		{"options last", `{"model":"m",` + messages + `,"stream_options":null}`, false, `{"model":"up/1",` + messages + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := Inbound{}.Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			up, err := Outbound{}.Build(req, dialect.Target{BaseURL: "https://p.test/v1", UpstreamModel: "up/1", Stream: tt.stream})
			if err != nil {
				t.Fatal(err)
			}
			if string(up.Body) != tt.want {
				t.Errorf("got  %s\nwant %s", up.Body, tt.want)
			}
			if string(req.Raw) != tt.in {
				t.Error("the caller's bytes were changed")
			}
		})
	}
}

// Rules: Z4.
func TestBuildSendsOnlyWhatIsAllowed_Z4(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	up, err := Outbound{}.Build(req, dialect.Target{BaseURL: "https://p.test/openai/v1/?api-version=1", Secret: "sk", UpstreamModel: "u", Stream: true, IdempotencyKey: "i"})
	if err != nil {
		t.Fatal(err)
	}
	if up.Method != "POST" || up.URL != "https://p.test/openai/v1/chat/completions?api-version=1" {
		t.Errorf("%s %s", up.Method, up.URL)
	}
	var names []string
	for name := range up.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"Accept", "Accept-Encoding", "Authorization", "Content-Type", "Idempotency-Key", "User-Agent"}, names); diff != "" {
		t.Error(diff)
	}
	if up.Header.Get("Authorization") != "Bearer sk" || up.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("header = %v", up.Header)
	}
	for _, base := range []string{"", "p.test/v1", "ftp://p.test", "https://", ":"} {
		if _, err := (Outbound{}).Build(req, dialect.Target{BaseURL: base}); err == nil {
			t.Errorf("base URL %q was taken", base)
		}
	}
}

func TestQuoteIsJSON(t *testing.T) {
	for _, s := range []string{"", "a/b", `q"\`, "\n\t\x00\x7f", "漢字 🦥", "<&>"} {
		if got := gjson.ParseBytes(rawjson.Quote(s)); !gjson.ValidBytes(rawjson.Quote(s)) || got.Str != s {
			t.Errorf("rawjson.Quote(%q) = %s", s, rawjson.Quote(s))
		}
	}
}

func TestShallowKnowsStrings(t *testing.T) {
	deep := strings.Repeat("[", rawjson.MaxDepth+1)
	for in, want := range map[string]bool{
		`{"a":"` + deep + `"}`:            true,
		`{"a":"\"` + deep + `"}`:          true,
		`{"a":"\\",` + deep:               false,
		`{"a":"\\\"` + deep + `"}`:        true,
		strings.Repeat("[]", 1000):        true,
		deep:                              false,
		`"` + deep:                        true,
		fmt.Sprintf(`{"a":"\\"}%s`, deep): false,
	} {
		if got := rawjson.Shallow([]byte(in)); got != want {
			t.Errorf("rawjson.Shallow(%s) = %v", in, got)
		}
	}
}
