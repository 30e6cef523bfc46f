package chat

import (
	"cmp"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

func (d *decoder) messages(list gjson.Result) {
	i := 0
	list.ForEach(func(_, m gjson.Result) bool {
		d.message("messages["+strconv.Itoa(i)+"]", i, m)
		i++
		return d.err == nil
	})
}

// turn are the members of a message that are looked at.
type turn struct {
	role, reasoning, refusal, callID, name string
	content, calls, function               gjson.Result
}

func readTurn(m gjson.Result) (t turn) {
	m.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "role":
			t.role = v.Str
		case "content":
			t.content = v
		case "tool_calls":
			t.calls = v
		case "function_call":
			t.function = v
		case "refusal":
			t.refusal = v.Str
		case "reasoning_content", "reasoning":
			t.reasoning = cmp.Or(t.reasoning, v.Str)
		case "tool_call_id":
			t.callID = v.Str
		case "name":
			t.name = v.Str
		}
		return true
	})
	return t
}

func (d *decoder) message(at string, i int, m gjson.Result) {
	t := readTurn(m)
	content := d.parts(at+".content", t.content)
	after := d.results
	d.results = false
	switch t.role {
	case "system", "developer":
		d.out.System = append(d.out.System, content...)
	case "user":
		if last := len(d.out.Messages) - 1; after {
			d.out.Messages[last].Parts = append(d.out.Messages[last].Parts, content...)
			return
		}
		d.add(neutral.User, content)
	case "assistant":
		d.assistant(at, i, t, content)
	case "tool", "function":
		id := cmp.Or(t.callID, olderCallID(i-1))
		part := neutral.Part{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{
			CallID: id, Name: cmp.Or(d.toolNames[id], t.name), Parts: content,
		}}
		d.results = true
		if last := len(d.out.Messages) - 1; after {
			d.out.Messages[last].Parts = append(d.out.Messages[last].Parts, part)
			return
		}
		d.add(neutral.User, []neutral.Part{part})
	default:
		d.fail(at+".role", "The role of a message must be system, developer, user, assistant or tool.")
	}
}

func (d *decoder) add(role neutral.Role, parts []neutral.Part) {
	if len(parts) > 0 {
		d.out.Messages = append(d.out.Messages, neutral.Message{Role: role, Parts: parts})
	}
}

// olderCallID names a call of the older form, which had no ids, after the place of
// its message: the same from turn to turn (P12).
func olderCallID(message int) string { return "call_" + strconv.Itoa(max(message, 0)) }

// assistant puts a turn into the order in which it was made: reasoning, text, calls.
// Bedrock refuses any other.
func (d *decoder) assistant(at string, i int, t turn, content []neutral.Part) {
	var parts []neutral.Part
	if t.reasoning != "" {
		parts = append(parts, neutral.Part{Kind: neutral.ReasoningPart, Text: t.reasoning})
	}
	parts = append(parts, content...)
	if t.refusal != "" {
		parts = append(parts, neutral.Part{Kind: neutral.RefusalPart, Text: t.refusal})
	}
	j := 0
	each(t.calls, func(call gjson.Result) bool {
		parts = append(parts, d.call(at+".tool_calls["+strconv.Itoa(j)+"]", call.Get("id").Str, call.Get("function")))
		j++
		return d.err == nil
	})
	if t.function.IsObject() {
		parts = append(parts, d.call(at+".function_call", olderCallID(i), t.function))
	}
	d.add(neutral.Assistant, parts)
}

func (d *decoder) call(at, id string, f gjson.Result) neutral.Part {
	c := neutral.ToolCall{ID: id, Name: f.Get("name").Str}
	switch arguments := f.Get("arguments"); arguments.Type {
	case gjson.String:
		c.Arguments = arguments.Str
	case gjson.JSON:
		c.Arguments = arguments.Raw
	}
	switch {
	case c.Name == "":
		d.fail(at+".function.name", "A tool call must name its function.")
	case c.ID == "":
		d.fail(at+".id", "A tool call must have an id.")
	}
	d.toolNames[id] = c.Name
	return neutral.Part{Kind: neutral.ToolCallPart, Call: c}
}

// each goes over a list. gjson would show a null as a list of one.
func each(list gjson.Result, do func(v gjson.Result) bool) {
	if list.IsArray() {
		list.ForEach(func(_, v gjson.Result) bool { return do(v) })
	}
}

// parts reads a content. Empty texts are left out: Anthropic refuses a message for
// one.
func (d *decoder) parts(at string, v gjson.Result) []neutral.Part {
	if v.Type == gjson.String {
		if v.Str == "" {
			return nil
		}
		return []neutral.Part{{Kind: neutral.TextPart, Text: v.Str}}
	}
	var parts []neutral.Part
	i := 0
	each(v, func(part gjson.Result) bool {
		p := d.part(at+"["+strconv.Itoa(i)+"]", part)
		p.Cache = cacheMarker(part.Get("cache_control"))
		if p.Kind != neutral.TextPart || p.Text != "" {
			parts = append(parts, p)
		}
		i++
		return d.err == nil
	})
	return parts
}

func (d *decoder) part(at string, v gjson.Result) neutral.Part {
	switch kind := v.Get("type").Str; kind {
	case "text", "input_text", "output_text":
		return neutral.Part{Kind: neutral.TextPart, Text: v.Get("text").Str}
	case "refusal":
		return neutral.Part{Kind: neutral.RefusalPart, Text: v.Get("refusal").Str}
	case "image_url", "input_image":
		return d.image(at, v.Get("image_url"))
	case "image", "document":
		return d.sourced(at, kind, v)
	case "file", "input_file":
		return d.file(at, v)
	case "input_audio":
		return d.audio(at, v.Get("input_audio"))
	default:
		d.fail(at+".type", "This kind of content cannot be sent to any route of this model.")
		return neutral.Part{}
	}
}

func (d *decoder) image(at string, v gjson.Result) neutral.Part {
	address := v
	if v.IsObject() {
		address = v.Get("url")
	}
	m := d.mediaOf(at+".image_url.url", address.Str)
	if v.IsObject() {
		m.Detail = v.Get("detail").Str
	}
	return neutral.Part{Kind: neutral.ImagePart, Media: m}
}

// sourced is Anthropic's image or document, which some editors send here.
func (d *decoder) sourced(at, kind string, v gjson.Result) neutral.Part {
	p := neutral.Part{Kind: neutral.ImagePart}
	if kind == "document" {
		p.Kind = neutral.DocumentPart
	}
	source := v.Get("source")
	if source.Get("type").Str == "url" {
		p.Media = d.mediaOf(at+".source.url", source.Get("url").Str)
		return p
	}
	p.Media = neutral.Media{Type: source.Get("media_type").Str, Base64: source.Get("data").Str, Name: v.Get("title").Str}
	if p.Media.Type == "" || !dialect.IsBase64(p.Media.Base64) {
		d.fail(at+".source", "The source must have a media_type and valid base64.")
	}
	return p
}

func (d *decoder) file(at string, v gjson.Result) neutral.Part {
	f := v.Get("file")
	if !f.IsObject() {
		f = v
	}
	if id := f.Get("file_id").Str; id != "" {
		return neutral.Part{Kind: neutral.DocumentPart, Media: neutral.Media{FileID: id}}
	}
	m := d.mediaOf(at+".file.file_data", f.Get("file_data").Str)
	m.Name = f.Get("filename").Str
	return neutral.Part{Kind: neutral.DocumentPart, Media: m}
}

// audioTypes are the media types of the formats that this dialect names.
var audioTypes = map[string]string{
	"wav": "audio/wav", "mp3": "audio/mpeg", "flac": "audio/flac", "opus": "audio/opus", "aac": "audio/aac",
}

func (d *decoder) audio(at string, v gjson.Result) neutral.Part {
	m := neutral.Media{Type: audioTypes[v.Get("format").Str], Base64: v.Get("data").Str}
	if m.Type == "" || !dialect.IsBase64(m.Base64) {
		d.fail(at+".input_audio", "The audio must have a known format and valid base64.")
	}
	return neutral.Part{Kind: neutral.AudioPart, Media: m}
}
