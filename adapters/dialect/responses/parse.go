package responses

import (
	"bytes"
	"cmp"
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

// Parse reads a request. It is strict about the fields that the gateway acts on and
// lets all others be (P4). A request that continues a stored response is written out
// first: from then on it has the whole conversation in its input (K6).
func (in Inbound) Parse(body []byte) (*dialect.Request, error) {
	req, previous, err := read(body)
	if err != nil || previous == "" {
		return req, err
	}
	long, inherited, err := in.resume(body, previous)
	if err != nil {
		return nil, err
	}
	if req, _, err = read(long); err != nil {
		return nil, err
	}
	req.Continues = dialect.Continues{ResponseID: previous, Items: inherited}
	return req, nil
}

// read reads a body and the response that it continues, if any.
func read(body []byte) (*dialect.Request, string, error) {
	if !utf8.Valid(body) {
		return nil, "", invalid("", "The body is not valid UTF-8.")
	}
	if !rawjson.Shallow(body) {
		return nil, "", invalid("", fmt.Sprintf("The body nests deeper than %d levels.", rawjson.MaxDepth))
	}
	doc, ok := rawjson.Parse(body)
	if !ok {
		return nil, "", invalid("", "The body is not a valid JSON object.")
	}
	p := parser{
		req:  &dialect.Request{Dialect: neutral.Responses, Raw: body, Choices: 1, IncludeUsage: true},
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
	case p.req.Parts.Messages == 0 && p.previous == "" && !slices.Contains(p.req.Features, dialect.StoredState):
		p.fail("input", "You must give an input.")
	}
	if p.err != nil {
		return nil, "", p.err
	}
	p.finish()
	return p.req, p.previous, nil
}

func invalid(param, message string) *dialect.InvalidError {
	return &dialect.InvalidError{Message: message, Param: param}
}

type parser struct {
	req  *dialect.Request
	seen map[string]bool
	err  error

	previous, safety, conversation   string
	tools, images, schema, reasoning bool
}

func (p *parser) fail(param, format string, args ...any) {
	if p.err == nil {
		p.err = invalid(param, fmt.Sprintf(format, args...))
	}
}

// known are the top-level fields that the gateway acts on.
var known = map[string]func(p *parser, v gjson.Result){
	"model":                func(p *parser, v gjson.Result) { p.req.Model = p.name("model", v) },
	"input":                (*parser).input,
	"instructions":         (*parser).instructions,
	"stream":               func(p *parser, v gjson.Result) { p.req.Stream = p.boolean("stream", v) },
	"max_output_tokens":    func(p *parser, v gjson.Result) { p.req.MaxOutputTokens = p.positive("max_output_tokens", v) },
	"tools":                (*parser).offers,
	"tool_choice":          (*parser).toolChoice,
	"text":                 (*parser).textOptions,
	"reasoning":            (*parser).reasoningOptions,
	"include":              (*parser).include,
	"top_logprobs":         (*parser).topLogProbs,
	"prompt_cache_key":     func(p *parser, v gjson.Result) { p.req.Hints.PromptCacheKey = p.text("prompt_cache_key", v) },
	"user":                 func(p *parser, v gjson.Result) { p.req.Hints.User = p.text("user", v) },
	"safety_identifier":    func(p *parser, v gjson.Result) { p.safety = p.text("safety_identifier", v) },
	"store":                func(p *parser, v gjson.Result) { p.boolean("store", v) },
	"previous_response_id": func(p *parser, v gjson.Result) { p.previous = p.name("previous_response_id", v) },
	"conversation":         (*parser).conversationOf,
	"prompt":               func(p *parser, _ gjson.Result) { p.req.Use(dialect.StoredState) },
	"background":           (*parser).background,
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
	r.Hints.PromptCacheKey = cmp.Or(r.Hints.PromptCacheKey, p.conversation)
	r.Hints.User = cmp.Or(r.Hints.User, p.safety)
	r.Parts.Spans = slices.Clip(r.Parts.Spans)
	r.Neutral = func() (*neutral.Request, error) { return translate(r.Raw) }
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

// object reports whether a field is an object, and refuses what is none.
func (p *parser) object(param string, v gjson.Result) bool {
	if !v.IsObject() {
		p.fail(param, "The field %s must be an object.", param)
	}
	return v.IsObject()
}

func (p *parser) instructions(v gjson.Result) {
	if v.IsArray() {
		// As responses echo them.
		p.items("instructions", v)
		return
	}
	p.text("instructions", v)
	p.prompt(v)
}

// background answers come long after their request and are fetched by polling, which
// would need state that outlives this process.
func (p *parser) background(v gjson.Result) {
	if p.boolean("background", v) {
		p.fail("background", "Background responses are not offered. Send the request without background.")
	}
}

func (p *parser) conversationOf(v gjson.Result) {
	p.req.Use(dialect.StoredState)
	if p.conversation = strings.Clone(v.Str); v.IsObject() {
		p.conversation = strings.Clone(v.Get("id").Str)
	}
}

func (p *parser) textOptions(v gjson.Result) {
	if !p.object("text", v) {
		return
	}
	switch format := v.Get("format"); format.Get("type").Str {
	case "json_schema":
		p.schema = true
		p.json(format)
	case "json_object":
		p.schema = true
	}
}

// reasoningOptions needs a model that reasons where an effort or a summary is asked
// for. SDKs send the object with nulls in it.
func (p *parser) reasoningOptions(v gjson.Result) {
	if !p.object("reasoning", v) {
		return
	}
	effort := v.Get("effort").Str
	p.reasoning = effort != "none" && (effort != "" || v.Get("summary").Str != "")
}

func (p *parser) include(v gjson.Result) {
	if !v.IsArray() {
		p.fail("include", "The field include must be an array.")
		return
	}
	v.ForEach(func(_, what gjson.Result) bool {
		if what.Str == "message.output_text.logprobs" {
			p.req.Use(dialect.LogProbs)
		}
		return true
	})
}

func (p *parser) topLogProbs(v gjson.Result) {
	if v.Int() > 0 {
		p.req.Use(dialect.LogProbs)
	}
}

// offers reads the tools. Their schemas are prompt text to the model and are counted
// as such.
func (p *parser) offers(v gjson.Result) {
	if !v.IsArray() {
		p.fail("tools", "The field tools must be an array.")
		return
	}
	v.ForEach(func(_, tool gjson.Result) bool {
		if !tool.IsObject() {
			p.fail(fmt.Sprintf("tools[%d]", p.req.Parts.Tools), "Each of tools must be an object.")
			return false
		}
		p.useTool(tool.Get("type").Str)
		p.json(tool)
		p.req.Parts.Tools++
		return true
	})
	p.tools = p.req.Parts.Tools > 0
}

// useTool notes a kind of tool that stays with its dialect.
func (p *parser) useTool(kind string) {
	switch kind {
	case "function":
	case "custom":
		p.req.Use(dialect.CustomTools)
	default:
		p.req.Use(dialect.ServerTools)
	}
}

func (p *parser) toolChoice(v gjson.Result) {
	switch {
	case v.Type == gjson.String:
	case !p.object("tool_choice", v):
	case v.Get("type").Str == "allowed_tools":
		p.req.Use(dialect.AllowedTools)
	default:
		p.useTool(v.Get("type").Str)
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
