package converse

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// What the table says of a field is what happens (P5): each row is a request and what
// stands in its body, or does not.
func TestDroppedTable_P5(t *testing.T) {
	checks := droppedChecks()
	for _, row := range dialect.DroppedTable() {
		if row.To != neutral.Converse {
			continue
		}
		check, ok := checks[row.Field]
		if !ok {
			t.Errorf("nothing checks the row %q", row.Field)
			continue
		}
		delete(checks, row.Field)
		t.Run(row.Field, func(t *testing.T) {
			n := simple()
			check.edit(n)
			tg := target()
			if check.model != "" {
				tg.UpstreamModel = check.model
			}
			body := string(build(t, n, tg).Body)
			for _, want := range check.has {
				if !strings.Contains(body, want) {
					t.Errorf("%s is not in %s", want, body)
				}
			}
			for _, gone := range check.lacks {
				if strings.Contains(body, gone) {
					t.Errorf("%s is in %s", gone, body)
				}
			}
		})
	}
	for field := range checks {
		t.Errorf("no row for %q", field)
	}
}

type droppedCheck struct {
	model      string
	edit       func(n *neutral.Request)
	has, lacks []string
}

func droppedChecks() map[string]droppedCheck {
	yes, no := true, false
	sampling := func(s neutral.Sampling) func(*neutral.Request) {
		return func(n *neutral.Request) { n.Sampling = s }
	}
	reasoning := func(r neutral.ReasoningOptions) func(*neutral.Request) {
		return func(n *neutral.Request) { n.Reasoning, n.MaxOutputTokens = &r, 4000 }
	}
	says := func(parts ...neutral.Part) func(*neutral.Request) {
		return func(n *neutral.Request) { n.Messages[0].Parts = append(n.Messages[0].Parts, parts...) }
	}
	calls := func(call neutral.ToolCall, result neutral.ToolResult) func(*neutral.Request) {
		return func(n *neutral.Request) {
			n.Messages = append(n.Messages,
				neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{{Kind: neutral.ToolCallPart, Call: call}}},
				neutral.Message{Role: neutral.User, Parts: []neutral.Part{text("and"), {Kind: neutral.ToolResultPart, Result: result}}})
		}
	}
	once := calls(neutral.ToolCall{ID: "t", Name: "f", Arguments: "{}"}, neutral.ToolResult{CallID: "t"})
	document := neutral.Part{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "aGkh", Name: "ü?.pdf"}}
	return map[string]droppedCheck{
		"reasoning of earlier turns": {edit: func(n *neutral.Request) {
			n.Messages = append(n.Messages, neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{
				text("a"),
				{Kind: neutral.ReasoningPart, Text: "plain"},
				{Kind: neutral.ReasoningPart, Text: "foreign", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "s"}},
				{Kind: neutral.ReasoningPart, Text: "own", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Converse, Signature: "s"}},
			}})
		}, has: []string{"own"}, lacks: []string{"plain", "foreign"}},
		"reasoning effort":           {edit: reasoning(neutral.ReasoningOptions{Effort: "high"}), has: []string{`"budget_tokens":3000`}},
		"reasoning budget in tokens": {model: "anthropic.claude-opus-4-7", edit: reasoning(neutral.ReasoningOptions{BudgetTokens: 2000}), has: []string{`{"effort":"low"}`}, lacks: []string{"budget"}},
		"reasoning summary":          {edit: reasoning(neutral.ReasoningOptions{Effort: "low", Summary: "auto"}), lacks: []string{"auto", "summary"}},
		"cache markers": {model: "anthropic.claude-sonnet-4-20250514-v1:0", edit: func(n *neutral.Request) {
			n.Messages[0].Parts[0].Cache = &neutral.CacheMarker{TTL: "1h"}
		}, has: []string{`{"text":"Hi"},{"cachePoint":{"type":"default"}}`}, lacks: []string{"ttl"}},
		"temperature":         {edit: sampling(neutral.Sampling{Temperature: "1.7"}), has: []string{`"temperature":1}`}},
		"top_p":               {edit: sampling(neutral.Sampling{Temperature: "0.7", TopP: "0.3"}), has: []string{"0.7"}, lacks: []string{"0.3"}},
		"top_k":               {model: "meta.llama3-1-70b-instruct-v1:0", edit: sampling(neutral.Sampling{TopK: "17"}), lacks: []string{"17"}},
		"seed":                {edit: sampling(neutral.Sampling{Seed: "1234"}), lacks: []string{"1234"}},
		"penalties":           {edit: sampling(neutral.Sampling{FrequencyPenalty: "0.31", PresencePenalty: "0.32"}), lacks: []string{"0.3"}},
		"parallel_tool_calls": {edit: func(n *neutral.Request) { n.Tools, n.ParallelCalls = []neutral.ToolDefinition{{Name: "f"}}, &no }, lacks: []string{"arallel"}},
		"strict": {model: "amazon.nova-pro-v1:0", edit: func(n *neutral.Request) {
			n.Tools = []neutral.ToolDefinition{{Name: "f", Strict: &yes}}
		}, lacks: []string{"strict"}},
		"tool_choice none": {edit: func(n *neutral.Request) {
			once(n)
			n.Tools, n.Choice.Mode = []neutral.ToolDefinition{{Name: "f"}}, neutral.ChoiceNone
		}, has: []string{noToolInstruction, `"toolSpec"`}, lacks: []string{"toolChoice"}},
		"calls without tools":  {edit: once, has: []string{noToolInstruction, `"toolSpec":{"name":"f"`}},
		"tool result is_error": {model: "meta.llama3-1-70b-instruct-v1:0", edit: calls(neutral.ToolCall{ID: "t"}, neutral.ToolResult{CallID: "t", IsError: true}), lacks: []string{`"status"`}},
		"JSON without a schema": {edit: func(n *neutral.Request) {
			n.Format = &neutral.Format{}
		}, has: []string{jsonInstruction}, lacks: []string{"outputConfig"}},
		"arguments that are no JSON object": {edit: calls(neutral.ToolCall{ID: "t", Arguments: `{"a`}, neutral.ToolResult{CallID: "t"}), has: []string{`"input":{"arguments":"{\"a"}`}},
		"ids of calls in other letters":     {edit: calls(neutral.ToolCall{ID: "f:0"}, neutral.ToolResult{CallID: "f:0"}), has: []string{callID("f:0")}, lacks: []string{"f:0"}},
		"order within a turn":               {edit: once, has: []string{`"content":[{"toolResult":{"toolUseId":"t","content":[]}},{"text":"and"}]`}},
		"a conversation that the assistant begins": {edit: func(n *neutral.Request) {
			n.Messages[0].Role = neutral.Assistant
		}, has: []string{`[{"role":"user","content":[{"text":"Begin."}]},{"role":"assistant"`}},
		"file names":   {edit: says(document, document), has: []string{`"name":"document"`, `"name":"document 2"`}},
		"image detail": {edit: says(neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: "aGkh", Detail: "low"}}), lacks: []string{"low"}},
		"blank texts":  {edit: says(text(" ")), lacks: []string{`{"text":" "}`}},
		"blank stop sequences": {edit: func(n *neutral.Request) {
			n.Stop = []string{" "}
		}, lacks: []string{"stop"}},
		"metadata":     {edit: func(n *neutral.Request) { n.Metadata = json.RawMessage(`{"k":"kept?"}`) }, lacks: []string{"kept?"}},
		"the end user": {edit: func(n *neutral.Request) { n.User = "somebody" }, lacks: []string{"somebody"}},
	}
}

// A feature that the dialect cannot say keeps a request away from it: a picture by its
// address would have to be fetched.
//
// Rules: P5.
func TestFeaturesThatAreNotCarried_P5(t *testing.T) {
	for _, f := range dialect.Features() {
		if f != dialect.Vectors && dialect.Carries(f, neutral.Chat, neutral.Converse) {
			t.Errorf("%s is said to be carried", f)
		}
	}
	if !gjson.ValidBytes(build(t, simple(), target()).Body) {
		t.Error("a plain request is not carried")
	}
}
