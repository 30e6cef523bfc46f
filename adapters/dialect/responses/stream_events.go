package responses

import (
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// eventKind is one row: an event's name, as a constant that outlives its frame, and
// how it is read.
type eventKind struct {
	name string
	read func(d *streamDecoder, e *frame) *failure.Failure
}

// eventKinds are the events that are read. All others are passed on.
var eventKinds = func() map[string]eventKind {
	kinds := map[string]eventKind{}
	for name, read := range map[string]func(d *streamDecoder, e *frame) *failure.Failure{
		"response.queued":      lifecycle,
		"response.created":     lifecycle,
		"response.in_progress": lifecycle,

		"response.output_item.added":  itemAdded,
		"response.output_item.done":   itemDone,
		"response.content_part.added": partAdded,
		"response.content_part.done":  partDone,

		"response.output_text.delta": piece(neutral.Text, contentList),
		"response.output_text.done":  whole(neutral.Text, contentList, func(e *frame) gjson.Result { return e.text }),
		"response.refusal.delta":     piece(neutral.Refusal, contentList),
		"response.refusal.done":      whole(neutral.Refusal, contentList, func(e *frame) gjson.Result { return e.refusal }),

		"response.reasoning_text.delta":         piece(neutral.Reasoning, contentList),
		"response.reasoning_text.done":          whole(neutral.Reasoning, contentList, func(e *frame) gjson.Result { return e.text }),
		"response.reasoning_summary_text.delta": piece(neutral.Reasoning, summaryList),
		"response.reasoning_summary_text.done":  whole(neutral.Reasoning, summaryList, func(e *frame) gjson.Result { return e.text }),

		"response.function_call_arguments.delta": piece(neutral.ToolCallDelta, argumentList),
		"response.function_call_arguments.done":  whole(neutral.ToolCallDelta, argumentList, func(e *frame) gjson.Result { return e.arguments }),
		"response.custom_tool_call_input.delta":  piece(neutral.ToolCallDelta, argumentList),
		"response.custom_tool_call_input.done":   whole(neutral.ToolCallDelta, argumentList, func(e *frame) gjson.Result { return e.args }),

		"response.completed":  terminal,
		"response.incomplete": terminal,
		"response.failed":     failed,
		"response.cancelled":  failed,
	} {
		kinds[name] = eventKind{name, read}
	}
	return kinds
}()

func lifecycle(d *streamDecoder, _ *frame) *failure.Failure {
	d.facts.event(neutral.Event{Kind: neutral.Start})
	return nil
}

func itemAdded(d *streamDecoder, e *frame) *failure.Failure {
	it := d.facts.at(e.output)
	if it == nil {
		return payload("too_many_items")
	}
	if !e.item.IsObject() {
		return payload("malformed_item")
	}
	return d.facts.begin(it, e.item)
}

func itemDone(d *streamDecoder, e *frame) *failure.Failure {
	it := d.facts.at(e.output)
	if it == nil {
		return payload("too_many_items")
	}
	if !e.item.IsObject() {
		return payload("malformed_item")
	}
	return d.facts.finish(it, e.item)
}

// key is where an event's text belongs.
func (e *frame) key(list listKind) partKey {
	switch list {
	case summaryList:
		return partKey{list, e.summary}
	case argumentList:
		return arguments
	default:
		return partKey{list, e.content}
	}
}

func (d *streamDecoder) say(kind neutral.Kind, e *frame, list listKind, v gjson.Result, all bool) *failure.Failure {
	it := d.facts.at(e.output)
	switch {
	case it == nil:
		return payload("too_many_items")
	case list == argumentList && !it.begun:
		// Nobody could be told which call these arguments are of.
		return payload("arguments_without_call")
	case it.kind == otherItem && kind == neutral.Reasoning:
		it.kind = reasoningItem
	}
	return d.facts.say(kind, it, e.key(list), v, all)
}

func piece(kind neutral.Kind, list listKind) func(*streamDecoder, *frame) *failure.Failure {
	return func(d *streamDecoder, e *frame) *failure.Failure { return d.say(kind, e, list, e.delta, false) }
}

func whole(kind neutral.Kind, list listKind, of func(*frame) gjson.Result) func(*streamDecoder, *frame) *failure.Failure {
	return func(d *streamDecoder, e *frame) *failure.Failure { return d.say(kind, e, list, of(e), true) }
}

// partAdded is framing, unless a provider puts the text there.
func partAdded(d *streamDecoder, e *frame) *failure.Failure { return partDone(d, e) }

func partDone(d *streamDecoder, e *frame) *failure.Failure {
	switch e.part.Get("type").Str {
	case "output_text":
		return d.say(neutral.Text, e, contentList, e.part.Get("text"), true)
	case "refusal":
		return d.say(neutral.Refusal, e, contentList, e.part.Get("refusal"), true)
	case "reasoning_text":
		return d.say(neutral.Reasoning, e, contentList, e.part.Get("text"), true)
	}
	return nil
}

// incompleteReasons are why a response may end before its end. What is not here
// fails the attempt.
var incompleteReasons = map[string]neutral.StopReason{
	"max_output_tokens": neutral.StopLength,
	"max_tokens":        neutral.StopLength,
	"length":            neutral.StopLength,
	"content_filter":    neutral.StopContentFilter,
}

// terminal takes the whole response at its end. Items that came without a .done of
// their own are read here.
func terminal(d *streamDecoder, e *frame) *failure.Failure {
	if !e.response.IsObject() {
		return payload("malformed_response")
	}
	stop, bad := d.facts.response(e.response, e.kind == "response.incomplete")
	if bad != nil {
		return bad
	}
	d.facts.event(neutral.Event{Kind: neutral.Stop, Stop: stop})
	d.finished = true
	return nil
}

// response reads a response that has ended, and why.
func (f *facts) response(v gjson.Result, incomplete bool) (neutral.StopReason, *failure.Failure) {
	var bad *failure.Failure
	i := int64(0)
	if output := v.Get("output"); output.IsArray() {
		output.ForEach(func(_, item gjson.Result) bool {
			it := f.listed(i, item.Get("id").Str)
			if it == nil {
				bad = payload("too_many_items")
				return false
			}
			bad = f.finish(it, item)
			i++
			return bad == nil
		})
	}
	if bad != nil {
		return "", bad
	}
	if u := v.Get("usage"); u.IsObject() {
		f.event(neutral.Event{Kind: neutral.Usage, Usage: readUsage(u)})
	}
	if incomplete || v.Get("status").Str == "incomplete" {
		stop, ok := incompleteReasons[v.Get("incomplete_details.reason").Str]
		if !ok {
			return "", payload("incomplete_reason_unknown")
		}
		return stop, nil
	}
	for i := range f.items {
		// A call that was never whole is no call: passed on, it would be run (S4).
		if it := &f.items[i]; it.kind == callItem && !it.done {
			return "", &failure.Failure{Class: failure.StreamTruncated, Code: "tool_call_cut", PossiblyBilled: true}
		}
	}
	if f.calls > 0 {
		return neutral.StopToolCalls, nil
	}
	return neutral.StopEnd, nil
}

// failed is a response that its provider gave up.
func failed(_ *streamDecoder, e *frame) *failure.Failure {
	wrong := e.response.Get("error")
	if !rawjson.Truthy(wrong) {
		return &failure.Failure{Class: failure.StreamErrorEvent, Code: "response_failed"}
	}
	return inStream(append(append([]byte(`{"error":`), wrong.Raw...), '}'))
}
