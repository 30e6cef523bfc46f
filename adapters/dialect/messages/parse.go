package messages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Parse reads a request, or the body of count_tokens, which is one without
// max_tokens. It is strict about the fields that the gateway acts on and lets all
// others be: what they mean is between the caller and the provider (P4). A field of
// ours that comes twice is refused, because two readers of the same bytes would not
// agree on which one counts.
func (Inbound) Parse(body []byte) (*dialect.Request, error) {
	doc, err := inbound.Open(body)
	if err != nil {
		return nil, err
	}
	// Usage is a part of every answer in this dialect.
	p := parser{Reader: inbound.NewReader(&dialect.Request{Dialect: neutral.Messages, Raw: body, Choices: 1, IncludeUsage: true})}
	p.Req.Neutral = func() (*neutral.Request, error) { return decode(p.Req) }
	p.Each(doc, func(key string) func(gjson.Result) {
		if read := known[key]; read != nil {
			return func(v gjson.Result) { read(&p, v) }
		}
		return nil
	})
	switch {
	case p.Err != nil:
	case p.Req.Model == "":
		p.Fail("model", "You must give a model.")
	case p.Req.Parts.Messages == 0:
		p.Fail("messages", "You must give at least one message.")
	}
	if p.Err != nil {
		return nil, p.Err
	}
	p.finish()
	return p.Req, nil
}

type parser struct {
	inbound.Reader

	tools, images, schema, thinking bool
}

// known are the top-level fields that the gateway acts on.
var known = map[string]func(p *parser, v gjson.Result){
	"model":         func(p *parser, v gjson.Result) { p.Req.Model = p.Name("model", v) },
	"messages":      (*parser).messages,
	"system":        (*parser).system,
	"max_tokens":    func(p *parser, v gjson.Result) { p.Req.MaxOutputTokens = p.Positive("max_tokens", v) },
	"stream":        func(p *parser, v gjson.Result) { p.Req.Stream = p.Boolean("stream", v) },
	"tools":         (*parser).offers,
	"thinking":      (*parser).thinkingConfig,
	"output_config": (*parser).outputConfig,
	// The name that structured output had while it was in beta.
	"output_format": func(p *parser, v gjson.Result) { p.format(v) },
	"metadata":      (*parser).metadata,
	"mcp_servers":   func(p *parser, v gjson.Result) { p.useIfAny(v, dialect.ServerTools) },
	"container":     func(p *parser, _ gjson.Result) { p.Req.Use(dialect.StoredState) },
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
			p.Req.Needs = append(p.Req.Needs, need.capability)
		}
	}
	p.Req.Parts.Spans = slices.Clip(p.Req.Parts.Spans)
}

func (p *parser) useIfAny(list gjson.Result, f dialect.Feature) {
	if list.IsArray() && list.Get("0").Exists() {
		p.Req.Use(f)
	}
}

func (p *parser) thinkingConfig(v gjson.Result) {
	if !v.IsObject() {
		p.Fail("thinking", "The field thinking must be an object.")
		return
	}
	p.thinking = v.Get("type").Str != "disabled"
}

func (p *parser) outputConfig(v gjson.Result) {
	if !v.IsObject() {
		p.Fail("output_config", "The field output_config must be an object.")
		return
	}
	p.format(v.Get("format"))
}

func (p *parser) format(v gjson.Result) {
	if v.IsObject() {
		p.schema = true
		p.JSON(v)
	}
}

func (p *parser) metadata(v gjson.Result) {
	if user := v.Get("user_id"); user.Type == gjson.String {
		p.Req.Hints.User = strings.Clone(user.Str)
	}
}

// offers reads tools. Their schemas are prompt text to the model and are counted as
// such. A tool with a type of its own is run by the provider, or known to its models
// alone.
func (p *parser) offers(v gjson.Result) {
	if !v.IsArray() {
		p.Fail("tools", "The field tools must be an array.")
		return
	}
	i := 0
	v.ForEach(func(_, tool gjson.Result) bool {
		if !tool.IsObject() {
			p.Fail(fmt.Sprintf("tools[%d]", i), "Each of tools must be an object.")
			return false
		}
		if !isFunction(tool) {
			p.Req.Use(dialect.ServerTools)
		}
		p.JSON(tool)
		i++
		return true
	})
	p.Req.Parts.Tools += i
	p.tools = p.tools || i > 0
}

// isFunction tells a caller's own function from a tool that the provider brings.
func isFunction(tool gjson.Result) bool {
	kind := tool.Get("type").Str
	return kind == "" || kind == "custom"
}
