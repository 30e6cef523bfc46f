package fakeprovider

import (
	"strconv"
	"strings"
)

// converseStop are this protocol's words for Chat's.
var converseStop = map[string]string{
	"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "content_filtered",
	"error": "malformed_model_output",
}

func converseReason(a *answer) string {
	if a.stoppedAt != "" {
		return "stop_sequence"
	}
	if word, ok := converseStop[a.finish]; ok {
		return word
	}
	return a.finish
}

// converseSignature signs the reasoning of a fake model.
const converseSignature = "c2lnbmVkLWJ5LWEtZmFrZQ=="

func (converse) whole(a *answer) []byte {
	b := []byte(`{"metrics":{"latencyMs":12},"output":{"message":{"content":[`)
	block := func(parts ...string) {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		for _, part := range parts {
			b = append(b, part...)
		}
	}
	if len(a.reasoning) > 0 {
		text := appendString(nil, strings.Join(a.reasoning, ""))
		block(`{"reasoningContent":{"reasoningText":{"signature":"`, converseSignature, `","text":`, string(text), `}}}`)
	}
	if text := strings.Join(a.text, "") + strings.Join(a.refusal, ""); text != "" {
		block(`{"text":`, string(appendString(nil, text)), `}`)
	}
	for _, call := range a.calls {
		block(`{"toolUse":{"input":`, inputOf(call), `,"name":`, string(appendString(nil, call.name)),
			`,"toolUseId":`, string(appendString(nil, call.id)), `}}`)
	}
	b = append(b, `],"role":"assistant"}}`...)
	if a.finish != "" {
		b = append(b, `,"stopReason":`...)
		b = appendString(b, converseReason(a))
	}
	return append(appendConverseUsage(b, a), '}')
}

// appendConverseUsage appends the usage member, unless it is not to be there at all.
// What was read from a cache is counted beside the input.
func appendConverseUsage(b []byte, a *answer) []byte {
	switch {
	case a.form.usagePlace == usageAbsent:
		return b
	case a.form.usageValue == usageNull:
		return append(b, `,"usage":null`...)
	}
	u := a.reported()
	input := max(0, u.input-u.cached-u.written)
	b = append(b, `,"usage":{"cacheReadInputTokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	b = append(b, `,"cacheWriteInputTokens":`...)
	b = strconv.AppendInt(b, int64(u.written), 10)
	b = append(b, `,"inputTokens":`...)
	b = strconv.AppendInt(b, int64(input), 10)
	b = append(b, `,"outputTokens":`...)
	b = strconv.AppendInt(b, int64(u.output), 10)
	b = append(b, `,"totalTokens":`...)
	b = strconv.AppendInt(b, int64(input+u.cached+u.written+u.output), 10)
	return append(b, '}')
}

// converseEvents collects the events of one stream.
type converseEvents struct {
	events []event
	// block counts blocks of all kinds alike, as the protocol does.
	block int
}

// events has no terminator: the stream ends with its metadata.
func (converse) events(a *answer) []event {
	c := converseEvents{events: make([]event, 0, a.usage.output+8)}
	if !a.form.noRoleChunk {
		c.add("messageStart", `"role":"assistant"`, 0, false)
	}
	if len(a.reasoning) > 0 {
		for _, piece := range a.reasoning {
			c.delta(`{"reasoningContent":{"text":`+string(appendString(nil, piece))+`}}`, 1, true)
		}
		c.delta(`{"reasoningContent":{"signature":"`+converseSignature+`"}}`, 0, false)
		c.stop()
	}
	if len(a.text)+len(a.refusal) > 0 {
		for _, piece := range append(append([]string(nil), a.text...), a.refusal...) {
			c.delta(`{"text":`+string(appendString(nil, piece))+`}`, 1, true)
		}
		c.stop()
	}
	for _, call := range a.calls {
		c.call(call, a.form.wholeCalls)
	}
	if a.form.usagePlace == usageBeforeLast {
		c.metadata(a)
	}
	if a.finish != "" {
		c.add("messageStop", `"stopReason":`+string(appendString(nil, converseReason(a))), 0, false)
	}
	if a.form.usagePlace != usageBeforeLast {
		c.metadata(a)
	}
	c.events[len(c.events)-1].last = true
	return c.events
}

func (c *converseEvents) add(name, members string, tokens int, output bool) {
	c.events = append(c.events, event{name: name, data: []byte("{" + members + "}"), tokens: tokens, output: output})
}

func (c *converseEvents) delta(delta string, tokens int, output bool) {
	c.add("contentBlockDelta", `"contentBlockIndex":`+strconv.Itoa(c.block)+`,"delta":`+delta, tokens, output)
}

func (c *converseEvents) stop() {
	c.add("contentBlockStop", `"contentBlockIndex":`+strconv.Itoa(c.block), 0, false)
	c.block++
}

// call adds a tool call: what names it, then its arguments piece by piece or at once.
func (c *converseEvents) call(call toolCall, whole bool) {
	head := `"contentBlockIndex":` + strconv.Itoa(c.block) + `,"start":{"toolUse":{"name":` +
		string(appendString(nil, call.name)) + `,"toolUseId":` + string(appendString(nil, call.id)) + `}}`
	c.add("contentBlockStart", head, 0, true)
	pieces, tokens := call.arguments, 1
	if whole {
		pieces, tokens = []string{call.whole()}, len(call.arguments)
	}
	for _, piece := range pieces {
		c.delta(`{"toolUse":{"input":`+string(appendString(nil, piece))+`}}`, tokens, true)
	}
	c.stop()
}

func (c *converseEvents) metadata(a *answer) {
	if a.form.usagePlace != usageAbsent {
		c.add("metadata", string(appendConverseUsage([]byte(`"metrics":{"latencyMs":12}`), a)), 0, false)
	}
}
