package fakeprovider

import (
	"bytes"
	"strconv"
)

// chatChunks collects the chunks of one stream. Their bytes share one buffer:
// at a benchmark's rates an allocation a chunk would be most of the work.
type chatChunks struct {
	answer  *answer
	events  []event
	head    []byte // what every chunk begins with
	buffer  []byte
	scratch []byte // the delta being made
	sent    int    // output tokens so far
}

// chunkRoom is the room planned for one chunk beside its model's name.
const chunkRoom = 224

func (chat) events(a *answer) []event {
	n := a.usage.output + len(a.calls) + 5
	c := chatChunks{
		answer: a,
		events: make([]event, 0, n),
		head:   appendChunkHead(nil, a),
		buffer: make([]byte, 0, n*(chunkRoom+len(a.model))),
	}
	if !a.form.mergedRole && !a.form.noRoleChunk {
		c.add([]byte(`"role":"assistant","content":"","refusal":null`), "", 0, false)
	}
	for _, piece := range a.reasoning {
		c.output(`"reasoning_content":`, piece)
	}
	for _, piece := range a.text {
		c.output(`"content":`, piece)
	}
	for _, piece := range a.refusal {
		c.output(`"refusal":`, piece)
	}
	for i, call := range a.calls {
		c.call(i, call)
	}
	c.finish()
	if !a.form.noSentinel {
		c.events = append(c.events, event{data: []byte("[DONE]"), last: true})
	}
	return c.events
}

func (c *chatChunks) output(member, piece string) {
	delta := append(c.scratch[:0], member...)
	delta = appendString(delta, piece)
	if c.answer.form.emptyTools {
		delta = append(delta, `,"tool_calls":[]`...)
	}
	c.scratch = delta
	c.add(delta, "", 1, true)
}

// call adds the chunks of one tool call: a head that names it, then its
// arguments piece by piece, or all in one as xAI sends it.
func (c *chatChunks) call(index int, call toolCall) {
	head := appendCallIndex(nil, index)
	head = append(head, appendCallHead(nil, call)[1:]...) // without its opening brace
	if c.answer.form.wholeCalls {
		c.add(append(appendString(head, call.whole()), `}}]`...), "", len(call.arguments), true)
		return
	}
	c.add(append(head, `""}}]`...), "", 0, true)
	for _, piece := range call.arguments {
		delta := append(appendCallIndex(nil, index), `"function":{"arguments":`...)
		c.add(append(appendString(delta, piece), `}}]`...), "", 1, true)
	}
}

func appendCallIndex(b []byte, index int) []byte {
	b = append(b, `"tool_calls":[{"index":`...)
	return append(strconv.AppendInt(b, int64(index), 10), ',')
}

// finish adds the finish chunk and whatever carries the usage.
func (c *chatChunks) finish() {
	a := c.answer
	place := a.form.usagePlace
	if place == usageBeforeLast {
		c.add([]byte(`"content":""`), "", 0, false)
		c.attachUsage()
	}
	if a.finish != "" {
		c.add(nil, a.finish, 0, false)
		if place == usageInLast {
			c.attachUsage()
		}
	}
	if place == usageTrailing || (place == usageAsAsked && a.includeUsage) {
		b := append(bytes.Clone(c.head), `"choices":[]`...)
		c.events = append(c.events, event{data: append(appendUsage(b, a, true), '}')})
	}
}

// attachUsage puts the usage into the chunk added last.
func (c *chatChunks) attachUsage() {
	last := &c.events[len(c.events)-1]
	data := bytes.TrimSuffix(last.data[:len(last.data)-1], []byte(`,"usage":null`))
	last.data = append(appendUsage(bytes.Clone(data), c.answer, true), '}')
}

// add appends one chunk. delta are the members of the delta, without braces.
func (c *chatChunks) add(delta []byte, finish string, tokens int, output bool) {
	a := c.answer
	c.sent += tokens
	start := len(c.buffer)
	b := append(c.buffer, c.head...)
	b = append(b, `"choices":[{"index":0,"delta":{`...)
	if a.form.mergedRole && len(c.events) == 0 {
		b = append(b, `"role":"assistant"`...)
		b = appendComma(b, len(delta))
	}
	b = append(b, delta...)
	b = append(b, `},"logprobs":null,"finish_reason":`...)
	b = appendStringOr(b, finish, "null")
	b = append(b, `}]`...)
	switch {
	case a.form.usageValue == usageNull:
		b = append(b, `,"usage":null`...)
	case a.form.usagePlace == usageEvery:
		soFar := *a
		soFar.usage.output = c.sent
		b = appendUsage(b, &soFar, true)
	case a.includeUsage && a.form.usagePlace != usageAbsent:
		b = append(b, `,"usage":null`...)
	}
	c.buffer = append(b, '}')
	c.events = append(c.events, event{data: c.buffer[start:], tokens: tokens, output: output})
}

// appendChunkHead opens a chunk up to its choices.
func appendChunkHead(b []byte, a *answer) []byte {
	b = append(b, `{"id":"chatcmpl-`...)
	b = append(b, a.id...)
	b = append(b, `","object":"chat.completion.chunk","created":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, a.model)
	return append(b, `,"system_fingerprint":"fp_fake",`...)
}
