package converse

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// opening is the user's turn of a conversation that begins with the assistant's or
// has no turn at all: the dialect wants one.
const opening = "Begin."

// arrange puts messages into the form that the dialect asks for: the user begins,
// roles alternate, results of tools come first in the user's turn, and the assistant
// reasons before it speaks and speaks before it calls. There is no blank text, and
// reasoning of other issuers means nothing here (K4).
func arrange(messages []neutral.Message, withoutSeals bool) []neutral.Message {
	var turns []neutral.Message
	for _, m := range messages {
		var parts []neutral.Part
		for i := range m.Parts {
			if p := &m.Parts[i]; carried(p, withoutSeals) {
				parts = append(parts, *p)
			}
		}
		switch last := len(turns) - 1; {
		case len(parts) == 0:
		case last >= 0 && turns[last].Role == m.Role:
			turns[last].Parts = append(turns[last].Parts, parts...)
		default:
			turns = append(turns, neutral.Message{Role: m.Role, Parts: parts})
		}
	}
	for i := range turns {
		slices.SortStableFunc(turns[i].Parts, func(a, b neutral.Part) int { return rank(a.Kind) - rank(b.Kind) })
	}
	if len(turns) == 0 || turns[0].Role != neutral.User {
		begin := neutral.Message{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: opening}}}
		turns = slices.Insert(turns, 0, begin)
	}
	return turns
}

// rank is the order within a turn.
func rank(kind neutral.PartKind) int {
	switch kind {
	case neutral.ReasoningPart, neutral.ToolResultPart:
		return 0
	case neutral.ToolCallPart:
		return 2
	default:
		return 1
	}
}

func carried(p *neutral.Part, withoutSeals bool) bool {
	switch p.Kind {
	case neutral.TextPart, neutral.RefusalPart:
		return !blank(p.Text)
	case neutral.ReasoningPart:
		return !withoutSeals && isOwnReasoning(p)
	case neutral.AudioPart:
		// A feature that keeps such a request from coming here.
		return false
	default:
		return true
	}
}

func isOwnReasoning(p *neutral.Part) bool {
	return p.Kind == neutral.ReasoningPart && p.Opaque.Issuer == neutral.Converse &&
		(p.Opaque.Signature != "" || p.Opaque.Encrypted != "")
}

// midTurn reports whether the last turn of the assistant calls tools and does not
// begin with reasoning.
func midTurn(turns []neutral.Message) bool {
	for _, m := range slices.Backward(turns) {
		if m.Role == neutral.Assistant {
			last := m.Parts[len(m.Parts)-1]
			return last.Kind == neutral.ToolCallPart && m.Parts[0].Kind != neutral.ReasoningPart
		}
	}
	return false
}

func (w *writer) turn(m neutral.Message) {
	w.raw(`{"role":`).quoted(string(m.Role)).raw(`,"content":[`)
	if !hasText(m.Parts) {
		w.captions(m.Parts)
	}
	for i := range m.Parts {
		w.next().part(&m.Parts[i])
		if c := cacheOf(&m.Parts[i]); c != nil {
			w.cache(c)
		}
	}
	w.raw(`]}`)
}

// cacheOf is the marker of a part, or the last one inside a tool's result: within a
// result there is no place for it.
func cacheOf(p *neutral.Part) *neutral.CacheMarker {
	if p.Cache != nil || p.Kind != neutral.ToolResultPart {
		return p.Cache
	}
	for _, inner := range slices.Backward(p.Result.Parts) {
		if inner.Cache != nil {
			return inner.Cache
		}
	}
	return nil
}

func hasText(parts []neutral.Part) bool {
	return slices.ContainsFunc(parts, func(p neutral.Part) bool { return p.Kind == neutral.TextPart })
}

// captions gives a turn of documents alone the text that the dialect wants beside
// them.
func (w *writer) captions(parts []neutral.Part) {
	for i := range parts {
		if parts[i].Kind == neutral.DocumentPart {
			name := parts[i].Media.Name
			if blank(name) {
				name = documentName
			}
			w.next().raw(`{"text":`).quoted(name).raw(`}`)
		}
	}
}

func (w *writer) part(p *neutral.Part) {
	switch p.Kind {
	case neutral.TextPart, neutral.RefusalPart:
		w.raw(`{"text":`).quoted(p.Text).raw(`}`)
	case neutral.ImagePart:
		w.raw(`{"image":{"format":`).quoted(imageFormat(p.Media.Type)).raw(`,`).bytes(p.Media.Base64).raw(`}}`)
	case neutral.DocumentPart:
		w.document(&p.Media)
	case neutral.ToolCallPart:
		w.raw(`{"toolUse":{"toolUseId":`).quoted(callID(p.Call.ID)).raw(`,"name":`).quoted(p.Call.Name)
		w.raw(`,"input":`).raw(object(p.Call.Arguments)).raw(`}}`)
	case neutral.ToolResultPart:
		w.result(&p.Result)
	case neutral.ReasoningPart:
		w.reasoning(p)
	}
}

func (w *writer) reasoning(p *neutral.Part) {
	if p.Opaque.Encrypted != "" {
		w.raw(`{"reasoningContent":{"redactedContent":`).quoted(p.Opaque.Encrypted).raw(`}}`)
		return
	}
	w.raw(`{"reasoningContent":{"reasoningText":{"text":`).quoted(p.Text)
	w.raw(`,"signature":`).quoted(p.Opaque.Signature).raw(`}}}`)
}

func (w *writer) result(r *neutral.ToolResult) {
	w.raw(`{"toolResult":{"toolUseId":`).quoted(callID(r.CallID)).raw(`,"content":[`)
	for i := range r.Parts {
		switch p := &r.Parts[i]; p.Kind {
		case neutral.TextPart:
			if !blank(p.Text) {
				w.next().part(p)
			}
		case neutral.ImagePart, neutral.DocumentPart:
			w.next().part(p)
		default:
			// No dialect has anything else inside a result.
		}
	}
	w.raw(`]`)
	if r.IsError && w.model.resultStatus {
		w.raw(`,"status":"error"`)
	}
	w.raw(`}}`)
}

// bytes writes data. Padding is optional to some dialects and not to this one.
func (w *writer) bytes(base64 string) *writer {
	// Base64 has nothing that JSON would escape, once a decoder has looked at it.
	w.raw(`"source":{"bytes":"`).raw(base64)
	if pad := len(base64) % 4; pad > 1 {
		w.raw("=="[:4-pad])
	}
	return w.raw(`"}`)
}

// imageFormat is a media type as a format: png, jpeg, gif, webp. What the dialect does
// not know it refuses by name, which tells the caller more than we could.
func imageFormat(mediaType string) string {
	format := strings.TrimPrefix(strings.ToLower(mediaType), "image/")
	if format == "jpg" {
		return "jpeg"
	}
	return format
}

// documentName is what a document is called that came without a name.
const documentName = "document"

func (w *writer) document(m *neutral.Media) {
	w.raw(`{"document":{"format":`).quoted(documentFormat(m)).raw(`,"name":`).quoted(w.unique(cleanName(m.Name)))
	w.raw(`,`).bytes(m.Base64).raw(`}}`)
}

// documentFormats are the formats by media type.
var documentFormats = map[string]string{
	"application/pdf": "pdf", "text/csv": "csv", "text/html": "html", "text/plain": "txt", "text/markdown": "md",
	"application/msword": "doc", "application/vnd.ms-excel": "xls",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":       "xlsx",
}

func documentFormat(m *neutral.Media) string {
	if format, ok := documentFormats[strings.ToLower(m.Type)]; ok {
		return format
	}
	if at := strings.LastIndexByte(m.Name, '.'); at >= 0 && at+1 < len(m.Name) {
		return strings.ToLower(m.Name[at+1:])
	}
	return "txt"
}

// maxDocumentName is what the dialect allows, less the room for a number.
const maxDocumentName = 190

// cleanName keeps what the dialect allows in a name: letters, digits, single spaces,
// hyphens and brackets.
func cleanName(name string) string {
	if at := strings.LastIndexByte(name, '.'); at > 0 {
		name = name[:at]
	}
	mapped := strings.Map(func(r rune) rune {
		switch {
		case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', strings.ContainsRune("-()[]", r):
			return r
		default:
			return ' '
		}
	}, name)
	clean := strings.Join(strings.Fields(mapped), " ")
	if len(clean) > maxDocumentName {
		clean = strings.TrimSpace(clean[:maxDocumentName])
	}
	if clean == "" {
		return documentName
	}
	return clean
}

// unique numbers the second document of a name and those after it.
func (w *writer) unique(name string) string {
	w.names[name]++
	if n := w.names[name]; n > 1 {
		return w.unique(name + " " + strconv.Itoa(n))
	}
	return name
}

// maxCallID is the dialect's bound for the id of a call.
const maxCallID = 64

// callID is a call's id as the dialect takes it. One that has to be made anew is made
// of the old one, so that calls and results still meet and the prompt stays the same
// from turn to turn (P12).
func callID(id string) string {
	bad := strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r != '-'
	})
	if id != "" && len(id) <= maxCallID && !bad {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// object is a call's arguments as the object that the dialect wants. A model may have
// written something else; that stays readable to the next one as a string.
func object(arguments string) string {
	if blank(arguments) {
		return "{}"
	}
	if _, ok := rawjson.Parse([]byte(arguments)); ok {
		return arguments
	}
	return `{"arguments":` + string(rawjson.Quote(arguments)) + `}`
}
