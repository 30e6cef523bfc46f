package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// between joins the texts of one message, in JSON. Several of them in a list are refused by
// some providers, and by the templates of many models.
const between = `\n\n`

func (w *writer) messages(n *neutral.Request) {
	w.key("messages")
	w.raw("[")
	if len(n.System) > 0 {
		w.begin("system")
		w.content(n.System)
		w.raw("}")
	}
	for i := range n.Messages {
		switch m := &n.Messages[i]; m.Role {
		case neutral.Assistant:
			w.assistant(m.Parts)
		default:
			w.user(m.Parts)
		}
	}
	w.raw("]")
}

// begin opens a message.
func (w *writer) begin(role string) {
	if w.dst[len(w.dst)-1] != '[' {
		w.raw(",")
	}
	w.raw(`{"role":"`)
	w.raw(role)
	w.raw(`"`)
}

// content writes a message's content: one string while it is text alone, a list as
// soon as there is more to it.
func (w *writer) content(parts []neutral.Part) {
	w.key("content")
	plain := func(p neutral.Part) bool {
		return p.Kind == neutral.TextPart && (p.Cache == nil || !w.q.cacheControl)
	}
	if !slices.ContainsFunc(parts, func(p neutral.Part) bool { return !plain(p) }) {
		w.joined(parts, neutral.TextPart)
		return
	}
	for i := range parts {
		w.raw(opening(i))
		w.part(&parts[i])
	}
	w.raw("]")
}

// joined writes the texts of one kind as one string.
func (w *writer) joined(parts []neutral.Part, kind neutral.PartKind) {
	w.raw(`"`)
	first := true
	for i := range parts {
		if parts[i].Kind != kind || parts[i].Text == "" {
			continue
		}
		if !first {
			w.raw(between)
		}
		first = false
		w.inside(parts[i].Text)
	}
	w.raw(`"`)
}

// inside writes a text as the inside of a JSON string: its quotes are taken back.
func (w *writer) inside(s string) {
	at := len(w.dst)
	w.dst = rawjson.AppendQuoted(w.dst, s)
	w.dst = append(w.dst[:at], w.dst[at+1:len(w.dst)-1]...)
}

func (w *writer) part(p *neutral.Part) {
	switch p.Kind {
	case neutral.TextPart:
		w.raw(`{"type":"text","text":`)
		w.string(p.Text)
	case neutral.ImagePart:
		w.raw(`{"type":"image_url","image_url":{"url":`)
		w.media(&p.Media)
		if p.Media.Detail != "" {
			w.key("detail")
			w.string(p.Media.Detail)
		}
		w.raw("}")
	case neutral.DocumentPart:
		w.document(&p.Media)
	case neutral.AudioPart:
		w.raw(`{"type":"input_audio","input_audio":{"data":`)
		w.string(p.Media.Base64)
		w.key("format")
		w.string(audioFormat(p.Media.Type))
		w.raw("}")
	default:
		w.fail("this kind of content")
	}
	w.cache(p.Cache)
	w.raw("}")
}

// media writes an address, or data as a data URL.
func (w *writer) media(m *neutral.Media) {
	switch {
	case m.FileID != "":
		w.fail("a file that another provider holds")
	case m.URL != "":
		w.string(m.URL)
	default:
		w.raw(`"data:`)
		w.inside(m.Type)
		w.raw(`;base64,`)
		w.inside(m.Base64)
		w.raw(`"`)
	}
}

// documentName is what a document is called that came without a name: this dialect
// wants one.
const documentName = "document.pdf"

func (w *writer) document(m *neutral.Media) {
	if m.URL != "" {
		w.fail("a document by its address")
	}
	w.raw(`{"type":"file","file":{"filename":`)
	name := m.Name
	if name == "" {
		name = documentName
	}
	w.string(name)
	w.key("file_data")
	w.media(m)
	w.raw("}")
}

func audioFormat(mediaType string) string {
	for format, t := range audioTypes {
		if t == mediaType {
			return format
		}
	}
	return strings.TrimPrefix(mediaType, "audio/")
}

// user writes a turn of the user's: first what its tools gave, each as a message of
// its own, then the rest. What a tool result cannot hold here, pictures and
// documents, follows behind the last of them, because nothing may stand between a
// call and its results.
func (w *writer) user(parts []neutral.Part) {
	var rest []neutral.Part
	for i := range parts {
		if parts[i].Kind != neutral.ToolResultPart {
			continue
		}
		r := &parts[i].Result
		w.begin("tool")
		w.key("tool_call_id")
		w.string(w.callID(r.CallID))
		w.key("content")
		w.joined(r.Parts, neutral.TextPart)
		w.raw("}")
		if attached := slices.DeleteFunc(slices.Clone(r.Parts), isText); len(attached) > 0 {
			rest = append(rest, neutral.Part{Kind: neutral.TextPart, Text: "Attached to the result of the tool call " + w.callID(r.CallID) + ":"})
			rest = append(rest, attached...)
		}
	}
	for i := range parts {
		if parts[i].Kind != neutral.ToolResultPart {
			rest = append(rest, parts[i])
		}
	}
	if len(rest) > 0 {
		w.begin("user")
		w.content(rest)
		w.raw("}")
	}
}

func isText(p neutral.Part) bool { return p.Kind == neutral.TextPart }

// assistant writes a turn of the model's. Reasoning goes back only where it is asked
// for; a turn that was nothing else is left out.
func (w *writer) assistant(parts []neutral.Part) {
	has := func(kind neutral.PartKind) bool {
		return slices.ContainsFunc(parts, func(p neutral.Part) bool { return p.Kind == kind })
	}
	calls, text := has(neutral.ToolCallPart), has(neutral.TextPart)
	if !calls && !text && !has(neutral.RefusalPart) {
		return
	}
	w.begin("assistant")
	w.key("content")
	if text {
		w.joined(parts, neutral.TextPart)
	} else {
		w.raw("null")
	}
	if has(neutral.RefusalPart) {
		w.key("refusal")
		w.joined(parts, neutral.RefusalPart)
	}
	if calls && w.q.replay != "" && has(neutral.ReasoningPart) {
		w.key(w.q.replay)
		w.joined(parts, neutral.ReasoningPart)
	}
	if calls {
		w.calls(parts)
	}
	w.raw("}")
}

func (w *writer) calls(parts []neutral.Part) {
	w.key("tool_calls")
	n := 0
	for i := range parts {
		if parts[i].Kind != neutral.ToolCallPart {
			continue
		}
		c := &parts[i].Call
		w.raw(opening(n))
		n++
		w.raw(`{"id":`)
		w.string(w.callID(c.ID))
		w.raw(`,"type":"function","function":{"name":`)
		w.string(c.Name)
		w.key("arguments")
		arguments := c.Arguments
		if arguments == "" {
			// A tool without parameters was called with nothing; here that is an object.
			arguments = "{}"
		}
		w.string(arguments)
		w.raw("}}")
	}
	w.raw("]")
}

// callID is a call's id as the provider takes it. One that has to be made anew is
// made of the old one, so that calls and results still meet and the prompt stays the
// same from turn to turn (P12).
func (w *writer) callID(id string) string {
	n := w.q.callIDBytes
	if n == 0 || (len(id) == n && alphanumeric(id)) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:n]
}

func alphanumeric(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
