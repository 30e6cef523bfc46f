package chat

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// outputOf decodes the message of a whole answer for a caller of another dialect, who
// can have asked for one choice only.
func outputOf(choices gjson.Result) []neutral.Part {
	var parts, calls []neutral.Part
	reasoned := false
	add := func(kind neutral.PartKind, text string) {
		if text != "" {
			parts = append(parts, neutral.Part{Kind: kind, Text: text})
		}
	}
	choices.Get("0.message").ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "content":
			if v.IsArray() {
				parts = append(parts, listed(v)...)
				break
			}
			add(neutral.TextPart, v.Str)
		case "refusal":
			add(neutral.RefusalPart, v.Str)
		case "reasoning_content", "reasoning":
			if v.Str != "" && !reasoned {
				// Reasoning comes before what follows from it, wherever its member stands.
				reasoned = true
				parts = slices.Insert(parts, 0, neutral.Part{Kind: neutral.ReasoningPart, Text: v.Str})
			}
		case "tool_calls":
			each(v, func(v gjson.Result) bool {
				calls = append(calls, callOf(v.Get("id").Str, v.Get("function")))
				return true
			})
		case "function_call":
			if v.IsObject() {
				calls = append(calls, callOf("", v))
			}
		}
		return true
	})
	return append(parts, calls...)
}

// listed is content as a list, which Mistral sends for its reasoning models.
func listed(list gjson.Result) (parts []neutral.Part) {
	list.ForEach(func(_, v gjson.Result) bool {
		switch v.Get("type").Str {
		case "text":
			parts = append(parts, neutral.Part{Kind: neutral.TextPart, Text: v.Get("text").Str})
		case "refusal":
			parts = append(parts, neutral.Part{Kind: neutral.RefusalPart, Text: v.Get("refusal").Str})
		case "thinking":
			var text strings.Builder
			if nested := v.Get("thinking"); nested.IsArray() {
				each(nested, func(v gjson.Result) bool {
					text.WriteString(v.Get("text").Str)
					return true
				})
			} else {
				text.WriteString(nested.Str)
			}
			parts = append(parts, neutral.Part{Kind: neutral.ReasoningPart, Text: text.String()})
		}
		return true
	})
	return slices.DeleteFunc(parts, func(p neutral.Part) bool { return p.Text == "" })
}

func callOf(id string, function gjson.Result) neutral.Part {
	c := neutral.ToolCall{ID: id, Name: function.Get("name").Str}
	if arguments := function.Get("arguments"); arguments.Type == gjson.String {
		c.Arguments = arguments.Str
	} else {
		c.Arguments = arguments.Raw
	}
	return neutral.Part{Kind: neutral.ToolCallPart, Call: c}
}

// wholeOf says an answer of another dialect.
func wholeOf(a *neutral.Answer, meta dialect.Meta) ([]byte, error) {
	texts := map[neutral.PartKind]string{}
	var calls []neutral.ToolCall
	for i := range a.Output {
		switch p := &a.Output[i]; p.Kind {
		case neutral.TextPart, neutral.RefusalPart, neutral.ReasoningPart:
			texts[p.Kind] += p.Text
		case neutral.ToolCallPart:
			calls = append(calls, p.Call)
		default:
			return nil, &unsayableError{"this kind of output"}
		}
	}
	dst := appendHead(nil, "chat.completion", meta)
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	dst = appendText(dst, texts[neutral.TextPart])
	dst = append(dst, `,"refusal":`...)
	dst = appendText(dst, texts[neutral.RefusalPart])
	if reasoning := texts[neutral.ReasoningPart]; reasoning != "" {
		dst = append(dst, `,"reasoning_content":`...)
		dst = rawjson.AppendQuoted(dst, reasoning)
	}
	dst = appendCalls(dst, calls, meta.RequestID)
	dst = append(dst, `},"finish_reason":`...)
	dst = rawjson.AppendQuoted(dst, reasonOf(stopOf(a), len(calls) > 0, texts[neutral.RefusalPart] != ""))
	dst = append(dst, "}]"...)
	if a.Usage != (usage.Usage{}) {
		dst = appendUsage(dst, a.Usage)
	}
	return append(dst, '}'), nil
}

// stopOf is an answer's stop reason; one that a provider left out is an ordinary end.
func stopOf(a *neutral.Answer) neutral.StopReason {
	if a.Stop == neutral.StopNone {
		return neutral.StopEnd
	}
	return a.Stop
}

// appendText appends a text, or null for none.
func appendText(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return rawjson.AppendQuoted(dst, s)
}

func appendCalls(dst []byte, calls []neutral.ToolCall, request string) []byte {
	for i, c := range calls {
		if i == 0 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":`...)
		dst = rawjson.AppendQuoted(dst, callID(c.ID, request, i))
		dst = append(dst, `,"type":"function","function":{"name":`...)
		dst = rawjson.AppendQuoted(dst, c.Name)
		dst = append(dst, `,"arguments":`...)
		dst = rawjson.AppendQuoted(dst, c.Arguments)
		dst = append(dst, "}}"...)
	}
	if len(calls) > 0 {
		dst = append(dst, ']')
	}
	return dst
}
