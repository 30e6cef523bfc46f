package messages

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// attribution begins the block that Claude Code puts first into its system prompt.
// Anthropic takes it out itself, and no other provider must see it.
const attribution = "x-anthropic-billing-header:"

// decode reads a request for a destination of another dialect. Its strings are views
// of the body, which does not change: an image is not copied on the way.
func decode(req *dialect.Request) (*neutral.Request, error) {
	doc, ok := rawjson.Parse(req.Raw)
	if !ok {
		return nil, inbound.Invalid("", "The body is not a valid JSON object.")
	}
	d := decoder{out: &neutral.Request{MaxOutputTokens: req.MaxOutputTokens, Stream: req.Stream, User: req.Hints.User}}
	doc.ForEach(func(key, v gjson.Result) bool {
		if !rawjson.IsNull(v) {
			d.field(key.Str, v)
		}
		return d.err == nil
	})
	if d.err != nil {
		return nil, d.err
	}
	d.nameResults()
	return d.out, nil
}

type decoder struct {
	out *neutral.Request
	err error
}

func (d *decoder) fail(param, message string) {
	if d.err == nil {
		d.err = inbound.Invalid(param, message)
	}
}

func (d *decoder) field(key string, v gjson.Result) {
	out := d.out
	switch key {
	case "system":
		out.System = append(d.system(v), out.System...)
	case "messages":
		i := 0
		v.ForEach(func(_, m gjson.Result) bool {
			d.message(i, m)
			i++
			return d.err == nil
		})
	case "tools":
		v.ForEach(func(_, tool gjson.Result) bool {
			if isFunction(tool) {
				out.Tools = append(out.Tools, toolDefinition(tool))
			}
			return true
		})
	case "tool_choice":
		d.toolChoice(v)
	case "thinking":
		d.thinking(v)
	case "output_config":
		if effort := v.Get("effort").Str; effort != "" {
			d.reasoning().Effort = effort
		}
		d.format(v.Get("format"))
	case "output_format":
		d.format(v)
	case "temperature":
		out.Sampling.Temperature = json.Number(v.Raw)
	case "top_p":
		out.Sampling.TopP = json.Number(v.Raw)
	case "top_k":
		out.Sampling.TopK = json.Number(v.Raw)
	case "stop_sequences":
		v.ForEach(func(_, s gjson.Result) bool {
			out.Stop = append(out.Stop, s.Str)
			return true
		})
	}
}

func (d *decoder) system(v gjson.Result) []neutral.Part {
	parts := d.parts("system", v)
	if len(parts) > 0 && strings.HasPrefix(parts[0].Text, attribution) {
		return parts[1:]
	}
	return parts
}

func (d *decoder) message(i int, m gjson.Result) {
	parts := d.parts(fmt.Sprintf("messages[%d].content", i), m.Get("content"))
	role := neutral.Role(m.Get("role").Str)
	if role == "system" {
		d.out.System = append(d.out.System, parts...)
		return
	}
	d.out.Messages = append(d.out.Messages, neutral.Message{Role: role, Parts: parts})
}

// nameResults gives each tool result the name of the tool that it answers: some
// dialects match by name, this one by id.
func (d *decoder) nameResults() {
	names := map[string]string{}
	for _, m := range d.out.Messages {
		for i := range m.Parts {
			switch p := &m.Parts[i]; p.Kind {
			case neutral.ToolCallPart:
				names[p.Call.ID] = p.Call.Name
			case neutral.ToolResultPart:
				p.Result.Name = names[p.Result.CallID]
			}
		}
	}
}

func toolDefinition(tool gjson.Result) neutral.ToolDefinition {
	def := neutral.ToolDefinition{
		Name: tool.Get("name").Str, Description: tool.Get("description").Str, Cache: cacheMarker(tool),
	}
	if schema := tool.Get("input_schema"); schema.IsObject() {
		def.Schema = json.RawMessage(schema.Raw)
	}
	if strict := tool.Get("strict"); strict.IsBool() {
		is := strict.Bool()
		def.Strict = &is
	}
	return def
}

func cacheMarker(v gjson.Result) *neutral.CacheMarker {
	marker := v.Get("cache_control")
	if !marker.IsObject() {
		return nil
	}
	return &neutral.CacheMarker{TTL: marker.Get("ttl").Str}
}

func (d *decoder) toolChoice(v gjson.Result) {
	modes := map[string]neutral.ChoiceMode{
		"auto": neutral.ChoiceAuto, "none": neutral.ChoiceNone, "any": neutral.ChoiceAny, "tool": neutral.ChoiceNamed,
	}
	mode, ok := modes[v.Get("type").Str]
	if !ok {
		// Cursor sends an empty object.
		if v.Get("type").Exists() {
			d.fail("tool_choice.type", "The type of tool_choice must be auto, any, tool or none.")
		}
		return
	}
	d.out.Choice = neutral.ToolChoice{Mode: mode, Name: v.Get("name").Str}
	if off := v.Get("disable_parallel_tool_use"); off.IsBool() {
		parallel := !off.Bool()
		d.out.ParallelCalls = &parallel
	}
}

func (d *decoder) reasoning() *neutral.ReasoningOptions {
	if d.out.Reasoning == nil {
		d.out.Reasoning = &neutral.ReasoningOptions{}
	}
	return d.out.Reasoning
}

// thinking reads how much the model may think. Thinking that is shown is a summary
// on the models of today.
func (d *decoder) thinking(v gjson.Result) {
	r := d.reasoning()
	if v.Get("type").Str == "disabled" {
		r.Disabled = true
		return
	}
	r.BudgetTokens, _ = rawjson.Integer(v.Get("budget_tokens"))
	if v.Get("display").Str != "omitted" {
		r.Summary = "auto"
	}
}

func (d *decoder) format(v gjson.Result) {
	if !v.IsObject() {
		return
	}
	strict := true // there is no lax form here
	d.out.Format = &neutral.Format{Name: "answer", Strict: &strict}
	if schema := v.Get("schema"); schema.IsObject() {
		d.out.Format.Schema = json.RawMessage(schema.Raw)
	}
}
