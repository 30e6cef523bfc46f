package messages

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// parts reads a content: a string, or a list of blocks.
func (d *decoder) parts(param string, v gjson.Result) []neutral.Part {
	if v.Type == gjson.String {
		return []neutral.Part{{Kind: neutral.TextPart, Text: v.Str}}
	}
	var parts []neutral.Part
	j := 0
	v.ForEach(func(_, block gjson.Result) bool {
		parts = append(parts, d.block(fmt.Sprintf("%s[%d]", param, j), block)...)
		j++
		return d.err == nil
	})
	return parts
}

// block reads one block into no, one or several parts. A cache marker stays with the
// last of them.
func (d *decoder) block(param string, b gjson.Result) (parts []neutral.Part) {
	switch b.Get("type").Str {
	case blockDocument:
		parts = d.document(param, b)
	case blockSearch:
		parts = d.searchResult(param, b)
	default:
		if part, ok := d.simple(param, b); ok {
			parts = []neutral.Part{part}
		}
	}
	if len(parts) > 0 {
		parts[len(parts)-1].Cache = cacheMarker(b)
	}
	return parts
}

func (d *decoder) simple(param string, b gjson.Result) (neutral.Part, bool) {
	switch b.Get("type").Str {
	case blockText:
		return neutral.Part{Kind: neutral.TextPart, Text: b.Get("text").Str}, true
	case blockImage:
		return neutral.Part{Kind: neutral.ImagePart, Media: media(b.Get("source"))}, true
	case blockThinking:
		return neutral.Part{
			Kind: neutral.ReasoningPart, Text: b.Get("thinking").Str, Opaque: unseal(b.Get("signature").Str),
		}, true
	case blockRedacted:
		return neutral.Part{
			Kind:   neutral.ReasoningPart,
			Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Redacted: b.Get("data").Str},
		}, true
	case blockToolUse:
		return neutral.Part{Kind: neutral.ToolCallPart, Call: toolCall(b)}, true
	case blockResult:
		return neutral.Part{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{
			CallID: b.Get("tool_use_id").Str, IsError: b.Get("is_error").Bool(),
			Parts: d.parts(param+".content", b.Get("content")),
		}}, true
	default:
		// A feature that skips every destination that would come here.
		return neutral.Part{}, false
	}
}

func toolCall(b gjson.Result) neutral.ToolCall {
	arguments := "{}"
	if input := b.Get("input"); input.Exists() {
		arguments = input.Raw
	}
	return neutral.ToolCall{ID: b.Get("id").Str, Name: b.Get("name").Str, Arguments: arguments}
}

func media(source gjson.Result) neutral.Media {
	return neutral.Media{
		URL: source.Get("url").Str, FileID: source.Get("file_id").Str,
		Type: source.Get("media_type").Str, Base64: source.Get("data").Str,
	}
}

// document reads a document. Its title and context are text before it where it is
// text itself; a document of blocks is its blocks.
func (d *decoder) document(param string, b gjson.Result) []neutral.Part {
	source := b.Get("source")
	m := media(source)
	m.Name = b.Get("title").Str
	var parts []neutral.Part
	if context := b.Get("context").Str; context != "" {
		parts = append(parts, neutral.Part{Kind: neutral.TextPart, Text: context})
	}
	switch source.Get("type").Str {
	case "content":
		if m.Name != "" {
			parts = append(parts, neutral.Part{Kind: neutral.TextPart, Text: m.Name})
		}
		return append(parts, d.parts(param+".source.content", source.Get("content"))...)
	case "text":
		m.Base64 = base64.StdEncoding.EncodeToString([]byte(m.Base64))
		if m.Type == "" {
			m.Type = "text/plain"
		}
	}
	return append(parts, neutral.Part{Kind: neutral.DocumentPart, Media: m})
}

// searchResult reads what a caller found, as text with its title and source.
func (d *decoder) searchResult(param string, b gjson.Result) []neutral.Part {
	head := strings.TrimSpace(b.Get("title").Str + "\n" + b.Get("source").Str)
	parts := d.parts(param+".content", b.Get("content"))
	if head == "" {
		return parts
	}
	return append([]neutral.Part{{Kind: neutral.TextPart, Text: head}}, parts...)
}
