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
// out what it expects. See [PromptTokens].
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
	}
	out.includeUsage = in.StreamOptions != nil && in.StreamOptions.IncludeUsage
	textBytes := 0
	for _, message := range in.Messages {
		text, images := contentOf(message.Content)
		textBytes += len(text)
		out.images += images
		if message.Role == "user" {
			out.lastUser = text
		}
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

// toolChoiceOf reduces both spellings of tool_choice to a word or a name.
func toolChoiceOf(raw json.RawMessage) string {
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

func (chat) frame(dst []byte, f framing, n int, e event) []byte { return f.append(dst, n, e) }

func (chat) malformedEvent() event {
	return event{data: []byte(`{"id":"chatcmpl-broken","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"half`)}
}

func (chat) whole(a *answer) []byte {
	b := make([]byte, 0, 768+len(a.text)*12)
	b = append(b, `{"id":`...)
	b = appendString(b, a.id)
	b = append(b, `,"object":"chat.completion","created":`...)
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
	b = appendFinish(b, a.finish)
	b = append(b, `}]`...)
	b = appendUsage(b, a, a.form.usagePlace != usageAbsent)
	return append(b, `,"service_tier":"default","system_fingerprint":"fp_fake"}`...)
}

// chatChunks collects the chunks of one stream.
type chatChunks struct {
	answer *answer
	events []event
	sent   int // output tokens so far
}

func (chat) events(a *answer) []event {
	c := chatChunks{answer: a, events: make([]event, 0, len(a.text)+8)}
	if !a.form.mergedRole && !a.form.noRoleChunk {
		c.add(`{"role":"assistant","content":"","refusal":null`, "", 0, false)
	}
	for _, piece := range a.reasoning {
		c.output(`"reasoning_content":`, piece)
	}
	for _, piece := range a.text {
		c.output(`"content":`, piece)
	}
	for _, piece := range a.refusal {
		c.output(`"refusal":`, piece)
	}
	for i, call := range a.calls {
		c.call(i, call)
	}
	c.finish()
	if !a.form.noSentinel {
		c.events = append(c.events, event{data: []byte("[DONE]"), last: true})
	}
	return c.events
}

func (c *chatChunks) output(member, piece string) {
	delta := append(make([]byte, 0, 96+len(piece)), '{')
	if c.answer.form.mergedRole && c.sent == 0 {
		delta = append(delta, `"role":"assistant",`...)
	}
	delta = append(delta, member...)
	delta = appendString(delta, piece)
	if c.answer.form.emptyTools {
		delta = append(delta, `,"tool_calls":[]`...)
	}
	c.add(string(delta), "", 1, true)
}

// call adds the chunks of one tool call: a head that names it, then its
// arguments piece by piece, or all in one as xAI sends it.
func (c *chatChunks) call(index int, call toolCall) {
	head := []byte(`{"tool_calls":[{"index":`)
	head = strconv.AppendInt(head, int64(index), 10)
	head = append(head, ',')
	described := appendCallHead(nil, call)
	head = append(head, described[1:]...)
	if c.answer.form.wholeCalls {
		c.add(string(appendString(head, call.whole()))+`}}]`, "", len(call.arguments), true)
		return
	}
	c.add(string(head)+`""}}]`, "", 0, true)
	for _, piece := range call.arguments {
		delta := []byte(`{"tool_calls":[{"index":`)
		delta = strconv.AppendInt(delta, int64(index), 10)
		delta = append(delta, `,"function":{"arguments":`...)
		delta = appendString(delta, piece)
		c.add(string(delta)+`}}]`, "", 1, true)
	}
}

// finish adds the finish chunk and whatever carries the usage.
func (c *chatChunks) finish() {
	a := c.answer
	place := a.form.usagePlace
	if place == usageBeforeLast {
		c.add(`{"content":""`, "", 0, false)
		c.attachUsage()
	}
	if a.finish != "" {
		c.add(`{`, a.finish, 0, false)
		if place == usageInLast {
			c.attachUsage()
		}
	}
	if place == usageTrailing || (place == usageAsAsked && a.includeUsage) {
		b := appendChunkHead(nil, a)
		b = append(b, `"choices":[]`...)
		c.events = append(c.events, event{data: append(appendUsage(b, a, true), '}')})
	}
}

// attachUsage puts the usage into the chunk added last.
func (c *chatChunks) attachUsage() {
	last := &c.events[len(c.events)-1]
	data := bytes.TrimSuffix(last.data[:len(last.data)-1], []byte(`,"usage":null`))
	last.data = append(appendUsage(data, c.answer, true), '}')
}

// add appends one chunk. delta is an object without its closing brace.
func (c *chatChunks) add(delta, finish string, tokens int, output bool) {
	a := c.answer
	c.sent += tokens
	b := appendChunkHead(make([]byte, 0, 256+len(delta)), a)
	b = append(b, `"choices":[{"index":0,"delta":`...)
	b = append(b, delta...)
	b = append(b, `},"logprobs":null,"finish_reason":`...)
	b = appendFinish(b, finish)
	b = append(b, `}]`...)
	switch {
	case a.form.usagePlace == usageEvery:
		soFar := *a
		soFar.usage.output = c.sent
		b = appendUsage(b, &soFar, true)
	case a.includeUsage && a.form.usagePlace != usageAbsent:
		b = append(b, `,"usage":null`...)
	}
	c.events = append(c.events, event{data: append(b, '}'), tokens: tokens, output: output})
}

func appendChunkHead(b []byte, a *answer) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, a.id)
	b = append(b, `,"object":"chat.completion.chunk","created":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, a.model)
	return append(b, `,"system_fingerprint":"fp_fake",`...)
}

// appendCallHead opens a tool call up to the value of its arguments.
func appendCallHead(b []byte, call toolCall) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, call.id)
	b = append(b, `,"type":"function","function":{"name":`...)
	b = appendString(b, call.name)
	return append(b, `,"arguments":`...)
}

func appendFinish(b []byte, finish string) []byte {
	if finish == "" {
		return append(b, "null"...)
	}
	return appendString(b, finish)
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
	b = append(b, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`...)
	b = strconv.AppendInt(b, int64(u.reasoning), 10)
	return append(b, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}
