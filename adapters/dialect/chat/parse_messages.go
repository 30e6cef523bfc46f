package chat

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

func (p *parser) messages(v gjson.Result) {
	if !v.IsArray() {
		p.Fail("messages", "The field messages must be an array.")
		return
	}
	i := 0
	v.ForEach(func(_, m gjson.Result) bool {
		p.message(i, m)
		i++
		return p.Err == nil
	})
	p.Req.Parts.Messages = i
}

func (p *parser) message(i int, m gjson.Result) {
	at := func(field string) string { return fmt.Sprintf("messages[%d]%s", i, field) }
	if !m.IsObject() {
		p.Fail(at(""), "Each message must be an object.")
		return
	}
	roles, contents := 0, 0
	m.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "role":
			if roles++; v.Type != gjson.String {
				p.Fail(at(".role"), "The role of a message must be a string.")
			}
		case "content":
			contents++
			p.content(i, v)
		case "tool_calls":
			p.calls(i, v)
		case "function_call":
			p.call(v)
		case "name", "refusal", "reasoning_content", "reasoning":
			p.Prompt(v)
		}
		return p.Err == nil
	})
	switch {
	case p.Err != nil:
	case roles == 0:
		p.Fail(at(".role"), "A message must have a role.")
	case roles > 1:
		p.Fail(at(".role"), "The role of a message is given more than once.")
	case contents > 1:
		p.Fail(at(".content"), "The content of a message is given more than once.")
	}
}

func (p *parser) content(i int, v gjson.Result) {
	switch {
	case rawjson.IsNull(v):
	case v.Type == gjson.String:
		p.Prompt(v)
	case v.IsArray():
		j := 0
		v.ForEach(func(_, part gjson.Result) bool {
			if part.IsObject() {
				p.part(i, j, part)
			} else {
				p.Fail(fmt.Sprintf("messages[%d].content[%d]", i, j), "Each part of a content must be an object.")
			}
			j++
			return p.Err == nil
		})
	default:
		p.Fail(fmt.Sprintf("messages[%d].content", i), "The content of a message must be a string or an array.")
	}
}

// part counts one part of a content (A6). A kind that is not known has at least its
// text counted.
func (p *parser) part(i, j int, part gjson.Result) {
	switch part.Get("type").Str {
	case "image_url", "input_image", "image":
		p.images = true
		p.Req.Parts.Images++
		p.fetches(i, j, part, dialect.ImageURLs)
	case "file", "input_file", "document":
		p.Req.Parts.Documents = append(p.Req.Parts.Documents, documentSize(part))
		p.uses(part.Get("file.file_id").Exists() || part.Get("file_id").Exists(), dialect.StoredFiles)
		p.fetches(i, j, part, dialect.DocumentURLs)
	case "input_audio":
		p.Req.Use(dialect.AudioInput)
		p.Req.Parts.Base64Bytes += int64(len(part.Get("input_audio.data").Raw))
	case "refusal":
		p.Prompt(part.Get("refusal"))
	default:
		p.Prompt(part.Get("text"))
	}
}

// fetches notes where an image or a document is to be fetched from, if it is not here
// as data.
func (p *parser) fetches(i, j int, part gjson.Result, byURL dialect.Feature) {
	for _, path := range []string{"image_url.url", "image_url", "source.url", "file.file_data", "file_data"} {
		v := part.Get(path)
		if v.Type != gjson.String || v.Str == "" || strings.HasPrefix(v.Str, "data:") {
			continue
		}
		p.Req.Use(byURL)
		p.Req.Fetch(fmt.Sprintf("messages[%d].content[%d].%s", i, j, path), v.Str)
		return
	}
}

// documentSize is the size of a document in bytes, 0 when only its id or address is
// here.
func documentSize(part gjson.Result) int64 {
	data := part.Get("file.file_data")
	if !data.Exists() {
		data = part.Get("file_data")
	}
	encoded := data.Str
	if at := strings.Index(encoded, ";base64,"); at >= 0 {
		encoded = encoded[at+len(";base64,"):]
	}
	return int64(len(encoded)) * 3 / 4
}

func (p *parser) calls(i int, v gjson.Result) {
	if rawjson.IsNull(v) {
		return
	}
	if !v.IsArray() {
		p.Fail(fmt.Sprintf("messages[%d].tool_calls", i), "The tool_calls of a message must be an array.")
		return
	}
	v.ForEach(func(_, call gjson.Result) bool {
		if custom := call.Get("custom"); custom.IsObject() {
			p.Req.Use(dialect.CustomTools)
			p.Prompt(custom.Get("input"))
			return true
		}
		p.call(call.Get("function"))
		return true
	})
}

func (p *parser) call(function gjson.Result) {
	p.Prompt(function.Get("name"))
	p.Prompt(function.Get("arguments"))
}
