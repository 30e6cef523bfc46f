package fakeprovider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

// with adds members to a call's body.
func with(model string, stream bool, members string) string {
	return strings.TrimSuffix(chatBody(model, stream), "}") + "," + members + "}"
}

const weatherTool = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":3}}}}},{"type":"function","function":{"name":"other","parameters":{}}}]`

// TestAnswers reads the same answer streamed and whole.
func TestAnswers(t *testing.T) {
	facts := func(model string) string { return "model=" + model + " messages=1 images=0 tools=0 prompt_tokens=7" }
	tests := []struct {
		name, model, members string
		want                 gathered
		tokens               int
	}{
		{"ok", "fake-words:6", "", gathered{content: facts("fake-words:6") + " the", finish: "stop"}, 6},
		{"any other model", "gpt-9", `"max_tokens":5`, gathered{content: facts("gpt-9"), finish: "length"}, 5},
		{"max_completion_tokens", "fake-ok", `"max_completion_tokens":1`, gathered{content: "model=fake-ok", finish: "length"}, 1},
		{"exactly the maximum", "fake-words:5", `"max_tokens":5`, gathered{content: facts("fake-words:5"), finish: "stop"}, 5},
		{"reasoning", "fake-words:1+reasoning:2", "", gathered{reasoning: " the quick", content: "model=fake-words:1+reasoning:2", finish: "stop"}, 3},
		{"cjk", "fake-cjk+words:3", "", gathered{content: " 你好 世界 🙂", finish: "stop"}, 3},
		{"refusal", "fake-refusal", "", gathered{refusal: "I'm sorry, I can't help with that.", finish: "stop"}, 7},
		{"empty", "fake-empty", "", gathered{finish: "stop"}, 0},
		{"merged role", "fake-merged-role+words:1", "", gathered{content: "model=fake-merged-role+words:1", finish: "stop"}, 1},
		{"empty tools", "fake-empty-tools+words:1", "", gathered{content: "model=fake-empty-tools+words:1", finish: "stop"}, 1},
		{"json object", "fake-ok", `"response_format":{"type":"json_object"}`, gathered{content: `{"answer":"the quick brown fox","ok":true}`, finish: "stop"}, 6},
		{"schema", "fake-ok", `"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":{"b":{"enum":["x","y"]},"a":{"type":"array","items":{"type":"number"}}}}}}`, gathered{content: `{"b":"x","a":[1]}`, finish: "stop"}, 3},
	}
	c := start(t, fakeprovider.Options{})
	for _, test := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", test.name, stream), func(t *testing.T) {
				c := c.on(t)
				body := chatBody(test.model, stream)
				if test.members != "" {
					body = with(test.model, stream, test.members)
				}
				got := c.answer(body, stream)
				if got.content != test.want.content || got.reasoning != test.want.reasoning || got.refusal != test.want.refusal || got.finish != test.want.finish || got.calls != nil {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
				if got.usage.CompletionTokens != test.tokens || got.usage.PromptTokens != 7 || got.usage.TotalTokens != 7+test.tokens {
					t.Errorf("usage %+v, want %d output tokens", got.usage, test.tokens)
				}
				last := c.lastCall()
				if last.BilledOutputTokens != test.tokens || last.BilledInputTokens != 7 || last.Status != http.StatusOK || last.ClientGone {
					t.Errorf("ledger %+v", last)
				}
			})
		}
	}
}

// TestToolCalls calls tools when told to, with arguments of the schema's shape.
func TestToolCalls(t *testing.T) {
	const weather = `{"city":"text","days":3}`
	tests := []struct {
		name, model, members, content string
		calls                         []string
	}{
		{"required", "fake-ok", weatherTool + `,"tool_choice":"required"`, "", []string{"weather" + weather}},
		{"named", "fake-ok", weatherTool + `,"tool_choice":{"type":"function","function":{"name":"other"}}`, "", []string{"other{}"}},
		{"auto", "fake-words:1", weatherTool, "model=fake-words:1", nil},
		{"none", "fake-words:1", weatherTool + `,"tool_choice":"none"`, "model=fake-words:1", nil},
		{"marker", "fake-ok", weatherTool + `,"messages":[{"role":"user","content":"look it up [tool]"}]`, "", []string{"weather" + weather}},
		{"marker, answered", "fake-words:1", weatherTool + `,"messages":[{"role":"user","content":"[tool]"},{"role":"tool","tool_call_id":"x","content":"sun"}]`, "model=fake-words:1", nil},
		{"marker with a name", "fake-ok", weatherTool + `,"messages":[{"role":"user","content":"go [tool other {\"path\": [1]}] on"}]`, "", []string{`other{"path": [1]}`}},
		{"marker with a name that is not offered", "fake-words:1", weatherTool + `,"messages":[{"role":"user","content":"[tool third {}]"}]`, "model=fake-words:1", nil},
		{"marker without arguments", "fake-words:1", weatherTool + `,"messages":[{"role":"user","content":"[tool other {]"}]`, "model=fake-words:1", nil},
		{"marker in a result", "fake-ok", weatherTool + `,"messages":[{"role":"user","content":"[tool other {}]"},{"role":"tool","tool_call_id":"x","content":"1: [say it is  sunny]"}]`, "it is sunny", nil},
		{"by plan", "fake-tool", weatherTool, "", []string{"weather" + weather}},
		{"parallel", "fake-tools:3", weatherTool, "", []string{"weather" + weather, "other{}", "weather" + weather}},
		{"text first", "fake-text-tool", weatherTool, "let me look the quick", []string{"weather" + weather}},
		{"whole call", "fake-tools:2+whole-call", weatherTool, "", []string{"weather" + weather, "other{}"}},
		{"no tools offered", "fake-tool", `"user":"u"`, "", []string{`get_weather{"location":"text"}`}},
		{"merged role", "fake-tool+merged-role", weatherTool, "", []string{"weather" + weather}},
	}
	c := start(t, fakeprovider.Options{})
	for _, test := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", test.name, stream), func(t *testing.T) {
				c := c.on(t)
				got := c.answer(with(test.model, stream, test.members), stream)
				var calls, ids []string
				for i, call := range got.calls {
					calls = append(calls, call.Function.Name+call.Function.Arguments)
					ids = append(ids, call.ID)
					if stream && *call.Index != i {
						t.Errorf("call %d has index %d", i, *call.Index)
					}
				}
				wantFinish := "stop"
				if test.calls != nil {
					wantFinish = "tool_calls"
				}
				if !slices.Equal(calls, test.calls) || got.content != test.content || got.finish != wantFinish {
					t.Errorf("calls %q, content %q, finish %q", calls, got.content, got.finish)
				}
				if slices.Sort(ids); len(slices.Compact(ids)) != len(calls) {
					t.Errorf("ids %q are not distinct", ids)
				}
			})
		}
	}
}

// TestImagesAreCounted accepts images and says how many.
func TestImagesAreCounted(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	got := c.answer(with("fake-ok", false, `"messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"image_url","image_url":{"url":"x"}}]}]`), false)
	if !strings.Contains(got.content, "images=2 ") || got.usage.PromptTokens != 4+4+2*85 {
		t.Errorf("%q, %+v", got.content, got.usage)
	}
}

// TestUsageForms_S8 is where and how usage is told. The position counts events
// from the end, [DONE] included: 1 is the one before it.
//
// Rules: S8.
func TestUsageForms_S8(t *testing.T) {
	told := func(u tokenUsage) *tokenUsage { return &u }
	normal := told(tokenUsage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10})
	over := told(tokenUsage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10})
	over.PromptDetails.CachedTokens = 15
	outside := told(tokenUsage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 12})
	outside.CompletionDetails.ReasoningTokens = 2
	tests := []struct {
		model    string
		asked    bool
		position int // of the last chunk with usage; 0: none
		choices  bool
		want     *tokenUsage
		tellers  int // chunks that tell it
	}{
		{"fake-words:3", true, 1, false, normal, 1},
		{"fake-words:3", false, 0, false, nil, 0},
		{"fake-words:3+usage:trailing", false, 1, false, normal, 1},
		{"fake-words:3+usage:last", true, 1, true, normal, 1},
		{"fake-words:3+usage:before-last", true, 2, true, normal, 1},
		{"fake-words:3+usage:every", true, 1, true, normal, 5},
		{"fake-words:3+usage:absent", true, 0, false, nil, 0},
		{"fake-words:3+usage:null", true, 0, false, nil, 0},
		{"fake-words:3+usage:zero", true, 1, false, &tokenUsage{}, 1},
		{"fake-words:3+usage:cached-over-prompt", true, 1, false, over, 1},
		{"fake-words:3+reasoning:2+usage:reasoning-outside", true, 1, false, outside, 1},
	}
	c := start(t, fakeprovider.Options{})
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s/asked=%v", test.model, test.asked), func(t *testing.T) {
			c := c.on(t)
			body := strings.Replace(chatBody(test.model, true), `"include_usage":true`, fmt.Sprintf(`"include_usage":%v`, test.asked), 1)
			r := c.post(t.Context(), body, "k")
			chunks, _ := c.chunks(r.body)
			position, tellers := 0, 0
			for i, chunk := range chunks {
				if chunk.Usage != nil {
					position, tellers = len(chunks)-i, tellers+1
				}
			}
			got := gather(chunks).usage
			if position != test.position || tellers != test.tellers || (got == nil) != (test.want == nil) || (got != nil && *got != *test.want) {
				t.Errorf("position %d, %d tellers, usage %+v", position, tellers, got)
			}
			if position > 0 && (len(chunks[len(chunks)-position].Choices) > 0) != test.choices {
				t.Errorf("choices beside usage: %s", chunks[len(chunks)-position].Raw)
			}
			if hasNull := strings.Contains(string(r.body), `"usage":null`); strings.Contains(test.model, "null") != hasNull && strings.Contains(test.model, "absent") {
				t.Errorf("null usage %v", hasNull)
			}
			if got := c.lastCall(); got.BilledInputTokens != 7 || got.BilledOutputTokens < 3 {
				t.Errorf("what is told changed what is billed: %+v", got)
			}
		})
	}
	whole := c.call("fake-usage:null", false)
	if !strings.Contains(string(whole.body), `"usage":null`) {
		t.Errorf("whole, null: %s", whole.body)
	}
	if whole = c.call("fake-usage:absent", false); strings.Contains(string(whole.body), `"usage"`) {
		t.Errorf("whole, absent: %s", whole.body)
	}
}

// TestCachedTokens reports cached input, at most the prompt, and bills it.
func TestCachedTokens(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for model, want := range map[string]int{"fake-cached:5": 5, "fake-cached:500": 7} {
		if got := c.answer(chatBody(model, true), true); got.usage.PromptDetails.CachedTokens != want {
			t.Errorf("%s: %+v", model, got.usage)
		}
		if last := c.lastCall(); last.BilledCachedTokens != want {
			t.Errorf("%s: bill %+v", model, last)
		}
	}
}

// TestVendorSDK lets OpenAI's own client read the answers.
func TestVendorSDK(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	client := openai.NewClient(option.WithBaseURL(c.server.URL()+"/v1"), option.WithAPIKey("sk-x"), option.WithHTTPClient(c.client), option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{
		Model:    "fake-ok",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello [tool]")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "weather", Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]string{"type": "string"}}},
		})},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var sum openai.ChatCompletionAccumulator
	for stream.Next() {
		if !sum.AddChunk(stream.Current()) {
			t.Fatal("the accumulator refuses a chunk")
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if got := sum.Choices[0].Message.ToolCalls; len(got) != 1 || got[0].Function.Arguments != `{"city":"text"}` || sum.Usage.CompletionTokens == 0 {
		t.Errorf("streamed: %+v, %+v", got, sum.Usage)
	}
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	whole, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil || whole.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("whole: %+v, %v", whole, err)
	}
	models, err := client.Models.List(t.Context())
	if err != nil || !slices.ContainsFunc(models.Data, func(m openai.Model) bool { return m.ID == "fake-ok" }) {
		t.Errorf("models: %v, %v", models, err)
	}
	params.Model = "fake-429:2"
	_, err = client.Chat.Completions.New(t.Context(), params)
	var failure *openai.Error
	if !asError(err, &failure) || failure.StatusCode != 429 || failure.Code != "rate_limit_exceeded" {
		t.Errorf("failure: %v", err)
	}
}

// TestEmptyToolsStayOnTheWire: the arrays are there, in both forms.
func TestEmptyToolsStayOnTheWire(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	for _, stream := range []bool{false, true} {
		if r := c.call("fake-empty-tools", stream); !strings.Contains(string(r.body), `"tool_calls":[]`) || (!stream && !json.Valid(r.body)) {
			t.Errorf("stream=%v: %s", stream, r.body)
		}
	}
	first := sseData(c.call("fake-merged-role+empty", true).body)[0]
	if !json.Valid([]byte(first)) || !strings.Contains(first, `"role":"assistant"}`) {
		t.Errorf("a role without content: %s", first)
	}
}
