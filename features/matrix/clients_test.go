package matrix

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openairesponses "github.com/openai/openai-go/v3/responses"
)

// scripts that only the clients below ask for.
const (
	talkAndCall = "fake-reasoning:4+text-tool+tools:2+cached:3"
	breaks      = "fake-words:9+cut:4"
	down        = "fake-503"
)

var clientScripts = []string{talkAndCall, breaks, down}

// heard is an answer as an official client understood it.
type heard struct {
	text    string
	calls   []call
	stop    string
	in, out int64
	cached  int64
}

type call struct{ id, name, arguments string }

// checkHeard looks for one text, two calls with whole arguments, and usage, whoever
// answered.
func checkHeard(t *testing.T, got heard, stop string) {
	t.Helper()
	if !strings.HasPrefix(got.text, "let me look") || got.stop != stop {
		t.Errorf("text %q, stop %q", got.text, got.stop)
	}
	if len(got.calls) != 2 || got.calls[0].id == got.calls[1].id {
		t.Fatalf("calls = %+v", got.calls)
	}
	for _, c := range got.calls {
		var arguments struct {
			Zone *string `json:"zone_marker"`
		}
		if err := json.Unmarshal([]byte(c.arguments), &arguments); err != nil || arguments.Zone == nil || c.id == "" || c.name != "get_weather" {
			t.Errorf("call = %+v, %v", c, err)
		}
	}
	if got.in < 10 || got.out < 8 || got.cached != 3 {
		t.Errorf("usage: %d in, %d cached, %d out", got.in, got.cached, got.out)
	}
}

// everyPair runs a test of a client against every provider.
func everyPair(t *testing.T, w *world, run func(t *testing.T, to outbound)) {
	for _, to := range outbounds {
		t.Run("to "+to.name, func(t *testing.T) {
			if promise := promised(capability{}, inbound{}, to); promise.kind == isUntested {
				t.Skip(promise.row)
			}
			w.t = t
			run(t, to)
		})
	}
}

var zone = map[string]any{"type": "object", "properties": map[string]any{"zone_marker": map[string]any{"type": "string"}}, "required": []string{"zone_marker"}}

// Rules: P7.
func TestOpenAIClientHearsEveryProvider_P7(t *testing.T) {
	w := newWorld(t)
	client := openai.NewClient(openaioption.WithBaseURL(w.address+"/openai/v1"), openaioption.WithAPIKey(w.key), openaioption.WithMaxRetries(0), openaioption.WithHTTPClient(w.client))
	ask := func(to outbound, script string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{
			Model: modelOf(to, script), MaxTokens: openai.Int(2000),
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("look")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
				Name: "get_weather", Parameters: zone,
			})},
			StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		}
	}
	understood := func(c openai.ChatCompletion) heard {
		h := heard{
			text: c.Choices[0].Message.Content, stop: c.Choices[0].FinishReason,
			in: c.Usage.PromptTokens, out: c.Usage.CompletionTokens, cached: c.Usage.PromptTokensDetails.CachedTokens,
		}
		for _, tool := range c.Choices[0].Message.ToolCalls {
			h.calls = append(h.calls, call{tool.ID, tool.Function.Name, tool.Function.Arguments})
		}
		return h
	}
	everyPair(t, w, func(t *testing.T, to outbound) {
		stream := client.Chat.Completions.NewStreaming(t.Context(), ask(to, talkAndCall))
		defer stream.Close()
		var acc openai.ChatCompletionAccumulator
		for stream.Next() {
			if !acc.AddChunk(stream.Current()) {
				t.Fatalf("not accumulated: %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		checkHeard(t, understood(acc.ChatCompletion), "tool_calls")

		params := ask(to, talkAndCall)
		params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
		whole, err := client.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		checkHeard(t, understood(*whole), "tool_calls")

		cut := client.Chat.Completions.NewStreaming(t.Context(), ask(to, breaks))
		defer cut.Close()
		for cut.Next() {
		}
		if cut.Err() == nil {
			t.Error("a stream that broke was taken for whole (S3)")
		}
		_, err = client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: modelOf(to, "fake-400"), Messages: params.Messages})
		if wrong, ok := errors.AsType[*openai.Error](err); !ok || wrong.StatusCode != http.StatusBadRequest || wrong.Message == "" {
			t.Errorf("error = %v", err)
		}
	})
}

// Rules: P7.
func TestOpenAIResponsesClientHearsEveryProvider_P7(t *testing.T) {
	w := newWorld(t)
	client := openai.NewClient(openaioption.WithBaseURL(w.address+"/openai/v1"), openaioption.WithAPIKey(w.key), openaioption.WithMaxRetries(0), openaioption.WithHTTPClient(w.client))
	ask := func(to outbound, script string) openairesponses.ResponseNewParams {
		return openairesponses.ResponseNewParams{
			Model: modelOf(to, script), MaxOutputTokens: openai.Int(2000),
			Input: openairesponses.ResponseNewParamsInputUnion{OfString: openai.String("look")},
			Tools: []openairesponses.ToolUnionParam{openairesponses.ToolParamOfFunction("get_weather", zone, false)},
		}
	}
	understood := func(r openairesponses.Response) heard {
		h := heard{
			text: r.OutputText(), stop: string(r.Status),
			in: r.Usage.InputTokens, out: r.Usage.OutputTokens, cached: r.Usage.InputTokensDetails.CachedTokens,
		}
		for _, item := range r.Output {
			if item.Type == "function_call" {
				f := item.AsFunctionCall()
				h.calls = append(h.calls, call{f.CallID, f.Name, f.Arguments})
			}
		}
		return h
	}
	// last reads a stream to its end: the text that came in deltas, and the response of
	// the terminal event.
	last := func(t *testing.T, to outbound, script string) (string, openairesponses.ResponseStreamEventUnion) {
		stream := client.Responses.NewStreaming(t.Context(), ask(to, script))
		defer stream.Close()
		var event openairesponses.ResponseStreamEventUnion
		text := ""
		for stream.Next() {
			if event = stream.Current(); event.Type == "response.output_text.delta" {
				text += event.Delta
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		return text, event
	}
	everyPair(t, w, func(t *testing.T, to outbound) {
		text, end := last(t, to, talkAndCall)
		if end.Type != "response.completed" || text != end.Response.OutputText() {
			t.Errorf("ends in %s, deltas %q, whole %q", end.Type, text, end.Response.OutputText())
		}
		checkHeard(t, understood(end.Response), "completed")
		whole, err := client.Responses.New(t.Context(), ask(to, talkAndCall))
		if err != nil {
			t.Fatal(err)
		}
		checkHeard(t, understood(*whole), "completed")
		if _, end := last(t, to, breaks); end.Type != "response.failed" {
			t.Errorf("a stream that broke ends in %s (S3)", end.Type)
		}
		_, err = client.Responses.New(t.Context(), ask(to, "fake-400"))
		if wrong, ok := errors.AsType[*openai.Error](err); !ok || wrong.StatusCode != http.StatusBadRequest || wrong.Message == "" {
			t.Errorf("error = %v", err)
		}
	})
}

// Rules: P7.
func TestAnthropicClientHearsEveryProvider_P7(t *testing.T) {
	w := newWorld(t)
	client := anthropic.NewClient(anthropicoption.WithBaseURL(w.address+"/anthropic"), anthropicoption.WithAPIKey(w.key), anthropicoption.WithMaxRetries(0), anthropicoption.WithHTTPClient(w.client))
	ask := func(to outbound, script string) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{
			Model: anthropic.Model(modelOf(to, script)), MaxTokens: 2000,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("look"))},
			Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
				Name:        "get_weather",
				InputSchema: anthropic.ToolInputSchemaParam{Properties: zone["properties"], Required: []string{"zone_marker"}},
			}}},
		}
	}
	understood := func(m anthropic.Message) heard {
		h := heard{
			stop: string(m.StopReason), in: m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens,
			out: m.Usage.OutputTokens, cached: m.Usage.CacheReadInputTokens,
		}
		for _, block := range m.Content {
			switch block.Type {
			case "text":
				h.text += block.Text
			case "tool_use":
				h.calls = append(h.calls, call{block.ID, block.Name, string(block.Input)})
			}
		}
		return h
	}
	everyPair(t, w, func(t *testing.T, to outbound) {
		stream := client.Messages.NewStreaming(t.Context(), ask(to, talkAndCall))
		defer stream.Close()
		var message anthropic.Message
		for stream.Next() {
			if err := message.Accumulate(stream.Current()); err != nil {
				t.Fatalf("not accumulated: %v: %s", err, stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		checkHeard(t, understood(message), "tool_use")
		whole, err := client.Messages.New(t.Context(), ask(to, talkAndCall))
		if err != nil {
			t.Fatal(err)
		}
		checkHeard(t, understood(*whole), "tool_use")

		cut := client.Messages.NewStreaming(t.Context(), ask(to, breaks))
		defer cut.Close()
		for cut.Next() {
		}
		if cut.Err() == nil {
			t.Error("a stream that broke was taken for whole (S3)")
		}
		_, err = client.Messages.New(t.Context(), ask(to, "fake-400"))
		wrong, ok := errors.AsType[*anthropic.Error](err)
		if !ok || wrong.StatusCode != http.StatusBadRequest || wrong.RequestID == "" || !strings.Contains(wrong.RawJSON(), `"type":"invalid_request_error"`) {
			t.Errorf("error = %v", err)
		}
		counted, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
			Model: anthropic.Model(modelOf(to, "fake-400")), Messages: ask(to, "").Messages,
		})
		if err != nil || counted.InputTokens < 1 {
			t.Errorf("count_tokens: %v, %v", counted, err)
		}
	})
}
