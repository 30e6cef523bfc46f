package chat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/inbound"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// neutralOf decodes a request for a destination of another dialect. Its strings are
// views of raw wherever they have no escapes: a picture is not copied.
func neutralOf(raw []byte) (*neutral.Request, error) {
	doc, ok := rawjson.Parse(raw)
	if !ok {
		return nil, errNotChat
	}
	d := decoder{toolNames: map[string]string{}}
	doc.ForEach(func(key, v gjson.Result) bool {
		if !rawjson.IsNull(v) {
			d.field(key.Str, v)
		}
		return d.err == nil
	})
	if d.err != nil {
		return nil, d.err
	}
	if d.newerMax > 0 {
		d.out.MaxOutputTokens = d.newerMax
	}
	return &d.out, nil
}

// decoder reads a request that Parse has let pass: what the gateway acts on is
// known to be of the right type, all else is looked at here.
type decoder struct {
	out      neutral.Request
	newerMax int64
	// toolNames are the tools' names by the ids of their calls: results here have the
	// id alone.
	toolNames map[string]string
	// results is set while the last message holds a turn's tool results, which belong
	// into one message with what the user says next.
	results bool
	err     error
}

func (d *decoder) fail(param, format string, args ...any) {
	if d.err == nil {
		d.err = inbound.Invalid(param, fmt.Sprintf(format, args...))
	}
}

func (d *decoder) field(key string, v gjson.Result) {
	switch key {
	case "messages":
		d.messages(v)
	case "system":
		// Anthropic's, which some editors send here.
		d.out.System = append(d.parts("system", v), d.out.System...)
	case "tools", "functions":
		d.tools(key, v)
	case "tool_choice", "function_call":
		d.choice(v)
	case "parallel_tool_calls":
		d.out.ParallelCalls = boolean(v)
	case "response_format":
		d.format(v)
	case "reasoning_effort":
		d.effort(v.Str)
	case "reasoning":
		d.reasoning(v)
	case "max_tokens":
		d.out.MaxOutputTokens, _ = rawjson.Integer(v)
	case "max_completion_tokens":
		d.newerMax, _ = rawjson.Integer(v)
	case "stop":
		d.stop(v)
	case "stream":
		d.out.Stream = v.Bool()
	case "user":
		d.out.User = v.Str
	case "metadata":
		d.out.Metadata = json.RawMessage(v.Raw)
	default:
		d.sampling(key, v)
	}
}

func (d *decoder) sampling(key string, v gjson.Result) {
	s := &d.out.Sampling
	knob, ok := map[string]*json.Number{
		"temperature": &s.Temperature, "top_p": &s.TopP, "top_k": &s.TopK, "seed": &s.Seed,
		"frequency_penalty": &s.FrequencyPenalty, "presence_penalty": &s.PresencePenalty,
	}[key]
	switch {
	case !ok:
	case v.Type != gjson.Number:
		d.fail(key, "The field %s must be a number.", key)
	default:
		*knob = json.Number(v.Raw)
	}
}

func boolean(v gjson.Result) *bool {
	if !v.IsBool() {
		return nil
	}
	b := v.Bool()
	return &b
}

func (d *decoder) stop(v gjson.Result) {
	if v.Type == gjson.String {
		d.out.Stop = []string{v.Str}
		return
	}
	i := 0
	each(v, func(v gjson.Result) bool {
		if v.Type != gjson.String {
			d.fail("stop["+strconv.Itoa(i)+"]", "Each of stop must be a string.")
			return false
		}
		d.out.Stop = append(d.out.Stop, v.Str)
		i++
		return true
	})
}

func (d *decoder) format(v gjson.Result) {
	switch v.Get("type").Str {
	case "json_object":
		d.out.Format = &neutral.Format{}
	case "json_schema":
		s := v.Get("json_schema")
		d.out.Format = &neutral.Format{
			Name: s.Get("name").Str, Description: s.Get("description").Str,
			Schema: rawOf(s.Get("schema")), Strict: boolean(s.Get("strict")),
		}
	}
}

// rawOf is a value as it stands, nil where there is none.
func rawOf(v gjson.Result) json.RawMessage {
	if rawjson.IsNull(v) {
		return nil
	}
	return json.RawMessage(v.Raw)
}

func (d *decoder) options() *neutral.ReasoningOptions {
	if d.out.Reasoning == nil {
		d.out.Reasoning = &neutral.ReasoningOptions{}
	}
	return d.out.Reasoning
}

func (d *decoder) effort(effort string) {
	switch effort {
	case "":
	case "none":
		d.options().Disabled = true
	default:
		d.options().Effort = effort
	}
}

// reasoning is OpenRouter's form.
func (d *decoder) reasoning(v gjson.Result) {
	if v.Get("enabled").Type == gjson.False {
		d.options().Disabled = true
		return
	}
	d.effort(v.Get("effort").Str)
	if n, ok := rawjson.Integer(v.Get("max_tokens")); ok && n > 0 {
		d.options().BudgetTokens = n
	}
	d.options()
}

func (d *decoder) tools(key string, list gjson.Result) {
	i := 0
	each(list, func(tool gjson.Result) bool {
		at := key + "[" + strconv.Itoa(i) + "]"
		i++
		f := tool.Get("function")
		if !f.IsObject() {
			// The older form, and Anthropic's, which some editors send here.
			f = tool
		}
		schema := f.Get("parameters")
		if !schema.Exists() {
			schema = f.Get("input_schema")
		}
		t := neutral.ToolDefinition{
			Name: f.Get("name").Str, Description: f.Get("description").Str, Schema: rawOf(schema),
			Strict: boolean(f.Get("strict")), Cache: cacheMarker(tool.Get("cache_control")),
		}
		switch {
		case t.Name == "":
			d.fail(at+".function.name", "A tool must have a name.")
		case t.Schema != nil && !schema.IsObject():
			d.fail(at+".function.parameters", "The parameters of a tool must be a JSON schema.")
		}
		d.out.Tools = append(d.out.Tools, t)
		return d.err == nil
	})
}

// choice reads tool_choice and its older form. An empty object is what some editors
// send for "as you like".
func (d *decoder) choice(v gjson.Result) {
	c := &d.out.Choice
	if v.IsObject() {
		name := v.Get("function.name").Str
		if name == "" {
			name = v.Get("name").Str
		}
		if name != "" {
			*c = neutral.ToolChoice{Mode: neutral.ChoiceNamed, Name: name}
		}
		return
	}
	mode, ok := map[string]neutral.ChoiceMode{
		"auto": neutral.ChoiceAuto, "none": neutral.ChoiceNone, "required": neutral.ChoiceAny, "any": neutral.ChoiceAny,
	}[v.Str]
	if !ok {
		d.fail("tool_choice", "The field tool_choice must be auto, none, required or a tool.")
	}
	c.Mode = mode
}

// cacheMarker reads Anthropic's cache_control, which OpenRouter and others take in
// this dialect too (P6).
func cacheMarker(v gjson.Result) *neutral.CacheMarker {
	if !v.IsObject() {
		return nil
	}
	return &neutral.CacheMarker{TTL: v.Get("ttl").Str}
}

// mediaOf reads a data URL or an address.
func (d *decoder) mediaOf(param, url string) neutral.Media {
	if !strings.HasPrefix(url, "data:") {
		if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			d.fail(param, "The field %s must be an http or https URL, or a data URL.", param)
		}
		return neutral.Media{URL: url}
	}
	mediaType, data, ok := dialect.DataURL(url)
	if !ok || mediaType == "" {
		d.fail(param, "The field %s must be a data URL with a media type and valid base64.", param)
	}
	return neutral.Media{Type: mediaType, Base64: data}
}
