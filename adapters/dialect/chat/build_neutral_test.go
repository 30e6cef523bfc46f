package chat

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// asForeign is a request as another dialect would hand it over.
func asForeign(n *neutral.Request) *dialect.Request {
	return &dialect.Request{
		Dialect: neutral.Messages, Stream: n.Stream, Choices: 1,
		Neutral: func() (*neutral.Request, error) { return n, nil },
	}
}

func builtFor(t testing.TB, base string, n *neutral.Request) *dialect.Upstream {
	t.Helper()
	up, err := Outbound{}.Build(asForeign(n), dialect.Target{BaseURL: base, Secret: "s", UpstreamModel: "up/m", Stream: n.Stream})
	if err != nil {
		t.Fatal(err)
	}
	return up
}

func requestOf(t testing.TB, body string) *neutral.Request {
	t.Helper()
	req, err := Inbound{}.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	n, err := req.Neutral()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// One request as each provider gets it. A provider that is not in the table gets what
// nearly all of them take.
//
// Rules: P2, P5.
func TestBuildForEachProvider_P2_P5(t *testing.T) {
	n := requestOf(t, full)
	n.System[2].Cache = &neutral.CacheMarker{TTL: "1h"}
	n.Messages[1].Parts[0].Opaque = neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "sealed-by-another"}
	for name, base := range map[string]string{
		"openai": "https://api.openai.com/v1", "azure": "https://x.openai.azure.com/openai/v1", "openrouter": "https://openrouter.ai/api/v1",
		"groq": "https://api.groq.com/openai/v1", "deepseek": "https://api.deepseek.com/v1", "mistral": "https://api.mistral.ai/v1",
		"xai": "https://api.x.ai/v1", "compatible": "http://127.0.0.1:11434/v1",
	} {
		t.Run(name, func(t *testing.T) {
			up := builtFor(t, base, n)
			if strings.Contains(string(up.Body), "sealed-by-another") {
				t.Error("a seal went to another issuer (K4)")
			}
			var pretty any
			if err := json.Unmarshal(up.Body, &pretty); err != nil {
				t.Fatalf("%v in %s", err, up.Body)
			}
			indented, _ := json.MarshalIndent(pretty, "", " ")
			golden(t, "build-"+name+".json", indented)
			if again := builtFor(t, base, n); string(again.Body) != string(up.Body) {
				t.Error("the same request gave other bytes (P12)")
			}
			auth, key := up.Header.Get("Authorization"), up.Header.Get("Api-Key")
			if name == "azure" && (key != "s" || auth != "") || name != "azure" && (auth != "Bearer s" || key != "") {
				t.Errorf("authorization %q, api-key %q", auth, key)
			}
		})
	}
}

// The prompt comes in the caller's order: a key order of ours inside a schema, or a
// map's, would spoil the provider's cache (P12).
func TestBuildKeepsTheOrderOfSchemas_P12(t *testing.T) {
	up := builtFor(t, "https://api.openai.com/v1", requestOf(t, full))
	for _, kept := range []string{`{"type":"object","z":1,"a":2}`, `{"type":"object","b":1,"a":2}`, `"temperature":0.70`} {
		if !strings.Contains(string(up.Body), kept) {
			t.Errorf("%s is not in %s", kept, up.Body)
		}
	}
}

// A caller of the dialect itself is passed on as it wrote, to Mistral too; only what
// the gateway would add is left out there.
//
// Rules: S8.
func TestMistralIsNotAskedForUsage_S8(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.mistral.ai/v1": `{"model":"u","messages":[{"role":"user","content":"x"}],"user":"kept","stream":true}`,
		"https://api.groq.com/v1":   `{"model":"u","messages":[{"role":"user","content":"x"}],"user":"kept","stream":true,"stream_options":{"include_usage":true}}`,
	} {
		req, err := Inbound{}.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"user":"kept"}`))
		if err != nil {
			t.Fatal(err)
		}
		up, err := Outbound{}.Build(req, dialect.Target{BaseURL: base, UpstreamModel: "u", Stream: true})
		if err != nil {
			t.Fatal(err)
		}
		if string(up.Body) != want {
			t.Errorf("%s gets %s, want %s", base, up.Body, want)
		}
	}
}

func TestQuirksAreFoundByHost(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1": "OpenAI", "https://EU.api.openai.com/v1": "OpenAI", "https://api.openai.com.evil.test/v1": "compatible",
		"https://r.services.ai.azure.com/openai/v1": "Azure", "https://openrouter.ai/api/v1": "OpenRouter", "https://notopenrouter.ai/v1": "compatible",
		"http://localhost:8000/v1": "compatible",
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		if got := quirksOf(u).name; got != want {
			t.Errorf("%s is taken for %s, want %s", base, got, want)
		}
	}
}

// An id that has to be made anew is the same for a call and its result, and from turn
// to turn.
//
// Rules: P12.
func TestMistralCallIDs_P12(t *testing.T) {
	n := requestOf(t, `{"model":"m","messages":[{"role":"user","content":"x"},
	 {"role":"assistant","tool_calls":[{"id":"toolu_01ABC","function":{"name":"f","arguments":"{}"}},{"id":"abcDEF123","function":{"name":"f","arguments":"{}"}}]},
	 {"role":"tool","tool_call_id":"toolu_01ABC","content":"1"},{"role":"tool","tool_call_id":"abcDEF123","content":"2"}]}`)
	var out struct {
		Messages []struct {
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
			ToolCallID string                `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal(builtFor(t, "https://api.mistral.ai/v1", n).Body, &out); err != nil {
		t.Fatal(err)
	}
	calls := out.Messages[1].ToolCalls
	if len(calls[0].ID) != 9 || calls[0].ID != out.Messages[2].ToolCallID || calls[1].ID != "abcDEF123" || out.Messages[3].ToolCallID != "abcDEF123" {
		t.Errorf("messages = %+v", out.Messages)
	}
}

// What both sides can say comes back as it went out.
//
// Rules: P3.
func TestNeutralRoundTrip_P3(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z"\\\n 漢🦥]{1,12}`)
	image := rapid.Custom(func(t *rapid.T) neutral.Part {
		if rapid.Bool().Draw(t, "url") {
			return neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{URL: "https://x.test/" + rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "path")}}
		}
		return picture(rapid.StringMatching(`([a-zA-Z0-9+/]{4}){1,3}`).Draw(t, "data"))
	})
	rapid.Check(t, func(t *rapid.T) {
		n := &neutral.Request{
			Stream: rapid.Bool().Draw(t, "stream"), MaxOutputTokens: rapid.Int64Range(0, 1<<20).Draw(t, "max"),
			Stop:     rapid.SliceOfN(word, 0, 2).Draw(t, "stop"),
			Sampling: neutral.Sampling{Temperature: json.Number(rapid.SampledFrom([]string{"", "0", "0.70", "1e-3"}).Draw(t, "temperature"))},
		}
		if len(n.Stop) == 0 {
			n.Stop = nil
		}
		if rapid.Bool().Draw(t, "system") {
			n.System = []neutral.Part{said(word.Draw(t, "instruction"))}
		}
		if rapid.Bool().Draw(t, "tools") {
			n.Tools = []neutral.ToolDefinition{{Name: "f", Description: word.Draw(t, "description"), Schema: json.RawMessage(`{"type":"object"}`), Strict: rapid.SampledFrom([]*bool{nil, yes(), no()}).Draw(t, "strict")}}
			n.Choice.Mode = rapid.SampledFrom([]neutral.ChoiceMode{neutral.ChoiceDefault, neutral.ChoiceAuto, neutral.ChoiceNone, neutral.ChoiceAny}).Draw(t, "mode")
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "turns") {
			user := neutral.Message{Role: neutral.User, Parts: []neutral.Part{said(word.Draw(t, "question"))}}
			if rapid.Bool().Draw(t, "image") {
				user.Parts = append(user.Parts, image.Draw(t, "picture"))
			}
			n.Messages = append(n.Messages, user)
			id := fmt.Sprint("call", i)
			if rapid.Bool().Draw(t, "called") {
				n.Messages = append(n.Messages,
					neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{said(word.Draw(t, "words")), called(id, "f", `{"a":1}`), called(id+"b", "f", "{}")}},
					neutral.Message{Role: neutral.User, Parts: []neutral.Part{answered(id, "f", said(word.Draw(t, "result"))), answered(id+"b", "f")}})
			}
			n.Messages = append(n.Messages, neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{said(word.Draw(t, "answer"))}})
		}
		body, err := writeNeutral(n, dialect.Target{UpstreamModel: "m", Stream: n.Stream}, &compatible, 0)
		if err != nil {
			t.Fatal(err)
		}
		req, err := Inbound{}.Parse(body)
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		got, err := req.Neutral()
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if diff := cmp.Diff(n, got); diff != "" {
			t.Fatalf("%s\n%s", body, diff)
		}
	})
}

// Every row of the table about this side is sent, and what is said of it happens.
//
// Rules: P5.
func TestWhatIsDroppedToChat_P5(t *testing.T) {
	plain := func(edit func(n *neutral.Request)) string {
		n := requestOf(t, `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
		edit(n)
		return string(builtFor(t, "https://api.openai.com/v1", n).Body)
	}
	history := func(parts ...neutral.Part) func(n *neutral.Request) {
		return func(n *neutral.Request) {
			n.Messages = append(n.Messages, neutral.Message{Role: neutral.Assistant, Parts: parts})
		}
	}
	rows := map[string]struct {
		body   string
		has    string
		hasNot string
	}{
		"reasoning signatures":       {plain(history(neutral.Part{Kind: neutral.ReasoningPart, Text: "hm", Opaque: neutral.OpaqueReasoning{Signature: "SEAL"}}, said("ok"))), `"content":"ok"`, "SEAL"},
		"reasoning of earlier turns": {plain(history(neutral.Part{Kind: neutral.ReasoningPart, Text: "THOUGHT"}, said("ok"))), `"content":"ok"`, "THOUGHT"},
		"tool result is_error": {plain(func(n *neutral.Request) {
			bad := answered("c", "f", said("it broke"))
			bad.Result.IsError = true
			n.Messages = []neutral.Message{{Role: neutral.User, Parts: []neutral.Part{bad}}}
		}), `{"role":"tool","tool_call_id":"c","content":"it broke"}`, "is_error"},
		"images and documents in tool results": {plain(func(n *neutral.Request) {
			n.Messages = []neutral.Message{{Role: neutral.User, Parts: []neutral.Part{answered("c", "f", said("see"), picture("AAAA")), answered("d", "f")}}}
		}), `{"role":"tool","tool_call_id":"c","content":"see"},{"role":"tool","tool_call_id":"d","content":""},{"role":"user","content":[{"type":"text","text":"Attached to the result of the tool call c:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`, ""},
		"cache markers":              {plain(func(n *neutral.Request) { n.Messages[0].Parts[0].Cache = &neutral.CacheMarker{} }), `"content":"x"`, "cache_control"},
		"reasoning budget in tokens": {plain(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{BudgetTokens: 4000} }), `"reasoning_effort":"medium"`, "4000"},
		"reasoning summary":          {plain(func(n *neutral.Request) { n.Reasoning = &neutral.ReasoningOptions{Effort: "low", Summary: "SUMMARY"} }), `"reasoning_effort":"low"`, "SUMMARY"},
		"top_k":                      {plain(func(n *neutral.Request) { n.Sampling.TopK = "40" }), `"model"`, "top_k"},
		"metadata":                   {plain(func(n *neutral.Request) { n.Metadata = json.RawMessage(`{"k":"META"}`) }), `"model"`, "META"},
		"the end user":               {plain(func(n *neutral.Request) { n.User = "USER-1" }), `"model"`, "USER-1"},
		"several texts of a message": {plain(func(n *neutral.Request) { n.Messages[0].Parts = []neutral.Part{said("a"), said("b")} }), `"content":"a\n\nb"`, ""},
	}
	for _, d := range dialect.DroppedTable() {
		if d.To != neutral.Chat {
			continue
		}
		row, ok := rows[d.Field]
		if !ok {
			t.Errorf("nobody proves what becomes of %q", d.Field)
			continue
		}
		delete(rows, d.Field)
		if !strings.Contains(row.body, row.has) || (row.hasNot != "" && strings.Contains(row.body, row.hasNot)) {
			t.Errorf("%s (%s): %s", d.Field, d.What, row.body)
		}
	}
	for field := range rows {
		t.Errorf("%q is not in the table", field)
	}
}

// Every row of the table about callers of this side: the field is accepted, and is
// nowhere in what another dialect is asked from.
//
// Rules: P5.
func TestWhatIsDroppedFromChat_P5(t *testing.T) {
	message := func(fields string) string {
		return `{"model":"m","messages":[{"role":"assistant","content":"x",` + fields + `}]}`
	}
	top := func(fields string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"}],` + fields + `}`
	}
	rows := map[string]string{
		"messages[].name":          message(`"name":"DROPPED"`),
		"logit_bias":               top(`"logit_bias":{"DROPPED":1}`),
		"prediction":               top(`"prediction":{"type":"content","content":"DROPPED"}`),
		"service_tier":             top(`"service_tier":"DROPPED"`),
		"store":                    top(`"store":"DROPPED"`),
		"verbosity":                top(`"verbosity":"DROPPED"`),
		"prompt_cache_key":         top(`"prompt_cache_key":"DROPPED"`),
		"safety_identifier":        top(`"safety_identifier":"DROPPED"`),
		"reasoning signatures":     message(`"reasoning_details":[{"signature":"DROPPED"}]`),
		"fields that nobody knows": top(`"future":"DROPPED"`),
	}
	for _, d := range dialect.DroppedTable() {
		if d.From != neutral.Chat {
			continue
		}
		body, ok := rows[d.Field]
		if !ok {
			t.Errorf("nobody proves what becomes of %q", d.Field)
			continue
		}
		delete(rows, d.Field)
		n := requestOf(t, body)
		all, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(all), "DROPPED") {
			t.Errorf("%s is said to be dropped (%s), and is in %s", d.Field, d.What, all)
		}
	}
	for field := range rows {
		t.Errorf("%q is not in the table", field)
	}
}

func BenchmarkBuildForeign(b *testing.B) {
	body := []byte(full)
	req, err := Inbound{}.Parse(body)
	if err != nil {
		b.Fatal(err)
	}
	req.Dialect = neutral.Messages
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Outbound{}).Build(req, dialect.Target{BaseURL: "https://api.openai.com/v1", UpstreamModel: "m"}); err != nil {
			b.Fatal(err)
		}
	}
}
