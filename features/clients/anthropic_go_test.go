package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// anthropic is Anthropic's own client for Go.
func (g *gateway) anthropic(key string, retries int) (anthropic.Client, *counting) {
	sent := &counting{Transport: http.Transport{DisableKeepAlives: true}}
	return anthropic.NewClient(
		option.WithBaseURL(g.url), option.WithAPIKey(key), option.WithMaxRetries(retries),
		option.WithHTTPClient(&http.Client{Transport: sent}),
	), sent
}

// citySchema are the arguments of the tools that the tests offer.
var citySchema = map[string]any{
	"type": "object", "required": []string{"city"}, "additionalProperties": false,
	"properties": map[string]any{"city": map[string]any{"type": "string"}},
}

func message(model string, tools ...string) anthropic.MessageNewParams {
	params := anthropic.MessageNewParams{
		Model: anthropic.Model(model), MaxTokens: 2000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	}
	for _, name := range tools {
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name:        name,
			InputSchema: anthropic.ToolInputSchemaParam{Properties: citySchema["properties"], Required: []string{"city"}},
		}})
	}
	return params
}

// streamMessage reads a stream through the client's own accumulator.
func streamMessage(t *testing.T, client anthropic.Client, params anthropic.MessageNewParams) (m anthropic.Message, err error) {
	t.Helper()
	events := client.Messages.NewStreaming(t.Context(), params)
	defer func() { _ = events.Close() }()
	var last string
	for events.Next() {
		last = events.Current().Type
		if err := m.Accumulate(events.Current()); err != nil {
			t.Errorf("the client does not accept the event %s: %v", events.Current().RawJSON(), err)
		}
	}
	if err := events.Err(); err != nil {
		return m, err
	}
	if last != "message_stop" {
		t.Errorf("the stream ends in %q", last)
	}
	return m, nil
}

// messageBothWays is the same answer whole and streamed.
func messageBothWays(t *testing.T, client anthropic.Client, params anthropic.MessageNewParams) map[string]anthropic.Message {
	t.Helper()
	whole, err := client.Messages.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := streamMessage(t, client, params)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]anthropic.Message{"whole": *whole, "streamed": streamed}
}

func textOf(m anthropic.Message) (text string) {
	for _, block := range m.Content {
		text += block.Text
	}
	return text
}

// Rules: P7.
func TestAnthropicGo_P7(t *testing.T) {
	g := startGateway(t)
	client, _ := g.anthropic(g.key, 0)
	for _, to := range destinations {
		t.Run("over "+to, func(t *testing.T) {
			t.Run("text", func(t *testing.T) { messageText(t, client, to+"/fails-over") })
			t.Run("one tool", func(t *testing.T) { messageCalls(t, client, to+"/tool", "a") })
			t.Run("parallel tools", func(t *testing.T) { messageCalls(t, client, to+"/tools", "a", "b") })
			t.Run("structured output", func(t *testing.T) { messageStructured(t, client, to+"/obeys") })
			t.Run("image", func(t *testing.T) { messageImage(t, client, to+"/plain") })
			t.Run("thinking", func(t *testing.T) { messageThinking(t, client, to) })
			t.Run("limit", func(t *testing.T) {
				params := message(to + "/long")
				params.MaxTokens = 20
				for how, m := range messageBothWays(t, client, params) {
					if m.StopReason != anthropic.StopReasonMaxTokens || m.Usage.OutputTokens != 20 {
						t.Errorf("%s: %s", how, m.RawJSON())
					}
				}
			})
			t.Run("count", func(t *testing.T) {
				params := anthropic.MessageCountTokensParams{Model: anthropic.Model(to + "/plain"), Messages: message("").Messages}
				if count, err := client.Messages.CountTokens(t.Context(), params); err != nil || count.InputTokens < 1 {
					t.Errorf("%v, %v", count, err)
				}
			})
			t.Run("broken stream", func(t *testing.T) {
				m, err := streamMessage(t, client, message(to+"/breaks"))
				if err == nil || textOf(m) == "" {
					t.Errorf("a stream that breaks after its first output gives %q, %v", textOf(m), err)
				}
			})
			t.Run("left stream", func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				events := client.Messages.NewStreaming(ctx, message(to+"/stalls"))
				for events.Next() && events.Current().Type != "content_block_delta" {
				}
				leave()
				_ = events.Close() // says that it was cancelled
			})
		})
	}
	g.awaitClientsGone(t, len(destinations))
	t.Run("models", func(t *testing.T) { messageModels(t, client) })
	t.Run("errors", func(t *testing.T) { messageFaults(t, g) })
}

func messageText(t *testing.T, client anthropic.Client, model string) {
	both := messageBothWays(t, client, message(model))
	for how, m := range both {
		// Cached tokens stand beside the input here.
		if len(strings.Fields(textOf(m))) != 8 || m.StopReason != anthropic.StopReasonEndTurn ||
			m.Usage.OutputTokens != 8 || m.Usage.CacheReadInputTokens != 3 || m.Usage.InputTokens < 1 {
			t.Errorf("%s: %q stops with %s after %s", how, textOf(m), m.StopReason, m.Usage.RawJSON())
		}
	}
	if textOf(both["whole"]) != textOf(both["streamed"]) {
		t.Errorf("whole %q, streamed %q", textOf(both["whole"]), textOf(both["streamed"]))
	}
}

// messageCalls sends the results of the calls back, too.
func messageCalls(t *testing.T, client anthropic.Client, model string, want ...string) {
	params := message(model, "a", "b")
	for how, m := range messageBothWays(t, client, params) {
		var names []string
		var results []anthropic.ContentBlockParamUnion
		for _, block := range m.Content {
			if block.Type != "tool_use" {
				continue
			}
			var arguments struct{ City *string }
			if err := json.Unmarshal(block.Input, &arguments); err != nil || arguments.City == nil {
				t.Errorf("%s: arguments %s: %v", how, block.Input, err)
			}
			names = append(names, block.Name)
			results = append(results, anthropic.NewToolResultBlock(block.ID, "sunny", false))
		}
		if m.StopReason != anthropic.StopReasonToolUse || !slices.Equal(names, want) {
			t.Errorf("%s: %s with the calls %v, want %v", how, m.StopReason, names, want)
		}
		next := message(strings.Split(model, "/")[0]+"/plain", "a", "b")
		next.Messages = append(next.Messages, m.ToParam(), anthropic.NewUserMessage(results...))
		if answer, err := client.Messages.New(t.Context(), next); err != nil || answer.StopReason != anthropic.StopReasonEndTurn {
			t.Errorf("%s: the results go back: %v", how, err)
		}
	}
}

func messageStructured(t *testing.T, client anthropic.Client, model string) {
	params := message(model)
	params.OutputConfig.Format.Schema = citySchema
	for how, m := range messageBothWays(t, client, params) {
		var value struct{ City *string }
		if err := json.Unmarshal([]byte(textOf(m)), &value); err != nil || value.City == nil {
			t.Errorf("%s: %q: %v", how, textOf(m), err)
		}
	}
}

func messageImage(t *testing.T, client anthropic.Client, model string) {
	_, data, _ := strings.Cut(pixel, ",")
	params := message(model)
	params.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(
		anthropic.NewTextBlock("what is it?"), anthropic.NewImageBlockBase64("image/png", data))}
	if m, err := client.Messages.New(t.Context(), params); err != nil || !strings.Contains(textOf(*m), "images=1") {
		t.Errorf("%v, %v", m, err)
	}
}

// messageThinking sends the thinking back, too, with its signature where there is one.
func messageThinking(t *testing.T, client anthropic.Client, to string) {
	params := message(to + "/thinks")
	params.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	for how, m := range messageBothWays(t, client, params) {
		if len(m.Content) != 2 || m.Content[0].Type != "thinking" || len(strings.Fields(m.Content[0].Thinking)) != 4 || m.Usage.OutputTokens != 12 {
			t.Fatalf("%s: %+v, %s", how, m.Content, m.Usage.RawJSON())
		}
		if to == "anthropic" && m.Content[0].Signature == "" {
			t.Errorf("%s: the signature is lost", how)
		}
		next := params
		next.Messages = append(slices.Clone(params.Messages), m.ToParam(), anthropic.NewUserMessage(anthropic.NewTextBlock("and?")))
		if _, err := client.Messages.New(t.Context(), next); err != nil {
			t.Errorf("%s: the thinking goes back: %v", how, err)
		}
	}
}

func messageModels(t *testing.T, client anthropic.Client) {
	names := map[string]bool{}
	pages := client.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{Limit: anthropic.Int(20)})
	for pages.Next() {
		m := pages.Current()
		if names[m.ID] || m.Type != "model" || m.DisplayName == "" || m.CreatedAt.IsZero() {
			t.Errorf("%s", m.RawJSON())
		}
		names[m.ID] = true
	}
	if err := pages.Err(); err != nil || !names["plain"] || len(names) < len(destinations)*len(behaviours) {
		t.Errorf("%d names, %v", len(names), err)
	}
	if m, err := client.Models.Get(t.Context(), "plain", anthropic.ModelGetParams{}); err != nil || m.ID != "plain" {
		t.Errorf("%v, %v", m, err)
	}
}

// messageFaults have the client's own types; the caller's own are not retried,
// although the client would.
func messageFaults(t *testing.T, g *gateway) {
	for name, c := range map[string]struct {
		key, model string
		status     int
		kind       string
		retried    bool
	}{
		"unknown key":      {"sk-sluice-nobody", "plain", 401, "authentication_error", false},
		"unknown model":    {g.key, "nothing", 404, "not_found_error", false},
		"no money is left": {g.poorKey, "plain", 429, "rate_limit_error", false},
		"throttled":        {g.key, "anthropic/busy", 429, "rate_limit_error", true},
		"failed walk":      {g.key, "openai/overloaded", 502, "api_error", true},
	} {
		t.Run(name, func(t *testing.T) {
			// A throttle's header would be waited for.
			retries := 2
			if c.retried {
				retries = 0
			}
			client, sent := g.anthropic(c.key, retries)
			_, err := client.Messages.New(t.Context(), message(c.model))
			e, ok := errors.AsType[*anthropic.Error](err)
			if !ok || e.StatusCode != c.status || string(e.Type()) != c.kind || e.RequestID == "" {
				t.Fatalf("%v, want %d %s", err, c.status, c.kind)
			}
			if may := e.Response.Header.Get("X-Should-Retry") != "false"; may != c.retried || sent.requests.Load() != 1 {
				t.Errorf("may be retried: %t; the client tried %d times", may, sent.requests.Load())
			}
			if seconds, err := strconv.Atoi(e.Response.Header.Get("Retry-After")); name == "throttled" && (err != nil || seconds < 1 || seconds > 60) {
				t.Errorf("retry-after: %v", e.Response.Header)
			}
		})
	}
}
