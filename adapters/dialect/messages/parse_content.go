package messages

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

func (p *parser) system(v gjson.Result) { p.content("system", v) }

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
			if roles++; v.Str != "user" && v.Str != "assistant" && v.Str != "system" {
				p.Fail(at(".role"), "The role of a message must be user or assistant.")
			}
		case "content":
			contents++
			p.content(at(".content"), v)
		}
		return p.Err == nil
	})
	switch {
	case p.Err != nil:
	case roles != 1:
		p.Fail(at(".role"), "A message must have one role.")
	case contents != 1:
		p.Fail(at(".content"), "A message must have one content.")
	}
}

// content reads a string or a list of blocks.
func (p *parser) content(param string, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		p.Prompt(v)
	case v.IsArray():
		j := 0
		v.ForEach(func(_, block gjson.Result) bool {
			if block.IsObject() {
				p.block(fmt.Sprintf("%s[%d]", param, j), block)
			} else {
				p.Fail(fmt.Sprintf("%s[%d]", param, j), "Each block of a content must be an object.")
			}
			j++
			return p.Err == nil
		})
	default:
		p.Fail(param, "The field %s must be a string or an array.", param)
	}
}

// block counts one block (A6) and notes what only some destinations can say (P5).
func (p *parser) block(param string, b gjson.Result) {
	switch kind := b.Get("type").Str; kind {
	case blockText:
		p.Prompt(rawjson.Member(b, "text"))
	case blockImage:
		p.images = true
		p.Req.Parts.Images++
		p.source(param, rawjson.Member(b, "source"), dialect.ImageURLs)
	case blockDocument:
		p.document(param, b)
	case blockToolUse:
		p.Prompt(rawjson.Member(b, "name"))
		p.JSON(rawjson.Member(b, "input"))
	case blockResult:
		if content := rawjson.Member(b, "content"); !rawjson.IsNull(content) {
			p.content(param+".content", content)
		}
	case blockThinking:
		p.Prompt(rawjson.Member(b, "thinking"))
		p.opaque(rawjson.Member(b, "signature"))
	case blockRedacted:
		p.opaque(rawjson.Member(b, "data"))
	case blockSearch:
		p.JSON(rawjson.Member(b, "content"))
	case "":
		p.Fail(param+".type", "A block must have a type.")
	default:
		// A server tool's call or result, or a block that is newer than we are: their
		// own provider alone can make sense of them.
		p.Req.Use(dialect.ServerTools)
		p.JSON(b)
	}
}

// opaque counts what only its issuer can read (K4).
func (p *parser) opaque(v gjson.Result) {
	p.Req.Parts.Base64Bytes += int64(len(v.Str))
	p.Req.Sealed = p.Req.Sealed || v.Str != ""
}

func (p *parser) source(param string, source gjson.Result, byURL dialect.Feature) {
	switch source.Get("type").Str {
	case "url":
		p.Req.Use(byURL)
		p.Req.Fetch(param+".source.url", source.Get("url").Str)
	case "file":
		p.Req.Use(dialect.StoredFiles)
	}
}

// document counts a document: one of plain text or of blocks is prompt text, any
// other by its size, 0 when only its address or id is here.
func (p *parser) document(param string, b gjson.Result) {
	source := rawjson.Member(b, "source")
	p.Prompt(rawjson.Member(b, "title"))
	p.Prompt(rawjson.Member(b, "context"))
	switch source.Get("type").Str {
	case "text":
		p.Prompt(rawjson.Member(source, "data"))
		return
	case "content":
		p.content(param+".source.content", rawjson.Member(source, "content"))
		return
	case "base64":
		p.Req.Parts.Documents = append(p.Req.Parts.Documents, int64(len(rawjson.Member(source, "data").Str))*3/4)
		return
	}
	p.source(param, source, dialect.DocumentURLs)
	p.Req.Parts.Documents = append(p.Req.Parts.Documents, 0)
}
