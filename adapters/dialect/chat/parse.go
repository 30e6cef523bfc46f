package chat

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

// Parse reads a request. It is strict about the fields that the gateway acts on and
// lets all others be, known to OpenAI or not: what they mean is between the caller
// and the provider (P4). A field of ours that comes twice is refused, because two
// readers of the same bytes would not agree on which one counts.
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
		req:  &dialect.Request{Dialect: neutral.Chat, Raw: body, Choices: 1},
		seen: make(map[string]bool, 16),
	}
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
	p.req.Neutral = func() (*neutral.Request, error) { return neutralOf(body) }
	return p.req, nil
}

func invalid(param, message string) *dialect.InvalidError {
	return &dialect.InvalidError{Message: message, Param: param}
}

type parser struct {
	req  *dialect.Request
	seen map[string]bool
	err  error

	// maxTokens is the older name; the newer one wins.
	maxTokens, maxCompletion         int64
	tools, images, schema, reasoning bool
}

func (p *parser) fail(param, format string, args ...any) {
	if p.err == nil {
		p.err = invalid(param, fmt.Sprintf(format, args...))
	}
}

// known are the top-level fields that the gateway acts on.
var known = map[string]func(p *parser, v gjson.Result){
	"model":                 func(p *parser, v gjson.Result) { p.req.Model = p.name("model", v) },
	"messages":              (*parser).messages,
	"stream":                func(p *parser, v gjson.Result) { p.req.Stream = p.boolean("stream", v) },
	"stream_options":        (*parser).streamOptions,
	"max_tokens":            func(p *parser, v gjson.Result) { p.maxTokens = p.positive("max_tokens", v) },
	"max_completion_tokens": func(p *parser, v gjson.Result) { p.maxCompletion = p.positive("max_completion_tokens", v) },
	"n":                     (*parser).choices,
	"tools":                 func(p *parser, v gjson.Result) { p.offers("tools", v) },
	"functions":             func(p *parser, v gjson.Result) { p.offers("functions", v) },
	"response_format":       (*parser).responseFormat,
	"reasoning_effort":      (*parser).reasoningEffort,
	"reasoning":             (*parser).reasoningObject,
	"modalities":            (*parser).modalities,
	"logprobs":              func(p *parser, v gjson.Result) { p.uses(v.Type == gjson.True, dialect.LogProbs) },
	"web_search_options":    func(p *parser, _ gjson.Result) { p.uses(true, dialect.ServerTools) },
	"tool_choice":           func(p *parser, v gjson.Result) { p.uses(v.Get("type").Str == "allowed_tools", dialect.AllowedTools) },
	"prompt_cache_key":      func(p *parser, v gjson.Result) { p.req.Hints.PromptCacheKey = p.text("prompt_cache_key", v) },
	"user":                  func(p *parser, v gjson.Result) { p.req.Hints.User = p.text("user", v) },
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
	r := p.req
	if r.MaxOutputTokens = p.maxCompletion; r.MaxOutputTokens == 0 {
		r.MaxOutputTokens = p.maxTokens
	}
	for _, need := range []struct {
		is         bool
		capability catalog.Capability
	}{
		{p.tools, catalog.Tools},
		{p.images, catalog.Images},
		{p.schema, catalog.StructuredOutput},
		{p.reasoning, catalog.ReasoningOutput},
	} {
		if need.is {
			r.Needs = append(r.Needs, need.capability)
		}
	}
	r.Parts.Spans = slices.Clip(r.Parts.Spans)
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

func (p *parser) choices(v gjson.Result) {
	n := p.positive("n", v)
	if n > maxChoices {
		p.fail("n", "The field n must be at most %d.", maxChoices)
		return
	}
	p.req.Choices = int(n)
	p.uses(n > 1, dialect.SeveralChoices)
}

// uses notes what not every dialect can say.
func (p *parser) uses(is bool, f dialect.Feature) {
	if is {
		p.req.Use(f)
	}
}

func (p *parser) modalities(v gjson.Result) {
	v.ForEach(func(_, v gjson.Result) bool {
		p.uses(v.Str == "audio", dialect.AudioOutput)
		return true
	})
}

func (p *parser) streamOptions(v gjson.Result) {
	if !v.IsObject() {
		p.fail("stream_options", "The field stream_options must be an object.")
		return
	}
	seen := false
	v.ForEach(func(key, v gjson.Result) bool {
		if key.Str != "include_usage" {
			return true
		}
		if seen {
			p.fail("stream_options.include_usage", "The field stream_options.include_usage is given more than once.")
		}
		seen = true
		if !rawjson.IsNull(v) {
			p.req.IncludeUsage = p.boolean("stream_options.include_usage", v)
		}
		return p.err == nil
	})
}

func (p *parser) responseFormat(v gjson.Result) {
	if !v.IsObject() {
		p.fail("response_format", "The field response_format must be an object.")
		return
	}
	switch kind := v.Get("type").Str; kind {
	case "json_schema":
		p.schema = true
		p.json(v.Get("json_schema"))
	case "json_object":
		p.schema = true
	}
}

func (p *parser) reasoningEffort(v gjson.Result) {
	p.reasoning = p.reasoning || p.text("reasoning_effort", v) != "none"
}

// reasoningObject is OpenRouter's form.
func (p *parser) reasoningObject(v gjson.Result) {
	off := v.Get("enabled").Type == gjson.False || v.Get("effort").Str == "none"
	p.reasoning = p.reasoning || (v.IsObject() && !off)
}

// offers reads tools, or functions, their older form. Their schemas are prompt text
// to the model and are counted as such.
func (p *parser) offers(param string, v gjson.Result) {
	if !v.IsArray() {
		p.fail(param, "The field %s must be an array.", param)
		return
	}
	i := 0
	v.ForEach(func(_, tool gjson.Result) bool {
		if !tool.IsObject() {
			p.fail(fmt.Sprintf("%s[%d]", param, i), "Each of %s must be an object.", param)
			return false
		}
		p.kindOfTool(tool.Get("type").Str)
		if f := tool.Get("function"); f.IsObject() {
			tool = f
		}
		p.json(tool)
		i++
		return true
	})
	p.req.Parts.Tools += i
	p.tools = p.tools || i > 0
}

// kindOfTool notes the tools that are no functions. Some editors leave the type out.
func (p *parser) kindOfTool(kind string) {
	switch kind {
	case "", "function":
	case "custom":
		p.req.Use(dialect.CustomTools)
	default:
		p.req.Use(dialect.ServerTools)
	}
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
