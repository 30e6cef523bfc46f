package responses

import (
	"errors"
	"strconv"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// maxKept bounds what a stream remembers of its answer, which its terminal event
// repeats: far above the longest answer of any model.
const maxKept = 64 << 20

// errTooLong is an answer that is longer than could be repeated at its end.
var errTooLong = errors.New("responses: the answer is too long for its terminal event")

// writer is what was written of an answer in another dialect.
type writer struct {
	items []outItem
	// open is the message or reasoning that text goes to, -1 for none. Calls stay open
	// beside it: parallel ones may come interleaved.
	open  int
	kept  int
	usage usage.Usage
	stop  neutral.StopReason
}

// outItem is one output item.
type outItem struct {
	kind itemKind
	id   string
	// text is a message's text or refusal, a summary, or a call's arguments.
	text    []byte
	refusal bool
	call    neutral.Tool
	// index is a call's position among calls.
	index  int
	seal   string
	status string
}

func itoa(n int) string { return strconv.Itoa(n) }

// events writes what a chunk of another dialect says.
func (e *streamEncoder) events(dst []byte, c *neutral.Chunk) ([]byte, error) {
	for i := range c.Events {
		var err error
		if dst, err = e.one(dst, &c.Events[i]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (e *streamEncoder) one(dst []byte, ev *neutral.Event) ([]byte, error) {
	w := &e.writer
	if w.kept += len(ev.Text); w.kept > maxKept || len(w.items) > maxItems {
		return dst, errTooLong
	}
	switch ev.Kind {
	case neutral.Start:
		return e.begin(dst), nil
	case neutral.Text, neutral.Refusal, neutral.Reasoning:
		if len(ev.Text) == 0 {
			return dst, nil
		}
		return e.text(e.begin(dst), ev), nil
	case neutral.ReasoningSeal:
		return e.seal(e.begin(dst), ev), nil
	case neutral.ToolCallStart:
		return e.call(e.begin(dst), ev), nil
	case neutral.ToolCallDelta:
		return e.arguments(dst, ev), nil
	case neutral.ToolCallEnd:
		if at := w.callAt(ev.Index); at >= 0 {
			dst = e.close(dst, at, "completed")
		}
	case neutral.Usage:
		w.usage = neutral.LastUsage(w.usage, ev.Usage)
	case neutral.Stop:
		w.stop = ev.Stop
	}
	// Images and structures of other dialects have no item here (a row of what is
	// dropped).
	return dst, nil
}

// text adds to the open item, or opens the one that the text belongs to.
func (e *streamEncoder) text(dst []byte, ev *neutral.Event) []byte {
	kind := messageItem
	if ev.Kind == neutral.Reasoning {
		kind = reasoningItem
	}
	refusal := ev.Kind == neutral.Refusal
	w := &e.writer
	if w.open < 0 || w.items[w.open].kind != kind || w.items[w.open].refusal != refusal {
		dst = e.start(e.closeOpen(dst), outItem{kind: kind, refusal: refusal})
		dst = e.part(dst, "added")
	}
	it := &w.items[w.open]
	it.text = append(it.text, ev.Text...)
	return e.delta(dst, w.open, ev.Text)
}

// start opens an item.
func (e *streamEncoder) start(dst []byte, it outItem) []byte {
	w := &e.writer
	prefix := map[itemKind]string{messageItem: "msg_", reasoningItem: "rs_", callItem: "fc_"}[it.kind]
	it.id, it.status = e.reply.itemID(prefix, len(w.items)), "in_progress"
	w.items = append(w.items, it)
	at := len(w.items) - 1
	if it.kind != callItem {
		w.open = at
	}
	return e.itemEvent(dst, "response.output_item.added", at)
}

func (e *streamEncoder) itemEvent(dst []byte, name string, at int) []byte {
	return e.event(dst, name, func(o *object) {
		o.number("output_index", int64(at))
		o.key("item")
		e.writer.items[at].write(o)
	})
}

// part writes content_part.added or .done, or their like for a summary, for the open
// item.
func (e *streamEncoder) part(dst []byte, what string) []byte {
	at := e.writer.open
	it := &e.writer.items[at]
	name, index := "response.content_part."+what, "content_index"
	if it.kind == reasoningItem {
		name, index = "response.reasoning_summary_part."+what, "summary_index"
	}
	return e.event(dst, name, func(o *object) {
		o.text("item_id", it.id)
		o.number("output_index", int64(at))
		o.number(index, 0)
		o.key("part")
		it.writePart(o)
	})
}

// names are the events in which an item's text comes, and the field in which the last
// of them has it whole.
func (it *outItem) names() (event, index, field string) {
	switch {
	case it.kind == callItem:
		return "response.function_call_arguments", "", "arguments"
	case it.kind == reasoningItem:
		return "response.reasoning_summary_text", "summary_index", "text"
	case it.refusal:
		return "response.refusal", "content_index", "refusal"
	default:
		return "response.output_text", "content_index", "text"
	}
}

func (e *streamEncoder) delta(dst []byte, at int, text []byte) []byte {
	return e.textEvent(dst, at, ".delta", func(o *object, _ string) {
		o.key("delta")
		o.b = rawjson.AppendQuoted(o.b, text)
	})
}

func (e *streamEncoder) textEvent(dst []byte, at int, suffix string, member func(o *object, field string)) []byte {
	it := &e.writer.items[at]
	name, index, field := it.names()
	return e.event(dst, name+suffix, func(o *object) {
		o.text("item_id", it.id)
		o.number("output_index", int64(at))
		if index != "" {
			o.number(index, 0)
		}
		member(o, field)
		if field == "text" && index == "content_index" {
			o.raw("logprobs", []byte("[]"))
		}
	})
}

// seal closes a piece of reasoning with what its issuer wants back (K4). Reasoning
// that is withheld altogether is a seal alone.
func (e *streamEncoder) seal(dst []byte, ev *neutral.Event) []byte {
	w := &e.writer
	if w.open < 0 || w.items[w.open].kind != reasoningItem || w.items[w.open].seal != "" {
		dst = e.start(e.closeOpen(dst), outItem{kind: reasoningItem})
	}
	w.items[w.open].seal = encryptedContent(ev.Seal)
	return e.closeOpen(dst)
}

func (e *streamEncoder) call(dst []byte, ev *neutral.Event) []byte {
	tool := neutral.Tool{ID: string([]byte(ev.Tool.ID)), Name: string([]byte(ev.Tool.Name))}
	if tool.ID == "" {
		// Some compatible servers give calls no id; results could not be matched.
		tool.ID = e.reply.itemID("call_", ev.Index)
	}
	return e.start(e.closeOpen(dst), outItem{kind: callItem, call: tool, index: ev.Index})
}

// callAt is the open call with an index among calls, or -1.
func (w *writer) callAt(index int) int {
	for at := len(w.items) - 1; at >= 0; at-- {
		if it := &w.items[at]; it.kind == callItem && it.index == index && it.status == "in_progress" {
			return at
		}
	}
	return -1
}

func (e *streamEncoder) arguments(dst []byte, ev *neutral.Event) []byte {
	at := e.writer.callAt(ev.Index)
	if at < 0 || len(ev.Text) == 0 {
		return dst
	}
	it := &e.writer.items[at]
	it.text = append(it.text, ev.Text...)
	return e.delta(dst, at, ev.Text)
}

func (e *streamEncoder) closeOpen(dst []byte) []byte {
	if e.writer.open < 0 {
		return dst
	}
	return e.close(dst, e.writer.open, "completed")
}

// close writes the .done events of an item, from the inside out.
func (e *streamEncoder) close(dst []byte, at int, status string) []byte {
	it := &e.writer.items[at]
	if it.kind == callItem && len(it.text) == 0 {
		// A call without arguments: clients parse them as JSON.
		it.text = []byte("{}")
	}
	if len(it.text) > 0 {
		dst = e.textEvent(dst, at, ".done", func(o *object, field string) {
			if it.kind == callItem {
				o.text("name", it.call.Name)
			}
			o.key(field)
			o.b = rawjson.AppendQuoted(o.b, it.text)
		})
	}
	if at == e.writer.open {
		if len(it.text) > 0 {
			dst = e.part(dst, "done")
		}
		e.writer.open = -1
	}
	it.status = status
	return e.itemEvent(dst, "response.output_item.done", at)
}

// terminal closes what is open and writes the whole response.
func (e *streamEncoder) terminal(dst []byte) []byte {
	w := &e.writer
	dst = e.begin(dst)
	status := statusOf(w.stop)
	for at := range w.items {
		if w.items[at].status == "in_progress" {
			dst = e.close(dst, at, status)
		}
	}
	end := response{status: status, output: w.output(), usage: w.usage, stop: w.stop}
	if e.in.Store != nil {
		var o object
		e.reply.write(&o, end)
		e.whole = o.b
	}
	return e.lifecycle(dst, "response."+status, func(o *object) { e.reply.write(o, end) })
}

// output is the list of all items.
func (w *writer) output() []byte {
	o := object{b: []byte("[")}
	for i := range w.items {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		w.items[i].write(&o)
	}
	return append(o.b, ']')
}

// write writes an item as it stands.
func (it *outItem) write(o *object) {
	o.b = append(o.b, '{')
	o.text("id", it.id)
	switch it.kind {
	case messageItem:
		o.text("type", "message")
		o.text("status", it.status)
		o.text("role", "assistant")
		o.open("content", '[')
		if len(it.text) > 0 {
			it.writePart(o)
		}
		o.close(']')
	case reasoningItem:
		o.text("type", "reasoning")
		o.open("summary", '[')
		if len(it.text) > 0 {
			it.writePart(o)
		}
		o.close(']')
		if it.seal != "" {
			o.text("encrypted_content", it.seal)
		}
	default:
		o.text("type", "function_call")
		o.text("status", it.status)
		o.text("call_id", it.call.ID)
		o.text("name", it.call.Name)
		o.key("arguments")
		o.b = rawjson.AppendQuoted(o.b, it.text)
	}
	o.b = append(o.b, '}')
}

func (it *outItem) writePart(o *object) {
	o.b = append(o.b, '{')
	kind, field := "output_text", "text"
	switch {
	case it.kind == reasoningItem:
		kind = "summary_text"
	case it.refusal:
		kind, field = "refusal", "refusal"
	}
	o.text("type", kind)
	o.key(field)
	o.b = rawjson.AppendQuoted(o.b, it.text)
	if kind == "output_text" {
		o.raw("annotations", []byte("[]"))
		o.raw("logprobs", []byte("[]"))
	}
	o.b = append(o.b, '}')
}
