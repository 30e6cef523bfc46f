package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// messages is Anthropic's Messages protocol.
type messages struct{}

func (messages) register(mux *http.ServeMux, s *Server) {
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) {
		s.serveCall(messages{}, w, r)
	})
}

// messagesRequest are the members of a Messages body that matter here.
type messagesRequest struct {
	Model     string          `json:"model"`
	System    json.RawMessage `json:"system"`
	Messages  []chatMessage   `json:"messages"`
	Stream    bool            `json:"stream"`
	MaxTokens int             `json:"max_tokens"`
	Stops     []string        `json:"stop_sequences"`
	Tools     []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	OutputConfig struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

func (messages) parse(_ *http.Request, body []byte) (request, error) {
	var in messagesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is not a Messages request: %w", err)
	}
	out := request{
		model: in.Model, stream: in.Stream, maxTokens: in.MaxTokens, messages: len(in.Messages), stops: in.Stops,
		// There is no stream without usage.
		includeUsage: true,
		schema:       in.OutputConfig.Format.Schema,
		toolChoice:   in.ToolChoice.Type,
	}
	switch in.ToolChoice.Type {
	case "any":
		out.toolChoice = "required"
	case "tool":
		out.toolChoice = in.ToolChoice.Name
	}
	system := blocksOf(in.System)
	textBytes := len(system.text)
	for _, message := range in.Messages {
		blocks := blocksOf(message.Content)
		textBytes += len(blocks.text)
		out.images += blocks.images
		out.lastText, out.toolAnswered = blocks.text, blocks.results > 0
		if message.Role == "user" && blocks.text != "" {
			out.lastUser = blocks.text
		}
	}
	for _, t := range in.Tools {
		out.tools = append(out.tools, tool{name: t.Name, parameters: t.InputSchema})
	}
	out.promptTokens = promptTokens(textBytes, len(in.Messages), out.images, len(in.Tools))
	return out, nil
}

// blocks is what a content holds.
type blocks struct {
	text            string
	images, results int
}

// blocksOf reads a content, a string or a list of blocks, what tool results hold
// included.
func blocksOf(raw json.RawMessage) (out blocks) {
	if len(raw) == 0 {
		return blocks{}
	}
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &out.text) // json.Unmarshal of the body checked the syntax
		return out
	}
	var list []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return blocks{}
	}
	var joined strings.Builder
	for _, b := range list {
		joined.WriteString(b.Text)
		switch b.Type {
		case "image":
			out.images++
		case "tool_result":
			out.results++
			inner := blocksOf(b.Content)
			joined.WriteString(inner.text)
			out.images += inner.images
		}
	}
	out.text = joined.String()
	return out
}

func (messages) streamType() string { return "text/event-stream; charset=utf-8" }

func (messages) idle() []byte { return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n") }

func (messages) frame(dst []byte, f framing, n int, e event) []byte { return f.append(dst, n, e) }

func (messages) malformedEvent() event {
	return event{name: "content_block_delta", data: []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half`)}
}

// stopReasons are this protocol's words for Chat's.
var stopReasons = map[string]string{
	"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal",
}

func stopReason(a *answer) string {
	switch {
	case len(a.refusal) > 0 && a.finish == "stop":
		return "refusal"
	case a.stoppedAt != "":
		return "stop_sequence"
	}
	if word, ok := stopReasons[a.finish]; ok {
		return word
	}
	return a.finish
}

// fakeSignature stands for what Anthropic signs its thinking with.
const fakeSignature = "EqQBCkYIfakesignature=="

func (messages) whole(a *answer) []byte {
	b := appendMessageHead(nil, a)
	n := 0
	block := func(kind string) {
		b = append(appendComma(b, n), `{"type":"`...)
		b = append(append(b, kind...), '"')
		n++
	}
	if len(a.reasoning) > 0 {
		block("thinking")
		b = append(b, `,"thinking":`...)
		b = appendStringOrNull(b, a.reasoning)
		b = append(b, `,"signature":"`+fakeSignature+`"}`...)
	}
	if text := append(append([]string(nil), a.text...), a.refusal...); len(text) > 0 {
		block("text")
		b = append(b, `,"text":`...)
		b = append(appendStringOrNull(b, text), '}')
	}
	for _, call := range a.calls {
		block("tool_use")
		b = appendCallName(b, call)
		b = append(append(b, inputOf(call)...), '}')
	}
	b = append(b, `],"stop_reason":`...)
	b = appendStringOr(b, stopReason(a), "null")
	b = appendStringOr(append(b, `,"stop_sequence":`...), a.stoppedAt, "null")
	return append(appendMessageUsage(b, a, a.usage.output), '}')
}

// appendMessageHead opens a message up to its blocks.
func appendMessageHead(b []byte, a *answer) []byte {
	b = append(b, `{"id":"msg_`...)
	b = append(b, a.id...)
	b = append(b, `","type":"message","role":"assistant","model":`...)
	b = appendString(b, a.model)
	return append(b, `,"content":[`...)
}

// appendCallName writes a call's members up to the value of its input.
func appendCallName(b []byte, call toolCall) []byte {
	b = append(b, `,"id":`...)
	b = appendString(b, call.id)
	b = append(b, `,"name":`...)
	b = appendString(b, call.name)
	return append(b, `,"input":`...)
}

// inputOf is a call's input as an object: what the limit of tokens has cut off is
// none.
func inputOf(call toolCall) string {
	if whole := call.whole(); json.Valid([]byte(whole)) {
		return whole
	}
	return "{}"
}

// appendMessageUsage appends the usage member. Cached tokens stand beside
// input_tokens in this protocol.
func appendMessageUsage(b []byte, a *answer, output int) []byte {
	switch {
	case a.form.usagePlace == usageAbsent:
		return b
	case a.form.usageValue == usageNull:
		return append(b, `,"usage":null`...)
	}
	u := a.reported()
	if a.form.usageValue == usageZero {
		output = 0
	}
	if beside := u.cached + u.written; beside <= u.input {
		u.input -= beside
	}
	b = append(b, `,"usage":{"input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.input), 10)
	b = append(b, `,"cache_creation_input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.written), 10)
	b = append(b, `,"cache_read_input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	b = append(b, `,"output_tokens":`...)
	b = strconv.AppendInt(b, int64(output), 10)
	return append(b, `,"service_tier":"standard"}`...)
}
