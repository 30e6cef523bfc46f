package messages

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

func requestOf(t testing.TB, body string) *dialect.Request {
	t.Helper()
	req, err := Inbound{}.Parse([]byte(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return req
}

func neutralOf(t testing.TB, body string) *neutral.Request {
	t.Helper()
	n, err := requestOf(t, body).Neutral()
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return n
}

func built(t testing.TB, req *dialect.Request, target dialect.Target) *dialect.Upstream {
	t.Helper()
	if target.BaseURL == "" {
		target.BaseURL = "https://p.test"
	}
	target.UpstreamModel = "up/1"
	up, err := Outbound{}.Build(req, target)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(up.Body) {
		t.Fatalf("not JSON: %s", up.Body)
	}
	return up
}

// foreign is a request of another dialect.
func foreign(n *neutral.Request) *dialect.Request {
	return &dialect.Request{Dialect: neutral.Chat, Neutral: func() (*neutral.Request, error) { return n, nil }}
}

// agent is a turn of a coding agent with every kind of block.
const agent = `{"model":"fable-5","max_tokens":32000,"stream":true,"system":[{"type":"text","text":"x-anthropic-billing-header: cc"},{"type":"text","text":"You code.","cache_control":{"type":"ephemeral","ttl":"1h"}}],` +
	`"messages":[{"role":"user","content":[{"type":"text","text":"look \u00e9"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJDRA=="},"title":"a.pdf"}]},` +
	`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"SIG=="},{"type":"redacted_thinking","data":"RED=="},{"type":"text","text":"ok"},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path": "x"}}]},` +
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"url","url":"https://i.test/a.png"}}],"cache_control":{"type":"ephemeral"}}]}],` +
	`"tools":[{"name":"read","description":"reads","input_schema":{"type":"object","properties":{"path":{"type":"string"}}},"cache_control":{"type":"ephemeral","ttl":"5m"}}],` +
	`"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"thinking":{"type":"enabled","budget_tokens":4000},"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},` +
	`"stop_sequences":["END"],"temperature":1.0,"metadata":{"user_id":"u1"},"context_management":{"edits":[]},"future":{"x":[1.50]}}`

// Rules: N21, A6, K1.
func TestParse_N21_A6_K1(t *testing.T) {
	req := requestOf(t, agent)
	if !req.Stream || req.MaxOutputTokens != 32000 || req.Model != "fable-5" || req.Hints.User != "u1" || !req.Sealed || !req.IncludeUsage {
		t.Errorf("%+v", req)
	}
	if diff := cmp.Diff([]catalog.Capability{catalog.Tools, catalog.Images, catalog.StructuredOutput, catalog.ReasoningOutput}, req.Needs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]dialect.Feature{dialect.ImageURLs}, req.Features); diff != "" {
		t.Error(diff)
	}
	p := req.Parts
	if p.Messages != 3 || p.Tools != 1 || p.Images != 2 || len(p.Documents) != 1 || p.Documents[0] != 6 || p.Base64Bytes != 10 {
		t.Errorf("parts = %+v", p)
	}
	var texts []string
	for s := range req.Texts() {
		texts = append(texts, string(s))
	}
	want := []string{
		"x-anthropic-billing-header: cc", "You code.", "look é", "a.pdf", "hm", "ok", "read", `{"path": "x"}`, "no",
		`{"name":"read","description":"reads","input_schema":{"type":"object","properties":{"path":{"type":"string"}}},"cache_control":{"type":"ephemeral","ttl":"5m"}}`,
		`{"type":"json_schema","schema":{"type":"object"}}`,
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

// Rules: P5.
func TestWhatOnlySomeDestinationsSay_P5(t *testing.T) {
	block := func(b string) string {
		return `{"model":"m","messages":[{"role":"user","content":[` + b + `]}]}`
	}
	top := func(m string) string { return `{"model":"m","messages":[{"role":"user","content":"x"}],` + m + `}` }
	for body, want := range map[string]dialect.Feature{
		block(`{"type":"image","source":{"type":"url","url":"https://x"}}`):                                    dialect.ImageURLs,
		block(`{"type":"image","source":{"type":"file","file_id":"f"}}`):                                       dialect.StoredFiles,
		block(`{"type":"document","source":{"type":"url","url":"https://x"}}`):                                 dialect.DocumentURLs,
		block(`{"type":"tool_result","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}`): dialect.StoredFiles,
		block(`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`):                            dialect.ServerTools,
		top(`"tools":[{"type":"web_search_20250305","name":"web_search"}]`):                                    dialect.ServerTools,
		top(`"mcp_servers":[{"url":"https://x"}]`):                                                             dialect.ServerTools,
		top(`"container":"c"`):                        dialect.StoredState,
		top(`"tools":[{"type":"custom","name":"f"}]`): "",
		top(`"mcp_servers":[]`):                       "",
	} {
		got := requestOf(t, body).Features
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s uses %v, want %q", body, got, want)
		}
	}
}

// Rules: Z5.
func TestParseRefuses_Z5(t *testing.T) {
	for body, param := range map[string]string{
		`[]`:                           "",
		`{"messages":[]}`:              "model",
		`{"model":"m"}`:                "messages",
		`{"model":"m","model":"n"}`:    "model",
		`{"model":"m","messages":"x"}`: "messages",
		`{"model":"m","messages":[{"role":"tool","content":"x"}]}`:                                              "messages[0].role",
		`{"model":"m","messages":[{"role":"user"}]}`:                                                            "messages[0].content",
		`{"model":"m","messages":[{"role":"user","content":[3]}]}`:                                              "messages[0].content[0]",
		`{"model":"m","messages":[{"role":"user","content":[{"text":"x"}]}]}`:                                   "messages[0].content[0].type",
		`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","content":3}]}]}`:             "messages[0].content[0].content",
		`{"model":"m","max_tokens":0}`:                                                                          "max_tokens",
		`{"model":"m","stream":"yes"}`:                                                                          "stream",
		`{"model":"m","tools":{}}`:                                                                              "tools",
		`{"model":"m","thinking":true}`:                                                                         "thinking",
		`{"model":"m","messages":[{"role":"user","content":"x"}],"x":` + strings.Repeat("[", 80) + `}`:          "",
		`{"model":"` + strings.Repeat("m", 300) + `","messages":[{"role":"user","content":"x"}],"future":true}`: "model",
	} {
		_, err := Inbound{}.Parse([]byte(body))
		invalid, ok := err.(*dialect.InvalidError)
		if !ok || invalid.Param != param || invalid.Message == "" {
			t.Errorf("%.80s: %v at %q, want %q", body, err, paramOf(invalid), param)
		}
	}
}

func paramOf(e *dialect.InvalidError) string {
	if e == nil {
		return ""
	}
	return e.Param
}

// The caller's bytes go on as they are, but for model and stream (P4, P12).
func TestBuildKeepsTheCallersBytes_P4_P12(t *testing.T) {
	up := built(t, requestOf(t, agent), dialect.Target{Stream: true})
	if want := strings.Replace(agent, `"fable-5"`, `"up/1"`, 1); string(up.Body) != want {
		t.Errorf("got  %s\nwant %s", up.Body, want)
	}
	up = built(t, requestOf(t, agent), dialect.Target{})
	if want := strings.Replace(strings.Replace(agent, `"fable-5"`, `"up/1"`, 1), `"stream":true`, `"stream":false`, 1); string(up.Body) != want {
		t.Errorf("got  %s\nwant %s", up.Body, want)
	}
	up = built(t, requestOf(t, `{"model":"m","messages":[{"role":"user","content":"x"}]}`), dialect.Target{Stream: true})
	if want := `{"model":"up/1","messages":[{"role":"user","content":"x"}],"stream":true}`; string(up.Body) != want {
		t.Errorf("got %s", up.Body)
	}
}

// Rules: Z4, P11.
func TestHeader_Z4_P11(t *testing.T) {
	req := requestOf(t, agent)
	req.Flags = dialect.Flags{AnthropicVersion: "2024-01-01", AnthropicBeta: []string{"a-1", "b-2", "x\r\ny: z", ""}}
	up := built(t, req, dialect.Target{BaseURL: "https://p.test/anthropic/", Secret: "sk", Stream: true, IdempotencyKey: "i"})
	want := map[string]string{
		"X-Api-Key": "sk", "Anthropic-Version": "2024-01-01", "Anthropic-Beta": "a-1,b-2", "Accept": "text/event-stream",
		"Content-Type": "application/json", "User-Agent": "sluice", "Accept-Encoding": "identity", "Idempotency-Key": "i",
	}
	got := map[string]string{}
	for name := range up.Header {
		got[name] = up.Header.Get(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if up.URL != "https://p.test/anthropic/v1/messages" || up.Method != "POST" {
		t.Errorf("%s %s", up.Method, up.URL)
	}
	if up = built(t, req, dialect.Target{BetaFlags: []string{"b-2"}}); up.Header.Get("Anthropic-Beta") != "b-2" {
		t.Errorf("beta = %q", up.Header.Get("Anthropic-Beta"))
	}
	other := foreign(neutralOf(t, agent))
	other.Flags = req.Flags
	if up = built(t, other, dialect.Target{}); up.Header.Get("Anthropic-Version") != defaultVersion || up.Header.Get("Anthropic-Beta") != "" {
		t.Errorf("another dialect's caller has flags: %v", up.Header)
	}
	for _, base := range []string{"", "p.test", "ftp://p.test"} {
		if _, err := (Outbound{}).Build(req, dialect.Target{BaseURL: base}); err == nil {
			t.Errorf("%q was taken for a base URL", base)
		}
	}
}

// Thinking of another issuer is never sent to Anthropic, nor is any that it has
// rejected; what is left is a request that Anthropic takes (K4, K5).
func TestUnreadableThinkingIsTakenAway_K4_K5(t *testing.T) {
	turn := func(thinking string, blocks ...string) string {
		return `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]},{"role":"user","content":"b"}],"thinking":{"type":"` + thinking + `"}}`
	}
	mark := signature(neutral.OpaqueReasoning{Issuer: neutral.Responses, ID: "rs_1", Encrypted: "E"})
	own := `{"type":"thinking","thinking":"h","signature":"SIG"}`
	redacted := `{"type":"redacted_thinking","data":"R"}`
	other := `{"type":"thinking","thinking":"h","signature":"` + mark + `"}`
	unsigned := `{"type":"thinking","thinking":"h"}`
	text, call := `{"type":"text","text":"t"}`, `{"type":"tool_use","id":"i","name":"f","input":{}}`
	rest := `{"role":"user","content":"b"}]`
	tests := []struct {
		name, body string
		without    bool
		want       string
	}{
		{"own stays", turn("enabled", own, redacted, text, call), false, turn("enabled", own, redacted, text, call)},
		{"foreign goes", turn("enabled", other, text), false, turn("enabled", text)},
		{"unsigned goes", turn("adaptive", own, unsigned, text), false, turn("adaptive", own, text)},
		{"nothing left", turn("enabled", other), false, `{"model":"m","messages":[{"role":"user","content":"a"},` + rest + `,"thinking":{"type":"enabled"}}`},
		{"a call without its thinking", turn("enabled", other, call), false, strings.Replace(turn("enabled", call), `,"thinking":{"type":"enabled"}`, "", 1)},
		{"adaptive needs none", turn("adaptive", other, call), false, turn("adaptive", call)},
		{"rejected goes", turn("enabled", own, redacted, text), true, turn("enabled", text)},
		{"rejected before a call", turn("enabled", own, call), true, strings.Replace(turn("enabled", call), `,"thinking":{"type":"enabled"}`, "", 1)},
	}
	for _, tt := range tests {
		up := built(t, requestOf(t, tt.body), dialect.Target{WithoutSeals: tt.without})
		if want := strings.Replace(tt.want, `"m"`, `"up/1"`, 1); string(up.Body) != want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, up.Body, want)
		}
	}
}

// A seal finds back to its issuer through a caller of this dialect, and nobody can
// pass one off as Anthropic's.
//
// Rules: K4.
func TestSealsComeBack_K4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := neutral.OpaqueReasoning{
			Issuer: rapid.SampledFrom([]neutral.Dialect{neutral.Responses, neutral.Generate, neutral.Converse}).Draw(t, "issuer"),
			ID:     rapid.String().Draw(t, "id"), Signature: rapid.String().Draw(t, "signature"), Encrypted: rapid.String().Draw(t, "encrypted"),
		}
		text := signature(o)
		if usable(text) {
			t.Fatalf("%q is sent to Anthropic", text)
		}
		if diff := cmp.Diff(o, unseal(text)); diff != "" {
			t.Fatal(diff)
		}
	})
	if o := unseal(sealMark + "bm9wZQ"); o != (neutral.OpaqueReasoning{}) {
		t.Errorf("a forged mark is %+v", o)
	}
}

// Rules: P3.
func TestNeutral_P3(t *testing.T) {
	yes, no := true, false
	want := &neutral.Request{
		System: []neutral.Part{{Kind: neutral.TextPart, Text: "You code.", Cache: &neutral.CacheMarker{TTL: "1h"}}},
		Messages: []neutral.Message{
			{Role: neutral.User, Parts: []neutral.Part{
				{Kind: neutral.TextPart, Text: "look é"},
				{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: "QUJD"}},
				{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "QUJDRA==", Name: "a.pdf"}},
			}},
			{Role: neutral.Assistant, Parts: []neutral.Part{
				{Kind: neutral.ReasoningPart, Text: "hm", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "SIG=="}},
				{Kind: neutral.ReasoningPart, Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Redacted: "RED=="}},
				{Kind: neutral.TextPart, Text: "ok"},
				{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "toolu_1", Name: "read", Arguments: `{"path": "x"}`}},
			}},
			{Role: neutral.User, Parts: []neutral.Part{
				{Kind: neutral.ToolResultPart, Cache: &neutral.CacheMarker{}, Result: neutral.ToolResult{
					CallID: "toolu_1", Name: "read", IsError: true,
					Parts: []neutral.Part{
						{Kind: neutral.TextPart, Text: "no"},
						{Kind: neutral.ImagePart, Media: neutral.Media{URL: "https://i.test/a.png"}},
					},
				}},
			}},
		},
		Tools: []neutral.ToolDefinition{{
			Name: "read", Description: "reads", Cache: &neutral.CacheMarker{TTL: "5m"},
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		}},
		Choice: neutral.ToolChoice{Mode: neutral.ChoiceAuto}, ParallelCalls: &no,
		Format:          &neutral.Format{Name: "answer", Schema: json.RawMessage(`{"type":"object"}`), Strict: &yes},
		Reasoning:       &neutral.ReasoningOptions{BudgetTokens: 4000, Summary: "auto"},
		MaxOutputTokens: 32000, Sampling: neutral.Sampling{Temperature: "1.0"}, Stop: []string{"END"}, Stream: true, User: "u1",
	}
	if diff := cmp.Diff(want, neutralOf(t, agent)); diff != "" {
		t.Error(diff)
	}
}

// What Anthropic asks of a request, whatever dialect it came in: a limit, roles that
// alternate, all results first in the next user turn, no blank text.
//
// Rules: P3, P6, P12.
func TestRender_P3_P6_P12(t *testing.T) {
	n := neutralOf(t, agent)
	n.MaxOutputTokens = 0
	text := func(role neutral.Role, s string) neutral.Message {
		return neutral.Message{Role: role, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: s}}}
	}
	n.Messages[1].Parts[2].Text = " "
	n.Messages = append(n.Messages,
		neutral.Message{Role: neutral.User, Parts: []neutral.Part{
			{Kind: neutral.TextPart, Text: "and"},
			{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "c.2"}},
		}},
		text(neutral.Assistant, ""), text(neutral.User, "go on"))
	want := `{"model":"up/1","max_tokens":8000,"system":[{"type":"text","text":"You code.","cache_control":{"type":"ephemeral","ttl":"1h"}}],` +
		`"tools":[{"name":"read","description":"reads","input_schema":{"type":"object","properties":{"path":{"type":"string"}}},"cache_control":{"type":"ephemeral","ttl":"5m"}}],` +
		`"tool_choice":{"type":"auto","disable_parallel_tool_use":true},` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"look é"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJDRA=="},"title":"a.pdf"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"SIG=="},{"type":"redacted_thinking","data":"RED=="},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path": "x"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"url","url":"https://i.test/a.png"}}],"is_error":true,"cache_control":{"type":"ephemeral"}},` +
		`{"type":"tool_result","tool_use_id":"c_2e2"},{"type":"text","text":"and"},{"type":"text","text":"go on"}]}],` +
		`"thinking":{"type":"enabled","budget_tokens":4000},"stop_sequences":["END"],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},"stream":true}`
	for range 3 {
		if got := string(built(t, foreign(n), dialect.Target{Stream: true, MaxOutputTokens: 8000}).Body); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	if _, err := (Outbound{}).Build(foreign(&neutral.Request{}), dialect.Target{BaseURL: "https://p.test"}); err == nil {
		t.Error("a request without a message was built")
	}
}

// Markers in are markers out, in all four places (P6).
func TestMarkersSurvive_P6(t *testing.T) {
	before := strings.Count(agent, "cache_control")
	after := strings.Count(string(built(t, foreign(neutralOf(t, agent)), dialect.Target{}).Body), "cache_control")
	if before != 3 || after != before {
		t.Errorf("%d markers became %d", before, after)
	}
}

// Rules: P5.
func TestReasoningBecomesABudget_P5(t *testing.T) {
	tests := []struct {
		name      string
		reasoning neutral.ReasoningOptions
		edit      func(n *neutral.Request)
		max       int64
		want      string
	}{
		{"low", neutral.ReasoningOptions{Effort: "low"}, nil, 64000, `{"type":"enabled","budget_tokens":2048}`},
		{"medium", neutral.ReasoningOptions{Effort: "medium"}, nil, 64000, `{"type":"enabled","budget_tokens":8192}`},
		{"high, little room", neutral.ReasoningOptions{Effort: "high"}, nil, 4000, `{"type":"enabled","budget_tokens":3000}`},
		{"no room", neutral.ReasoningOptions{Effort: "high"}, nil, 1200, ``},
		{"a budget below the least", neutral.ReasoningOptions{BudgetTokens: 500}, nil, 64000, `{"type":"enabled","budget_tokens":1024}`},
		{"off", neutral.ReasoningOptions{Disabled: true}, nil, 64000, `{"type":"disabled"}`},
		{"forced call", neutral.ReasoningOptions{Effort: "low"}, func(n *neutral.Request) { n.Choice.Mode = neutral.ChoiceAny }, 64000, ``},
		{"unsigned turn with a call", neutral.ReasoningOptions{Effort: "low"}, func(n *neutral.Request) {
			n.Messages = append(n.Messages,
				neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "c"}}}},
				neutral.Message{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "c"}}}})
		}, 64000, ``},
	}
	for _, tt := range tests {
		n := &neutral.Request{MaxOutputTokens: tt.max, Reasoning: &tt.reasoning, Sampling: neutral.Sampling{Temperature: "0.5"}}
		n.Messages = []neutral.Message{{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: "x"}}}}
		if tt.edit != nil {
			tt.edit(n)
		}
		doc := gjson.ParseBytes(built(t, foreign(n), dialect.Target{}).Body)
		if got := doc.Get("thinking").Raw; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if thinks := strings.Contains(tt.want, "enabled"); doc.Get("temperature").Exists() == thinks {
			t.Errorf("%s: temperature beside thinking: %s", tt.name, doc.Raw)
		}
	}
}

// What this dialect can say comes back from it as it was (P3).
func TestRequestsRoundTrip_P3(t *testing.T) {
	text := rapid.StringMatching(`[a-zé漢"\\\n]{1,12}x`)
	marker := rapid.SampledFrom([]*neutral.CacheMarker{nil, {}, {TTL: "1h"}})
	user := rapid.Custom(func(t *rapid.T) neutral.Part {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: "QUJD"}, Cache: marker.Draw(t, "cache")}
		case 1:
			return neutral.Part{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "text/plain", Base64: "aGk=", Name: text.Draw(t, "name")}}
		default:
			return neutral.Part{Kind: neutral.TextPart, Text: text.Draw(t, "text"), Cache: marker.Draw(t, "cache")}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		n := &neutral.Request{MaxOutputTokens: rapid.Int64Range(1, 9999).Draw(t, "max"), Stream: rapid.Bool().Draw(t, "stream")}
		for i := range rapid.IntRange(1, 4).Draw(t, "turns") {
			call := neutral.ToolCall{ID: "toolu_" + string(rune('a'+i)), Name: "f", Arguments: `{"a":` + string(rune('0'+i)) + `}`}
			n.Messages = append(n.Messages,
				neutral.Message{Role: neutral.User, Parts: rapid.SliceOfN(user, 1, 3).Draw(t, "parts")},
				neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{
					{Kind: neutral.ReasoningPart, Text: text.Draw(t, "thought"), Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "S"}},
					{Kind: neutral.ToolCallPart, Call: call},
				}},
				neutral.Message{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{
					CallID: call.ID, Name: "f", IsError: rapid.Bool().Draw(t, "error"), Parts: rapid.SliceOfN(user, 1, 2).Draw(t, "result"),
				}}}},
				neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: text.Draw(t, "said")}}})
		}
		up, err := Outbound{}.Build(foreign(n), dialect.Target{BaseURL: "https://p.test", UpstreamModel: "m", Stream: n.Stream})
		if err != nil {
			t.Fatal(err)
		}
		req, err := Inbound{}.Parse(up.Body)
		if err != nil {
			t.Fatalf("%v in %s", err, up.Body)
		}
		got, err := req.Neutral()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, got); diff != "" {
			t.Fatalf("%s\n%s", up.Body, diff)
		}
	})
}
