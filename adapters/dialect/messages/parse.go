package messages

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// maxName bounds names that become keys of maps and columns of the log.
const maxName = 256

// Parse reads a request, or the body of count_tokens, which is one without
// max_tokens. It is strict about the fields that the gateway acts on and lets all
// others be: what they mean is between the caller and the provider (P4). A field of
// ours that comes twice is refused, because two readers of the same bytes would not
// agree on which one counts.
func (Inbound) Parse(body []byte) (*dialect.Request, error) {
	if !utf8.Valid(body) {
		return nil, invalid("", "The body is not valid UTF-8.")
	}
	if !rawjson.Shallow(body) {
		return nil, invalid("", fmt.Sprintf("The body nests deeper than %d levels.", rawjson.MaxDepth))
	}
	doc, ok := rawjson.Parse(body)
	if !ok {
		return nil, invalid("", "The body is not a valid JSON object.")
	}
	p := parser{
		// Usage is a part of every answer in this dialect.
		req:  &dialect.Request{Dialect: neutral.Messages, Raw: body, Choices: 1, IncludeUsage: true},
		seen: make(map[string]bool, 16),
	}
	p.req.Neutral = func() (*neutral.Request, error) { return decode(p.req) }
	doc.ForEach(func(key, v gjson.Result) bool {
		p.field(key.Str, v)
		return p.err == nil
	})
	switch {
	case p.err != nil:
	case p.req.Model == "":
		p.fail("model", "You must give a model.")
	case p.req.Parts.Messages == 0:
		p.fail("messages", "You must give at least one message.")
	}
	if p.err != nil {
		return nil, p.err
	}
	p.finish()
	return p.req, nil
}

func invalid(param, message string) *dialect.InvalidError {
	return &dialect.InvalidError{Message: message, Param: param}
}

type parser struct {
	req  *dialect.Request
	seen map[string]bool
	err  error

	tools, images, schema, thinking bool
}

func (p *parser) fail(param, format string, args ...any) {
	if p.err == nil {
		p.err = invalid(param, fmt.Sprintf(format, args...))
	}
}

// known are the top-level fields that the gateway acts on.
var known = map[string]func(p *parser, v gjson.Result){
	"model":         func(p *parser, v gjson.Result) { p.req.Model = p.name("model", v) },
	"messages":      (*parser).messages,
	"system":        (*parser).system,
	"max_tokens":    func(p *parser, v gjson.Result) { p.req.MaxOutputTokens = p.positive("max_tokens", v) },
	"stream":        func(p *parser, v gjson.Result) { p.req.Stream = p.boolean("stream", v) },
	"tools":         (*parser).offers,
	"thinking":      (*parser).thinkingConfig,
	"output_config": (*parser).outputConfig,
	// The name that structured output had while it was in beta.
	"output_format": func(p *parser, v gjson.Result) { p.format(v) },
	"metadata":      (*parser).metadata,
	"mcp_servers":   func(p *parser, v gjson.Result) { p.useIfAny(v, dialect.ServerTools) },
	"container":     func(p *parser, _ gjson.Result) { p.req.Use(dialect.StoredState) },
}

func (p *parser) field(key string, v gjson.Result) {
	read, ok := known[key]
	if !ok {
		return
	}
	if p.seen[key] {
		p.fail(key, "The field %s is given more than once.", key)
		return
	}
	p.seen[strings.Clone(key)] = true
	if !rawjson.IsNull(v) {
		read(p, v)
	}
}

// finish draws what follows from several fields.
func (p *parser) finish() {
	for _, need := range []struct {
		is         bool
		capability catalog.Capability
	}{
		{p.tools, catalog.Tools},
		{p.images, catalog.Images},
		{p.schema, catalog.StructuredOutput},
		{p.thinking, catalog.ReasoningOutput},
	} {
		if need.is {
			p.req.Needs = append(p.req.Needs, need.capability)
		}
	}
	p.req.Parts.Spans = slices.Clip(p.req.Parts.Spans)
}

// text is a string of the request's own: the body's memory may be used again by
// the server that read it.
func (p *parser) text(param string, v gjson.Result) string {
	if v.Type != gjson.String {
		p.fail(param, "The field %s must be a string.", param)
		return ""
	}
	return strings.Clone(v.Str)
}

func (p *parser) name(param string, v gjson.Result) string {
	s := p.text(param, v)
	if len(s) > maxName {
		p.fail(param, "The field %s is longer than %d bytes.", param, maxName)
	}
	return s
}

func (p *parser) boolean(param string, v gjson.Result) bool {
	if !v.IsBool() {
		p.fail(param, "The field %s must be true or false.", param)
	}
	return v.Type == gjson.True
}

func (p *parser) positive(param string, v gjson.Result) int64 {
	n, ok := rawjson.Integer(v)
	if !ok || n < 1 || n > maxCount {
		p.fail(param, "The field %s must be a positive integer.", param)
		return 0
	}
	return n
}

func (p *parser) useIfAny(list gjson.Result, f dialect.Feature) {
	if list.IsArray() && list.Get("0").Exists() {
		p.req.Use(f)
	}
}

func (p *parser) thinkingConfig(v gjson.Result) {
	if !v.IsObject() {
		p.fail("thinking", "The field thinking must be an object.")
		return
	}
	p.thinking = v.Get("type").Str != "disabled"
}

func (p *parser) outputConfig(v gjson.Result) {
	if !v.IsObject() {
		p.fail("output_config", "The field output_config must be an object.")
		return
	}
	p.format(v.Get("format"))
}

func (p *parser) format(v gjson.Result) {
	if v.IsObject() {
		p.schema = true
		p.json(v)
	}
}

func (p *parser) metadata(v gjson.Result) {
	if user := v.Get("user_id"); user.Type == gjson.String {
		p.req.Hints.User = strings.Clone(user.Str)
	}
}

// offers reads tools. Their schemas are prompt text to the model and are counted as
// such. A tool with a type of its own is run by the provider, or known to its models
// alone.
func (p *parser) offers(v gjson.Result) {
	if !v.IsArray() {
		p.fail("tools", "The field tools must be an array.")
		return
	}
	i := 0
	v.ForEach(func(_, tool gjson.Result) bool {
		if !tool.IsObject() {
			p.fail(fmt.Sprintf("tools[%d]", i), "Each of tools must be an object.")
			return false
		}
		if !isFunction(tool) {
			p.req.Use(dialect.ServerTools)
		}
		p.json(tool)
		i++
		return true
	})
	p.req.Parts.Tools += i
	p.tools = p.tools || i > 0
}

// isFunction tells a caller's own function from a tool that the provider brings.
func isFunction(tool gjson.Result) bool {
	kind := tool.Get("type").Str
	return kind == "" || kind == "custom"
}

// json counts a value's own text, as it stands.
func (p *parser) json(v gjson.Result) {
	if v.Exists() && v.Index > 0 {
		p.req.Parts.Spans = append(p.req.Parts.Spans, dialect.Span{Start: v.Index, End: rawjson.End(v)})
	}
}

// prompt counts a string as prompt text.
func (p *parser) prompt(v gjson.Result) {
	if v.Type != gjson.String || v.Str == "" {
		return
	}
	s := dialect.Span{Start: v.Index + 1, End: rawjson.End(v) - 1}
	s.Escaped = bytes.IndexByte(p.req.Raw[s.Start:s.End], '\\') >= 0
	p.req.Parts.Spans = append(p.req.Parts.Spans, s)
}
