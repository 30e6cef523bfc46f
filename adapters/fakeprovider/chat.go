package fakeprovider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// chat is OpenAI's Chat Completions protocol.
type chat struct{}

func (chat) register(mux *http.ServeMux, s *Server) {
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		s.serveCall(chat{}, w, r)
	})
	mux.HandleFunc("GET /v1/models", s.listModels)
	mux.HandleFunc("GET /v1/models/{id...}", s.getModel)
}

// chatRequest are the members of a Chat Completions body that matter here.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Tools               []chatTool      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ResponseFormat      *responseFormat `json:"response_format"`
	Stop                json.RawMessage `json:"stop"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type chatTool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type responseFormat struct {
	Type       string `json:"type"`
	JSONSchema struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// Prices of a prompt in tokens: simple on purpose, so that a test can work
// out what it expects. Text is counted in bytes.
const (
	bytesPerToken    = 4
	tokensPerMessage = 4
	tokensPerImage   = 85
	tokensPerTool    = 12
)

func (chat) parse(_ *http.Request, body []byte) (request, error) {
	var in chatRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is not a chat completion request: %w", err)
	}
	out := request{
		model:     in.Model,
		stream:    in.Stream,
		maxTokens: max(in.MaxTokens, in.MaxCompletionTokens),
		messages:  len(in.Messages),
		stops:     stopsOf(in.Stop),
	}
	out.includeUsage = in.StreamOptions != nil && in.StreamOptions.IncludeUsage
	textBytes := 0
	for _, message := range in.Messages {
		text, images := contentOf(message.Content)
		textBytes += len(text)
		out.images += images
		out.lastText = text
		if message.Role == "user" {
			out.lastUser = text
		}
		out.toolAnswered = message.Role == "tool"
	}
	for _, t := range in.Tools {
		out.tools = append(out.tools, tool{name: t.Function.Name, parameters: t.Function.Parameters})
	}
	out.promptTokens = promptTokens(textBytes, len(in.Messages), out.images, len(in.Tools))
	out.toolChoice = toolChoiceOf(in.ToolChoice)
	if in.ResponseFormat != nil {
		out.jsonObject = in.ResponseFormat.Type == "json_object"
		if in.ResponseFormat.Type == "json_schema" {
			out.schema = in.ResponseFormat.JSONSchema.Schema
		}
	}
	return out, nil
}

func promptTokens(textBytes, messages, images, tools int) int {
	return (textBytes+bytesPerToken-1)/bytesPerToken +
		messages*tokensPerMessage + images*tokensPerImage + tools*tokensPerTool
}

// contentOf joins the text of a message's content, a string or a list of
// parts, and counts its images.
func contentOf(raw json.RawMessage) (text string, images int) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return "", 0
	}
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &text) // json.Unmarshal of the body checked the syntax
		return text, 0
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", 0
	}
	var joined strings.Builder
	for _, part := range parts {
		joined.WriteString(part.Text)
		if part.Type == "image_url" {
			images++
		}
	}
	return joined.String(), images
}

// stopsOf reads both spellings of stop, a text or a list.
func stopsOf(raw json.RawMessage) (stops []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &stops) // what is no list has none
	return stops
}

// toolChoiceOf reduces both spellings of tool_choice to a word or a name.
func toolChoiceOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return word
	}
	var named chatTool
	if json.Unmarshal(raw, &named) == nil {
		return named.Function.Name
	}
	return ""
}

func (chat) streamType() string { return "text/event-stream; charset=utf-8" }

// idle is a comment, as relays send it while they wait for a model.
func (chat) idle() []byte { return []byte(": PROCESSING\n\n") }

func (chat) frame(dst []byte, f framing, n int, e event) []byte { return f.append(dst, n, e) }

func (chat) malformedEvent() event {
	return event{data: []byte(`{"id":"chatcmpl-broken","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"half`)}
}

func (chat) whole(a *answer) []byte {
	b := make([]byte, 0, 768+len(a.text)*12)
	b = append(b, `{"id":"chatcmpl-`...)
	b = append(b, a.id...)
	b = append(b, `","object":"chat.completion","created":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, a.model)
	b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	b = appendStringOrNull(b, a.text)
	b = append(b, `,"refusal":`...)
	b = appendStringOrNull(b, a.refusal)
	if len(a.reasoning) > 0 {
		b = append(b, `,"reasoning_content":`...)
		b = appendStringOrNull(b, a.reasoning)
	}
	if len(a.calls) > 0 || a.form.emptyTools {
		b = append(b, `,"tool_calls":[`...)
		for i, call := range a.calls {
			b = appendComma(b, i)
			b = appendCallHead(b, call)
			b = appendString(b, call.whole())
			b = append(b, `}}`...)
		}
		b = append(b, ']')
	}
	b = append(b, `},"logprobs":null,"finish_reason":`...)
	b = appendStringOr(b, a.finish, "null")
	b = append(b, `}]`...)
	b = appendUsage(b, a, a.form.usagePlace != usageAbsent)
	return append(b, `,"service_tier":"default","system_fingerprint":"fp_fake"}`...)
}

// appendCallHead opens a tool call up to the value of its arguments.
func appendCallHead(b []byte, call toolCall) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, call.id)
	b = append(b, `,"type":"function","function":{"name":`...)
	b = appendString(b, call.name)
	return append(b, `,"arguments":`...)
}

// appendUsage appends the usage member, unless it is not to be there at all.
func appendUsage(b []byte, a *answer, present bool) []byte {
	if !present {
		return b
	}
	if a.form.usageValue == usageNull {
		return append(b, `,"usage":null`...)
	}
	u := a.reported()
	total := u.input + u.output
	if a.form.usageValue == usageReasoningOutside {
		u.output -= u.reasoning // xAI's way: the total still has them
	}
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.input), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(u.output), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	if u.written > 0 {
		// OpenRouter's name for it; OpenAI has none.
		b = append(b, `,"cache_write_tokens":`...)
		b = strconv.AppendInt(b, int64(u.written), 10)
	}
	b = append(b, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`...)
	b = strconv.AppendInt(b, int64(u.reasoning), 10)
	return append(b, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}
