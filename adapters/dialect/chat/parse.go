package chat

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Parse reads a request. It is strict about the fields that the gateway acts on and
// lets all others be, known to OpenAI or not: what they mean is between the caller
// and the provider (P4). A field of ours that comes twice is refused, because two
// readers of the same bytes would not agree on which one counts.
func (Inbound) Parse(body []byte) (*dialect.Request, error) {
	doc, err := inbound.Open(body)
	if err != nil {
		return nil, err
	}
	p := parser{Reader: inbound.NewReader(&dialect.Request{Dialect: neutral.Chat, Raw: body, Choices: 1})}
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
	p.Req.Neutral = func() (*neutral.Request, error) { return neutralOf(body) }
	return p.Req, nil
}

type parser struct {
	inbound.Reader

	// maxTokens is the older name; the newer one wins.
	maxTokens, maxCompletion         int64
	tools, images, schema, reasoning bool
}

// known are the top-level fields that the gateway acts on.
var known = map[string]func(p *parser, v gjson.Result){
	"model":                 func(p *parser, v gjson.Result) { p.Req.Model = p.Name("model", v) },
	"messages":              (*parser).messages,
	"stream":                func(p *parser, v gjson.Result) { p.Req.Stream = p.Boolean("stream", v) },
	"stream_options":        (*parser).streamOptions,
	"max_tokens":            func(p *parser, v gjson.Result) { p.maxTokens = p.Positive("max_tokens", v) },
	"max_completion_tokens": func(p *parser, v gjson.Result) { p.maxCompletion = p.Positive("max_completion_tokens", v) },
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
	"prompt_cache_key":      func(p *parser, v gjson.Result) { p.Req.Hints.PromptCacheKey = p.Text("prompt_cache_key", v) },
	"user":                  func(p *parser, v gjson.Result) { p.Req.Hints.User = p.Text("user", v) },
}

// finish draws what follows from several fields.
func (p *parser) finish() {
	r := p.Req
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

func (p *parser) choices(v gjson.Result) {
	n := p.Positive("n", v)
	if n > maxChoices {
		p.Fail("n", "The field n must be at most %d.", maxChoices)
		return
	}
	p.Req.Choices = int(n)
	p.uses(n > 1, dialect.SeveralChoices)
}

// uses notes what not every dialect can say.
func (p *parser) uses(is bool, f dialect.Feature) {
	if is {
		p.Req.Use(f)
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
		p.Fail("stream_options", "The field stream_options must be an object.")
		return
	}
	seen := false
	v.ForEach(func(key, v gjson.Result) bool {
		if key.Str != "include_usage" {
			return true
		}
		if seen {
			p.Fail("stream_options.include_usage", "The field stream_options.include_usage is given more than once.")
		}
		seen = true
		if !rawjson.IsNull(v) {
			p.Req.IncludeUsage = p.Boolean("stream_options.include_usage", v)
		}
		return p.Err == nil
	})
}

func (p *parser) responseFormat(v gjson.Result) {
	if !v.IsObject() {
		p.Fail("response_format", "The field response_format must be an object.")
		return
	}
	switch kind := v.Get("type").Str; kind {
	case "json_schema":
		p.schema = true
		p.JSON(v.Get("json_schema"))
	case "json_object":
		p.schema = true
	}
}

func (p *parser) reasoningEffort(v gjson.Result) {
	p.reasoning = p.reasoning || p.Text("reasoning_effort", v) != "none"
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
		p.Fail(param, "The field %s must be an array.", param)
		return
	}
	i := 0
	v.ForEach(func(_, tool gjson.Result) bool {
		if !tool.IsObject() {
			p.Fail(fmt.Sprintf("%s[%d]", param, i), "Each of %s must be an object.", param)
			return false
		}
		p.kindOfTool(tool.Get("type").Str)
		if f := tool.Get("function"); f.IsObject() {
			tool = f
		}
		p.JSON(tool)
		i++
		return true
	})
	p.Req.Parts.Tools += i
	p.tools = p.tools || i > 0
}

// kindOfTool notes the tools that are no functions. Some editors leave the type out.
func (p *parser) kindOfTool(kind string) {
	switch kind {
	case "", "function":
	case "custom":
		p.Req.Use(dialect.CustomTools)
	default:
		p.Req.Use(dialect.ServerTools)
	}
}
