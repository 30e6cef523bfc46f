package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// counting counts the HTTP requests that a client makes, retries included.
type counting struct {
	http.Transport
	requests atomic.Int64
}

// RoundTrip sends a request.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.Transport.RoundTrip(r)
}

// client is OpenAI's own for Go.
func (g *gateway) client(t *testing.T, key string, retries int) (openai.Client, *counting) {
	t.Helper()
	sent := &counting{Transport: http.Transport{DisableKeepAlives: true}}
	return openai.NewClient(
		option.WithBaseURL(g.url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(retries),
		option.WithHTTPClient(&http.Client{Transport: sent}),
	), sent
}

func ask(model string, tools ...string) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	}
	for _, name := range tools {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: name,
			Parameters: openai.FunctionParameters{
				"type": "object", "required": []string{"city"},
				"properties": map[string]any{"city": map[string]any{"type": "string"}},
			},
		}))
	}
	return params
}

// stream reads a stream through the client's own accumulator.
func stream(t *testing.T, client openai.Client, params openai.ChatCompletionNewParams) (acc openai.ChatCompletionAccumulator, err error) {
	t.Helper()
	chunks := client.Chat.Completions.NewStreaming(t.Context(), params)
	defer func() { _ = chunks.Close() }()
	for chunks.Next() {
		if !acc.AddChunk(chunks.Current()) {
			t.Errorf("the client does not accept the chunk %s", chunks.Current().RawJSON())
		}
	}
	return acc, chunks.Err()
}

// Rules: P7.
func TestOpenAIGo_P7(t *testing.T) {
	g := startGateway(t)
	client, _ := g.client(t, g.key, 0)
	for _, model := range []string{"plain", "fails-over"} {
		t.Run(model, func(t *testing.T) { sameAnswerBothWays(t, client, model) })
	}
	t.Run("one tool", func(t *testing.T) { toolCalls(t, client, "tool", 1) })
	t.Run("parallel tools", func(t *testing.T) { toolCalls(t, client, "tools", 2) })
	t.Run("structured output", func(t *testing.T) { structured(t, client, "obeys") })
	for _, to := range destinations {
		t.Run("over "+to, func(t *testing.T) {
			sameAnswerBothWays(t, client, to+"/fails-over")
			toolCalls(t, client, to+"/tool", 1)
			toolCalls(t, client, to+"/tools", 2)
			structured(t, client, to+"/obeys")
		})
	}
	t.Run("image", func(t *testing.T) { image(t, client) })
	t.Run("models", func(t *testing.T) { listModels(t, client) })
	t.Run("errors", func(t *testing.T) { callersFaults(t, g) })
	t.Run("throttle", func(t *testing.T) { throttle(t, client) })
	t.Run("idempotency", func(t *testing.T) { replay(t, client) })
	t.Run("broken stream", func(t *testing.T) {
		acc, err := stream(t, client, ask("breaks"))
		if err == nil || len(acc.Choices) == 0 || acc.Choices[0].Message.Content == "" {
			t.Errorf("a stream that breaks after its first output gives %v", err)
		}
	})
	t.Run("left stream", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		chunks := client.Chat.Completions.NewStreaming(ctx, ask("stalls"))
		if !chunks.Next() {
			t.Fatal(chunks.Err())
		}
		leave()
		_ = chunks.Close() // says that it was cancelled
		g.awaitClientsGone(t, 1)
	})
}

func sameAnswerBothWays(t *testing.T, client openai.Client, model string) {
	var reply *http.Response
	whole, err := client.Chat.Completions.New(t.Context(), ask(model), option.WithResponseInto(&reply))
	if err != nil {
		t.Fatal(err)
	}
	text := whole.Choices[0].Message.Content
	if len(strings.Fields(text)) != 8 || whole.Usage.CompletionTokens != 8 || whole.Choices[0].FinishReason != "stop" {
		t.Errorf("%s", whole.RawJSON())
	}
	if len(reply.Header.Get("X-Request-Id")) != 36 {
		t.Errorf("x-request-id: %q", reply.Header.Get("X-Request-Id"))
	}
	params := ask(model)
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	streamed, err := stream(t, client, params)
	if err != nil {
		t.Fatal(err)
	}
	if got := streamed.Choices[0].Message.Content; got != text || streamed.Usage.CompletionTokens != 8 {
		t.Errorf("streamed %q with %d tokens, whole %q", got, streamed.Usage.CompletionTokens, text)
	}
}

func toolCalls(t *testing.T, client openai.Client, model string, want int) {
	params := ask(model, "a", "b")
	whole, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := stream(t, client, params)
	if err != nil {
		t.Fatal(err)
	}
	for how, choice := range map[string]openai.ChatCompletionChoice{"whole": whole.Choices[0], "streamed": streamed.Choices[0]} {
		if choice.FinishReason != "tool_calls" || len(choice.Message.ToolCalls) != want {
			t.Errorf("%s: %q with %d calls, want %d", how, choice.FinishReason, len(choice.Message.ToolCalls), want)
		}
		ids := map[string]bool{}
		for _, call := range choice.Message.ToolCalls {
			var arguments struct{ City *string }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil || arguments.City == nil {
				t.Errorf("%s: arguments %q: %v", how, call.Function.Arguments, err)
			}
			ids[call.ID] = true
		}
		if len(ids) != want {
			t.Errorf("%s: ids %v", how, ids)
		}
	}
}

func structured(t *testing.T, client openai.Client, model string) {
	params := ask(model)
	params.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{
		JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "weather", Strict: openai.Bool(true), Schema: map[string]any{
				"type": "object", "required": []string{"city"}, "additionalProperties": false,
				"properties": map[string]any{"city": map[string]any{"type": "string"}},
			},
		},
	}
	answer, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	var value struct{ City *string }
	if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &value); err != nil || value.City == nil {
		t.Errorf("%s: %v", answer.Choices[0].Message.Content, err)
	}
}

// pixel is a PNG of one.
const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func image(t *testing.T, client openai.Client) {
	params := ask("fails-over")
	params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.TextContentPart("what is it?"),
		openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: pixel}),
	})}
	if _, err := client.Chat.Completions.New(t.Context(), params); err != nil {
		t.Error(err)
	}
}

func listModels(t *testing.T, client openai.Client) {
	names := map[string]bool{}
	pages := client.Models.ListAutoPaging(t.Context())
	for pages.Next() {
		names[pages.Current().ID] = true
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	for slug := range models {
		if !names[slug] {
			t.Errorf("%s is not in the list: %v", slug, names)
		}
	}
	if model, err := client.Models.Get(t.Context(), "plain"); err != nil || model.ID != "plain" {
		t.Errorf("%v, %v", model, err)
	}
}

// failed makes a call that has to fail and returns the client's own error.
func failed(t *testing.T, client openai.Client, params openai.ChatCompletionNewParams) *openai.Error {
	t.Helper()
	_, err := client.Chat.Completions.New(t.Context(), params)
	e, ok := errors.AsType[*openai.Error](err)
	if !ok {
		t.Fatalf("no error of the client's: %v", err)
	}
	return e
}

// callersFaults are not retried, although the client would.
func callersFaults(t *testing.T, g *gateway) {
	empty := ask("plain")
	empty.Messages = []openai.ChatCompletionMessageParamUnion{}
	for name, c := range map[string]struct {
		key    string
		params openai.ChatCompletionNewParams
		status int
		code   string
	}{
		"unknown key":      {"sk-sluice-nobody", ask("plain"), 401, "invalid_api_key"},
		"unknown model":    {g.key, ask("nothing"), 404, "model_not_found"},
		"no messages":      {g.key, empty, 400, "invalid_request"},
		"no money is left": {g.poorKey, ask("plain"), 429, "insufficient_quota"},
	} {
		t.Run(name, func(t *testing.T) {
			client, sent := g.client(t, c.key, 2)
			e := failed(t, client, c.params)
			if e.StatusCode != c.status || e.Code != c.code || e.Message == "" {
				t.Errorf("%d %q %q, want %d %q", e.StatusCode, e.Code, e.Message, c.status, c.code)
			}
			if id := e.Response.Header.Get("X-Request-Id"); id == "" || id != e.Response.Header.Get("Request-Id") {
				t.Errorf("ids: %v", e.Response.Header)
			}
			if n := sent.requests.Load(); n != 1 {
				t.Errorf("the client tried %d times", n)
			}
		})
	}
}

func throttle(t *testing.T, client openai.Client) {
	e := failed(t, client, ask("busy"))
	seconds, err := strconv.Atoi(e.Response.Header.Get("Retry-After"))
	ms, errMS := strconv.Atoi(e.Response.Header.Get("Retry-After-Ms"))
	if e.StatusCode != 429 || err != nil || errMS != nil || ms < 1 || seconds != (ms+999)/1000 || seconds > 60 {
		t.Errorf("%d with %v", e.StatusCode, e.Response.Header)
	}
}

func replay(t *testing.T, client openai.Client) {
	var bodies []string
	for range 2 {
		var reply *http.Response
		answer, err := client.Chat.Completions.New(t.Context(), ask("plain"),
			option.WithHeader("Idempotency-Key", "from-go"), option.WithResponseInto(&reply))
		if err != nil {
			t.Fatal(err)
		}
		if replayed := reply.Header.Get("Idempotent-Replayed") == "true"; replayed != (len(bodies) == 1) {
			t.Errorf("answer %d: replayed is %t", len(bodies)+1, replayed)
		}
		bodies = append(bodies, answer.RawJSON())
	}
	if bodies[0] != bodies[1] {
		t.Errorf("%s\n%s", bodies[0], bodies[1])
	}
}
