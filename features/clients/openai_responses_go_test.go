package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func prompt(model string, tools ...string) responses.ResponseNewParams {
	params := responses.ResponseNewParams{
		Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
	}
	for _, name := range tools {
		params.Tools = append(params.Tools, responses.ToolParamOfFunction(name, citySchema, true))
	}
	return params
}

// streamResponse reads a stream to its terminal event: the text of its deltas, and the
// event.
func streamResponse(t *testing.T, client openai.Client, params responses.ResponseNewParams) (text string, last responses.ResponseStreamEventUnion) {
	t.Helper()
	events := client.Responses.NewStreaming(t.Context(), params)
	defer func() { _ = events.Close() }()
	for n := int64(0); events.Next(); n++ {
		last = events.Current()
		if last.SequenceNumber != n {
			t.Errorf("event %d has the number %d", n, last.SequenceNumber)
		}
		if last.Type == "response.output_text.delta" {
			text += last.Delta
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	return text, last
}

// responseBothWays is the same answer whole and streamed.
func responseBothWays(t *testing.T, client openai.Client, params responses.ResponseNewParams) map[string]responses.Response {
	t.Helper()
	whole, err := client.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	text, last := streamResponse(t, client, params)
	if last.Type != "response."+string(last.Response.Status) || text != last.Response.OutputText() {
		t.Errorf("the stream ends in %s with %q, its deltas were %q", last.Type, last.Response.OutputText(), text)
	}
	return map[string]responses.Response{"whole": *whole, "streamed": last.Response}
}

// Rules: P7.
func TestOpenAIGoResponses_P7(t *testing.T) {
	g := startGateway(t)
	client, _ := g.client(t, g.key, 0)
	for _, to := range destinations {
		t.Run("over "+to, func(t *testing.T) {
			t.Run("text", func(t *testing.T) { responseText(t, client, to+"/fails-over") })
			t.Run("one tool", func(t *testing.T) { responseCalls(t, client, to+"/tool", "a") })
			t.Run("parallel tools", func(t *testing.T) { responseCalls(t, client, to+"/tools", "a", "b") })
			t.Run("structured output", func(t *testing.T) { responseStructured(t, client, to+"/obeys") })
			t.Run("image", func(t *testing.T) { responseImage(t, client, to+"/plain") })
			t.Run("reasoning", func(t *testing.T) { responseReasoning(t, client, to) })
			t.Run("limit", func(t *testing.T) {
				params := prompt(to + "/long")
				params.MaxOutputTokens = openai.Int(20)
				for how, r := range responseBothWays(t, client, params) {
					if r.Status != "incomplete" || r.IncompleteDetails.Reason != "max_output_tokens" || r.Usage.OutputTokens != 20 {
						t.Errorf("%s: %s", how, r.RawJSON())
					}
				}
			})
			t.Run("broken stream", func(t *testing.T) {
				text, last := streamResponse(t, client, prompt(to+"/breaks"))
				if last.Type != "response.failed" || last.Response.Error.Message == "" || text == "" {
					t.Errorf("a stream that breaks after %q ends in %s", text, last.RawJSON())
				}
			})
			t.Run("left stream", func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				events := client.Responses.NewStreaming(ctx, prompt(to+"/stalls"))
				for events.Next() && events.Current().Type != "response.output_text.delta" {
				}
				leave()
				_ = events.Close() // says that it was cancelled
			})
		})
	}
	g.awaitClientsGone(t, len(destinations))
	t.Run("errors", func(t *testing.T) { responseFaults(t, g) })
}

func responseText(t *testing.T, client openai.Client, model string) {
	both := responseBothWays(t, client, prompt(model))
	for how, r := range both {
		if len(strings.Fields(r.OutputText())) != 8 || r.Status != "completed" ||
			r.Usage.OutputTokens != 8 || r.Usage.InputTokensDetails.CachedTokens != 3 {
			t.Errorf("%s: %s", how, r.RawJSON())
		}
	}
	if whole, streamed := both["whole"].OutputText(), both["streamed"].OutputText(); whole != streamed {
		t.Errorf("whole %q, streamed %q", whole, streamed)
	}
}

func responseCalls(t *testing.T, client openai.Client, model string, want ...string) {
	for how, r := range responseBothWays(t, client, prompt(model, "a", "b")) {
		var names []string
		ids := map[string]bool{}
		for _, item := range r.Output {
			if item.Type != "function_call" {
				continue
			}
			call := item.AsFunctionCall()
			var arguments struct{ City *string }
			if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil || arguments.City == nil {
				t.Errorf("%s: arguments %q: %v", how, call.Arguments, err)
			}
			names, ids[call.CallID] = append(names, call.Name), true
		}
		if !slices.Equal(names, want) || len(ids) != len(want) {
			t.Errorf("%s: the calls %v with the ids %v, want %v", how, names, ids, want)
		}
	}
}

func responseStructured(t *testing.T, client openai.Client, model string) {
	params := prompt(model)
	params.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("city", citySchema)
	for how, r := range responseBothWays(t, client, params) {
		var value struct{ City *string }
		if err := json.Unmarshal([]byte(r.OutputText()), &value); err != nil || value.City == nil {
			t.Errorf("%s: %q: %v", how, r.OutputText(), err)
		}
	}
}

func responseImage(t *testing.T, client openai.Client, model string) {
	picture := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
	picture.OfInputImage.ImageURL = openai.String(pixel)
	params := prompt(model)
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{
			responses.ResponseInputContentParamOfInputText("what is it?"), picture,
		}, responses.EasyInputMessageRoleUser),
	}}
	if r, err := client.Responses.New(t.Context(), params); err != nil || !strings.Contains(r.OutputText(), "images=1") {
		t.Errorf("%v, %v", r, err)
	}
}

func responseReasoning(t *testing.T, client openai.Client, to string) {
	params := prompt(to + "/thinks")
	params.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortLow, Summary: shared.ReasoningSummaryAuto}
	params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	for how, r := range responseBothWays(t, client, params) {
		if len(r.Output) != 2 || r.Output[0].Type != "reasoning" || r.Output[1].Type != "message" || r.Usage.OutputTokens != 12 {
			t.Fatalf("%s: %s", how, r.RawJSON())
		}
		if sealed := r.Output[0].EncryptedContent; to == "openai-responses" && sealed == "" {
			t.Errorf("%s: the seal is lost", how)
		}
	}
}

// responseFaults are the client's own errors; the caller's own are not retried,
// although the client would.
func responseFaults(t *testing.T, g *gateway) {
	for name, c := range map[string]struct {
		key, model string
		status     int
		code       string
		retries    int
	}{
		"unknown key":      {"sk-sluice-nobody", "plain", 401, "invalid_api_key", 2},
		"unknown model":    {g.key, "nothing", 404, "model_not_found", 2},
		"no money is left": {g.poorKey, "plain", 429, "insufficient_quota", 2},
		"throttled":        {g.key, "openai-responses/busy", 429, "provider_throttled", 0},
		"failed walk":      {g.key, "gemini/overloaded", 502, "upstream_exhausted", 0},
	} {
		t.Run(name, func(t *testing.T) {
			client, sent := g.client(t, c.key, c.retries)
			_, err := client.Responses.New(t.Context(), prompt(c.model))
			e, ok := errors.AsType[*openai.Error](err)
			if !ok || e.StatusCode != c.status || e.Code != c.code || e.Message == "" {
				t.Fatalf("%v, want %d %s", err, c.status, c.code)
			}
			if may := e.Response.Header.Get("X-Should-Retry") != "false"; may != (c.retries == 0) || sent.requests.Load() != 1 {
				t.Errorf("may be retried: %t; the client tried %d times", may, sent.requests.Load())
			}
		})
	}
}
