package fakeprovider

import "strconv"

// messageEvents collects the events of one stream. Their bytes share one buffer: at
// a benchmark's rates an allocation an event would be most of the work.
type messageEvents struct {
	events []event
	buffer []byte
	index  int
}

// messageEventRoom is the room planned for one event.
const messageEventRoom = 128

func (messages) events(a *answer) []event {
	n := a.usage.output + 3*len(a.calls) + 10
	m := messageEvents{events: make([]event, 0, n), buffer: make([]byte, 0, n*messageEventRoom+2*len(a.model))}
	m.add("message_start", 0, false, func(b []byte) []byte {
		b = append(b, `,"message":`...)
		b = appendMessageHead(b, a)
		b = append(b, `],"stop_reason":null,"stop_sequence":null`...)
		return append(appendMessageUsage(b, a, min(1, a.usage.output)), '}')
	})
	if len(a.reasoning) > 0 {
		m.block(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", a.reasoning, func() {
			m.delta("signature_delta", "signature", fakeSignature, 0, false)
		})
	}
	if len(a.text)+len(a.refusal) > 0 {
		m.block(`{"type":"text","text":""}`, "text_delta", "text", append(append([]string(nil), a.text...), a.refusal...), nil)
	}
	for _, call := range a.calls {
		m.call(a, call)
	}
	m.add("message_delta", 0, false, func(b []byte) []byte {
		b = append(b, `,"delta":{"stop_reason":`...)
		b = appendStringOr(b, stopReason(a), "null")
		b = append(b, `,"stop_sequence":`...)
		b = append(appendStringOr(b, a.stoppedAt, "null"), '}')
		return appendMessageUsage(b, a, a.usage.output)
	})
	if !a.form.noSentinel {
		m.add("message_stop", 0, false, func(b []byte) []byte { return b })
		m.events[len(m.events)-1].last = true
	}
	return m.events
}

// add appends one event whose members after its type rest writes.
func (m *messageEvents) add(name string, tokens int, output bool, rest func([]byte) []byte) {
	start := len(m.buffer)
	b := append(append(m.buffer, `{"type":"`...), name...)
	b = rest(append(b, '"'))
	m.buffer = append(b, '}')
	m.events = append(m.events, event{name: name, data: m.buffer[start:len(m.buffer):len(m.buffer)], tokens: tokens, output: output})
}

func (m *messageEvents) atIndex(b []byte) []byte {
	return strconv.AppendInt(append(b, `,"index":`...), int64(m.index), 10)
}

// block adds a block that streams in pieces. last, if any, adds what comes before
// its stop.
func (m *messageEvents) block(head, delta, member string, pieces []string, last func()) {
	m.start(head, false)
	for _, piece := range pieces {
		m.delta(delta, member, piece, 1, true)
	}
	if last != nil {
		last()
	}
	m.stop()
}

func (m *messageEvents) start(head string, output bool) {
	m.add("content_block_start", 0, output, func(b []byte) []byte {
		return append(append(m.atIndex(b), `,"content_block":`...), head...)
	})
}

func (m *messageEvents) delta(kind, member, piece string, tokens int, output bool) {
	m.add("content_block_delta", tokens, output, func(b []byte) []byte {
		b = append(append(m.atIndex(b), `,"delta":{"type":"`...), kind...)
		b = append(append(append(b, `","`...), member...), `":`...)
		return append(appendString(b, piece), '}')
	})
}

func (m *messageEvents) stop() {
	m.add("content_block_stop", 0, false, m.atIndex)
	m.index++
}

// call adds a tool call: a head that names it, then its arguments piece by piece, or
// all in the head.
func (m *messageEvents) call(a *answer, call toolCall) {
	head := appendCallName([]byte(`{"type":"tool_use"`), call)
	if a.form.wholeCalls {
		m.start(string(append(head, inputOf(call)+"}"...)), true)
		m.events[len(m.events)-1].tokens = len(call.arguments)
		m.stop()
		return
	}
	m.start(string(append(head, `{}}`...)), true)
	for _, piece := range call.arguments {
		m.delta("input_json_delta", "partial_json", piece, 1, true)
	}
	m.stop()
}
