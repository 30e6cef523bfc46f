package messages

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// proof is a translation, and what it must and must not have in it.
type proof struct{ body, has, hasNot string }

func walkRows(t *testing.T, is func(d dialect.Dropped) bool, proofs map[string]proof) {
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

// Every row of the table about this side is sent, and what is said of it happens.
//
// Rules: P5.
func TestWhatIsDroppedToMessages_P5(t *testing.T) {
	to := func(edit func(n *neutral.Request)) string {
		n := neutralOf(t, `{"model":"m","max_tokens":9000,"messages":[{"role":"user","content":"x"}]}`)
		edit(n)
		return string(built(t, foreign(n), dialect.Target{}).Body)
	}
	said := func(parts ...neutral.Part) func(n *neutral.Request) {
		return func(n *neutral.Request) {
			n.Messages = append(n.Messages, neutral.Message{Role: neutral.Assistant, Parts: append(parts, neutral.Part{Kind: neutral.TextPart, Text: "ok"})})
		}
	}
	sampling := func(s neutral.Sampling) string { return to(func(n *neutral.Request) { n.Sampling = s }) }
	walkRows(t, func(d dialect.Dropped) bool { return d.To == neutral.Messages }, map[string]proof{
		"reasoning of earlier turns": {to(said(neutral.Part{Kind: neutral.ReasoningPart, Text: "THOUGHT", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Generate, Signature: "S"}})), `"text":"ok"`, "THOUGHT"},
		"reasoning effort":           {to(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{Effort: "high"} }), `"budget_tokens":6750`, "effort"},
		"reasoning summary":          {to(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{Effort: "low", Summary: "SUMMARY"} }), `"budget_tokens":2048`, "SUMMARY"},
		"temperature":                {sampling(neutral.Sampling{Temperature: "1.7"}), `"temperature":1}`, ""},
		"top_p":                      {sampling(neutral.Sampling{Temperature: "0.7", TopP: "0.5"}), `"temperature":0.7`, "top_p"},
		"seed":                       {sampling(neutral.Sampling{Seed: "777"}), `"model"`, "777"},
		"penalties":                  {sampling(neutral.Sampling{FrequencyPenalty: "0.777", PresencePenalty: "0.777"}), `"model"`, "0.777"},
		"blank texts":                {to(said(neutral.Part{Kind: neutral.TextPart, Text: " \n"})), `[{"type":"text","text":"ok"}]`, ""},
		"blank stop sequences":       {to(func(n *neutral.Request) { n.Stop = []string{"\n", "END"} }), `"stop_sequences":["END"]`, ""},
		"JSON without a schema":      {to(func(n *neutral.Request) { n.Format = &neutral.Format{} }), `"model"`, "output_config"},
		"name of a schema":           {to(func(n *neutral.Request) { n.Format = &neutral.Format{Name: "NAME", Schema: json.RawMessage(`{}`)} }), `"schema":{}`, "NAME"},
		"image detail": {to(func(n *neutral.Request) {
			n.Messages[0].Parts[0] = neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{URL: "https://x", Detail: "DETAIL"}}
		}), `"url":"https://x"`, "DETAIL"},
		"arguments that are no JSON object": {to(said(neutral.Part{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "c", Name: "f", Arguments: `{"a":`}})), `"input":{"arguments":"{\"a\":"}`, ""},
		"ids of calls in other letters":     {to(said(neutral.Part{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "f:1", Name: "f"}})), `"id":"f_3a1"`, "f:1"},
		"metadata":                          {to(func(n *neutral.Request) { n.Metadata = json.RawMessage(`{"k":"META"}`) }), `"model"`, "META"},
		"the end user":                      {to(func(n *neutral.Request) { n.User = "USER-1" }), `"model"`, "USER-1"},
	})
}

// Every row of the table about callers of this side.
//
// Rules: P5.
func TestWhatIsDroppedFromMessages_P5(t *testing.T) {
	from := func(body string) string {
		all, err := json.Marshal(neutralOf(t, body))
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	block := func(b string) string { return from(`{"model":"m","messages":[{"role":"user","content":[` + b + `]}]}`) }
	top := func(m string) string {
		return from(`{"model":"m","messages":[{"role":"user","content":"x"}],` + m + `}`)
	}
	walkRows(t, func(d dialect.Dropped) bool { return d.From == neutral.Messages }, map[string]proof{
		"system attribution block":   {top(`"system":[{"type":"text","text":"x-anthropic-billing-header: DROPPED"},{"type":"text","text":"kept"}]`), "kept", "DROPPED"},
		"document title and context": {block(`{"type":"document","title":"T1","context":"C1","source":{"type":"base64","media_type":"application/pdf","data":"QQ=="}}`), `"Text":"C1"`, `"Text":"T1"`},
		"search results":             {block(`{"type":"search_result","title":"T1","source":"https://s","content":[{"type":"text","text":"found"}]}`), `"Text":"T1\nhttps://s"`, ""},
		"citations":                  {block(`{"type":"text","text":"kept","citations":[{"cited_text":"DROPPED"}]}`), "kept", "DROPPED"},
		"context_management":         {top(`"context_management":{"edits":["DROPPED"]}`), `"x"`, "DROPPED"},
		"service_tier":               {top(`"service_tier":"DROPPED"`), `"x"`, "DROPPED"},
		"fields that nobody knows":   {top(`"future":"DROPPED"`), `"x"`, "DROPPED"},
	})
}
