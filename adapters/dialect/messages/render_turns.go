package messages

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// arrange puts messages into the form that this dialect asks for: roles alternate,
// all results of a turn come in the next user turn and first in it, and there is no
// empty text. Reasoning of other issuers means nothing here (K4), nor does any to a
// provider that has rejected it (K5).
func arrange(messages []neutral.Message, withoutSeals bool) []neutral.Message {
	var turns []neutral.Message
	for _, m := range messages {
		var parts []neutral.Part
		for i := range m.Parts {
			if p := &m.Parts[i]; carried(p) && !(withoutSeals && p.Kind == neutral.ReasoningPart) {
				parts = append(parts, *p)
			}
		}
		if len(parts) == 0 {
			continue
		}
		if last := len(turns) - 1; last >= 0 && turns[last].Role == m.Role {
			turns[last].Parts = append(turns[last].Parts, parts...)
			continue
		}
		turns = append(turns, neutral.Message{Role: m.Role, Parts: parts})
	}
	for _, turn := range turns {
		if turn.Role == neutral.User {
			slices.SortStableFunc(turn.Parts, func(a, b neutral.Part) int { return behindResults(a) - behindResults(b) })
		}
	}
	return turns
}

func behindResults(p neutral.Part) int {
	if p.Kind == neutral.ToolResultPart {
		return 0
	}
	return 1
}

// carried reports whether a part is written at all. A blank text is refused here.
func carried(p *neutral.Part) bool {
	switch p.Kind {
	case neutral.TextPart, neutral.RefusalPart:
		return strings.TrimSpace(p.Text) != ""
	case neutral.ReasoningPart:
		return isOwnReasoning(p)
	default:
		return true
	}
}

func (w *writer) system(parts []neutral.Part) {
	n := 0
	for i := range parts {
		p := &parts[i]
		if p.Kind != neutral.TextPart || !carried(p) {
			continue
		}
		if n == 0 {
			w.raw(`,"system":[`)
		}
		w.comma(n)
		w.part(p)
		n++
	}
	if n > 0 {
		w.raw(`]`)
	}
}

func (w *writer) turn(m neutral.Message) {
	w.raw(`{"role":`).quoted(string(m.Role)).raw(`,"content":`)
	w.parts(m.Parts)
	w.raw(`}`)
}

func (w *writer) parts(parts []neutral.Part) {
	w.raw(`[`)
	for i := range parts {
		w.comma(i)
		w.part(&parts[i])
	}
	w.raw(`]`)
}

func (w *writer) part(p *neutral.Part) {
	switch p.Kind {
	case neutral.TextPart, neutral.RefusalPart:
		w.raw(`{"type":"text","text":`).quoted(p.Text)
	case neutral.ImagePart:
		w.raw(`{"type":"image","source":`)
		w.source(&p.Media)
	case neutral.DocumentPart:
		w.document(&p.Media)
	case neutral.ToolCallPart:
		w.raw(`{"type":"tool_use","id":`).quoted(w.ids.call(p.Call.ID))
		w.raw(`,"name":`).quoted(p.Call.Name).raw(`,"input":`).raw(input(p.Call.Arguments))
	case neutral.ToolResultPart:
		w.result(&p.Result)
	case neutral.ReasoningPart:
		w.reasoning(p)
	default:
		w.err = fmt.Errorf("messages: a part of kind %d cannot be said in this dialect", p.Kind)
		return
	}
	// Thinking takes no marker: it is cached with what follows it.
	if p.Kind != neutral.ReasoningPart {
		w.cache(p.Cache)
	}
	w.raw(`}`)
}

func (w *writer) reasoning(p *neutral.Part) {
	if p.Opaque.Redacted != "" {
		w.raw(`{"type":"redacted_thinking","data":`).quoted(p.Opaque.Redacted)
		return
	}
	w.raw(`{"type":"thinking","thinking":`).quoted(p.Text).raw(`,"signature":`).quoted(p.Opaque.Signature)
}

func (w *writer) result(r *neutral.ToolResult) {
	w.raw(`{"type":"tool_result","tool_use_id":`).quoted(w.ids.result(r.CallID))
	var parts []neutral.Part
	for i := range r.Parts {
		if carried(&r.Parts[i]) {
			parts = append(parts, r.Parts[i])
		}
	}
	if len(parts) > 0 {
		w.raw(`,"content":`)
		w.parts(parts)
	}
	if r.IsError {
		w.raw(`,"is_error":true`)
	}
}

func (w *writer) source(m *neutral.Media) {
	switch {
	case m.FileID != "":
		w.raw(`{"type":"file","file_id":`).quoted(m.FileID)
	case m.URL != "":
		w.raw(`{"type":"url","url":`).quoted(m.URL)
	default:
		w.raw(`{"type":"base64","media_type":`).quoted(m.Type).raw(`,"data":`).quoted(m.Base64)
	}
	w.raw(`}`)
}

// document writes a document. Plain text goes as text: base64 is for PDF alone.
func (w *writer) document(m *neutral.Media) {
	w.raw(`{"type":"document","source":`)
	if strings.HasPrefix(m.Type, "text/") && m.URL == "" && m.FileID == "" {
		text, err := base64.StdEncoding.DecodeString(m.Base64)
		if err != nil {
			w.err = inbound.Invalid("", "A document is not valid base64.")
			return
		}
		w.raw(`{"type":"text","media_type":"text/plain","data":`).quoted(string(text)).raw(`}`)
	} else {
		w.source(m)
	}
	if m.Name != "" {
		w.raw(`,"title":`).quoted(m.Name)
	}
}

// input is a call's arguments as the object that this dialect has in their place.
// What a model wrote that is none is put inside of one: the conversation goes on, and
// the model sees what it wrote.
func input(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	if v, ok := rawjson.Parse([]byte(arguments)); ok {
		return strings.TrimSpace(v.Raw)
	}
	return `{"arguments":` + string(rawjson.Quote(arguments)) + `}`
}

// isInput reports whether arguments can be a call's input as they are.
func isInput(arguments string) bool {
	return strings.TrimSpace(arguments) == "" ||
		(rawjson.Shallow([]byte(arguments)) && gjson.Valid(arguments) && gjson.Parse(arguments).IsObject())
}

// callIDs are the ids of one request's calls in the letters that this dialect
// allows. The same id always comes out the same.
type callIDs struct{ calls, results int }

func newCallIDs() *callIDs { return &callIDs{} }

// call is the id of a call. Calls without an id are numbered, and so are results:
// a provider without ids answers in order.
func (c *callIDs) call(id string) string {
	if id == "" {
		c.calls++
		return "toolu_" + strconv.Itoa(c.calls)
	}
	return callID(id)
}

func (c *callIDs) result(id string) string {
	if id == "" {
		c.results++
		return "toolu_" + strconv.Itoa(c.results)
	}
	return callID(id)
}

// callID writes letters that are not allowed as their number, so that two ids stay
// two.
func callID(id string) string {
	allowed := func(c byte) bool {
		return c == '_' || c == '-' || ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z')
	}
	if !slices.ContainsFunc([]byte(id), func(c byte) bool { return !allowed(c) }) {
		return id
	}
	var b strings.Builder
	for _, c := range []byte(id) {
		if allowed(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}
