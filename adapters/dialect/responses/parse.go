package responses

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Parse reads a request. It is strict about the fields that the gateway acts on and
// lets all others be (P4). A request that continues a stored response is written out
// first: from then on it has the whole conversation in its input (K6). So are single
// items that are stored here.
func (in Inbound) Parse(body []byte) (*dialect.Request, error) {
	body = in.writeOut(body)
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
	doc, err := inbound.Open(body)
	if err != nil {
		return nil, "", err
	}
	p := parser{Reader: inbound.NewReader(&dialect.Request{Dialect: neutral.Responses, Raw: body, Choices: 1, IncludeUsage: true})}
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
	case p.Req.Parts.Messages == 0 && p.previous == "" && !slices.Contains(p.Req.Features, dialect.StoredState):
		p.Fail("input", "You must give an input.")
	}
	if p.Err != nil {
		return nil, "", p.Err
	}
	p.finish()
	return p.Req, p.previous, nil
}

type parser struct {
	inbound.Reader

	previous, safety, conversation   string
	tools, images, schema, reasoning bool
}

// known are the top-level fields that the gateway acts on.
var known = map[string]func(p *parser, v gjson.Result){
	"model":                func(p *parser, v gjson.Result) { p.Req.Model = p.Name("model", v) },
	"input":                (*parser).input,
	"instructions":         (*parser).instructions,
	"stream":               func(p *parser, v gjson.Result) { p.Req.Stream = p.Boolean("stream", v) },
	"max_output_tokens":    func(p *parser, v gjson.Result) { p.Req.MaxOutputTokens = p.Positive("max_output_tokens", v) },
	"tools":                (*parser).offers,
	"tool_choice":          (*parser).toolChoice,
	"text":                 (*parser).textOptions,
	"reasoning":            (*parser).reasoningOptions,
	"include":              (*parser).include,
	"top_logprobs":         (*parser).topLogProbs,
	"prompt_cache_key":     func(p *parser, v gjson.Result) { p.Req.Hints.PromptCacheKey = p.Text("prompt_cache_key", v) },
	"user":                 func(p *parser, v gjson.Result) { p.Req.Hints.User = p.Text("user", v) },
	"safety_identifier":    func(p *parser, v gjson.Result) { p.safety = p.Text("safety_identifier", v) },
	"store":                func(p *parser, v gjson.Result) { p.Boolean("store", v) },
	"previous_response_id": func(p *parser, v gjson.Result) { p.previous = p.Name("previous_response_id", v) },
	"conversation":         (*parser).conversationOf,
	"prompt":               func(p *parser, _ gjson.Result) { p.Req.Use(dialect.StoredState) },
	"background":           (*parser).background,
}

// finish draws what follows from several fields.
func (p *parser) finish() {
	r := p.Req
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

// object reports whether a field is an object, and refuses what is none.
func (p *parser) object(param string, v gjson.Result) bool {
	if !v.IsObject() {
		p.Fail(param, "The field %s must be an object.", param)
	}
	return v.IsObject()
}

func (p *parser) instructions(v gjson.Result) {
	if v.IsArray() {
		// As responses echo them.
		p.items("instructions", v)
		return
	}
	p.Text("instructions", v)
	p.Prompt(v)
}

// background answers come long after their request and are fetched by polling, which
// would need state that outlives this process.
func (p *parser) background(v gjson.Result) {
	if p.Boolean("background", v) {
		p.Fail("background", "Background responses are not offered. Send the request without background.")
	}
}

func (p *parser) conversationOf(v gjson.Result) {
	p.Req.Use(dialect.StoredState)
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
		p.JSON(format)
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
		p.Fail("include", "The field include must be an array.")
		return
	}
	v.ForEach(func(_, what gjson.Result) bool {
		if what.Str == "message.output_text.logprobs" {
			p.Req.Use(dialect.LogProbs)
		}
		return true
	})
}

func (p *parser) topLogProbs(v gjson.Result) {
	if v.Int() > 0 {
		p.Req.Use(dialect.LogProbs)
	}
}

// offers reads the tools. Their schemas are prompt text to the model and are counted
// as such.
func (p *parser) offers(v gjson.Result) {
	if !v.IsArray() {
		p.Fail("tools", "The field tools must be an array.")
		return
	}
	v.ForEach(func(_, tool gjson.Result) bool {
		if !tool.IsObject() {
			p.Fail(fmt.Sprintf("tools[%d]", p.Req.Parts.Tools), "Each of tools must be an object.")
			return false
		}
		p.useTool(tool.Get("type").Str)
		p.JSON(tool)
		p.Req.Parts.Tools++
		return true
	})
	p.tools = p.Req.Parts.Tools > 0
}

// useTool notes a kind of tool that stays with its dialect.
func (p *parser) useTool(kind string) {
	switch kind {
	case "function":
	case "custom":
		p.Req.Use(dialect.CustomTools)
	default:
		p.Req.Use(dialect.ServerTools)
	}
}

func (p *parser) toolChoice(v gjson.Result) {
	switch {
	case v.Type == gjson.String:
	case !p.object("tool_choice", v):
	case v.Get("type").Str == "allowed_tools":
		p.Req.Use(dialect.AllowedTools)
	default:
		p.useTool(v.Get("type").Str)
	}
}
