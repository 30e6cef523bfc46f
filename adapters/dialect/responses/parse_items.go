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
		p.Prompt(v)
		p.Req.Parts.Messages++
		return
	}
	p.items("input", v)
}

func (p *parser) items(param string, v gjson.Result) {
	if !v.IsArray() {
		p.Fail(param, "The field %s must be a string or an array.", param)
		return
	}
	i := 0
	v.ForEach(func(_, item gjson.Result) bool {
		at := fmt.Sprintf("%s[%d]", param, i)
		if p.object(at, item) {
			p.item(at, item)
		}
		i++
		p.Req.Parts.Messages++
		return p.Err == nil
	})
}

// item counts one item of the input (A6) and notes what only this dialect can say
// (P5). A kind that is not known here is counted by its text as it stands.
func (p *parser) item(at string, v gjson.Result) {
	switch kind := v.Get("type").Str; kind {
	case "message", "":
		if v.Get("role").Type != gjson.String {
			p.Fail(at+".role", "A message must have a role.")
			return
		}
		p.content(at+".content", v.Get("content"))
	case "function_call":
		p.Prompt(v.Get("name"))
		p.Prompt(v.Get("arguments"))
	case "function_call_output":
		p.content(at+".output", v.Get("output"))
	case "reasoning":
		p.reasoningItem(v)
	case "custom_tool_call", "custom_tool_call_output":
		p.Req.Use(dialect.CustomTools)
		p.JSON(v)
	case itemReference:
		p.Req.Use(dialect.StoredState)
	default:
		p.Req.Use(dialect.ServerTools)
		p.JSON(v)
	}
}

func (p *parser) reasoningItem(v gjson.Result) {
	for _, list := range []string{"summary", "content"} {
		v.Get(list).ForEach(func(_, part gjson.Result) bool {
			p.Prompt(part.Get("text"))
			return true
		})
	}
	if sealed := v.Get("encrypted_content"); sealed.Str != "" {
		p.Req.Parts.Base64Bytes += int64(len(sealed.Str))
		p.Req.Sealed, p.Req.Seal = true, opaque(v)
	}
}

func (p *parser) content(at string, v gjson.Result) {
	switch {
	case rawjson.IsNull(v):
	case v.Type == gjson.String:
		p.Prompt(v)
	case v.IsArray():
		i := 0
		v.ForEach(func(_, part gjson.Result) bool {
			if where := fmt.Sprintf("%s[%d]", at, i); p.object(where, part) {
				p.part(where, part)
			}
			i++
			return p.Err == nil
		})
	default:
		p.Fail(at, "The content of an item must be a string or an array.")
	}
}

func (p *parser) part(at string, part gjson.Result) {
	if part.Get("file_id").Str != "" {
		p.Req.Use(dialect.StoredFiles)
	}
	switch part.Get("type").Str {
	case "input_image":
		p.images = true
		p.Req.Parts.Images++
		if url := part.Get("image_url").Str; url != "" && !strings.HasPrefix(url, "data:") {
			p.Req.Use(dialect.ImageURLs)
			p.Req.Fetch(at+".image_url", url)
		}
	case "input_file":
		if url := part.Get("file_url").Str; url != "" {
			p.Req.Use(dialect.DocumentURLs)
			p.Req.Fetch(at+".file_url", url)
		}
		encoded := part.Get("file_data").Str
		if _, data, ok := strings.Cut(encoded, ";base64,"); ok {
			encoded = data
		}
		p.Req.Parts.Documents = append(p.Req.Parts.Documents, int64(len(encoded))*3/4)
	case "input_audio":
		p.Req.Use(dialect.AudioInput)
		p.Req.Parts.Base64Bytes += int64(len(part.Get("input_audio.data").Str))
	case "refusal":
		p.Prompt(part.Get("refusal"))
	default:
		p.Prompt(part.Get("text"))
	}
}
