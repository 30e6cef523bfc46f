package chat

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

// wholeChoice is one choice that is being put together.
type wholeChoice struct {
	index int64
	// others are members of the choice that are not known here, message those of its
	// message.
	others, message members
	texts           []joined
	parts           array
	details         map[string]*array
	logprobs        map[string]*array
	calls           calls
	tools           []*wholeCall
	function        *wholeCall
	reason          string
}

// joined is a text in its escaped form.
type joined struct {
	key string
	raw []byte
}

func (c *wholeChoice) add(v gjson.Result) (err error) {
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
		case "delta":
			err = c.delta(v)
		case "finish_reason":
			if v.Str != "" {
				c.reason = strings.Clone(v.Str)
			}
		case "logprobs":
			c.logprobs = appendAll(c.logprobs, v)
		default:
			c.others.set(key.Str, v)
		}
		return err == nil
	})
	return err
}

// appendAll joins the lists of an object to those of the same name.
func appendAll(lists map[string]*array, v gjson.Result) map[string]*array {
	v.ForEach(func(key, v gjson.Result) bool {
		if !v.IsArray() {
			return true
		}
		if lists == nil {
			lists = map[string]*array{}
		}
		list := lists[key.Str]
		if list == nil {
			list = &array{}
			lists[strings.Clone(key.Str)] = list
		}
		list.add(v)
		return true
	})
	return lists
}

func (c *wholeChoice) delta(delta gjson.Result) (err error) {
	delta.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "content", "reasoning_content", "reasoning", "refusal":
			c.text(key.Str, v)
		case "tool_calls":
			v.ForEach(func(_, v gjson.Result) bool {
				c.toolCall(v)
				return true
			})
		case "function_call":
			if v.IsObject() {
				if c.function == nil {
					c.function = &wholeCall{}
				}
				c.function.addFunction(v)
			}
		case "audio":
			if !rawjson.IsNull(v) {
				err = errNotAggregable
			}
		default:
			if v.IsArray() {
				c.details = appendAll(c.details, gjson.Parse("{"+key.Raw+":"+v.Raw+"}"))
				break
			}
			c.message.set(key.Str, v)
		}
		return err == nil
	})
	return err
}

// text joins a piece of text. Content in parts becomes a list of parts.
func (c *wholeChoice) text(key string, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		at := slices.IndexFunc(c.texts, func(t joined) bool { return t.key == key })
		if at < 0 {
			at = len(c.texts)
			c.texts = append(c.texts, joined{key: strings.Clone(key)})
		}
		c.texts[at].raw = append(c.texts[at].raw, v.Raw[1:len(v.Raw)-1]...)
	case v.IsArray():
		c.parts.add(v)
	}
}

func (c *wholeChoice) toolCall(fragment gjson.Result) {
	at, begins, ok := c.calls.place(fragment)
	if !ok {
		return
	}
	if begins {
		c.tools = append(c.tools, &wholeCall{})
	}
	call := c.tools[at]
	fragment.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
		case "function", "custom":
			call.kind = strings.Clone(key.Str)
			call.addFunction(v)
		default:
			if v.Type != gjson.String || v.Str != "" {
				call.others.set(key.Str, v)
			}
		}
		return true
	})
}

// wholeCall is one call that is being put together.
type wholeCall struct {
	kind string
	// others are id, type and whatever else stands beside the function.
	others members
	// function are name and whatever else stands beside the arguments.
	function  members
	arguments joined
}

func (w *wholeCall) addFunction(v gjson.Result) {
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case key.Str == "arguments" || key.Str == "input":
			w.arguments.key = strings.Clone(key.Str)
			switch v.Type {
			case gjson.String:
				w.arguments.raw = append(w.arguments.raw, v.Raw[1:len(v.Raw)-1]...)
			case gjson.JSON:
				quoted := rawjson.Quote(v.Raw)
				w.arguments.raw = append(w.arguments.raw, quoted[1:len(quoted)-1]...)
			}
		case v.Type != gjson.String || v.Str != "":
			w.function.set(key.Str, v)
		}
		return true
	})
}

func (w *wholeCall) writeFunction(dst []byte) []byte {
	dst = w.function.write(append(dst, '{'))
	if w.arguments.key != "" {
		dst = member(dst, w.arguments.key, w.arguments.quoted())
	}
	return append(dst, '}')
}

func (j *joined) quoted() []byte { return append(append([]byte{'"'}, j.raw...), '"') }

func (c *wholeChoice) write(dst []byte) []byte {
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, c.index, 10)
	dst = member(dst, "message", c.writeMessage())
	if c.logprobs != nil {
		dst = member(dst, "logprobs", writeArrays([]byte("{"), c.logprobs, '}'))
	}
	reason := []byte("null")
	if stop, f := finish(c.reason, len(c.tools) > 0 || c.function != nil); f == nil {
		reason = rawjson.Quote(string(stop))
		if c.reason == "function_call" {
			reason = rawjson.Quote(c.reason)
		}
	}
	dst = member(dst, "finish_reason", reason)
	return append(c.others.write(dst), '}')
}

func (c *wholeChoice) writeMessage() []byte {
	dst := []byte("{")
	if !slices.ContainsFunc(c.message, func(f field) bool { return f.key == "role" }) {
		dst = member(dst, "role", []byte(`"assistant"`))
	}
	dst = c.message.write(dst)
	dst = member(dst, "content", c.content())
	for _, t := range c.texts {
		if t.key != "content" {
			dst = member(dst, t.key, t.quoted())
		}
	}
	if len(c.tools) > 0 {
		list := []byte("[")
		for i, w := range c.tools {
			if i > 0 {
				list = append(list, ',')
			}
			list = w.others.write(append(list, '{'))
			if w.kind != "" {
				list = member(list, w.kind, w.writeFunction(nil))
			}
			list = append(list, '}')
		}
		dst = member(dst, "tool_calls", append(list, ']'))
	}
	if c.function != nil {
		dst = member(dst, "function_call", c.function.writeFunction(nil))
	}
	return writeArrays(dst, c.details, '}')
}

// content is the joined text, the list of parts, or null beside tool calls.
func (c *wholeChoice) content() []byte {
	at := slices.IndexFunc(c.texts, func(t joined) bool { return t.key == "content" })
	hasText := at >= 0 && len(c.texts[at].raw) > 0
	switch {
	case len(c.parts.items) > 0 && hasText:
		part := append(append([]byte(`[{"type":"text","text":`), c.texts[at].quoted()...), "}]"...)
		c.parts.add(gjson.ParseBytes(part))
		return c.parts.raw()
	case len(c.parts.items) > 0:
		return c.parts.raw()
	case hasText:
		return c.texts[at].quoted()
	case len(c.tools) > 0 || c.function != nil || at < 0:
		return []byte("null")
	default:
		return []byte(`""`)
	}
}

// writeArrays writes lists by name, sorted so that the same stream always gives the
// same bytes.
func writeArrays(dst []byte, lists map[string]*array, closing byte) []byte {
	names := make([]string, 0, len(lists))
	for name := range lists {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		dst = member(dst, name, lists[name].raw())
	}
	return append(dst, closing)
}
