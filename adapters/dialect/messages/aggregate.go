package messages

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// NewAggregate puts a stream back together for a caller who asked for a whole
// answer (S11).
func (Outbound) NewAggregate(req *dialect.Request) dialect.Aggregate { return &aggregate{req: req} }

// errNotAggregable is a delta of a kind that there is no known way to join.
var errNotAggregable = errors.New("messages: output that cannot be put together from a stream")

// aggregate joins events. Strings are joined as they stand in JSON: the escaped form
// of a text in two pieces is the two escaped forms, one after the other.
type aggregate struct {
	req *dialect.Request
	// message are the members of the message, but for its content; usage those of its
	// usage.
	message, usage members
	blocks         []*wholeBlock
}

// wholeBlock is one block that is being put together.
type wholeBlock struct {
	index   int64
	members members
	// texts are joined strings in their escaped form, without quotes.
	texts members
	// input are a call's arguments, unescaped.
	input     []byte
	citations [][]byte
}

// members is an object that is being written: the keys keep the order of their first
// coming.
type members []field

type field struct {
	key string
	raw []byte
}

func (m *members) at(key string) *field {
	at := slices.IndexFunc(*m, func(f field) bool { return f.key == key })
	if at < 0 {
		at = len(*m)
		*m = append(*m, field{key: strings.Clone(key)})
	}
	return &(*m)[at]
}

// set keeps the last value; a null does not take back what was said.
func (m *members) set(key string, v gjson.Result) {
	f := m.at(key)
	if f.raw == nil || !rawjson.IsNull(v) {
		f.raw = []byte(v.Raw)
	}
}

func (m *members) setAll(object gjson.Result, but ...string) {
	object.ForEach(func(key, v gjson.Result) bool {
		if !slices.Contains(but, key.Str) {
			m.set(key.Str, v)
		}
		return true
	})
}

func (m members) write(dst []byte) []byte {
	dst = append(dst, '{')
	for i, f := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(rawjson.AppendQuoted(dst, f.key), ':'), f.raw...)
	}
	return append(dst, '}')
}

// Add joins a chunk on.
func (a *aggregate) Add(c *neutral.Chunk) error {
	doc, ok := rawjson.Parse(c.Raw)
	if !ok || c.Dialect != neutral.Messages {
		return errNotMessages
	}
	switch rawjson.Member(doc, "type").Str {
	case "message_start":
		a.start(rawjson.Member(doc, "message"))
	case "message_delta":
		a.message.setAll(rawjson.Member(doc, "delta"))
		a.usage.setAll(rawjson.Member(doc, "usage"))
		a.message.setAll(doc, "type", "delta", "usage")
	case "content_block_start":
		index, _ := rawjson.Integer(rawjson.Member(doc, "index"))
		a.block(index).members.setAll(rawjson.Member(doc, "content_block"))
	case "content_block_delta":
		index, _ := rawjson.Integer(rawjson.Member(doc, "index"))
		return a.block(index).delta(rawjson.Member(doc, "delta"))
	case "message_stop":
		// Relays put their own measurements here.
		a.message.setAll(doc, "type")
	}
	return nil
}

func (a *aggregate) start(message gjson.Result) {
	a.message.setAll(message, "usage", "content")
	a.usage.setAll(rawjson.Member(message, "usage"))
	a.message.at("content")
	a.message.at("usage")
	rawjson.Member(message, "content").ForEach(func(_, block gjson.Result) bool {
		// Before any that is still to start.
		a.block(int64(len(a.blocks)) - maxBlocks).members.setAll(block)
		return true
	})
}

func (a *aggregate) block(index int64) *wholeBlock {
	for _, b := range slices.Backward(a.blocks) {
		if b.index == index {
			return b
		}
	}
	b := &wholeBlock{index: index}
	a.blocks = append(a.blocks, b)
	return b
}

// joinable are the deltas that add to a string, and the member they add to.
var joinable = map[string]string{
	"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "compaction_delta": "content",
}

func (b *wholeBlock) delta(delta gjson.Result) error {
	kind := rawjson.Member(delta, "type").Str
	switch kind {
	case "input_json_delta":
		b.input = append(b.input, rawjson.Member(delta, "partial_json").Str...)
		return nil
	case "citations_delta":
		b.citations = append(b.citations, []byte(rawjson.Member(delta, "citation").Raw))
		return nil
	}
	name, ok := joinable[kind]
	if !ok {
		return errNotAggregable
	}
	delta.ForEach(func(key, v gjson.Result) bool {
		switch {
		case key.Str == "type":
		case key.Str == name && v.Type == gjson.String:
			f := b.texts.at(name)
			f.raw = append(f.raw, v.Raw[1:len(v.Raw)-1]...)
		default:
			b.members.set(key.Str, v)
		}
		return true
	})
	return nil
}

// write writes the block. A text that the block began with stands before its deltas.
func (b *wholeBlock) write(dst []byte) []byte {
	for _, t := range b.texts {
		f := b.members.at(t.key)
		begun := bytes.TrimSuffix(bytes.TrimPrefix(f.raw, []byte(`"`)), []byte(`"`))
		if len(f.raw) < 2 || f.raw[0] != '"' {
			begun = nil
		}
		f.raw = slices.Concat([]byte(`"`), begun, t.raw, []byte(`"`))
	}
	if len(b.input) > 0 {
		b.members.at("input").raw = b.input
		if !isInput(string(b.input)) {
			// Cut off by the limit of its length; official clients empty it too.
			b.members.at("input").raw = []byte("{}")
		}
	}
	if len(b.citations) > 0 {
		b.members.at("citations").raw = slices.Concat([]byte("["), bytes.Join(b.citations, []byte(",")), []byte("]"))
	}
	return b.members.write(dst)
}

// Answer is the whole reply. It is read again as one, so that both ways to an answer
// judge it alike.
func (a *aggregate) Answer() (neutral.Answer, error) {
	slices.SortStableFunc(a.blocks, func(x, y *wholeBlock) int { return int(x.index - y.index) })
	list := []byte("[")
	for i, b := range a.blocks {
		if i > 0 {
			list = append(list, ',')
		}
		list = b.write(list)
	}
	a.message.at("content").raw = append(list, ']')
	a.message.at("usage").raw = a.usage.write(nil)
	body := a.message.write(nil)
	answer, f := Outbound{}.DecodeWhole(a.req, body)
	if f != nil && !answer.Empty {
		return neutral.Answer{}, f
	}
	answer.Streamed = true
	return answer, nil
}
