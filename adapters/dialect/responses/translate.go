package responses

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// translate decodes a body for a destination of another dialect. Its strings are
// copies. What it has no word for was noted as a feature by Parse, or is a row of the
// table of what is dropped.
func translate(body []byte) (*neutral.Request, error) {
	doc, ok := rawjson.Parse(body)
	if !ok {
		return nil, inbound.Invalid("", "The body is not a valid JSON object.")
	}
	t := translator{out: &neutral.Request{}}
	if v := doc.Get("instructions"); v.Type == gjson.String {
		t.system(text(v))
	} else {
		t.items("instructions", v)
	}
	if v := doc.Get("input"); v.Type == gjson.String {
		t.add(neutral.User, neutral.Part{Kind: neutral.TextPart, Text: strings.Clone(v.Str)})
	} else {
		t.items("input", v)
	}
	t.tools(doc.Get("tools"))
	t.choice(doc.Get("tool_choice"))
	t.options(doc)
	if t.err != nil {
		return nil, t.err
	}
	return t.out, nil
}

type translator struct {
	out *neutral.Request
	err error
}

func (t *translator) fail(param, message string) {
	if t.err == nil {
		t.err = inbound.Invalid(param, message)
	}
}

func text(v gjson.Result) string { return strings.Clone(v.String()) }

func raw(v gjson.Result) json.RawMessage { return json.RawMessage(strings.Clone(v.Raw)) }

func (t *translator) system(s string) {
	if s != "" {
		t.out.System = append(t.out.System, neutral.Part{Kind: neutral.TextPart, Text: s})
	}
}

// add appends a part to the turn of its role. Items of one turn stand one after the
// other here; other dialects have them in one message.
func (t *translator) add(role neutral.Role, p neutral.Part) {
	if n := len(t.out.Messages); n > 0 && t.out.Messages[n-1].Role == role {
		t.out.Messages[n-1].Parts = append(t.out.Messages[n-1].Parts, p)
		return
	}
	t.out.Messages = append(t.out.Messages, neutral.Message{Role: role, Parts: []neutral.Part{p}})
}

func (t *translator) items(param string, list gjson.Result) {
	names := map[string]string{}
	i := 0
	list.ForEach(func(_, item gjson.Result) bool {
		t.item(fmt.Sprintf("%s[%d]", param, i), item, names)
		i++
		return t.err == nil
	})
}

// item translates one item. names are the calls' tools by call id, for dialects that
// match a result by name.
func (t *translator) item(at string, v gjson.Result, names map[string]string) {
	switch v.Get("type").Str {
	case "message", "":
		t.message(at, v)
	case "function_call":
		call := neutral.ToolCall{ID: text(v.Get("call_id")), Name: text(v.Get("name")), Arguments: text(v.Get("arguments"))}
		names[call.ID] = call.Name
		t.add(neutral.Assistant, neutral.Part{Kind: neutral.ToolCallPart, Call: call})
	case "function_call_output":
		id := text(v.Get("call_id"))
		result := neutral.ToolResult{CallID: id, Name: names[id], Parts: t.content(at+".output", v.Get("output"))}
		t.add(neutral.User, neutral.Part{Kind: neutral.ToolResultPart, Result: result})
	case "reasoning":
		t.add(neutral.Assistant, reasoningPart(v))
	default:
		t.fail(at, "This kind of item is understood by the Responses protocol only.")
	}
}

func (t *translator) message(at string, v gjson.Result) {
	parts := t.content(at+".content", v.Get("content"))
	switch role := v.Get("role").Str; role {
	case "system", "developer":
		t.out.System = append(t.out.System, parts...)
	case "user", "assistant":
		for _, p := range parts {
			t.add(neutral.Role(role), p)
		}
	default:
		t.fail(at+".role", "The role of a message must be user, assistant, system or developer.")
	}
}

// reasoningPart has what the caller may see of it as its text, paragraphs apart.
func reasoningPart(v gjson.Result) neutral.Part {
	p := neutral.Part{Kind: neutral.ReasoningPart, Opaque: opaque(v)}
	var said []string
	for _, list := range []string{"summary", "content"} {
		v.Get(list).ForEach(func(_, part gjson.Result) bool {
			if s := text(part.Get("text")); s != "" {
				said = append(said, s)
			}
			return true
		})
	}
	p.Text = strings.Join(said, paragraph)
	return p
}

// paragraph stands between the parts of a summary where they become one text.
const paragraph = "\n\n"

func (t *translator) content(at string, v gjson.Result) []neutral.Part {
	if v.Type == gjson.String {
		return []neutral.Part{{Kind: neutral.TextPart, Text: strings.Clone(v.Str)}}
	}
	var parts []neutral.Part
	i := 0
	v.ForEach(func(_, part gjson.Result) bool {
		parts = append(parts, t.part(fmt.Sprintf("%s[%d]", at, i), part))
		i++
		return t.err == nil
	})
	return parts
}

func (t *translator) part(at string, v gjson.Result) neutral.Part {
	switch v.Get("type").Str {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return neutral.Part{Kind: neutral.TextPart, Text: text(v.Get("text"))}
	case "refusal":
		return neutral.Part{Kind: neutral.RefusalPart, Text: text(v.Get("refusal"))}
	case "input_image":
		m := t.media(at+".image_url", v.Get("image_url"))
		m.Detail = text(v.Get("detail"))
		return neutral.Part{Kind: neutral.ImagePart, Media: m}
	case "input_file":
		m := neutral.Media{URL: text(v.Get("file_url"))}
		if m.URL == "" {
			m = t.media(at+".file_data", v.Get("file_data"))
		}
		m.Name = text(v.Get("filename"))
		return neutral.Part{Kind: neutral.DocumentPart, Media: m}
	case "input_audio":
		format := text(v.Get("input_audio.format"))
		return neutral.Part{Kind: neutral.AudioPart, Media: neutral.Media{
			Type: "audio/" + format, Base64: t.base64(at+".input_audio.data", v.Get("input_audio.data").Str),
		}}
	default:
		t.fail(at, "This kind of content is understood by the Responses protocol only.")
		return neutral.Part{}
	}
}

// pdf is what a file's bare base64 is taken for, as OpenAI does.
const pdf = "application/pdf"

// media reads an address or a data URL.
func (t *translator) media(at string, v gjson.Result) neutral.Media {
	s := v.Str
	if s == "" {
		t.fail(at, "The content has neither data nor an address.")
		return neutral.Media{}
	}
	rest, isData := strings.CutPrefix(s, "data:")
	kind, data, has := strings.Cut(rest, ";base64,")
	switch {
	case isData && has:
		return neutral.Media{Type: strings.Clone(kind), Base64: t.base64(at, data)}
	case isData:
		t.fail(at, "A data URL must be in base64.")
	case strings.HasSuffix(at, "file_data"):
		return neutral.Media{Type: pdf, Base64: t.base64(at, s)}
	}
	return neutral.Media{URL: strings.Clone(s)}
}

// base64 is data that has been looked at: half a character would be found out by the
// last destination of a chain only.
func (t *translator) base64(at, data string) string {
	const piece = 4 << 10 // whole groups of four
	var into [piece]byte
	for left := data; left != ""; {
		n := min(len(left), piece)
		encoding := base64.StdEncoding
		if n == len(left) && !strings.HasSuffix(left, "=") {
			encoding = base64.RawStdEncoding
		}
		if _, err := encoding.Decode(into[:], []byte(left[:n])); err != nil {
			t.fail(at, "The data is not valid base64.")
			return ""
		}
		left = left[n:]
	}
	return strings.Clone(data)
}

func (t *translator) tools(list gjson.Result) {
	i := 0
	list.ForEach(func(_, v gjson.Result) bool {
		if v.Get("type").Str != "function" {
			t.fail(fmt.Sprintf("tools[%d]", i), "This kind of tool is understood by the Responses protocol only.")
			return false
		}
		d := neutral.ToolDefinition{Name: text(v.Get("name")), Description: text(v.Get("description")), Strict: optional(v.Get("strict"))}
		if schema := v.Get("parameters"); schema.IsObject() {
			d.Schema = raw(schema)
		}
		t.out.Tools = append(t.out.Tools, d)
		i++
		return true
	})
}

func optional(v gjson.Result) *bool {
	if !v.IsBool() {
		return nil
	}
	b := v.Bool()
	return &b
}

func (t *translator) choice(v gjson.Result) {
	word := v.Str
	if v.IsObject() {
		if v.Get("type").Str != "function" {
			t.fail("tool_choice", "This choice is understood by the Responses protocol only.")
			return
		}
		t.out.Choice = neutral.ToolChoice{Mode: neutral.ChoiceNamed, Name: text(v.Get("name"))}
		return
	}
	modes := map[string]neutral.ChoiceMode{
		"": neutral.ChoiceDefault, "auto": neutral.ChoiceAuto, "none": neutral.ChoiceNone, "required": neutral.ChoiceAny,
	}
	mode, ok := modes[word]
	if !ok {
		t.fail("tool_choice", "The field tool_choice must be none, auto, required or a function.")
		return
	}
	t.out.Choice.Mode = mode
}

func (t *translator) options(doc gjson.Result) {
	r := t.out
	r.Stream = doc.Get("stream").Bool()
	r.MaxOutputTokens, _ = rawjson.Integer(doc.Get("max_output_tokens"))
	r.ParallelCalls = optional(doc.Get("parallel_tool_calls"))
	r.Sampling.Temperature = number(doc.Get("temperature"))
	r.Sampling.TopP = number(doc.Get("top_p"))
	r.User = text(doc.Get("user"))
	if r.User == "" {
		r.User = text(doc.Get("safety_identifier"))
	}
	if v := doc.Get("metadata"); v.IsObject() {
		r.Metadata = raw(v)
	}
	t.format(doc.Get("text.format"))
	t.reasoning(doc.Get("reasoning"))
}

func number(v gjson.Result) json.Number {
	if v.Type != gjson.Number {
		return ""
	}
	return json.Number(strings.Clone(v.Raw))
}

func (t *translator) format(v gjson.Result) {
	switch kind := v.Get("type").Str; kind {
	case "", "text":
	case "json_object":
		t.out.Format = &neutral.Format{}
	case "json_schema":
		schema := v.Get("schema")
		if !schema.IsObject() {
			t.fail("text.format.schema", "A json_schema format must have a schema.")
			return
		}
		t.out.Format = &neutral.Format{
			Name: text(v.Get("name")), Description: text(v.Get("description")),
			Schema: raw(schema), Strict: optional(v.Get("strict")),
		}
	default:
		t.fail("text.format.type", "The format must be text, json_object or json_schema.")
	}
}

func (t *translator) reasoning(v gjson.Result) {
	effort, summary := text(v.Get("effort")), text(v.Get("summary"))
	switch {
	case effort == "none":
		t.out.Reasoning = &neutral.ReasoningOptions{Disabled: true}
	case effort != "" || summary != "":
		t.out.Reasoning = &neutral.ReasoningOptions{Effort: effort, Summary: summary}
	}
}
