package responses

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// facts reads items into events. A stream shows an item several times: as it begins,
// in deltas, in .done events, and whole in the end. Some providers leave some of
// these out, so each showing says only what the ones before did not.
type facts struct {
	doc    []byte
	events []neutral.Event
	arena  []byte

	items []item
	parts int
	calls int
	// paragraphs asks for a blank line between the parts of a summary, for dialects
	// where they become one text.
	paragraphs bool
}

// item is what was seen of one output item.
type item struct {
	index int64
	// id tells an item again where indexes have gaps; not all providers give one.
	id   string
	kind itemKind
	// call is a call's position among calls; begun is set once it was announced.
	call  int
	begun bool
	done  bool
	// custom arguments are free text, whose nesting says nothing about their end.
	custom bool
	seen   []seen
}

type itemKind uint8

const (
	otherItem itemKind = iota
	messageItem
	reasoningItem
	callItem
)

// seen is how much of one text was said, in bytes.
type seen struct {
	part  partKey
	bytes int
}

// partKey places a text within its item: a summary and a content may both have a
// part 0.
type partKey struct {
	list  listKind
	index int64
}

type listKind uint8

const (
	contentList listKind = iota
	summaryList
	argumentList
)

var arguments = partKey{list: argumentList}

func kindOf(item gjson.Result) itemKind {
	switch item.Get("type").Str {
	case "message":
		return messageItem
	case "reasoning":
		return reasoningItem
	case "function_call", "custom_tool_call":
		return callItem
	default:
		return otherItem
	}
}

// payload is a 2xx reply that is not what the dialect says. The work behind it may
// have been done (W13).
func payload(code string) *failure.Failure {
	return &failure.Failure{Class: failure.BadPayload, Code: code, PossiblyBilled: true}
}

func (f *facts) event(e neutral.Event) { f.events = append(f.events, e) }

// at is the item with an index, or nil when there are too many.
func (f *facts) at(index int64) *item {
	for i := len(f.items) - 1; i >= 0; i-- {
		if f.items[i].index == index {
			return &f.items[i]
		}
	}
	if len(f.items) >= maxItems {
		return nil
	}
	f.items = append(f.items, item{index: index})
	return &f.items[len(f.items)-1]
}

// listed is the item at a position of a whole output, or nil when there are too many.
// Positions are dense there; indexes of a stream need not have been.
func (f *facts) listed(position int64, id string) *item {
	if id != "" {
		for i := range f.items {
			if f.items[i].id == id {
				return &f.items[i]
			}
		}
	}
	if it := f.at(position); it == nil || id == "" || it.id == "" {
		return it
	}
	// Another item has the index.
	next := int64(0)
	for i := range f.items {
		next = max(next, f.items[i].index+1)
	}
	return f.at(next)
}

// part is what was seen of one text of an item, or nil when there are too many.
func (f *facts) part(it *item, key partKey) *seen {
	for i := range it.seen {
		if it.seen[i].part == key {
			return &it.seen[i]
		}
	}
	if f.parts >= maxParts {
		return nil
	}
	f.parts++
	if f.paragraphs && it.kind == reasoningItem && len(it.seen) > 0 {
		f.event(neutral.Event{Kind: neutral.Reasoning, Text: []byte(paragraph)})
	}
	it.seen = append(it.seen, seen{part: key})
	return &it.seen[len(it.seen)-1]
}

// say adds text to a part. whole says that v is all of the part and not a piece of it:
// then only what is beyond the pieces is new.
func (f *facts) say(kind neutral.Kind, it *item, key partKey, v gjson.Result, whole bool) *failure.Failure {
	if v.Type != gjson.String {
		if rawjson.IsNull(v) {
			return nil
		}
		return payload("malformed_text")
	}
	if v.Str == "" {
		return nil
	}
	s := f.part(it, key)
	if s == nil {
		return payload("too_many_parts")
	}
	e := neutral.Event{Kind: kind, Index: it.call}
	e.Text, f.arena = rawjson.Text(f.arena, f.doc, v)
	if whole {
		if len(e.Text) <= s.bytes {
			return nil
		}
		e.Text = e.Text[s.bytes:]
	}
	s.bytes += len(e.Text)
	f.event(e)
	return nil
}

// begin announces an item. Only a call is output by its beginning.
func (f *facts) begin(it *item, v gjson.Result) *failure.Failure {
	if it.begun {
		return nil
	}
	it.begun, it.kind, it.id = true, kindOf(v), strings.Clone(v.Get("id").Str)
	if it.kind != callItem {
		return nil
	}
	if f.calls >= maxToolCalls {
		return payload("too_many_tool_calls")
	}
	it.call = f.calls
	f.calls++
	it.custom = v.Get("type").Str == "custom_tool_call"
	f.event(neutral.Event{Kind: neutral.ToolCallStart, Index: it.call, Tool: neutral.Tool{
		// Beyond the frame: an encoder keeps them until the call ends.
		ID: strings.Clone(v.Get("call_id").Str), Name: strings.Clone(v.Get("name").Str),
	}})
	return nil
}

// finish takes an item that is whole.
func (f *facts) finish(it *item, v gjson.Result) *failure.Failure {
	if it.done {
		return nil
	}
	if bad := f.begin(it, v); bad != nil {
		return bad
	}
	it.done = true
	switch it.kind {
	case messageItem:
		return f.list(it, contentList, v.Get("content"))
	case reasoningItem:
		return f.reasoning(it, v)
	case callItem:
		field := "arguments"
		if it.custom {
			field = "input"
		}
		bad := f.say(neutral.ToolCallDelta, it, arguments, v.Get(field), true)
		f.event(neutral.Event{Kind: neutral.ToolCallEnd, Index: it.call})
		return bad
	default:
		kind := neutral.Structure
		if v.Get("type").Str == "image_generation_call" {
			kind = neutral.Image
		}
		f.event(neutral.Event{Kind: kind})
		return nil
	}
}

func (f *facts) reasoning(it *item, v gjson.Result) *failure.Failure {
	if bad := f.list(it, summaryList, v.Get("summary")); bad != nil {
		return bad
	}
	if bad := f.list(it, contentList, v.Get("content")); bad != nil {
		return bad
	}
	if seal := opaque(v); seal.Encrypted != "" {
		f.event(neutral.Event{Kind: neutral.ReasoningSeal, Seal: seal})
	}
	return nil
}

// list reads the parts of a whole item.
func (f *facts) list(it *item, list listKind, parts gjson.Result) (bad *failure.Failure) {
	if !parts.IsArray() {
		return nil
	}
	i := int64(0)
	parts.ForEach(func(_, part gjson.Result) bool {
		kind, field := neutral.Text, "text"
		switch {
		case it.kind == reasoningItem:
			kind = neutral.Reasoning
		case part.Get("type").Str == "refusal":
			kind, field = neutral.Refusal, "refusal"
		}
		bad = f.say(kind, it, partKey{list, i}, part.Get(field), true)
		i++
		return bad == nil
	})
	return bad
}
