package responses

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// proof is what became of a field: a text that has something and lacks something.
type proof struct{ body, has, hasNot string }

// understood is a request of this dialect as others see it, in JSON.
func understood(t *testing.T, fields string) string {
	t.Helper()
	req, err := Inbound{}.Parse([]byte(`{"model":"m",` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	n, err := req.Neutral()
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Rules: P5.
func TestWhatOthersAreNotToldOf_P5(t *testing.T) {
	hi := func(fields string) string { return understood(t, `"input":"said",`+fields) }
	answer := encoded(t, asking(), []neutral.Event{{Kind: neutral.Image}, says(neutral.Text, "said"), {Kind: neutral.Stop, Stop: neutral.StopEnd}})
	seal := `"input":[{"role":"user","content":"said"},{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}]`
	walk(t, func(d dialect.Dropped) bool { return d.From == neutral.Responses }, map[string]proof{
		"include":                               {hi(`"include":["file_search_call.results"]`), "said", "file_search"},
		"truncation":                            {hi(`"truncation":"auto"`), "said", "auto"},
		"text.verbosity":                        {hi(`"text":{"verbosity":"low"}`), "said", "low"},
		"max_tool_calls":                        {hi(`"max_tool_calls":77`), "said", "77"},
		"stream_options":                        {hi(`"stream_options":{"include_obfuscation":false}`), "said", "obfuscation"},
		"service_tier":                          {hi(`"service_tier":"flex"`), "said", "flex"},
		"store":                                 {hi(`"store":true`), "said", "tore"},
		"prompt_cache_key":                      {hi(`"prompt_cache_key":"pck"`), "said", "pck"},
		"safety_identifier":                     {hi(`"safety_identifier":"u1"`), `"User":"u1"`, "afety"},
		"input[].encrypted_content":             {understood(t, seal), `"Issuer":"responses"`, ""},
		"input[] instructions between messages": {understood(t, `"input":[{"role":"user","content":"said"},{"role":"developer","content":"rule"}]`), `"System":[{"Kind":1,"Text":"rule"`, `{"Role":"developer"`},
		"images in an answer":                   {answer.sent, "said", "image"},
		"fields that nobody knows":              {hi(`"future":"tense"`), "said", "tense"},
	})
}

// Rules: P5.
func TestWhatIsNotToldHere_P5(t *testing.T) {
	up := func(r neutral.Request) string { return build(t, asked(&r), dialect.Target{}) }
	said := []neutral.Message{{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: "said", Cache: &neutral.CacheMarker{TTL: "1h"}}}}}
	thought := neutral.Part{Kind: neutral.ReasoningPart, Text: "thought", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "sig"}}
	wrong := neutral.Part{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "a", IsError: true, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: "boom"}}}}
	text := func(s string) neutral.Part { return neutral.Part{Kind: neutral.TextPart, Text: s} }
	walk(t, func(d dialect.Dropped) bool { return d.To == neutral.Responses }, map[string]proof{
		"stop sequences":                   {up(neutral.Request{Stop: []string{"halt"}}), "model", "halt"},
		"top_k":                            {up(neutral.Request{Sampling: neutral.Sampling{TopK: "77"}}), "model", "77"},
		"seed":                             {up(neutral.Request{Sampling: neutral.Sampling{Seed: "77"}}), "model", "77"},
		"penalties":                        {up(neutral.Request{Sampling: neutral.Sampling{FrequencyPenalty: "77", PresencePenalty: "77"}}), "model", "77"},
		"reasoning of earlier turns":       {up(neutral.Request{Messages: []neutral.Message{{Role: neutral.Assistant, Parts: []neutral.Part{thought, text("said")}}}}), "said", "thought"},
		"reasoning budget in tokens":       {up(neutral.Request{Reasoning: &neutral.ReasoningOptions{BudgetTokens: 2049}}), `"effort":"medium"`, "2049"},
		"limits of output under 16 tokens": {up(neutral.Request{MaxOutputTokens: 3}), `"max_output_tokens":16`, ""},
		"cache markers":                    {up(neutral.Request{Messages: said}), "said", "1h"},
		"tool result is_error":             {up(neutral.Request{Messages: []neutral.Message{{Role: neutral.User, Parts: []neutral.Part{wrong}}}}), "boom", "rror"},
		"several texts of instructions":    {up(neutral.Request{System: []neutral.Part{text("one"), text("two")}}), `"instructions":"one\n\ntwo"`, ""},
		"name of a schema":                 {up(neutral.Request{Format: &neutral.Format{Schema: []byte(`{}`)}}), `"name":"response"`, ""},
		"strict":                           {up(neutral.Request{Tools: []neutral.ToolDefinition{{Name: "f"}}}), `"strict":false`, ""},
		"metadata":                         {up(neutral.Request{Metadata: []byte(`{"meta":"data"}`)}), "model", "data"},
		"the end user":                     {up(neutral.Request{User: "somebody"}), "model", "somebody"},
	})
}

// walk holds each row of the table against its proof, and each proof against the table.
func walk(t *testing.T, is func(dialect.Dropped) bool, proofs map[string]proof) {
	t.Helper()
	for _, d := range dialect.DroppedTable() {
		if !is(d) {
			continue
		}
		p, ok := proofs[d.Field]
		if !ok {
			t.Errorf("nobody proves what becomes of %q", d.Field)
			continue
		}
		delete(proofs, d.Field)
		if !strings.Contains(p.body, p.has) || (p.hasNot != "" && strings.Contains(p.body, p.hasNot)) {
			t.Errorf("%s (%s): %s", d.Field, d.What, p.body)
		}
	}
	for field := range proofs {
		t.Errorf("%q is not in the table", field)
	}
}
