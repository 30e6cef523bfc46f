package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// responses is OpenAI's Responses protocol.
type responses struct{}

func (responses) register(mux *http.ServeMux, s *Server) {
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) {
		s.serveCall(responses{}, w, r)
	})
}

// responsesRequest are the members of a Responses body that matter here.
type responsesRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    string          `json:"instructions"`
	Stream          bool            `json:"stream"`
	MaxOutputTokens int             `json:"max_output_tokens"`
	Tools           []struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Text       struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

// responsesItem is one item of an input.
type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

func (responses) parse(_ *http.Request, body []byte) (request, error) {
	var in responsesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is not a Responses request: %w", err)
	}
	out := request{
		model: in.Model, stream: in.Stream, maxTokens: in.MaxOutputTokens,
		// There is no stream without usage.
		includeUsage: true,
		jsonObject:   in.Text.Format.Type == "json_object",
		toolChoice:   responsesToolChoice(in.ToolChoice),
	}
	if in.Text.Format.Type == "json_schema" {
		out.schema = in.Text.Format.Schema
	}
	textBytes := len(in.Instructions)
	for _, item := range itemsOf(in.Input) {
		text, images := responsesContent(item.Content)
		answered, shown := responsesContent(item.Output)
		textBytes += len(text) + len(answered) + len(item.Arguments)
		out.images += images + shown
		out.messages++
		out.lastText, out.toolAnswered = text+answered, item.Type == "function_call_output"
		if item.Role == "user" {
			out.lastUser = text
		}
	}
	for _, t := range in.Tools {
		out.tools = append(out.tools, tool{name: t.Name, parameters: t.Parameters})
	}
	out.promptTokens = promptTokens(textBytes, out.messages, out.images, len(in.Tools))
	return out, nil
}

// itemsOf reads an input, a prompt or a list of items.
func itemsOf(raw json.RawMessage) (items []responsesItem) {
	if len(raw) > 0 && raw[0] == '"' {
		return []responsesItem{{Role: "user", Content: raw}}
	}
	_ = json.Unmarshal(raw, &items) // what is no list has no items
	return items
}

// responsesContent joins the text of a content and counts its images.
func responsesContent(raw json.RawMessage) (text string, images int) {
	text, _ = contentOf(raw)
	var parts []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return text, 0
	}
	for _, part := range parts {
		if part.Type == "input_image" {
			images++
		}
	}
	return text, images
}

// responsesToolChoice reduces both spellings of tool_choice to a word or a name.
func responsesToolChoice(raw json.RawMessage) string {
	var word string
	var named struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &word) != nil {
		_ = json.Unmarshal(raw, &named)
		return named.Name
	}
	return word
}

func (responses) streamType() string { return "text/event-stream; charset=utf-8" }

func (responses) idle() []byte { return []byte(": PROCESSING\n\n") }

func (responses) frame(dst []byte, f framing, n int, e event) []byte { return f.append(dst, n, e) }

func (responses) malformedEvent() event {
	return event{name: "response.output_text.delta", data: []byte(`{"type":"response.output_text.delta","output_index":0,"delta":"half`)}
}

func (responses) whole(a *answer) []byte {
	status, _ := statusOf(a)
	return appendResponse(nil, a, status, true)
}

// statusOf is how an answer ends in this protocol's words: a status, and the
// reason of one that is incomplete.
func statusOf(a *answer) (status, reason string) {
	switch a.finish {
	case "stop", "tool_calls":
		return "completed", ""
	case "error":
		return "failed", ""
	case "":
		return "in_progress", ""
	case "length":
		return "incomplete", "max_output_tokens"
	default:
		return "incomplete", a.finish
	}
}

// appendResponse writes a response object, with its output and usage when it has
// ended.
func appendResponse(b []byte, a *answer, status string, ended bool) []byte {
	b = append(b, `{"id":"resp_`...)
	b = append(b, a.id...)
	b = append(b, `","object":"response","created_at":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(append(append(b, `,"status":"`...), status...), `","background":false,"error":`...)
	if status == "failed" {
		b = append(b, `{"code":"server_error","message":"The model produced an error."}`...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"incomplete_details":`...)
	if _, reason := statusOf(a); ended && reason != "" {
		b = append(appendString(append(b, `{"reason":`...), reason), '}')
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"model":`...)
	b = appendString(b, a.model)
	b = append(b, `,"output":[`...)
	if ended {
		for i, item := range outputOf(a) {
			b = item.append(appendComma(b, i), itemStatus(status), true)
		}
	}
	b = append(b, `],"parallel_tool_calls":true,"previous_response_id":null,"store":false`...)
	if ended {
		b = appendResponseUsage(b, a)
	}
	return append(b, '}')
}

func itemStatus(status string) string {
	if status == "incomplete" {
		return status
	}
	return "completed"
}

// outputItem is one item of an answer.
type outputItem struct {
	kind, id string
	pieces   []string
	call     toolCall
}

// outputOf are the items of an answer in order.
func outputOf(a *answer) []outputItem {
	var items []outputItem
	add := func(kind, prefix string, pieces []string, call toolCall) {
		items = append(items, outputItem{kind: kind, id: prefix + a.id + "_" + strconv.Itoa(len(items)), pieces: pieces, call: call})
	}
	if len(a.reasoning) > 0 {
		add("reasoning", "rs_", a.reasoning, toolCall{})
	}
	if len(a.text) > 0 {
		add("output_text", "msg_", a.text, toolCall{})
	}
	if len(a.refusal) > 0 {
		add("refusal", "msg_", a.refusal, toolCall{})
	}
	for _, call := range a.calls {
		add("function_call", "fc_", call.arguments, call)
	}
	return items
}

// fakeSeal stands for reasoning that only its provider can read.
const fakeSeal = "gAAAAABfakefakefake=="

// append writes the item; full with what it says, else as it begins.
func (i outputItem) append(b []byte, status string, full bool) []byte {
	b = append(append(append(b, `{"id":"`...), i.id...), '"')
	pieces := i.pieces
	if !full {
		pieces, status = nil, "in_progress"
	}
	switch i.kind {
	case "reasoning":
		b = append(b, `,"type":"reasoning","summary":[`...)
		if full {
			b = i.appendPart(b, pieces)
		}
		return append(b, `],"encrypted_content":"`+fakeSeal+`"}`...)
	case "function_call":
		b = append(append(append(b, `,"type":"function_call","status":"`...), status...), `","call_id":`...)
		b = appendString(b, i.call.id)
		b = append(b, `,"name":`...)
		b = appendString(b, i.call.name)
		b = append(b, `,"arguments":`...)
		return append(appendJoined(b, pieces), '}')
	default:
		b = append(append(append(b, `,"type":"message","status":"`...), status...), `","role":"assistant","content":[`...)
		if full {
			b = i.appendPart(b, pieces)
		}
		return append(b, "]}"...)
	}
}

// appendPart writes the one part of a message or a summary.
func (i outputItem) appendPart(b []byte, pieces []string) []byte {
	switch i.kind {
	case "reasoning":
		b = append(b, `{"type":"summary_text","text":`...)
	case "refusal":
		b = append(b, `{"type":"refusal","refusal":`...)
	default:
		b = append(b, `{"type":"output_text","annotations":[],"logprobs":[],"text":`...)
	}
	return append(appendJoined(b, pieces), '}')
}

func appendJoined(b []byte, pieces []string) []byte {
	if len(pieces) == 0 {
		return append(b, `""`...)
	}
	return appendStringOrNull(b, pieces)
}

// appendResponseUsage appends the usage member, unless it is not to be there at all.
func appendResponseUsage(b []byte, a *answer) []byte {
	switch {
	case a.form.usagePlace == usageAbsent:
		return b
	case a.form.usageValue == usageNull:
		return append(b, `,"usage":null`...)
	}
	u := a.reported()
	total := u.input + u.output
	if a.form.usageValue == usageReasoningOutside {
		u.output -= u.reasoning
	}
	b = append(b, `,"usage":{"input_tokens":`...)
	b = strconv.AppendInt(b, int64(u.input), 10)
	b = append(b, `,"input_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	b = append(b, `},"output_tokens":`...)
	b = strconv.AppendInt(b, int64(u.output), 10)
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":`...)
	b = strconv.AppendInt(b, int64(u.reasoning), 10)
	b = append(b, `},"total_tokens":`...)
	return append(strconv.AppendInt(b, int64(total), 10), '}')
}
