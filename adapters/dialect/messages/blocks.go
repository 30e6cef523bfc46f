package messages

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// answerReader reads the blocks of an answer, streamed or whole, into events.
type answerReader struct {
	doc    []byte
	events []neutral.Event
	arena  []byte
	counts reported

	open []openBlock
	// next is the lowest index that a new block may have, calls the number of tool
	// calls so far.
	next  int64
	calls int
	// endsInCall says that the last block is a tool call.
	endsInCall bool
}

// openBlock is a block that has started and not stopped.
type openBlock struct {
	index int64
	kind  blockKind
	// call is the dense position of a tool call.
	call int
	args rawjson.Balance
	// said is whether any arguments have come.
	said bool
}

type blockKind uint8

const (
	textBlock blockKind = iota + 1
	thinkingBlock
	toolBlock
	// otherBlock is a server tool's call or result, or a kind that is not known.
	otherBlock
)

func (r *answerReader) reset(doc []byte) {
	r.doc, r.events, r.arena = doc, r.events[:0], r.arena[:0]
	if cap(r.arena) > maxArena {
		r.arena = nil
	}
}

func (r *answerReader) add(e neutral.Event) { r.events = append(r.events, e) }

// cut reports whether a tool call's arguments stop in their middle.
func (r *answerReader) cut() bool {
	for i := range r.open {
		if r.open[i].kind == toolBlock && r.open[i].args.Open() {
			return true
		}
	}
	return false
}

func (r *answerReader) usage(v gjson.Result) {
	if v.IsObject() {
		r.counts.read(v)
		r.add(neutral.Event{Kind: neutral.Usage, Usage: r.counts.neutral()})
	}
}

// stop reads a stop reason, with a refusal's explanation, and ends the calls that
// are still open. A call whose arguments are cut off is no call: passed on with a
// reason that says it is whole, it would be run (S4).
func (r *answerReader) stop(v gjson.Result) (finished bool, f *failure.Failure) {
	reason := rawjson.Member(v, "stop_reason")
	if rawjson.IsNull(reason) {
		return false, nil
	}
	if reason.Type != gjson.String {
		return false, payload("malformed_stop_reason")
	}
	s, f := stop(reason.Str, r.endsInCall)
	if f != nil {
		return false, f
	}
	if (s == neutral.StopToolCalls || s == neutral.StopEnd) && r.cut() {
		return false, cutCall()
	}
	if s == neutral.StopRefusal {
		if details := rawjson.Member(v, "stop_details"); details.IsObject() {
			r.text(neutral.Refusal, rawjson.Member(details, "explanation"))
		}
	}
	for i := range r.open {
		if b := &r.open[i]; b.kind == toolBlock {
			r.add(neutral.Event{Kind: neutral.ToolCallEnd, Index: b.call})
		}
	}
	r.add(neutral.Event{Kind: neutral.Stop, Stop: s})
	return true, nil
}

// text adds a string's decoded content, if there is any.
func (r *answerReader) text(kind neutral.Kind, v gjson.Result) {
	if v.Type != gjson.String || v.Str == "" {
		return
	}
	e := neutral.Event{Kind: kind}
	e.Text, r.arena = rawjson.Text(r.arena, r.doc, v)
	r.add(e)
}

// content reads blocks that come whole.
func (r *answerReader) content(list gjson.Result) (f *failure.Failure) {
	if rawjson.IsNull(list) {
		return nil
	}
	if !list.IsArray() {
		return payload("malformed_content")
	}
	list.ForEach(func(_, block gjson.Result) bool {
		if !block.IsObject() {
			f = payload("malformed_block")
			return false
		}
		b, failed := r.begin(block)
		if failed != nil {
			f = failed
			return false
		}
		r.finish(&b)
		return true
	})
	return f
}

func (r *answerReader) blockStart(e *envelope) *failure.Failure {
	index, ok := rawjson.Integer(e.index)
	switch {
	case !ok || !e.block.IsObject():
		return payload("malformed_block_start")
	case index < r.next:
		return payload("block_index")
	case index >= maxBlocks || len(r.open) >= maxToolCalls:
		return payload("too_many_blocks")
	}
	r.next = index + 1
	b, f := r.begin(e.block)
	if f != nil {
		return f
	}
	b.index = index
	r.open = append(r.open, b)
	return nil
}

// begin reads what a block says by itself: a name, and any content that it already
// has.
func (r *answerReader) begin(block gjson.Result) (openBlock, *failure.Failure) {
	kind := rawjson.Member(block, "type").Str
	r.endsInCall = kind == blockToolUse
	switch kind {
	case blockText:
		r.text(neutral.Text, rawjson.Member(block, "text"))
		return openBlock{kind: textBlock}, nil
	case blockThinking:
		r.text(neutral.Reasoning, rawjson.Member(block, "thinking"))
		r.seal(neutral.OpaqueReasoning{Signature: rawjson.Member(block, "signature").Str})
		return openBlock{kind: thinkingBlock}, nil
	case blockRedacted:
		r.seal(neutral.OpaqueReasoning{Redacted: rawjson.Member(block, "data").Str})
		return openBlock{kind: thinkingBlock}, nil
	case blockToolUse:
		return r.beginCall(block)
	case blockImage:
		r.add(neutral.Event{Kind: neutral.Image})
		return openBlock{kind: otherBlock}, nil
	case blockFallback:
		// A note that another model answers.
		r.add(neutral.Event{Kind: neutral.Opaque})
		return openBlock{kind: otherBlock}, nil
	case "":
		return openBlock{}, payload("block_without_type")
	default:
		r.add(neutral.Event{Kind: neutral.Structure})
		return openBlock{kind: otherBlock}, nil
	}
}

func (r *answerReader) beginCall(block gjson.Result) (openBlock, *failure.Failure) {
	if r.calls >= maxToolCalls {
		return openBlock{}, payload("too_many_tool_calls")
	}
	b := openBlock{kind: toolBlock, call: r.calls}
	r.calls++
	r.add(neutral.Event{Kind: neutral.ToolCallStart, Index: b.call, Tool: neutral.Tool{
		ID: rawjson.Member(block, "id").Str, Name: rawjson.Member(block, "name").Str,
	}})
	input := rawjson.Member(block, "input")
	if input.IsObject() && len(input.Map()) > 0 {
		r.arguments(&b, r.doc[input.Index:rawjson.End(input)])
	}
	return b, nil
}

func (r *answerReader) arguments(b *openBlock, fragment []byte) {
	if len(fragment) == 0 {
		return
	}
	b.said = true
	b.args.Add(fragment)
	r.add(neutral.Event{Kind: neutral.ToolCallDelta, Index: b.call, Text: fragment})
}

// seal adds what closes a piece of reasoning. A signature that is still empty is
// none yet.
func (r *answerReader) seal(o neutral.OpaqueReasoning) {
	if o.Signature == "" && o.Redacted == "" {
		return
	}
	// Callers may keep it until the end of its block.
	o.Issuer, o.Signature, o.Redacted = neutral.Messages, strings.Clone(o.Signature), strings.Clone(o.Redacted)
	r.add(neutral.Event{Kind: neutral.ReasoningSeal, Seal: o})
}

func (r *answerReader) find(e *envelope) int {
	index, ok := rawjson.Integer(e.index)
	if !ok {
		return -1
	}
	for i := range r.open {
		if r.open[i].index == index {
			return i
		}
	}
	return -1
}

// blockDelta reads a piece of a block. Its type must fit the block, or clients break
// on it.
func (r *answerReader) blockDelta(e *envelope) *failure.Failure {
	at := r.find(e)
	if at < 0 {
		return payload("block_not_open")
	}
	b := &r.open[at]
	kind, piece := readDelta(e.delta)
	fits := true
	switch kind {
	case "text_delta":
		fits = b.kind == textBlock
		r.text(neutral.Text, piece)
	case "thinking_delta":
		fits = b.kind == thinkingBlock
		r.text(neutral.Reasoning, piece)
	case "signature_delta":
		fits = b.kind == thinkingBlock
		r.seal(neutral.OpaqueReasoning{Signature: piece.Str})
	case "input_json_delta":
		fits = b.kind == toolBlock || b.kind == otherBlock
		r.inputDelta(b, piece)
	case "":
		return payload("malformed_delta")
	default:
		if b.kind == otherBlock {
			r.add(neutral.Event{Kind: neutral.Structure})
		}
	}
	if !fits {
		return payload("delta_does_not_fit")
	}
	return nil
}

// readDelta reads a delta's type and its piece of content: each type has one, under a
// name of its own.
func readDelta(delta gjson.Result) (kind string, piece gjson.Result) {
	delta.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			kind = v.Str
		case "text", "thinking", "signature", "partial_json":
			piece = v
		}
		return true
	})
	return kind, piece
}

func (r *answerReader) inputDelta(b *openBlock, v gjson.Result) {
	if v.Type != gjson.String || v.Str == "" {
		return
	}
	var fragment []byte
	fragment, r.arena = rawjson.Text(r.arena, r.doc, v)
	if b.kind == toolBlock {
		r.arguments(b, fragment)
		return
	}
	r.add(neutral.Event{Kind: neutral.Structure, Text: fragment})
}

func (r *answerReader) blockStop(e *envelope) *failure.Failure {
	at := r.find(e)
	if at < 0 {
		return payload("block_not_open")
	}
	b := r.open[at]
	if b.kind == toolBlock && b.args.Open() {
		// It may still be cut by its length; the stop reason decides.
		return nil
	}
	r.finish(&b)
	r.open = append(r.open[:at], r.open[at+1:]...)
	return nil
}

// finish ends a block. A call without arguments has the empty object, which is what
// clients of other dialects expect in their place.
func (r *answerReader) finish(b *openBlock) {
	if b.kind != toolBlock {
		return
	}
	if !b.said {
		r.arguments(b, []byte("{}"))
	}
	r.add(neutral.Event{Kind: neutral.ToolCallEnd, Index: b.call})
}
