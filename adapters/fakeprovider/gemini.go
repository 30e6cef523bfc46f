package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// gemini is Google's generateContent protocol, at the paths of the Gemini API and of
// Vertex AI.
type gemini struct{}

// geminiPrefixes are what stands in front of MODEL:METHOD.
var geminiPrefixes = []string{
	"/v1beta/models/", "/v1/models/",
	"/v1/publishers/google/models/",
	"/v1/projects/{project}/locations/{location}/publishers/google/models/",
}

func (gemini) register(mux *http.ServeMux, s *Server) {
	for _, prefix := range geminiPrefixes {
		mux.HandleFunc("POST "+prefix+"{call...}", func(w http.ResponseWriter, r *http.Request) {
			s.serveCall(gemini{}, w, r)
		})
	}
}

// geminiRequest are the members of a body that matter here.
type geminiRequest struct {
	System   geminiContent   `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Declarations []struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig struct {
		Calling struct {
			Mode    string   `json:"mode"`
			Allowed []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Config struct {
		MaxOutputTokens int             `json:"maxOutputTokens"`
		Stops           []string        `json:"stopSequences"`
		MIMEType        string          `json:"responseMimeType"`
		Schema          json.RawMessage `json:"responseSchema"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text     string    `json:"text"`
		Thought  bool      `json:"thought"`
		Inline   *struct{} `json:"inlineData"`
		Response *struct {
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	} `json:"parts"`
}

// parse reads the model and whether to stream out of the path: MODEL:generateContent
// or MODEL:streamGenerateContent. A model's name may have colons of its own.
func (gemini) parse(r *http.Request, body []byte) (request, error) {
	var in geminiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is not a generateContent request: %w", err)
	}
	call := r.PathValue("call")
	at := strings.LastIndexByte(call, ':')
	if at < 0 {
		return request{}, fmt.Errorf("the path names no method")
	}
	out := request{model: call[:at], maxTokens: in.Config.MaxOutputTokens, stops: in.Config.Stops, messages: len(in.Contents), includeUsage: true}
	switch call[at+1:] {
	case "streamGenerateContent":
		out.stream = true
	case "generateContent":
	default:
		return out, fmt.Errorf("unknown method %q", call[at+1:])
	}
	textBytes := 0
	for _, part := range in.System.Parts {
		textBytes += len(part.Text)
	}
	for _, content := range in.Contents {
		textBytes += out.take(content)
	}
	for _, t := range in.Tools {
		for _, d := range t.Declarations {
			out.tools = append(out.tools, tool{name: d.Name, parameters: lowerTypes(d.Parameters)})
		}
	}
	out.promptTokens = promptTokens(textBytes, len(in.Contents), out.images, len(out.tools))
	out.toolChoice = map[string]string{"NONE": "none", "AUTO": "auto", "ANY": "required"}[in.ToolConfig.Calling.Mode]
	if allowed := in.ToolConfig.Calling.Allowed; len(allowed) > 0 {
		out.toolChoice = allowed[0]
	}
	out.schema = lowerTypes(in.Config.Schema)
	out.jsonObject = in.Config.MIMEType == "application/json" && out.schema == nil
	return out, nil
}

// take reads one turn and returns the length of its text.
func (r *request) take(content geminiContent) (textBytes int) {
	var text, answered strings.Builder
	results := 0
	for _, part := range content.Parts {
		text.WriteString(part.Text)
		if part.Inline != nil {
			r.images++
		}
		if part.Response != nil {
			results++
			answered.Write(part.Response.Response)
		}
	}
	r.lastText, r.toolAnswered = text.String()+answered.String(), results > 0
	if content.Role != "model" && text.Len() > 0 {
		r.lastUser = text.String()
	}
	return text.Len() + answered.Len()
}

// lowerTypes spells the types of a schema as JSON Schema does: examples are made of
// that.
func lowerTypes(schema json.RawMessage) json.RawMessage {
	var v any
	if len(schema) == 0 || json.Unmarshal(schema, &v) != nil {
		return nil
	}
	var lower func(v any)
	lower = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if t, ok := v["type"].(string); ok {
				v["type"] = strings.ToLower(t)
			}
			for _, inner := range v {
				lower(inner)
			}
		case []any:
			for _, inner := range v {
				lower(inner)
			}
		}
	}
	lower(v)
	out, _ := json.Marshal(v) // it was JSON before
	return out
}

func (gemini) streamType() string { return "text/event-stream" }

// idle is a comment. Google sends none; proxies in between do.
func (gemini) idle() []byte { return []byte(": waiting\n\n") }

func (gemini) frame(dst []byte, f framing, n int, e event) []byte { return f.append(dst, n, e) }

func (gemini) malformedEvent() event {
	return event{data: []byte(`{"candidates":[{"content":{"parts":[{"text":"half`)}
}

// finishWords are this protocol's words for Chat's. It has none for a call.
var finishWords = map[string]string{
	"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY", "error": "OTHER",
}

func (gemini) whole(a *answer) []byte {
	g := geminiParts{b: appendGeminiHead(nil)}
	if len(a.reasoning) > 0 {
		g.text(strings.Join(a.reasoning, ""), true)
	}
	if text := strings.Join(a.text, "") + strings.Join(a.refusal, ""); text != "" {
		g.text(text, false)
	}
	for i, call := range a.calls {
		g.call(call, i == 0)
	}
	return appendGeminiTail(g.b, a, a.finish, a.usage.output-a.usage.reasoning, a.usage.reasoning, true)
}

// events are chunks: one for each piece of text, one for each whole call, and an empty
// one that ends the answer. There is no terminator but that one.
func (gemini) events(a *answer) []event {
	var events []event
	thoughts, tokens := 0, 0
	chunk := func(n int, output bool, finish string, last bool, write func(g *geminiParts)) {
		g := geminiParts{b: appendGeminiHead(nil)}
		write(&g)
		shown := last || a.form.usagePlace == usageEvery || a.form.usagePlace == usageAsAsked
		data := appendGeminiTail(g.b, a, finish, tokens, thoughts, shown)
		events = append(events, event{data: data, tokens: n, output: output, last: last})
	}
	for _, piece := range a.reasoning {
		thoughts++
		chunk(1, true, "", false, func(g *geminiParts) { g.text(piece, true) })
	}
	for _, piece := range append(append([]string(nil), a.text...), a.refusal...) {
		tokens++
		chunk(1, true, "", false, func(g *geminiParts) { g.text(piece, false) })
	}
	for i, call := range a.calls {
		tokens += len(call.arguments)
		chunk(len(call.arguments), true, "", false, func(g *geminiParts) { g.call(call, i == 0) })
	}
	if a.finish != "" && !a.form.noSentinel {
		chunk(0, false, a.finish, true, func(g *geminiParts) { g.text("", false) })
	}
	return events
}

// geminiParts writes the parts of one response.
type geminiParts struct {
	b []byte
	n int
}

func (g *geminiParts) text(s string, thought bool) {
	g.b = append(appendComma(g.b, g.n), `{"text":`...)
	g.b = appendString(g.b, s)
	if thought {
		g.b = append(g.b, `,"thought":true`...)
	}
	g.b = append(g.b, '}')
	g.n++
}

// call writes a call, which has no id here; the first one of an answer is signed.
func (g *geminiParts) call(call toolCall, signed bool) {
	g.b = append(appendComma(g.b, g.n), `{"functionCall":{"name":`...)
	g.b = appendString(g.b, call.name)
	g.b = append(g.b, `,"args":`...)
	g.b = append(append(g.b, inputOf(call)...), '}')
	if signed {
		g.b = append(g.b, `,"thoughtSignature":"`+fakeSignature+`"`...)
	}
	g.b = append(g.b, '}')
	g.n++
}

func appendGeminiHead(b []byte) []byte {
	return append(b, `{"candidates":[{"content":{"role":"model","parts":[`...)
}

// appendGeminiTail closes the parts and writes what stands behind. Thoughts are counted
// beside the answer in this protocol.
func appendGeminiTail(b []byte, a *answer, finish string, tokens, thoughts int, shown bool) []byte {
	b = append(b, `]}`...)
	if finish != "" {
		word, ok := finishWords[finish]
		if !ok {
			word = finish
		}
		b = appendString(append(b, `,"finishReason":`...), word)
	}
	b = append(b, `,"index":0}]`...)
	if shown && a.form.usagePlace != usageAbsent {
		b = appendGeminiUsage(b, a, tokens, thoughts)
	}
	b = append(b, `,"modelVersion":`...)
	b = appendString(b, a.model)
	b = append(b, `,"responseId":`...)
	return append(appendString(b, a.id), '}')
}

func appendGeminiUsage(b []byte, a *answer, tokens, thoughts int) []byte {
	switch a.form.usageValue {
	case usageNull:
		return append(b, `,"usageMetadata":null`...)
	case usageZero:
		tokens, thoughts = 0, 0
	case usageTrue, usageCachedOverPrompt, usageReasoningOutside:
	}
	u := a.reported()
	for _, count := range []struct {
		key string
		n   int
	}{
		{`,"usageMetadata":{"promptTokenCount":`, u.input},
		{`,"cachedContentTokenCount":`, u.cached},
		{`,"candidatesTokenCount":`, tokens},
		{`,"thoughtsTokenCount":`, thoughts},
		{`,"totalTokenCount":`, u.input + tokens + thoughts},
	} {
		b = strconv.AppendInt(append(b, count.key...), int64(count.n), 10)
	}
	return append(b, '}')
}
