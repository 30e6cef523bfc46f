package responses

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// object is a JSON object that is being written. Keys are written in the order of
// the code, never of a map (P12).
type object struct{ b []byte }

func (o *object) key(name string) {
	if n := len(o.b); n == 0 || o.b[n-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) open(name string, bracket byte) {
	o.key(name)
	o.b = append(o.b, bracket)
}

func (o *object) close(bracket byte) { o.b = append(o.b, bracket) }

func (o *object) text(name, s string) {
	o.key(name)
	o.b = rawjson.AppendQuoted(o.b, s)
}

// maybe writes a text that is not empty.
func (o *object) maybe(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

func (o *object) raw(name string, v []byte) {
	o.key(name)
	o.b = append(o.b, v...)
}

func (o *object) number(name string, n int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *object) flag(name string, b bool) { o.raw(name, word(b)) }

func (o *object) literal(name string, n json.Number) {
	if n != "" {
		o.raw(name, []byte(n))
	}
}

// element begins an object in an open array.
func (o *object) element() {
	if o.b[len(o.b)-1] != '[' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '{')
}

// write says a neutral request in this dialect. The provider stores nothing: the
// caller's dialect has no word by which it could have asked for that.
func write(r *neutral.Request, t dialect.Target) []byte {
	o := &object{b: append(make([]byte, 0, room(r)), '{')}
	o.text("model", t.UpstreamModel)
	writeSystem(o, r.System)
	o.open("input", '[')
	for _, m := range r.Messages {
		writeMessage(o, m, t.WithoutSeals)
	}
	o.close(']')
	writeTools(o, r)
	if r.Format != nil {
		writeFormat(o, r.Format)
	}
	writeReasoning(o, r.Reasoning)
	if r.MaxOutputTokens > 0 {
		// Less than 16 is refused.
		o.number("max_output_tokens", max(r.MaxOutputTokens, minOutputTokens))
	}
	o.literal("temperature", r.Sampling.Temperature)
	o.literal("top_p", r.Sampling.TopP)
	o.flag("store", false)
	o.flag("stream", t.Stream)
	o.close('}')
	return o.b
}

// room is about how long a body will be: one that has to grow is copied again, images
// and all.
func room(r *neutral.Request) int {
	const perPart, rest = 128, 4 << 10
	n := rest
	var parts func([]neutral.Part)
	parts = func(list []neutral.Part) {
		for i := range list {
			p := &list[i]
			n += perPart + len(p.Text) + len(p.Media.Base64) + len(p.Call.Arguments) + len(p.Opaque.Encrypted)
			parts(p.Result.Parts)
		}
	}
	for i := range r.Messages {
		parts(r.Messages[i].Parts)
	}
	for i := range r.Tools {
		n += perPart + len(r.Tools[i].Description) + len(r.Tools[i].Schema)
	}
	return n
}

// minOutputTokens is the least max_output_tokens that OpenAI accepts.
const minOutputTokens = 16

// writeSystem writes instructions, paragraphs apart.
func writeSystem(o *object, system []neutral.Part) {
	var said []string
	for _, p := range system {
		if p.Text != "" {
			said = append(said, p.Text)
		}
	}
	o.maybe("instructions", strings.Join(said, paragraph))
}

// writeMessage writes a turn as items. Parts that make up a message go together; a
// call, a result and reasoning are items of their own, in their place.
func writeMessage(o *object, m neutral.Message, withoutSeals bool) {
	open := false
	end := func() {
		if open {
			o.b = append(o.b, "]}"...)
			open = false
		}
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case neutral.ToolCallPart, neutral.ToolResultPart:
			end()
			writeCall(o, p)
		case neutral.ReasoningPart:
			if p.Opaque.Issuer == neutral.Responses && p.Opaque.Encrypted != "" && !withoutSeals {
				end()
				writeReasoningItem(o, p)
			}
		default:
			if !open {
				o.element()
				o.text("type", "message")
				o.text("role", string(m.Role))
				o.open("content", '[')
				open = true
			}
			writePart(o, p, m.Role)
		}
	}
	end()
}

func writeCall(o *object, p *neutral.Part) {
	o.element()
	if p.Kind == neutral.ToolCallPart {
		o.text("type", "function_call")
		o.text("call_id", p.Call.ID)
		o.text("name", p.Call.Name)
		o.text("arguments", cmp.Or(p.Call.Arguments, "{}"))
		o.close('}')
		return
	}
	o.text("type", "function_call_output")
	o.text("call_id", p.Result.CallID)
	if said, ok := onlyText(p.Result.Parts); ok {
		o.text("output", said)
	} else {
		o.open("output", '[')
		for i := range p.Result.Parts {
			writePart(o, &p.Result.Parts[i], neutral.User)
		}
		o.close(']')
	}
	o.close('}')
}

// onlyText joins parts that are all text; older models of compatible providers take
// no other output.
func onlyText(parts []neutral.Part) (string, bool) {
	if len(parts) == 1 && parts[0].Kind == neutral.TextPart {
		return parts[0].Text, true
	}
	return "", len(parts) == 0
}

func writeReasoningItem(o *object, p *neutral.Part) {
	o.element()
	o.text("type", "reasoning")
	o.maybe("id", p.Opaque.ID)
	o.open("summary", '[')
	if p.Text != "" {
		o.element()
		o.text("type", "summary_text")
		o.text("text", p.Text)
		o.close('}')
	}
	o.close(']')
	o.text("encrypted_content", p.Opaque.Encrypted)
	o.close('}')
}

func writePart(o *object, p *neutral.Part, role neutral.Role) {
	o.element()
	switch p.Kind {
	case neutral.ImagePart:
		o.text("type", "input_image")
		o.address("image_url", p.Media)
		o.text("detail", cmp.Or(p.Media.Detail, "auto"))
	case neutral.DocumentPart:
		o.text("type", "input_file")
		if p.Media.URL != "" {
			o.text("file_url", p.Media.URL)
		} else {
			o.text("filename", cmp.Or(p.Media.Name, "document"))
			o.address("file_data", p.Media)
		}
	case neutral.RefusalPart:
		o.text("type", "refusal")
		o.text("refusal", p.Text)
	default:
		kind := "input_text"
		if role == neutral.Assistant {
			kind = "output_text"
		}
		o.text("type", kind)
		o.text("text", p.Text)
	}
	o.close('}')
}

// address writes where media are: an address of the web, or the data themselves. They
// may be many megabytes and are copied once.
func (o *object) address(name string, m neutral.Media) {
	if m.URL != "" {
		o.text(name, m.URL)
		return
	}
	o.text(name, "data:"+m.Type+";base64,")
	o.b = o.b[:len(o.b)-1]
	joint := len(o.b)
	o.b = rawjson.AppendQuoted(o.b, m.Base64)
	o.b = append(o.b[:joint], o.b[joint+1:]...)
}

func writeTools(o *object, r *neutral.Request) {
	if len(r.Tools) == 0 {
		return
	}
	o.open("tools", '[')
	for _, t := range r.Tools {
		o.element()
		o.text("type", "function")
		o.text("name", t.Name)
		o.maybe("description", t.Description)
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		o.raw("parameters", schema)
		// Left out it would be true here, and most schemas are not made for that.
		o.flag("strict", t.Strict != nil && *t.Strict)
		o.close('}')
	}
	o.close(']')
	switch r.Choice.Mode {
	case neutral.ChoiceAuto:
		o.text("tool_choice", "auto")
	case neutral.ChoiceNone:
		o.text("tool_choice", "none")
	case neutral.ChoiceAny:
		o.text("tool_choice", "required")
	case neutral.ChoiceNamed:
		o.open("tool_choice", '{')
		o.text("type", "function")
		o.text("name", r.Choice.Name)
		o.close('}')
	case neutral.ChoiceDefault:
	}
	if r.ParallelCalls != nil {
		o.flag("parallel_tool_calls", *r.ParallelCalls)
	}
}

func writeFormat(o *object, f *neutral.Format) {
	o.open("text", '{')
	o.open("format", '{')
	if len(f.Schema) == 0 {
		o.text("type", "json_object")
	} else {
		o.text("type", "json_schema")
		o.text("name", cmp.Or(f.Name, "response"))
		o.maybe("description", f.Description)
		o.raw("schema", f.Schema)
		if f.Strict != nil {
			o.flag("strict", *f.Strict)
		}
	}
	o.b = append(o.b, "}}"...)
}

// Efforts for a budget in tokens, by the budgets that others give for the words.
const (
	lowBudgetTokens    = 2048
	mediumBudgetTokens = 12288
)

// writeReasoning asks for the reasoning to come back sealed, so that a later turn can
// bring it along: nothing is stored at the provider.
func writeReasoning(o *object, r *neutral.ReasoningOptions) {
	if r == nil {
		return
	}
	effort := r.Effort
	switch {
	case r.Disabled:
		effort = "none"
	case effort != "":
	case r.BudgetTokens == 0:
	case r.BudgetTokens <= lowBudgetTokens:
		effort = "low"
	case r.BudgetTokens <= mediumBudgetTokens:
		effort = "medium"
	default:
		effort = "high"
	}
	if effort == "" && r.Summary == "" {
		return
	}
	o.open("reasoning", '{')
	o.maybe("effort", effort)
	o.maybe("summary", r.Summary)
	o.close('}')
	if !r.Disabled {
		o.raw("include", []byte(`["reasoning.encrypted_content"]`))
	}
}
