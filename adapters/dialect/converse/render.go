package converse

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Instructions for what this dialect has no field for. They stand at the end of the
// system prompt, behind the part that is cached.
const (
	jsonInstruction   = "Answer with one valid JSON object and nothing else."
	noToolInstruction = "Do not call any tool in this answer."
)

// render writes the body. The same request always gives the same bytes, the prompt in
// the caller's order, so that a provider finds in its cache what it was sent the turn
// before (P12).
func render(in *neutral.Request, t dialect.Target, betas []string) []byte {
	m := modelOf(t.UpstreamModel)
	turns := arrange(in.Messages, t.WithoutSeals)
	offer := offerOf(in, turns)
	w := writer{model: m, names: map[string]int{}, dst: make([]byte, 0, sizeOf(in))}
	w.raw(`{"messages":[`)
	for i, turn := range turns {
		w.comma(i).turn(turn)
	}
	w.raw(`]`)
	w.system(in, offer)
	w.tools(offer)
	w.options(in, t, turns, betas)
	if f := in.Format; f != nil && f.Schema != nil {
		w.format(f)
	}
	return w.raw(`}`).dst
}

// sizeOf guesses the size of the body, so that one image is not copied again for
// each growth of the buffer.
func sizeOf(in *neutral.Request) int {
	n := 1024
	for i := range in.System {
		n += partSize(&in.System[i])
	}
	for _, m := range in.Messages {
		for i := range m.Parts {
			n += partSize(&m.Parts[i])
		}
	}
	for _, t := range in.Tools {
		n += len(t.Schema) + len(t.Description) + 128
	}
	return n
}

func partSize(p *neutral.Part) int {
	n := 128 + len(p.Text) + len(p.Text)/16 + len(p.Media.Base64) + len(p.Call.Arguments) + len(p.Opaque.Signature) + len(p.Opaque.Encrypted)
	for i := range p.Result.Parts {
		n += partSize(&p.Result.Parts[i])
	}
	return n
}

// writer appends JSON. Its methods return it, to be chained.
type writer struct {
	dst   []byte
	model model
	// names counts the documents of each name: within a request they must differ.
	names map[string]int
}

func (w *writer) raw(s string) *writer {
	w.dst = append(w.dst, s...)
	return w
}

func (w *writer) quoted(s string) *writer {
	w.dst = rawjson.AppendQuoted(w.dst, s)
	return w
}

func (w *writer) integer(n int64) *writer {
	w.dst = strconv.AppendInt(w.dst, n, 10)
	return w
}

// comma separates the i-th element of a list from the one before.
func (w *writer) comma(i int) *writer {
	if i > 0 {
		w.dst = append(w.dst, ',')
	}
	return w
}

// next separates an element or member from the one before, if there is one.
func (w *writer) next() *writer {
	if last := w.dst[len(w.dst)-1]; last != '[' && last != '{' {
		w.dst = append(w.dst, ',')
	}
	return w
}

// cache marks the end of a prefix behind the block that was written last (P6). A point
// of an hour behind one of five minutes is refused, so all keep what was asked for or
// none does.
func (w *writer) cache(c *neutral.CacheMarker) *writer {
	if c == nil || !w.model.cachePoints {
		return w
	}
	w.raw(`,{"cachePoint":{"type":"default"`)
	if c.TTL == "1h" && w.model.cacheHour {
		// Five minutes are the default, and models without the choice refuse the field.
		w.raw(`,"ttl":"1h"`)
	}
	return w.raw(`}}`)
}

func (w *writer) system(in *neutral.Request, offer offer) {
	var texts []neutral.Part
	for _, p := range in.System {
		if p.Kind == neutral.TextPart && !blank(p.Text) {
			texts = append(texts, p)
		}
	}
	instruct := func(is bool, text string) {
		if is {
			texts = append(texts, neutral.Part{Kind: neutral.TextPart, Text: text})
		}
	}
	instruct(in.Format != nil && in.Format.Schema == nil, jsonInstruction)
	instruct(offer.forbidden, noToolInstruction)
	if len(texts) == 0 {
		return
	}
	w.raw(`,"system":[`)
	for i := range texts {
		w.comma(i).raw(`{"text":`).quoted(texts[i].Text).raw(`}`).cache(texts[i].Cache)
	}
	w.raw(`]`)
}

// options writes limits, sampler and what only some models know.
func (w *writer) options(in *neutral.Request, t dialect.Target, turns []neutral.Message, betas []string) {
	maxTokens := in.MaxOutputTokens
	if maxTokens == 0 {
		// Some models stop at 512 tokens where nobody names a limit.
		maxTokens = t.MaxOutputTokens
	}
	fields, thinks := w.thinking(in, turns, maxTokens)
	w.inference(in, maxTokens, thinks)
	if in.Sampling.TopK != "" && w.model.topK != "" && !thinks && !w.model.noSampler {
		fields = append(fields, field{w.model.topK, string(in.Sampling.TopK)})
	}
	if w.model.betas && len(betas) > 0 {
		list, _ := json.Marshal(betas) // strings alone: there is nothing that could fail
		fields = append(fields, field{"anthropic_beta", string(list)})
	}
	if len(fields) == 0 {
		return
	}
	w.raw(`,"additionalModelRequestFields":{`)
	for _, f := range fields {
		w.next().quoted(f.name).raw(`:`).raw(f.json)
	}
	w.raw(`}`)
}

// field is a member of additionalModelRequestFields.
type field struct{ name, json string }

func (w *writer) inference(in *neutral.Request, maxTokens int64, thinks bool) {
	temperature, topP := in.Sampling.Temperature, in.Sampling.TopP
	switch {
	case w.model.noSampler || (thinks && w.model.thinking != effortField):
		// Claude and Nova think with their own sampler only.
		temperature, topP = "", ""
	case w.model.oneSampler && temperature != "":
		topP = ""
	}
	at := len(w.dst)
	w.raw(`,"inferenceConfig":{`)
	empty := len(w.dst)
	if maxTokens > 0 {
		w.raw(`"maxTokens":`).integer(maxTokens)
	}
	if temperature != "" {
		w.next().raw(`"temperature":`).raw(atMostOne(string(temperature)))
	}
	if topP != "" {
		w.next().raw(`"topP":`).raw(string(topP))
	}
	stops := 0
	for _, stop := range in.Stop {
		if blank(stop) {
			continue // refused
		}
		if stops == 0 {
			w.next().raw(`"stopSequences":[`)
		}
		w.comma(stops).quoted(stop)
		stops++
	}
	if stops > 0 {
		w.raw(`]`)
	}
	if len(w.dst) == empty {
		w.dst = w.dst[:at]
		return
	}
	w.raw(`}`)
}

// atMostOne is a temperature on this dialect's scale, which ends at 1 where others
// end at 2.
func atMostOne(temperature string) string {
	if f, err := strconv.ParseFloat(temperature, 64); err == nil && f > 1 {
		return "1"
	}
	return temperature
}

// thinking asks for reasoning in the model's own words. There is none beside a forced
// call, and with a budget none in a turn that goes on after a tool call and is left
// without the reasoning that it began with.
func (w *writer) thinking(in *neutral.Request, turns []neutral.Message, maxTokens int64) (fields []field, thinks bool) {
	r := in.Reasoning
	if r == nil {
		return nil, false
	}
	forced := in.Choice.Mode == neutral.ChoiceAny || in.Choice.Mode == neutral.ChoiceNamed
	switch style := w.model.thinking; {
	case style == adaptiveThinking && r.Disabled:
		return []field{{"thinking", `{"type":"disabled"}`}}, false
	case style == noThinking || r.Disabled:
		// Off by default everywhere else.
		return nil, false
	case style == effortField:
		if effort := effortOf(r); effort != "" && effort != "max" {
			return []field{{"reasoning_effort", string(rawjson.Quote(effort))}}, true
		}
		return nil, false
	case forced:
		return nil, false
	case style == reasoningConfig:
		// High is refused beside any limit of tokens.
		effort := "medium"
		if effortOf(r) == "low" {
			effort = "low"
		}
		return []field{{"reasoningConfig", `{"type":"enabled","maxReasoningEffort":"` + effort + `"}`}}, true
	case style == adaptiveThinking:
		fields = []field{{"thinking", `{"type":"adaptive"}`}}
		if effort := effortOf(r); effort != "" {
			fields = append(fields, field{"output_config", `{"effort":"` + effort + `"}`})
		}
		return fields, true
	}
	budget := budgetOf(r, maxTokens)
	if budget == 0 || midTurn(turns) {
		return nil, false
	}
	return []field{{"thinking", `{"type":"enabled","budget_tokens":` + strconv.FormatInt(budget, 10) + `}`}}, true
}

// format asks for structured output: the schema travels as a string.
func (w *writer) format(f *neutral.Format) {
	w.raw(`,"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":`).quoted(string(f.Schema))
	if f.Name != "" {
		w.raw(`,"name":`).quoted(f.Name)
	}
	if f.Description != "" {
		w.raw(`,"description":`).quoted(f.Description)
	}
	w.raw(`}}}}`)
}

// blank is a text that this dialect refuses to carry.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
