package gemini

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// reader reads responses into events: each chunk of a stream, or the one of a whole
// answer. A response that is not what the dialect says fails the attempt: it is never
// skipped as if nothing were missing (S14).
type reader struct {
	// request tells one turn's calls from the next one's where an answer has no id.
	request []byte
	// answerID is what Google calls the answer.
	answerID string
	began    bool
	ended    bool
	calls    int
	images   int
	// open is the call whose arguments are still coming, nil for none.
	open *partialCall

	doc []byte
	at  rawjson.Cursor
	// Memory that is used again for each response.
	events []neutral.Event
	arena  []byte
}

func newReader(req *dialect.Request) reader {
	if req == nil {
		return reader{}
	}
	return reader{request: req.Raw}
}

// maxArena is how much memory for unescaped text a stream keeps (S9).
const maxArena = 64 << 10

func (r *reader) add(e neutral.Event) { r.events = append(r.events, e) }

// read reads one response into r.events, which are valid until the next one.
func (r *reader) read(doc []byte) *failure.Failure {
	r.doc, r.events, r.arena = doc, r.events[:0], r.arena[:0]
	if cap(r.arena) > maxArena {
		r.arena = nil
	}
	switch _, ok := rawjson.Parse(doc); {
	case !ok && stated(doc).given():
		// An error in a list, as it stands in a stream without SSE.
		return inStream(doc)
	case !ok:
		return payload("malformed_event")
	}
	if !r.began {
		r.began = true
		r.add(neutral.Event{Kind: neutral.Start})
	}
	counts, f := r.response()
	if f != nil {
		return f
	}
	r.nameCalls()
	if len(counts) > 0 && counts[0] == '{' {
		r.add(neutral.Event{Kind: neutral.Usage, Usage: readUsage(view(counts))})
	}
	if len(r.events) == 0 {
		r.add(neutral.Event{Kind: neutral.Opaque})
	}
	return nil
}

// view reads a part of a document that was found to be JSON.
func view(b []byte) gjson.Result { return gjson.Parse(unsafe.String(unsafe.SliceData(b), len(b))) }

// response reads the members of a response. Usage comes last, whatever its place.
func (r *reader) response() (counts []byte, f *failure.Failure) {
	r.at = rawjson.NewCursor(r.doc)
	r.at.Members(func(key []byte) bool {
		switch string(key) {
		case "error":
			if r.at.Kind() != 'n' {
				f = inStream(r.doc)
			}
		case "candidates":
			f = r.candidates()
		case "promptFeedback":
			reason := view(r.at.Skip()).Get("blockReason").Str
			if reason != "" && reason != "BLOCKED_REASON_UNSPECIFIED" {
				f = blocked(reason)
			}
		case "usageMetadata":
			counts = r.at.Skip()
		case "responseId":
			if id := r.at.Skip(); r.answerID == "" && id[0] == '"' {
				r.answerID = string(id[1 : len(id)-1])
			}
		}
		return f == nil
	})
	return counts, f
}

// candidates reads the one answer that was asked for.
func (r *reader) candidates() (f *failure.Failure) {
	switch r.at.Kind() {
	case 'n':
		return nil
	case '[':
	default:
		return payload("malformed_candidates")
	}
	n := 0
	r.at.Elements(func() bool {
		n++
		if n > 1 || r.at.Kind() != '{' {
			f = payload("malformed_candidates")
		} else {
			f = r.candidate()
		}
		return f == nil
	})
	return f
}

func (r *reader) candidate() (f *failure.Failure) {
	before := len(r.events)
	var reason []byte
	r.at.Members(func(key []byte) bool {
		switch string(key) {
		case "content":
			return r.at.Members(func(key []byte) bool {
				if string(key) == "parts" {
					f = r.parts()
				}
				return f == nil
			})
		case "finishReason":
			reason = r.at.Skip()
		}
		return true
	})
	switch {
	case f != nil:
		return f
	case len(reason) == 0 || reason[0] == 'n':
	case reason[0] != '"':
		return payload("malformed_finish_reason")
	case string(reason) != `""` && string(reason) != `"`+unspecified+`"`:
		return r.stop(string(reason[1 : len(reason)-1]))
	}
	if r.ended && semantic(r.events[before:]) {
		// Output after the end takes it back.
		r.ended = false
	}
	return nil
}

func semantic(events []neutral.Event) bool {
	for i := range events {
		if events[i].Semantic() {
			return true
		}
	}
	return false
}

// stop ends the answer. A call whose arguments are cut off is no call: passed on with
// a reason that says it is whole, it would be run (S4).
func (r *reader) stop(reason string) *failure.Failure {
	stop, f := finish(reason, r.calls > 0)
	if f != nil {
		return f
	}
	if r.open != nil {
		if stop == neutral.StopToolCalls {
			return cutCall()
		}
		// A length or a filter may cut a call; what there is of it goes out as it is.
		r.closeCall()
	}
	r.ended = true
	r.add(neutral.Event{Kind: neutral.Stop, Stop: stop})
	return nil
}

func (r *reader) parts() (f *failure.Failure) {
	switch r.at.Kind() {
	case 'n':
		return nil
	case '[':
	default:
		return payload("malformed_parts")
	}
	r.at.Elements(func() bool {
		if r.at.Kind() == '{' {
			f = r.part()
		} else {
			f = payload("malformed_part")
		}
		return f == nil
	})
	return f
}

// part reads one part: text, a thought, a call, or something that Google made.
func (r *reader) part() *failure.Failure {
	var (
		text, call, seal []byte
		thought          bool
		media, made      bool
	)
	r.at.Members(func(key []byte) bool {
		switch string(key) {
		case "text":
			text = r.at.Skip()
		case "thought":
			thought = r.at.Kind() == 't'
		case "functionCall":
			call = r.at.Skip()
		case "thoughtSignature":
			seal = r.at.Skip()
		case "inlineData", "fileData":
			media = r.at.Kind() == '{'
		case "executableCode", "codeExecutionResult":
			made = r.at.Kind() == '{'
		}
		return true
	})
	if len(call) > 0 && call[0] != 'n' {
		return r.call(view(call), call, seal)
	}
	switch {
	case len(text) > 0 && text[0] == '"':
		r.text(thought, text)
	case len(text) > 0 && text[0] != 'n':
		return payload("malformed_text")
	case media:
		r.add(neutral.Event{Kind: neutral.Image, Index: r.images})
		r.images++
	case made:
		r.add(neutral.Event{Kind: neutral.Structure})
	}
	r.seal(seal, "")
	return nil
}

func (r *reader) text(thought bool, quoted []byte) {
	if len(quoted) == len(`""`) {
		return
	}
	e := neutral.Event{Kind: neutral.Text}
	if thought {
		e.Kind = neutral.Reasoning
	}
	e.Text, r.arena = rawjson.Unquoted(r.arena, quoted)
	r.add(e)
}

// seal adds a part's signature. id says what it stood on.
func (r *reader) seal(quoted []byte, id string) {
	if len(quoted) <= len(`""`) || quoted[0] != '"' {
		return
	}
	// The signature is kept beyond the response that it came in.
	var signature []byte
	signature, r.arena = rawjson.Unquoted(r.arena, quoted)
	r.add(neutral.Event{Kind: neutral.ReasoningSeal, Seal: neutral.OpaqueReasoning{
		Issuer: neutral.Generate, ID: id, Signature: string(signature),
	}})
}

// call reads a function call, of which raw is the text: whole, or a piece of one whose
// arguments stream.
func (r *reader) call(v gjson.Result, raw, seal []byte) *failure.Failure {
	if !v.IsObject() {
		return payload("malformed_function_call")
	}
	var name, id, args, pieces gjson.Result
	goesOn := false
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "name":
			name = v
		case "id":
			id = v
		case "args":
			args = v
		case "partialArgs":
			pieces = v
		case "willContinue":
			goesOn = v.Bool()
		}
		return true
	})
	if name.Str != "" {
		if f := r.beginCall(name.Str, id.Str, seal); f != nil {
			return f
		}
	}
	switch {
	case r.open == nil:
		return payload("function_call_without_name")
	case args.IsObject():
		r.open.whole = raw[args.Index:rawjson.End(args)]
	case !rawjson.IsNull(args):
		return payload("malformed_arguments")
	}
	if f := r.open.add(pieces); f != nil {
		return f
	}
	if !goesOn {
		r.closeCall()
	}
	return nil
}

// beginCall opens a call. Its signature comes first, so that whoever keeps the answer
// keeps it in front of the call that it stood on.
func (r *reader) beginCall(name, id string, seal []byte) *failure.Failure {
	if r.open != nil {
		return cutCall()
	}
	if r.calls >= maxToolCalls {
		return payload("too_many_tool_calls")
	}
	r.seal(seal, onCall)
	r.open = &partialCall{}
	r.add(neutral.Event{Kind: neutral.ToolCallStart, Index: r.calls, Tool: neutral.Tool{ID: strings.Clone(id), Name: name}})
	r.calls++
	return nil
}

// closeCall gives the arguments, in one piece, and ends the call.
func (r *reader) closeCall() {
	at := r.calls - 1
	r.add(neutral.Event{Kind: neutral.ToolCallDelta, Index: at, Text: r.open.arguments()})
	r.add(neutral.Event{Kind: neutral.ToolCallEnd, Index: at})
	r.open = nil
}

// maxIDBytes is how much of Google's ids goes into one of ours. OpenAI takes 40 bytes
// for the whole.
const maxIDBytes = 28

// nameCalls gives the calls of a response their ids: what they are made of may stand
// behind the calls.
func (r *reader) nameCalls() {
	for i := range r.events {
		if e := &r.events[i]; e.Kind == neutral.ToolCallStart {
			e.Tool.ID = r.callID(e.Tool.ID, e.Index)
		}
	}
}

// callID is a call's id. Google gives none as a rule; ours is made of the answer's id,
// so that no two calls of a conversation share one and a replay has the same.
func (r *reader) callID(own string, index int) string {
	if own != "" && len(own) <= maxIDBytes && plainID(own) {
		return own
	}
	answer := r.answerID
	if answer == "" || len(answer) > maxIDBytes || !plainID(answer) {
		sum := sha256.Sum256(append([]byte(answer), r.request...))
		answer = base64.RawURLEncoding.EncodeToString(sum[:12])
	}
	return "call_" + answer + "_" + strconv.Itoa(index)
}

// plainID reports whether every provider takes the id.
func plainID(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '_' && c != '-'
	})
}
