package responses

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

// input is a prompt, or the items of a conversation.
func (p *parser) input(v gjson.Result) {
	if v.Type == gjson.String {
		p.prompt(v)
		p.req.Parts.Messages++
		return
	}
	p.items("input", v)
}

func (p *parser) items(param string, v gjson.Result) {
	if !v.IsArray() {
		p.fail(param, "The field %s must be a string or an array.", param)
		return
	}
	i := 0
	v.ForEach(func(_, item gjson.Result) bool {
		at := fmt.Sprintf("%s[%d]", param, i)
		if p.object(at, item) {
			p.item(at, item)
		}
		i++
		p.req.Parts.Messages++
		return p.err == nil
	})
}

// item counts one item of the input (A6) and notes what only this dialect can say
// (P5). A kind that is not known here is counted by its text as it stands.
func (p *parser) item(at string, v gjson.Result) {
	switch kind := v.Get("type").Str; kind {
	case "message", "":
		if v.Get("role").Type != gjson.String {
			p.fail(at+".role", "A message must have a role.")
			return
		}
		p.content(at+".content", v.Get("content"))
	case "function_call":
		p.prompt(v.Get("name"))
		p.prompt(v.Get("arguments"))
	case "function_call_output":
		p.content(at+".output", v.Get("output"))
	case "reasoning":
		p.reasoningItem(v)
	case "custom_tool_call", "custom_tool_call_output":
		p.req.Use(dialect.CustomTools)
		p.json(v)
	case "item_reference":
		p.req.Use(dialect.StoredState)
	default:
		p.req.Use(dialect.ServerTools)
		p.json(v)
	}
}

func (p *parser) reasoningItem(v gjson.Result) {
	for _, list := range []string{"summary", "content"} {
		v.Get(list).ForEach(func(_, part gjson.Result) bool {
			p.prompt(part.Get("text"))
			return true
		})
	}
	if sealed := v.Get("encrypted_content"); sealed.Str != "" {
		p.req.Parts.Base64Bytes += int64(len(sealed.Str))
		p.req.Sealed, p.req.Seal = true, opaque(v)
	}
}

func (p *parser) content(at string, v gjson.Result) {
	switch {
	case rawjson.IsNull(v):
	case v.Type == gjson.String:
		p.prompt(v)
	case v.IsArray():
		i := 0
		v.ForEach(func(_, part gjson.Result) bool {
			if where := fmt.Sprintf("%s[%d]", at, i); p.object(where, part) {
				p.part(part)
			}
			i++
			return p.err == nil
		})
	default:
		p.fail(at, "The content of an item must be a string or an array.")
	}
}

func (p *parser) part(part gjson.Result) {
	if part.Get("file_id").Str != "" {
		p.req.Use(dialect.StoredFiles)
	}
	switch part.Get("type").Str {
	case "input_image":
		p.images = true
		p.req.Parts.Images++
		if url := part.Get("image_url").Str; url != "" && !strings.HasPrefix(url, "data:") {
			p.req.Use(dialect.ImageURLs)
		}
	case "input_file":
		if part.Get("file_url").Str != "" {
			p.req.Use(dialect.DocumentURLs)
		}
		encoded := part.Get("file_data").Str
		if _, data, ok := strings.Cut(encoded, ";base64,"); ok {
			encoded = data
		}
		p.req.Parts.Documents = append(p.req.Parts.Documents, int64(len(encoded))*3/4)
	case "input_audio":
		p.req.Use(dialect.AudioInput)
		p.req.Parts.Base64Bytes += int64(len(part.Get("input_audio.data").Str))
	case "refusal":
		p.prompt(part.Get("refusal"))
	default:
		p.prompt(part.Get("text"))
	}
}
