package chat

import (
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// message reads the facts of a delta, or of the message of a whole answer, which
// has the same members.
type message struct {
	doc    []byte
	choice *choice
	events []neutral.Event
	arena  []byte
	// from is where this message's events begin; reasoned is set once its reasoning
	// was read, for providers that send it under two names.
	from     int
	reasoned bool
}

func (m *message) add(e neutral.Event) {
	e.Choice = int(m.choice.index)
	m.events = append(m.events, e)
}

// semantic reports whether the message had output in it.
func (m *message) semantic() bool {
	for i := m.from; i < len(m.events); i++ {
		if m.events[i].Semantic() {
			return true
		}
	}
	return false
}

func (m *message) read(v gjson.Result) (f *failure.Failure) {
	m.from = len(m.events)
	if !v.IsObject() {
		if rawjson.IsNull(v) {
			return nil
		}
		return payload("malformed_delta")
	}
	v.ForEach(func(key, v gjson.Result) bool {
		f = m.member(key.Str, v)
		return f == nil
	})
	if f == nil && len(m.events) == m.from {
		m.add(neutral.Event{Kind: neutral.Start})
	}
	return f
}

func (m *message) member(key string, v gjson.Result) *failure.Failure {
	if rawjson.IsNull(v) {
		return nil
	}
	switch key {
	case "content":
		if v.IsArray() {
			return m.parts(v)
		}
		return m.text(neutral.Text, v)
	case "reasoning_content", "reasoning":
		if m.reasoned || (key == "reasoning" && v.Type != gjson.String) {
			return nil
		}
		m.reasoned = v.Type == gjson.String && v.Str != ""
		return m.text(neutral.Reasoning, v)
	case "refusal":
		return m.text(neutral.Refusal, v)
	case "tool_calls":
		return m.toolCalls(v)
	case "function_call":
		return m.functionCall(v)
	case "images":
		if v.IsArray() && v.Get("#").Int() > 0 {
			m.add(neutral.Event{Kind: neutral.Image})
		}
	case "audio":
		m.add(neutral.Event{Kind: neutral.Structure})
	}
	return nil
}

func (m *message) text(kind neutral.Kind, v gjson.Result) *failure.Failure {
	if v.Type != gjson.String {
		return payload("malformed_text")
	}
	if v.Str == "" {
		return nil
	}
	e := neutral.Event{Kind: kind}
	e.Text, m.arena = rawjson.Text(m.arena, m.doc, v)
	m.add(e)
	return nil
}

// parts is content as a list, which Mistral sends for its reasoning models.
func (m *message) parts(list gjson.Result) (f *failure.Failure) {
	list.ForEach(func(_, part gjson.Result) bool {
		switch part.Get("type").Str {
		case "text":
			f = m.part(neutral.Text, part, "text")
		case "thinking":
			if nested := part.Get("thinking"); nested.IsArray() {
				nested.ForEach(func(_, inner gjson.Result) bool {
					f = m.part(neutral.Reasoning, inner, "text")
					return f == nil
				})
			} else {
				f = m.part(neutral.Reasoning, part, "thinking")
			}
		case "refusal":
			f = m.part(neutral.Refusal, part, "refusal")
		case "image_url", "image":
			m.add(neutral.Event{Kind: neutral.Image})
		default:
			m.add(neutral.Event{Kind: neutral.Opaque})
		}
		return f == nil
	})
	return f
}

func (m *message) part(kind neutral.Kind, part gjson.Result, key string) (f *failure.Failure) {
	part.ForEach(func(k, v gjson.Result) bool {
		if k.Str == key && !rawjson.IsNull(v) {
			f = m.text(kind, v)
		}
		return f == nil
	})
	return f
}

// toolCalls reads fragments of calls. An empty list is no list.
func (m *message) toolCalls(list gjson.Result) (f *failure.Failure) {
	if !list.IsArray() {
		return payload("malformed_tool_calls")
	}
	list.ForEach(func(_, fragment gjson.Result) bool {
		f = m.toolCall(fragment)
		return f == nil
	})
	return f
}

func (m *message) toolCall(fragment gjson.Result) *failure.Failure {
	if !fragment.IsObject() {
		return payload("malformed_tool_call")
	}
	at, begins, ok := m.choice.calls.place(fragment)
	if !ok {
		return payload("too_many_tool_calls")
	}
	m.choice.sawTool = true
	if begins {
		name := fragment.Get("function.name").Str
		if name == "" {
			name = fragment.Get("custom.name").Str
		}
		m.add(neutral.Event{Kind: neutral.ToolCallStart, Index: at, Tool: neutral.Tool{ID: m.choice.calls.list[at].id, Name: name}})
	}
	var f *failure.Failure
	fragment.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "function":
			f = m.arguments(at, v, "arguments")
		case "custom":
			f = m.arguments(at, v, "input")
		}
		return f == nil
	})
	return f
}

// arguments reads a fragment of a call's arguments. The input of a custom tool is
// free text, whose nesting says nothing about its end.
func (m *message) arguments(at int, function gjson.Result, key string) (f *failure.Failure) {
	function.ForEach(func(k, v gjson.Result) bool {
		if k.Str != key || rawjson.IsNull(v) {
			return true
		}
		if v.IsObject() {
			// Some relays send the arguments as an object. It is whole.
			m.add(neutral.Event{Kind: neutral.ToolCallDelta, Index: at, Text: m.doc[v.Index:rawjson.End(v)]})
			return true
		}
		if v.Type != gjson.String {
			f = payload("malformed_arguments")
			return false
		}
		e := neutral.Event{Kind: neutral.ToolCallDelta, Index: at}
		e.Text, m.arena = rawjson.Text(m.arena, m.doc, v)
		if key == "arguments" {
			m.choice.calls.list[at].args.Add(e.Text)
		}
		m.add(e)
		return true
	})
	return f
}

// functionCall reads the older form of a single call.
func (m *message) functionCall(v gjson.Result) *failure.Failure {
	if !v.IsObject() {
		return payload("malformed_function_call")
	}
	calls := &m.choice.calls
	if len(calls.list) == 0 {
		calls.list = append(calls.list, call{upstream: 0})
		m.add(neutral.Event{Kind: neutral.ToolCallStart, Tool: neutral.Tool{Name: v.Get("name").Str}})
	}
	m.choice.sawTool = true
	return m.arguments(0, v, "arguments")
}

// stop ends the choice. A call whose arguments are cut off is no call: passed on
// with a reason that says it is whole, it would be run (S4).
func (m *message) stop(reason string) *failure.Failure {
	stop, f := finish(reason, m.choice.sawTool)
	if f != nil {
		return f
	}
	if (stop == neutral.StopToolCalls || stop == neutral.StopEnd) && m.choice.calls.cut() {
		return cutCall()
	}
	for at := range m.choice.calls.list {
		m.add(neutral.Event{Kind: neutral.ToolCallEnd, Index: at})
	}
	m.add(neutral.Event{Kind: neutral.Stop, Stop: stop})
	return nil
}
