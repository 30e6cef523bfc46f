package converse

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// blocks reads the events of a stream. The dialect numbers all blocks of an answer
// alike; tool calls get numbers of their own, dense from 0 (P11).
type blocks struct {
	doc   []byte
	calls []call
	// Memory that is used again for each event.
	events []neutral.Event
	arena  []byte
}

// call is a tool call that has begun.
type call struct {
	block int64
	args  rawjson.Balance
	ended bool
}

// event reads one event's facts into b.events. An event that is not what the dialect
// says fails the attempt: it is never skipped as if nothing were missing (S14).
func (b *blocks) event(name string, data []byte) *failure.Failure {
	b.doc, b.events, b.arena = data, b.events[:0], b.arena[:0]
	if cap(b.arena) > maxScratch {
		b.arena = nil
	}
	doc, ok := open(name, data)
	if !ok {
		return payload("malformed_event")
	}
	var f *failure.Failure
	switch name {
	case "messageStart":
		b.add(neutral.Event{Kind: neutral.Start})
	case "contentBlockStart":
		f = b.start(doc)
	case "contentBlockDelta":
		f = b.delta(doc)
	case "contentBlockStop":
		b.stopBlock(doc)
	case "messageStop":
		f = b.stop(rawjson.Member(doc, "stopReason").Str)
	case "metadata":
		if u := rawjson.Member(doc, "usage"); u.IsObject() {
			b.add(neutral.Event{Kind: neutral.Usage, Usage: readUsage(u)})
		}
	}
	if len(b.events) == 0 {
		b.add(neutral.Event{Kind: neutral.Opaque})
	}
	return f
}

func (b *blocks) add(e neutral.Event) { b.events = append(b.events, e) }

// text is a string's decoded content, valid until the next event.
func (b *blocks) text(v gjson.Result) []byte {
	var decoded []byte
	decoded, b.arena = rawjson.Text(b.arena, b.doc, v)
	return decoded
}

func blockIndex(doc gjson.Result) int64 {
	n, _ := rawjson.Integer(rawjson.Member(doc, "contentBlockIndex"))
	return n
}

// start begins a block. Only a tool call says so; text and reasoning just come.
func (b *blocks) start(doc gjson.Result) *failure.Failure {
	start := rawjson.Member(doc, "start")
	tool := rawjson.Member(start, "toolUse")
	switch {
	case tool.IsObject() && !isServerTool(tool):
	case rawjson.Member(start, "image").Exists():
		b.add(neutral.Event{Kind: neutral.Image})
		return nil
	default:
		return nil
	}
	if len(b.calls) == maxToolCalls {
		return payload("too_many_tool_calls")
	}
	b.calls = append(b.calls, call{block: blockIndex(doc)})
	b.add(neutral.Event{Kind: neutral.ToolCallStart, Index: len(b.calls) - 1, Tool: toolOf(tool)})
	return nil
}

// isServerTool tells a tool that the provider runs itself from a call to the caller.
func isServerTool(tool gjson.Result) bool { return tool.Get("type").Str == "server_tool_use" }

func toolOf(tool gjson.Result) neutral.Tool {
	return neutral.Tool{ID: strings.Clone(tool.Get("toolUseId").Str), Name: strings.Clone(tool.Get("name").Str)}
}

// delta reads a piece of a block.
func (b *blocks) delta(doc gjson.Result) (f *failure.Failure) {
	rawjson.Member(doc, "delta").ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "text":
			if v.Type != gjson.String {
				f = payload("malformed_text")
				break
			}
			b.add(neutral.Event{Kind: neutral.Text, Text: b.text(v)})
		case "toolUse":
			f = b.arguments(blockIndex(doc), rawjson.Member(v, "input"))
		case "reasoningContent":
			b.reasoning(v)
		case "image":
			b.add(neutral.Event{Kind: neutral.Image})
		}
		return f == nil
	})
	return f
}

// arguments reads a piece of a call's arguments. It belongs to the last call that
// began at its block.
func (b *blocks) arguments(block int64, input gjson.Result) *failure.Failure {
	if rawjson.IsNull(input) {
		return nil
	}
	for at := len(b.calls) - 1; at >= 0; at-- {
		if b.calls[at].block != block {
			continue
		}
		e := neutral.Event{Kind: neutral.ToolCallDelta, Index: at}
		switch {
		case input.Type == gjson.String:
			e.Text = b.text(input)
		case input.IsObject():
			e.Text = b.doc[input.Index:rawjson.End(input)]
		default:
			return payload("malformed_arguments")
		}
		b.calls[at].args.Add(e.Text)
		b.add(e)
		return nil
	}
	// A server tool's, or a call whose beginning never came; the second is found out by
	// its stop reason, which promises a call.
	return nil
}

// reasoning reads a piece of reasoning: text, or what only its issuer can read.
func (b *blocks) reasoning(v gjson.Result) {
	v.ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.String {
			return true
		}
		switch key.Str {
		case "text":
			b.add(neutral.Event{Kind: neutral.Reasoning, Text: b.text(v)})
		case "signature":
			b.seal(neutral.OpaqueReasoning{Signature: string(b.text(v))})
		case "redactedContent", "data":
			b.seal(neutral.OpaqueReasoning{Encrypted: string(b.text(v))})
		}
		return true
	})
}

func (b *blocks) seal(o neutral.OpaqueReasoning) {
	o.Issuer = neutral.Converse
	b.add(neutral.Event{Kind: neutral.ReasoningSeal, Seal: o})
}

func (b *blocks) stopBlock(doc gjson.Result) {
	block := blockIndex(doc)
	for at := range b.calls {
		if b.calls[at].block == block {
			b.endCall(at)
		}
	}
}

func (b *blocks) endCall(at int) {
	if !b.calls[at].ended {
		b.calls[at].ended = true
		b.add(neutral.Event{Kind: neutral.ToolCallEnd, Index: at})
	}
}

// stop ends the answer. A call whose arguments are cut off is no call: passed on with
// a reason that says it is whole, it would be run (S4).
func (b *blocks) stop(reason string) *failure.Failure {
	stop, f := stopOf(reason, len(b.calls))
	if f != nil {
		return f
	}
	whole := stop == neutral.StopToolCalls || stop == neutral.StopEnd
	for at := range b.calls {
		if whole && b.calls[at].args.Open() {
			return &failure.Failure{Class: failure.StreamTruncated, Code: "tool_call_cut", PossiblyBilled: true}
		}
		b.endCall(at)
	}
	b.add(neutral.Event{Kind: neutral.Stop, Stop: stop})
	return nil
}
