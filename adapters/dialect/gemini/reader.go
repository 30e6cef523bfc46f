package gemini

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

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
func (r *reader) read(doc []byte) (f *failure.Failure) {
	r.doc, r.events, r.arena = doc, r.events[:0], r.arena[:0]
	if cap(r.arena) > maxArena {
		r.arena = nil
	}
	root, ok := rawjson.Parse(doc)
	switch {
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
	var candidates, feedback, counts gjson.Result
	root.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "error":
			if !rawjson.IsNull(v) {
				f = inStream(doc)
			}
		case "candidates":
			candidates = v
		case "promptFeedback":
			feedback = v
		case "usageMetadata":
			counts = v
		case "responseId":
			if r.answerID == "" {
				r.answerID = strings.Clone(v.Str)
			}
		}
		return f == nil
	})
	if f != nil {
		return f
	}
	if reason := feedback.Get("blockReason").Str; reason != "" && reason != "BLOCKED_REASON_UNSPECIFIED" {
		return blocked(reason)
	}
	if f = r.candidates(candidates); f != nil {
		return f
	}
	if counts.IsObject() {
		r.add(neutral.Event{Kind: neutral.Usage, Usage: readUsage(counts)})
	}
	if len(r.events) == 0 {
		r.add(neutral.Event{Kind: neutral.Opaque})
	}
	return nil
}

// candidates reads the one answer that was asked for.
func (r *reader) candidates(list gjson.Result) (f *failure.Failure) {
	if rawjson.IsNull(list) {
		return nil
	}
	if !list.IsArray() {
		return payload("malformed_candidates")
	}
	n := 0
	list.ForEach(func(_, v gjson.Result) bool {
		n++
		if n > 1 || !v.IsObject() {
			f = payload("malformed_candidates")
		} else {
			f = r.candidate(v)
		}
		return f == nil
	})
	return f
}

func (r *reader) candidate(v gjson.Result) (f *failure.Failure) {
	var content, reason gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "content":
			content = v
		case "finishReason":
			reason = v
		}
		return true
	})
	before := len(r.events)
	content.ForEach(func(key, v gjson.Result) bool {
		if key.Str == "parts" {
			f = r.parts(v)
		}
		return f == nil
	})
	if f != nil {
		return f
	}
	switch {
	case reason.Type == gjson.String && reason.Str != "" && reason.Str != unspecified:
		return r.stop(reason.Str)
	case !rawjson.IsNull(reason) && reason.Type != gjson.String:
		return payload("malformed_finish_reason")
	case r.ended && semantic(r.events[before:]):
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

func (r *reader) parts(list gjson.Result) (f *failure.Failure) {
	if !list.IsArray() {
		if rawjson.IsNull(list) {
			return nil
		}
		return payload("malformed_parts")
	}
	list.ForEach(func(_, v gjson.Result) bool {
		if v.IsObject() {
			f = r.part(v)
		} else {
			f = payload("malformed_part")
		}
		return f == nil
	})
	return f
}

// part reads one part: text, a thought, a call, or something that Google made.
func (r *reader) part(v gjson.Result) *failure.Failure {
	var p struct{ text, thought, call, seal, media, made gjson.Result }
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "text":
			p.text = v
		case "thought":
			p.thought = v
		case "functionCall":
			p.call = v
		case "thoughtSignature":
			p.seal = v
		case "inlineData", "fileData":
			p.media = v
		case "executableCode", "codeExecutionResult":
			p.made = v
		}
		return true
	})
	if !rawjson.IsNull(p.call) {
		return r.call(p.call, p.seal)
	}
	switch {
	case p.text.Type == gjson.String:
		kind := neutral.Text
		if p.thought.Bool() {
			kind = neutral.Reasoning
		}
		r.text(kind, p.text)
	case !rawjson.IsNull(p.text):
		return payload("malformed_text")
	case p.media.IsObject():
		r.add(neutral.Event{Kind: neutral.Image, Index: r.images})
		r.images++
	case p.made.IsObject():
		r.add(neutral.Event{Kind: neutral.Structure})
	}
	r.seal(p.seal, "")
	return nil
}

func (r *reader) text(kind neutral.Kind, v gjson.Result) {
	if v.Str == "" {
		return
	}
	e := neutral.Event{Kind: kind}
	e.Text, r.arena = rawjson.Text(r.arena, r.doc, v)
	r.add(e)
}

// seal adds a part's signature. id says what it stood on.
func (r *reader) seal(v gjson.Result, id string) {
	if v.Type == gjson.String && v.Str != "" {
		// The signature is kept beyond the response that it came in.
		r.add(neutral.Event{Kind: neutral.ReasoningSeal, Seal: neutral.OpaqueReasoning{
			Issuer: neutral.Generate, ID: id, Signature: strings.Clone(v.Str),
		}})
	}
}

// call reads a function call: whole, or a piece of one whose arguments stream.
func (r *reader) call(v, seal gjson.Result) *failure.Failure {
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
		r.open.whole = r.doc[args.Index:rawjson.End(args)]
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
func (r *reader) beginCall(name, id string, seal gjson.Result) *failure.Failure {
	if r.open != nil {
		return cutCall()
	}
	if r.calls >= maxToolCalls {
		return payload("too_many_tool_calls")
	}
	r.seal(seal, onCall)
	r.open = &partialCall{}
	r.add(neutral.Event{Kind: neutral.ToolCallStart, Index: r.calls, Tool: neutral.Tool{ID: r.callID(id), Name: name}})
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

// callID is a call's id. Google gives none as a rule; ours is made of the answer's id,
// so that no two calls of a conversation share one and a replay has the same.
func (r *reader) callID(own string) string {
	if own != "" && len(own) <= maxIDBytes && plainID(own) {
		return strings.Clone(own)
	}
	answer := r.answerID
	if answer == "" || len(answer) > maxIDBytes || !plainID(answer) {
		sum := sha256.Sum256(append([]byte(answer), r.request...))
		answer = base64.RawURLEncoding.EncodeToString(sum[:12])
	}
	return "call_" + answer + "_" + strconv.Itoa(r.calls)
}

// plainID reports whether every provider takes the id.
func plainID(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '_' && c != '-'
	})
}
