package responses

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

func build(t testing.TB, req *dialect.Request, target dialect.Target) string {
	t.Helper()
	if target.BaseURL == "" {
		target.BaseURL = "https://p.test/v1"
	}
	target.UpstreamModel = "up"
	up, err := Outbound{}.Build(req, target)
	if err != nil {
		t.Fatal(err)
	}
	return string(up.Body)
}

// asked is a neutral request as it comes from another dialect.
func asked(r *neutral.Request) *dialect.Request {
	return &dialect.Request{Dialect: neutral.Messages, Choices: 1, Neutral: func() (*neutral.Request, error) { return r, nil }}
}

// Rules: P4, P12.
func TestTheCallersOwnBytesGoUp_P4_P12(t *testing.T) {
	tests := []struct {
		name, in, want string
		stream         bool
	}{
		{"model alone", `{ "z":1.50,"model" : "m", "input":"\u00e9" }`, `{ "z":1.50,"model" : "up", "input":"\u00e9" }`, false},
		{"stream asked for by us", `{"model":"m","input":"x"}`, `{"model":"up","input":"x","stream":true}`, true},
		{"stream not asked for by us", `{"model":"m","stream_options":{"include_obfuscation":false},"input":"x","stream":true}`, `{"model":"up","input":"x","stream":false}`, false},
		{"a stream's options stay", `{"model":"m","stream_options":{"include_obfuscation":false},"input":"x","stream":true}`, `{"model":"up","stream_options":{"include_obfuscation":false},"input":"x","stream":true}`, true},
		{"a null", `{"model":"m","input":"x","stream":null}`, `{"model":"up","input":"x","stream":false}`, false},
	}
	for _, tt := range tests {
		req, err := Inbound{}.Parse([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		if got := build(t, req, dialect.Target{Stream: tt.stream}); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// Rules: Z4.
func TestAddressAndHeaders_Z4(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(`{"model":"m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	up, err := Outbound{}.Build(req, dialect.Target{BaseURL: "https://a.openai.azure.test/openai/v1?api-version=1", Secret: "s", Stream: true, IdempotencyKey: "i"})
	if err != nil {
		t.Fatal(err)
	}
	if up.URL != "https://a.openai.azure.test/openai/v1/responses?api-version=1" || up.Header.Get("Authorization") != "Bearer s" ||
		up.Header.Get("Accept") != "text/event-stream" || up.Header.Get("Idempotency-Key") != "i" || len(up.Header) != 6 {
		t.Errorf("%s %v", up.URL, up.Header)
	}
	up, err = Outbound{}.Build(req, dialect.Target{BaseURL: "https://a.openai.azure.com/openai/v1", Secret: "s"})
	if err != nil || up.Header.Get("Api-Key") != "s" {
		t.Errorf("Azure gets %v, %v", up.Header, err)
	}
	for _, base := range []string{"", "p.test", "ftp://p.test", "https://"} {
		if _, err := (Outbound{}).Build(req, dialect.Target{BaseURL: base}); !errors.Is(err, errBaseURL) {
			t.Errorf("%q: %v", base, err)
		}
	}
	if _, err := (Outbound{}).Build(&dialect.Request{Dialect: neutral.Chat}, dialect.Target{BaseURL: "https://p.test"}); !errors.Is(err, errNoNeutral) {
		t.Errorf("%v", err)
	}
}

// The request of another dialect, as it goes to a Responses provider.
//
// Rules: P3, P5, P12.
func TestWhatOthersAskGoesUp_P3_P5_P12(t *testing.T) {
	req, err := Inbound{}.Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	n, err := req.Neutral()
	if err != nil {
		t.Fatal(err)
	}
	n.Messages[1].Parts = append([]neutral.Part{
		// Not ours to send back, and not ours at all.
		{Kind: neutral.ReasoningPart, Text: "theirs", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "s"}},
		{Kind: neutral.ReasoningPart, Text: "nobody's"},
	}, n.Messages[1].Parts...)
	n.Stop, n.Sampling.TopK, n.Sampling.Seed = []string{"\n"}, "40", "7"
	n.Messages[2].Parts[0].Cache = &neutral.CacheMarker{TTL: "1h"}
	n.Messages[2].Parts[1].Result.IsError = true
	got := build(t, asked(n), dialect.Target{Stream: true})
	golden(t, "request.json", []byte(got))
	for range 20 {
		if again := build(t, asked(n), dialect.Target{Stream: true}); again != got {
			t.Fatalf("the bytes changed (P12):\n%s\n%s", got, again)
		}
	}
	if without := build(t, asked(n), dialect.Target{WithoutSeals: true}); strings.Contains(without, "gAAA") || gjson.Get(without, "input.#").Int() != 7 {
		t.Errorf("a repaired request has %s (K5)", without)
	}
}

// Rules: P3.
func TestSmallThingsGoUp_P3(t *testing.T) {
	yes := true
	tests := []struct {
		name, path, want string
		r                neutral.Request
	}{
		{"strict is never left to the default", "tools.0.strict", "false", neutral.Request{Tools: []neutral.ToolDefinition{{Name: "f"}}}},
		{"strict", "tools.0.strict", "true", neutral.Request{Tools: []neutral.ToolDefinition{{Name: "f", Strict: &yes}}}},
		{"a tool without arguments", "tools.0.parameters", `{"type":"object","properties":{}}`, neutral.Request{Tools: []neutral.ToolDefinition{{Name: "f"}}}},
		{"any tool", "tool_choice", `"required"`, neutral.Request{Tools: []neutral.ToolDefinition{{Name: "f"}}, Choice: neutral.ToolChoice{Mode: neutral.ChoiceAny}}},
		{"no tool", "tool_choice", `"none"`, neutral.Request{Tools: []neutral.ToolDefinition{{Name: "f"}}, Choice: neutral.ToolChoice{Mode: neutral.ChoiceNone}}},
		{"any object", "text.format", `{"type":"json_object"}`, neutral.Request{Format: &neutral.Format{}}},
		{"a schema without a name", "text.format.name", `"response"`, neutral.Request{Format: &neutral.Format{Schema: []byte(`{}`)}}},
		{"a small budget", "reasoning.effort", `"low"`, neutral.Request{Reasoning: &neutral.ReasoningOptions{BudgetTokens: 1024}}},
		{"a usual budget", "reasoning.effort", `"medium"`, neutral.Request{Reasoning: &neutral.ReasoningOptions{BudgetTokens: 8000}}},
		{"a large budget", "reasoning.effort", `"high"`, neutral.Request{Reasoning: &neutral.ReasoningOptions{BudgetTokens: 32000}}},
		{"reasoning off", "reasoning.effort", `"none"`, neutral.Request{Reasoning: &neutral.ReasoningOptions{Disabled: true}}},
		{"seals are not asked of models without", "include", ``, neutral.Request{Reasoning: &neutral.ReasoningOptions{Disabled: true}}},
		{"seals are asked for", "include", `["reasoning.encrypted_content"]`, neutral.Request{Reasoning: &neutral.ReasoningOptions{Effort: "low"}}},
		{"the least maximum", "max_output_tokens", "16", neutral.Request{MaxOutputTokens: 1}},
		{"nothing is stored there", "store", "false", neutral.Request{}},
	}
	for _, tt := range tests {
		if got := gjson.Get(build(t, asked(&tt.r), dialect.Target{}), tt.path).Raw; got != tt.want {
			t.Errorf("%s: %s = %s, want %s", tt.name, tt.path, got, tt.want)
		}
	}
}

// What both can say comes back as it went: a request that is written in this dialect
// and read from it is the same request.
//
// Rules: P3.
func TestNeutralRoundTrip_P3(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := anyRequest(rt)
		body := build(t, asked(want), dialect.Target{Stream: want.Stream})
		req, err := Inbound{}.Parse([]byte(body))
		if err != nil {
			rt.Fatalf("%v in %s", err, body)
		}
		got, err := req.Neutral()
		if err != nil {
			rt.Fatalf("%v in %s", err, body)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s\n%s", body, diff)
		}
	})
}

// anyRequest has what this dialect has a word for.
func anyRequest(t *rapid.T) *neutral.Request {
	word := rapid.StringMatching(`[a-zé"\\ \n]{1,8}`)
	flag := rapid.SampledFrom([]*bool{nil, new(bool)})
	r := &neutral.Request{Stream: rapid.Bool().Draw(t, "stream")}
	if rapid.Bool().Draw(t, "system") {
		r.System = []neutral.Part{{Kind: neutral.TextPart, Text: word.Draw(t, "system text")}}
	}
	role := neutral.User
	for range rapid.IntRange(1, 4).Draw(t, "messages") {
		m := neutral.Message{Role: role}
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			m.Parts = append(m.Parts, anyPart(t, role, word))
		}
		r.Messages = append(r.Messages, m)
		if role = neutral.Assistant; m.Role == neutral.Assistant {
			role = neutral.User
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "tools") {
		r.Tools = append(r.Tools, neutral.ToolDefinition{
			Name: word.Draw(t, "name"), Description: word.Draw(t, "description"), Schema: json.RawMessage(`{"type":"object"}`), Strict: new(bool),
		})
	}
	if len(r.Tools) > 0 {
		r.Choice = rapid.SampledFrom([]neutral.ToolChoice{{}, {Mode: neutral.ChoiceAuto}, {Mode: neutral.ChoiceAny}, {Mode: neutral.ChoiceNone}, {Mode: neutral.ChoiceNamed, Name: "f"}}).Draw(t, "choice")
		r.ParallelCalls = flag.Draw(t, "parallel")
	}
	r.Format = rapid.SampledFrom([]*neutral.Format{nil, {}, {Name: "s", Description: "d", Schema: json.RawMessage(`{"a":1.50}`), Strict: new(bool)}}).Draw(t, "format")
	r.Reasoning = rapid.SampledFrom([]*neutral.ReasoningOptions{nil, {Effort: "high"}, {Summary: "auto"}, {Disabled: true}}).Draw(t, "reasoning")
	r.MaxOutputTokens = rapid.SampledFrom([]int64{0, 16, 4096}).Draw(t, "max")
	r.Sampling.Temperature = rapid.SampledFrom([]json.Number{"", "0.70", "1e-1"}).Draw(t, "temperature")
	return r
}

func anyPart(t *rapid.T, role neutral.Role, word *rapid.Generator[string]) neutral.Part {
	text := neutral.Part{Kind: neutral.TextPart, Text: word.Draw(t, "text")}
	image := neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: "AAAA", Detail: "auto"}}
	if role == neutral.User {
		return rapid.SampledFrom([]neutral.Part{
			text, image,
			{Kind: neutral.ImagePart, Media: neutral.Media{URL: "https://x.test/a.png", Detail: "low"}},
			{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "AAAA", Name: "a.pdf"}},
			{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "c", Parts: []neutral.Part{text}}},
			{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "c", Parts: []neutral.Part{text, image}}},
		}).Draw(t, "part")
	}
	return rapid.SampledFrom([]neutral.Part{
		text,
		{Kind: neutral.RefusalPart, Text: text.Text},
		{Kind: neutral.ReasoningPart, Text: text.Text, Opaque: neutral.OpaqueReasoning{Issuer: neutral.Responses, ID: "rs", Encrypted: "gAAA"}},
		{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "other", Name: "f", Arguments: `{"a":"\n"}`}},
	}).Draw(t, "part")
}

// A large image is copied out of the caller's body and into the provider's, and no
// more often than that.
func TestALargeImageCostsThreeTimesItsSizeAtMost(t *testing.T) {
	const size = 16 << 20
	body := []byte(`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("AAAA", size/4) + `"}]}]}`)
	for name, foreign := range map[string]bool{"its own dialect": false, "another dialect": true} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		req, err := Inbound{}.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		if foreign {
			req.Dialect = neutral.Messages
		}
		if got := build(t, req, dialect.Target{}); len(got) < size {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		runtime.ReadMemStats(&after)
		// build itself makes a string of the body.
		if cost := after.TotalAlloc - before.TotalAlloc - size; cost > 3*size {
			t.Errorf("%s: %d MiB", name, cost>>20)
		}
	}
}
