package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// everything is a request that uses all that this dialect can say.
func everything() *neutral.Request {
	strict := true
	return &neutral.Request{
		System: []neutral.Part{said("Be brief."), said("Be \"kind\".")},
		Messages: []neutral.Message{
			user(said("What is this?"), picture("AAAA")),
			user(said("And the weather?"), neutral.Part{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "BBBB", Name: "a.pdf"}}),
			assistant(
				neutral.Part{Kind: neutral.ReasoningPart, Text: "THOUGHT", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Generate, ID: onCall, Signature: "SIG-1"}},
				called("c1", "weather", `{"city":"Graz"}`), called("c2", "weather", "")),
			user(answered("c2", "", said("rain")), answered("c1", "weather", said("sun"), picture("CCCC")), said("So?")),
			assistant(said("Sun."), sealed("", "SIG-2")),
			user(neutral.Part{Kind: neutral.AudioPart, Media: neutral.Media{Type: "audio/wav", Base64: "DDDD"}}),
		},
		Tools: []neutral.ToolDefinition{
			{Name: "weather", Description: "Tells the weather.", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`), Strict: &strict},
			{Name: "now", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
		},
		Choice:    neutral.ToolChoice{Mode: neutral.ChoiceNamed, Name: "weather"},
		Format:    &neutral.Format{Name: "answer", Schema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":["string","null"]}}}`)},
		Reasoning: &neutral.ReasoningOptions{Effort: "medium"}, MaxOutputTokens: 500,
		Sampling: neutral.Sampling{Temperature: "0.70", TopP: "1e-1", TopK: "40", Seed: "7", FrequencyPenalty: "0.5", PresencePenalty: "-1"},
		Stop:     []string{"END", "\n"}, Stream: true,
	}
}

// Rules: P3.
func TestBuildGolden_P3(t *testing.T) {
	for _, model := range []string{"gemini-2.5-flash", "gemini-3-pro-preview", "gemini-2.0-flash"} {
		body := build(t, everything(), model)
		golden(t, "build-"+model+".json", []byte(body+"\n"))
		if again := build(t, everything(), model); again != body {
			t.Error("the same request gave other bytes (P12)")
		}
	}
}

// Rules: Z4.
func TestRequestLine_Z4(t *testing.T) {
	vertex := `{"type":"service_account","project_id":"p1"}`
	tests := []struct{ name, base, secret, model, want string }{
		{"host alone", geminiBase, "k", "gemini-2.5-pro", geminiBase + "/v1beta/models/gemini-2.5-pro:generateContent"},
		{"with a version", geminiBase + "/v1/", "k", "models/gemini-2.5-pro", geminiBase + "/v1/models/gemini-2.5-pro:generateContent"},
		{"tuned", geminiBase, "k", "tunedModels/mine", geminiBase + "/v1beta/tunedModels/mine:generateContent"},
		{"behind a proxy", "https://proxy.test/google?a=b", "k", "m", "https://proxy.test/google/v1beta/models/m:generateContent?a=b"},
		{"region by host", "https://us-central1-aiplatform.googleapis.com", vertex, "gemini-2.5-pro", "https://us-central1-aiplatform.googleapis.com/v1/projects/p1/locations/us-central1/publishers/google/models/gemini-2.5-pro:generateContent"},
		{"global", "https://aiplatform.googleapis.com/v1beta1", vertex, "publishers/meta/models/x", "https://aiplatform.googleapis.com/v1beta1/projects/p1/locations/global/publishers/meta/models/x:generateContent"},
		{"project by path", "https://aiplatform.googleapis.com/v1/projects/p2/locations/eu", vertex, "endpoints/12", "https://aiplatform.googleapis.com/v1/projects/p2/locations/eu/endpoints/12:generateContent"},
		{"express mode", "https://aiplatform.googleapis.com", "k", "gemini-2.5-pro", "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-2.5-pro:generateContent"},
		{"a full name", "https://aiplatform.googleapis.com", vertex, "projects/p3/locations/l/endpoints/1", "https://aiplatform.googleapis.com/v1/projects/p3/locations/l/endpoints/1:generateContent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := foreign(&neutral.Request{Messages: []neutral.Message{user(said("x"))}})
			up, err := Outbound{}.Build(req, dialect.Target{BaseURL: tt.base, Secret: tt.secret, UpstreamModel: tt.model, IdempotencyKey: "i"})
			if err != nil {
				t.Fatal(err)
			}
			if up.URL != tt.want {
				t.Errorf("got  %s\nwant %s", up.URL, tt.want)
			}
			key := up.Header.Get("X-Goog-Api-Key")
			if (tt.secret == "k") != (key == "k") || strings.Contains(fmt.Sprint(up.Header), "service_account") {
				t.Errorf("key = %q", key)
			}
			streamed, err := Outbound{}.Build(req, dialect.Target{BaseURL: tt.base, UpstreamModel: tt.model, Stream: true})
			if err != nil || !strings.Contains(streamed.URL, ":streamGenerateContent?") || !strings.Contains(streamed.URL, "alt=sse") {
				t.Errorf("%v: %s", err, streamed.URL)
			}
		})
	}
	for _, base := range []string{"", "ftp://x", "x.test", "https://"} {
		if _, err := (Outbound{}).Build(foreign(&neutral.Request{}), dialect.Target{BaseURL: base}); err == nil {
			t.Errorf("base URL %q was taken", base)
		}
	}
}

// What a request cannot be made of is an error, never a request without it.
//
// Rules: P5, N21.
func TestWhatCannotBeSaid_P5_N21(t *testing.T) {
	for name, part := range map[string]neutral.Part{
		"an address to fetch": {Kind: neutral.ImagePart, Media: neutral.Media{URL: "https://x.test/a.png"}},
		"an inner address":    {Kind: neutral.DocumentPart, Media: neutral.Media{URL: "http://169.254.169.254/"}},
		"another's file":      {Kind: neutral.DocumentPart, Media: neutral.Media{FileID: "file-1"}},
		"an unknown kind":     {Kind: 99},
	} {
		_, err := write(&neutral.Request{Messages: []neutral.Message{user(part)}}, dialect.Target{UpstreamModel: "m"}, 0)
		if _, ok := errors.AsType[*unsayableError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Outbound{}).Build(&dialect.Request{Dialect: neutral.Chat}, dialect.Target{BaseURL: geminiBase}); err == nil {
		t.Error("a request that nobody can decode was built")
	}
	// Features keep the usual ones from coming here at all.
	for _, f := range []dialect.Feature{dialect.ImageURLs, dialect.DocumentURLs, dialect.StoredFiles, dialect.ServerTools, dialect.SeveralChoices} {
		if dialect.Carries(f, neutral.Chat, neutral.Generate) {
			t.Errorf("%s is said to be carried", f)
		}
	}
	body := build(t, &neutral.Request{Messages: []neutral.Message{user(
		neutral.Part{Kind: neutral.DocumentPart, Media: neutral.Media{URL: "gs://bucket/a.pdf", Type: "application/pdf"}},
	)}}, "m")
	if !strings.Contains(body, `{"fileData":{"mimeType":"application/pdf","fileUri":"gs://bucket/a.pdf"}}`) {
		t.Error(body)
	}
}

func TestThinking(t *testing.T) {
	tests := []struct {
		model  string
		ask    neutral.ReasoningOptions
		config string
	}{
		{"gemini-2.5-flash", neutral.ReasoningOptions{Effort: "low"}, `{"thinkingBudget":1024,"includeThoughts":true}`},
		{"gemini-2.5-pro", neutral.ReasoningOptions{Effort: "high"}, `{"thinkingBudget":24576,"includeThoughts":true}`},
		{"gemini-2.5-pro", neutral.ReasoningOptions{BudgetTokens: 100_000}, `{"thinkingBudget":32768,"includeThoughts":true}`},
		{"gemini-2.5-flash", neutral.ReasoningOptions{BudgetTokens: 100_000}, `{"thinkingBudget":24576,"includeThoughts":true}`},
		{"gemini-2.5-flash-lite", neutral.ReasoningOptions{BudgetTokens: 10}, `{"thinkingBudget":512,"includeThoughts":true}`},
		{"gemini-2.5-flash", neutral.ReasoningOptions{Disabled: true}, `{"thinkingBudget":0}`},
		{"gemini-2.5-pro", neutral.ReasoningOptions{Disabled: true}, `{"thinkingBudget":128}`},
		{"gemini-3-pro-preview", neutral.ReasoningOptions{Effort: "medium"}, `{"thinkingLevel":"high","includeThoughts":true}`},
		{"gemini-3.1-pro-preview", neutral.ReasoningOptions{Effort: "medium"}, `{"thinkingLevel":"medium","includeThoughts":true}`},
		{"gemini-3-flash", neutral.ReasoningOptions{Effort: "minimal"}, `{"thinkingLevel":"minimal","includeThoughts":true}`},
		{"publishers/google/models/gemini-3-pro", neutral.ReasoningOptions{Disabled: true}, `{"thinkingLevel":"low"}`},
		{"gemini-3-flash", neutral.ReasoningOptions{BudgetTokens: 4000}, `{"thinkingBudget":4000,"includeThoughts":true}`},
		{"gemini-flash-latest", neutral.ReasoningOptions{Effort: "xhigh"}, `{"thinkingBudget":24576,"includeThoughts":true}`},
		{"gemini-2.5-pro", neutral.ReasoningOptions{}, `{"includeThoughts":true}`},
		{"gemini-2.0-flash", neutral.ReasoningOptions{Effort: "high"}, ""},
		{"gemini-1.5-pro", neutral.ReasoningOptions{Disabled: true}, ""},
	}
	for _, tt := range tests {
		body := build(t, &neutral.Request{Messages: []neutral.Message{user(said("x"))}, Reasoning: &tt.ask}, tt.model)
		if got := gjson.Get(body, "generationConfig.thinkingConfig").Raw; got != tt.config {
			t.Errorf("%s %+v: %s, want %s", tt.model, tt.ask, got, tt.config)
		}
	}
}

// Calls of a turn in a history from elsewhere: the third generation wants a signature
// on the first one. Google's own is sent where there is one, and to nobody's else.
//
// Rules: K4, K5.
func TestCallsWithoutSignatures_K4_K5(t *testing.T) {
	history := func(parts ...neutral.Part) *neutral.Request {
		return &neutral.Request{Messages: []neutral.Message{user(said("q")), assistant(parts...)}}
	}
	two := []neutral.Part{called("a", "f", "{}"), called("b", "f", "{}")}
	anthropic := neutral.Part{Kind: neutral.ReasoningPart, Text: "hm", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "OTHERS"}}
	signatures := func(body string) (list []string) {
		for _, p := range gjson.Get(body, "contents.1.parts").Array() {
			list = append(list, p.Get("thoughtSignature").Str)
		}
		return list
	}
	tests := []struct {
		name, model string
		parts       []neutral.Part
		want        []string
	}{
		{"elsewhere, third", "gemini-3-pro", append([]neutral.Part{anthropic}, two...), []string{anySignature, ""}},
		{"elsewhere, second", "gemini-2.5-pro", append([]neutral.Part{anthropic}, two...), []string{"", ""}},
		{"Google's", "gemini-3-pro", append([]neutral.Part{sealed(onCall, "S")}, two...), []string{"S", ""}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, signatures(build(t, history(tt.parts...), tt.model))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	// Once it was not accepted it is left out, for the call's sake not without a word.
	body, err := write(history(append([]neutral.Part{sealed(onCall, "S")}, two...)...), dialect.Target{UpstreamModel: "gemini-3-pro", WithoutSeals: true}, 0)
	if diff := cmp.Diff([]string{anySignature, ""}, signatures(string(body))); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// Every row of the table about this side is sent, and what is said of it happens.
//
// Rules: P5.
func TestWhatIsDroppedToGemini_P5(t *testing.T) {
	plain := func(edit func(n *neutral.Request)) string {
		n := &neutral.Request{Messages: []neutral.Message{user(said("x"))}}
		edit(n)
		return build(t, n, "gemini-2.5-flash")
	}
	history := func(parts ...neutral.Part) func(*neutral.Request) {
		return func(n *neutral.Request) { n.Messages = append(n.Messages, assistant(parts...)) }
	}
	schema := func(schema string) func(*neutral.Request) {
		return func(n *neutral.Request) {
			n.Tools = []neutral.ToolDefinition{{Name: "f", Schema: json.RawMessage(schema)}}
		}
	}
	yes := true
	rows := map[string]struct{ body, has, hasNot string }{
		"reasoning of earlier turns": {plain(history(neutral.Part{Kind: neutral.ReasoningPart, Text: "THOUGHT"}, said("ok"))), `[{"text":"ok"}]`, "THOUGHT"},
		"calls without a signature":  {build(t, &neutral.Request{Messages: []neutral.Message{user(said("x")), assistant(called("c", "f", "{}"))}}, "gemini-3-pro"), `"thoughtSignature":"` + anySignature + `"`, ""},
		"reasoning effort":           {plain(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{Effort: "medium"} }), `"thinkingBudget":8192`, "medium"},
		"reasoning budget in tokens": {plain(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{BudgetTokens: 99999} }), `"thinkingBudget":24576`, "99999"},
		"reasoning turned off":       {plain(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{Disabled: true} }), `"thinkingBudget":0`, "includeThoughts"},
		"reasoning summary":          {plain(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{Summary: "SUMMARY"} }), `"includeThoughts":true`, "SUMMARY"},
		"parallel_tool_calls":        {plain(func(n *neutral.Request) { n.ParallelCalls = &yes }), `"contents"`, "arallel"},
		"strict": {plain(func(n *neutral.Request) {
			schema(`{"type":"object","properties":{"a":{"type":"string"}}}`)(n)
			n.Tools[0].Strict = &yes
		}), `"parameters"`, "strict"},
		"const and oneOf in schemas":        {plain(schema(`{"type":"object","properties":{"a":{"oneOf":[{"const":"A"},{"const":7}]}}}`)), `"anyOf":[{"type":"STRING","enum":["A"]},{"type":"INTEGER","description":"One of: 7."}]`, "const"},
		"$ref and allOf in schemas":         {plain(schema(`{"$defs":{"a":{"type":"string"}},"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"description":"d"}]}}}`)), `"properties":{"a":{"type":"STRING","description":"d"}}`, "$"},
		"null in schemas":                   {plain(schema(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`)), `"a":{"type":"STRING","nullable":true}`, "null\""},
		"other keywords of schemas":         {plain(schema(`{"$schema":"DROP","$id":"DROP","title":"DROP","default":"DROP","examples":["DROP"],"additionalProperties":{"title":"DROP"},"patternProperties":{"DROP":{}},"not":{"title":"DROP"},"if":{"title":"DROP"},"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":987654,"exclusiveMaximum":987654,"multipleOf":987654,"format":"DROP"},"b":{"type":"array","uniqueItems":true,"prefixItems":[{"title":"DROP"}],"items":{"type":"string"}}}}`)), `{"type":"OBJECT","properties":{"a":{"type":"NUMBER"},"b":{"type":"ARRAY","items":{"type":"STRING"}}}}`, "987654"},
		"name of a schema":                  {plain(func(n *neutral.Request) { n.Format = &neutral.Format{Name: "NAME"} }), `"responseMimeType":"application/json"`, "NAME"},
		"cache markers":                     {plain(func(n *neutral.Request) { n.Messages[0].Parts[0].Cache = &neutral.CacheMarker{TTL: "1h"} }), `{"text":"x"}`, "ache"},
		"ids of calls":                      {plain(history(called("CALL-ID", "f", "{}"))), `{"functionCall":{"name":"f","args":{}}}`, "CALL-ID"},
		"arguments that are no JSON object": {plain(history(called("c", "f", `[1`))), `"args":{"arguments":"[1"}`, ""},
		"images and documents in tool results": {plain(func(n *neutral.Request) {
			n.Messages = []neutral.Message{user(answered("c", "f", said("see"), picture("AAAA")), answered("d", "g", said("too")))}
		}), `{"functionResponse":{"name":"g","response":{"output":"too"}}},{"text":"Attached to the result of f:"},{"inlineData":`, ""},
		"image detail": {plain(func(n *neutral.Request) {
			p := picture("AAAA")
			p.Media.Detail = "DETAIL"
			n.Messages[0].Parts = []neutral.Part{p}
		}), `"data":"AAAA"`, "DETAIL"},
		"file names": {plain(func(n *neutral.Request) {
			n.Messages[0].Parts = []neutral.Part{{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "AAAA", Name: "NAME"}}}
		}), `"mimeType":"application/pdf"`, "NAME"},
		"blank texts":                    {plain(func(n *neutral.Request) { n.Messages = append(n.Messages, user(said(""))) }), `"parts":[{"text":"x"}]`, `""`},
		"instructions without a message": {plain(func(n *neutral.Request) { n.System, n.Messages = []neutral.Part{said("s")}, nil }), `"contents":[{"role":"user","parts":[{"text":"s"}]}]`, "systemInstruction"},
		"metadata":                       {plain(func(n *neutral.Request) { n.Metadata = json.RawMessage(`{"k":"META"}`) }), `"contents"`, "META"},
		"the end user":                   {plain(func(n *neutral.Request) { n.User = "USER-1" }), `"contents"`, "USER-1"},
	}
	for _, d := range dialect.DroppedTable() {
		if d.To != neutral.Generate {
			continue
		}
		row, ok := rows[d.Field]
		if !ok {
			t.Errorf("nobody proves what becomes of %q", d.Field)
			continue
		}
		delete(rows, d.Field)
		if !strings.Contains(row.body, row.has) || (row.hasNot != "" && strings.Contains(row.body, row.hasNot)) || strings.Contains(row.body, "DROP") {
			t.Errorf("%s (%s): %s", d.Field, d.What, row.body)
		}
	}
	for field := range rows {
		t.Errorf("%q is not in the table", field)
	}
}

// Whatever the conversation, turns alternate, none is empty, every text arrives in its
// order, and results stand in the order of their calls.
//
// Rules: P3, P12.
func TestConversations_P3_P12(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z"\\\n <漢🦥]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		n := &neutral.Request{}
		var texts []string
		calls := 0
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			m := neutral.Message{Role: rapid.SampledFrom([]neutral.Role{neutral.User, neutral.Assistant}).Draw(t, "role")}
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				if m.Role == neutral.Assistant && rapid.Bool().Draw(t, "call") {
					m.Parts = append(m.Parts, called(fmt.Sprint(calls), "f", `{"n":1}`))
					calls++
					continue
				}
				s := word.Draw(t, "text")
				texts = append(texts, s)
				m.Parts = append(m.Parts, said(s))
			}
			n.Messages = append(n.Messages, m)
		}
		body, err := write(n, dialect.Target{UpstreamModel: "gemini-2.5-pro"}, 0)
		if err != nil || !gjson.ValidBytes(body) {
			t.Fatalf("%v: %s", err, body)
		}
		var got []string
		last := ""
		for _, turn := range gjson.GetBytes(body, "contents").Array() {
			if role := turn.Get("role").Str; role == last || turn.Get("parts.#").Int() == 0 {
				t.Fatalf("turns: %s", body)
			} else {
				last = role
			}
			for _, p := range turn.Get("parts").Array() {
				if p.Get("text").Exists() {
					got = append(got, p.Get("text").Str)
				} else {
					calls--
				}
			}
		}
		if diff := cmp.Diff(texts, got); diff != "" || calls != 0 {
			t.Fatalf("%d calls lost, %s", calls, diff)
		}
	})
}

// Between two turns of a conversation nothing before the new turn changes: what a
// provider has in its cache begins with the same bytes (P12).
func TestPrefixStays_P12(t *testing.T) {
	n := everything()
	before := build(t, n, "gemini-3-pro")
	n.Messages = append(n.Messages, assistant(said("more")), user(said("yes?")))
	after := build(t, n, "gemini-3-pro")
	end := strings.Index(before, `],"tools"`)
	if end < 0 || after[:end] != before[:end] {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}
