package poolcheck

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Case is one synthetic request and what its answer is looked at for.
type Case struct {
	Name string
	// Body is a Messages request. Of all dialects this one is carried to every other with
	// what each provider needs: OpenAI's own fields would be passed on to compatible ones
	// that do not know them.
	Body string
	// Whole asks for the answer in one piece, as callers do who do not stream.
	Whole bool
	// Tools check the arguments of the tools that Body offers.
	Tools map[string]func(arguments []byte) bool
	// Structured checks output that Body asks for in a structure.
	Structured func(text []byte) bool
	// StopAt is Body's stop sequence.
	StopAt string
	Demand equivalence.Demand
}

// The names of the synthetic set, as evidence has them.
const (
	TextCase       = "text"
	StructuredCase = "structured_output"
	OneToolCase    = "one_tool"
	TwoToolsCase   = "two_tools"
	LengthCase     = "length"
	StopCase       = "stop_sequence"
)

// Two bounds of output stand in the bodies. 1,024 tokens leave room for a model that
// thinks before it says one sentence. 24 tokens are above the least that a Responses
// request may ask for, 16, and below what the answer needs.

// Synthetic is the set that every deployment is asked: small, fixed, and nobody's.
func Synthetic() []Case {
	text, toolCall, end := neutral.Text.String(), neutral.ToolCallStart.String(), string(neutral.StopEnd)
	return []Case{
		{
			// Several scripts, digits and code: tokenizers that are not the same one count them
			// apart.
			Name: TextCase,
			Body: `{"model":"pool","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":` +
				`"Here are five notes from a ship's log.\n1. At 06:45 the barometer fell from 1013.25 to 998.7 hPa within 37 minutes.\n` +
				`2. Der Maschinist meldete, dass die Kühlwasserpumpe unregelmäßig läuft und überprüft werden muss.\n` +
				`3. 船は午後三時に港を出て、南へ向かった。天気は良く、海は静かだった。\n` +
				`4. Команда проверила груз и подтвердила, что всё закреплено как следует.\n` +
				`5. for (int i = 0; i < buoys.length; i++) { if (buoys[i].lit) { count += 1; } }\n` +
				`Say in one short English sentence which note is about the weather."}]}`,
			Demand: equivalence.Demand{Output: text, Stop: end},
		},
		{
			Name: StructuredCase, Whole: true,
			Body: `{"model":"pool","max_tokens":1024,"messages":[{"role":"user","content":` +
				`"The bakery on Mill Lane sells rye bread for 4 dollars and is open on Sundays. Fill in the record."}],` +
				`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{` +
				`"street":{"type":"string"},"dollars":{"type":"integer"},"open_on_sunday":{"type":"boolean"}},` +
				`"required":["street","dollars","open_on_sunday"],"additionalProperties":false}}}}`,
			Structured: object(map[string]func(any) bool{"street": isText, "dollars": isWhole, "open_on_sunday": isTruth}),
			Demand:     equivalence.Demand{Output: text, Stop: end},
		},
		{
			Name: OneToolCase,
			Body: `{"model":"pool","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":` +
				`"What is the temperature in Oslo now, in celsius? Use the tool."}],` +
				`"tools":[` + temperatureTool + `],"tool_choice":{"type":"any"}}`,
			Tools:  map[string]func([]byte) bool{"get_temperature": temperatureArguments},
			Demand: equivalence.Demand{Output: toolCall, Stop: string(neutral.StopToolCalls), TextBeside: true},
		},
		{
			Name: TwoToolsCase,
			Body: `{"model":"pool","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":` +
				`"What is the temperature in Lima in celsius, and what is the time there? Call both tools at once, one call each."}],` +
				`"tools":[` + temperatureTool + `,` + timeTool + `],"tool_choice":{"type":"any"}}`,
			Tools: map[string]func([]byte) bool{
				"get_temperature": temperatureArguments,
				"get_time":        object(map[string]func(any) bool{"city": isText}),
			},
			Demand: equivalence.Demand{Output: toolCall, Stop: string(neutral.StopToolCalls), TextBeside: true},
		},
		{
			Name: LengthCase,
			Body: `{"model":"pool","max_tokens":24,"stream":true,"messages":[{"role":"user","content":` +
				`"Write the numbers from one to one hundred as words, separated by spaces, and nothing else."}]}`,
			// A model that thinks may spend it all before its first word: no kind of output is
			// asked for.
			Demand: equivalence.Demand{Stop: string(neutral.StopLength), ToTheLimit: true},
		},
		{
			Name: StopCase,
			Body: `{"model":"pool","max_tokens":1024,"stream":true,"stop_sequences":["lazy"],"messages":[{"role":"user","content":` +
				`"Repeat this sentence in lower case and add nothing: the quick brown fox jumps over the lazy dog"}]}`,
			StopAt: "lazy",
			Demand: equivalence.Demand{Output: text, Stop: end},
		},
	}
}

const (
	temperatureTool = `{"name":"get_temperature","description":"The temperature in a city now.","input_schema":{"type":"object",` +
		`"properties":{"city":{"type":"string"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},` +
		`"required":["city","unit"],"additionalProperties":false}}`
	timeTool = `{"name":"get_time","description":"The time in a city now.","input_schema":{"type":"object",` +
		`"properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}`
)

var temperatureArguments = object(map[string]func(any) bool{"city": isText, "unit": isUnit})

// setHash names a set by what it asks.
func setHash(set []Case) string {
	h := sha256.New()
	for _, c := range set {
		_, _ = h.Write([]byte(c.Name + "\x00" + c.Body + "\x00"))
	}
	return equivalence.HashPrefix + hex.EncodeToString(h.Sum(nil))
}

// object is whether JSON is an object of these members, all of them and no others: what
// the schemas above say.
func object(members map[string]func(any) bool) func([]byte) bool {
	return func(text []byte) bool {
		var got map[string]any
		if json.Unmarshal(text, &got) != nil || len(got) != len(members) {
			return false
		}
		for name, is := range members {
			if value, ok := got[name]; !ok || !is(value) {
				return false
			}
		}
		return true
	}
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func isTruth(v any) bool {
	_, ok := v.(bool)
	return ok
}

func isWhole(v any) bool {
	n, ok := v.(float64)
	return ok && n == math.Trunc(n)
}

func isUnit(v any) bool { return v == "celsius" || v == "fahrenheit" }
