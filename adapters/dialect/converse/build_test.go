package converse

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

const claude = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"

var signedAt = time.Date(2026, 11, 29, 12, 30, 15, 0, time.UTC)

// target is where goldens go.
func target() dialect.Target {
	return dialect.Target{
		Region: "us-east-1", UpstreamModel: claude, Now: signedAt,
		Access: dialect.AccessKey{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
	}
}

func asking(n *neutral.Request) *dialect.Request {
	return &dialect.Request{Dialect: neutral.Messages, Neutral: func() (*neutral.Request, error) { return n, nil }}
}

func text(s string) neutral.Part { return neutral.Part{Kind: neutral.TextPart, Text: s} }

func userSays(s string) neutral.Message {
	return neutral.Message{Role: neutral.User, Parts: []neutral.Part{text(s)}}
}

func simple() *neutral.Request { return &neutral.Request{Messages: []neutral.Message{userSays("Hi")}} }

func build(t testing.TB, n *neutral.Request, tg dialect.Target) *dialect.Upstream {
	t.Helper()
	up, err := Outbound{}.Build(asking(n), tg)
	if err != nil {
		t.Fatal(err)
	}
	if !gjson.ValidBytes(up.Body) {
		t.Fatalf("not JSON: %s", up.Body)
	}
	return up
}

// The whole of a signed request, as it stands on the wire.
//
// Rules: P12, Z4.
func TestSignedRequest_P12_Z4(t *testing.T) {
	up := build(t, simple(), target())
	if want := `{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}`; string(up.Body) != want {
		t.Errorf("body = %s", up.Body)
	}
	if want := "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"; up.URL != want {
		t.Errorf("url = %s", up.URL)
	}
	want := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "sluice", "Accept-Encoding": "identity",
		"X-Amz-Date":    "20261129T123015Z",
		"Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261129/us-east-1/bedrock/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date, Signature=" + signature(t, up, target()),
	}
	for name, values := range up.Header {
		if len(values) != 1 || values[0] != want[name] {
			t.Errorf("%s: %q, want %q", name, values, want[name])
		}
	}
	if len(up.Header) != len(want) {
		t.Errorf("headers = %v", up.Header)
	}
}

// signature works Signature Version 4 out by its description, to check the library's
// use: which headers, which path, which time.
func signature(t *testing.T, up *dialect.Upstream, tg dialect.Target) string {
	t.Helper()
	u, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	day, at := tg.Now.Format("20060102"), tg.Now.Format("20060102T150405Z")
	// Every byte of the path as sent is escaped once more.
	path := strings.ReplaceAll(u.EscapedPath(), "%", "%25")
	headers := fmt.Sprintf("content-length:%d\ncontent-type:application/json\nhost:%s\nx-amz-date:%s\n", len(up.Body), u.Host, at)
	names := "content-length;content-type;host;x-amz-date"
	if tg.Access.Session != "" {
		headers += "x-amz-security-token:" + tg.Access.Session + "\n"
		names += ";x-amz-security-token"
	}
	hash := func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
	canonical := "POST\n" + path + "\n\n" + headers + "\n" + names + "\n" + hash(up.Body)
	scope := day + "/" + tg.Region + "/bedrock/aws4_request"
	key := []byte("AWS4" + tg.Access.Secret)
	for _, part := range []string{day, tg.Region, "bedrock", "aws4_request", "AWS4-HMAC-SHA256\n" + at + "\n" + scope + "\n" + hash([]byte(canonical))} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func TestAddressesAndCredentials(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*dialect.Target)
		url  string
		// auth is what Authorization begins with, empty for none.
		auth string
		err  error
	}{
		{"streams", func(t *dialect.Target) { t.Stream = true }, "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream", "AWS4-HMAC-SHA256 ", nil},
		{"China", func(t *dialect.Target) { t.Region = "cn-north-1" }, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/", "AWS4-HMAC-SHA256 ", nil},
		{"a base", func(t *dialect.Target) { t.BaseURL = "http://127.0.0.1:9/bedrock/" }, "http://127.0.0.1:9/bedrock/model/us.", "AWS4-HMAC-SHA256 ", nil},
		{"a default port", func(t *dialect.Target) { t.BaseURL = "https://b.test:443" }, "https://b.test/model/us.", "AWS4-HMAC-SHA256 ", nil},
		{"a region in the address", func(t *dialect.Target) {
			t.BaseURL, t.Region = "https://bedrock-runtime.eu-west-3.amazonaws.com", ""
		}, "https://bedrock-runtime.eu-west-3.amazonaws.com/model/", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261129/eu-west-3/", nil},
		{"an ARN", func(t *dialect.Target) {
			t.UpstreamModel = "arn:aws:bedrock:us-east-1:1:application-inference-profile/a b"
		}, "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fa%20b/converse", "AWS4-HMAC-SHA256 ", nil},
		{"an API key", func(t *dialect.Target) { t.Access, t.Secret = dialect.AccessKey{}, "bedrock-api-key" }, "https://bedrock-runtime.us-east-1", "Bearer bedrock-api-key", nil},
		{"no credential", func(t *dialect.Target) { t.Access = dialect.AccessKey{} }, "https://bedrock-runtime.us-east-1", "", nil},
		{"no region to sign for", func(t *dialect.Target) { t.BaseURL, t.Region = "https://b.test", "" }, "", "", errRegion},
		{"nowhere", func(t *dialect.Target) { t.Region = "" }, "", "", errRegion},
		{"no URL", func(t *dialect.Target) { t.BaseURL = "ftp://b.test" }, "", "", errBaseURL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tg := target()
			tt.edit(&tg)
			up, err := Outbound{}.Build(asking(simple()), tg)
			if !errors.Is(err, tt.err) {
				t.Fatalf("err = %v", err)
			}
			if err != nil {
				return
			}
			if !strings.HasPrefix(up.URL, tt.url) || !strings.HasPrefix(up.Header.Get("Authorization"), tt.auth) || (tt.auth == "") != (up.Header.Get("Authorization") == "") {
				t.Errorf("%s, %s", up.URL, up.Header.Get("Authorization"))
			}
		})
	}
	tg := target()
	tg.Access.Session = "FwoGZXIvYXdzEXAMPLE=="
	up := build(t, simple(), tg)
	if up.Header.Get("X-Amz-Security-Token") != tg.Access.Session || !strings.HasSuffix(up.Header.Get("Authorization"), signature(t, up, tg)) {
		t.Errorf("with a session: %v", up.Header)
	}
}

// Field cases: reasoning before text before calls; a cache point behind each marked
// block, never inside a result; the id of a call as the dialect takes it.
//
// Rules: P6, P11, K4.
func TestConversation_P6_P11_K4(t *testing.T) {
	hour, short := &neutral.CacheMarker{TTL: "1h"}, &neutral.CacheMarker{}
	own := neutral.OpaqueReasoning{Issuer: neutral.Converse, Signature: "c2ln"}
	foreign := neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "other"}
	n := &neutral.Request{
		System: []neutral.Part{{Kind: neutral.TextPart, Text: "Rules.", Cache: hour}, text(" ")},
		Messages: []neutral.Message{
			{Role: neutral.User, Parts: []neutral.Part{
				text("Look:"),
				{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/jpg", Base64: "aGk"}, Cache: short},
				{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "application/pdf", Base64: "aGkh", Name: "a_b  (1).pdf"}},
				{Kind: neutral.DocumentPart, Media: neutral.Media{Type: "text/plain", Base64: "aGkh", Name: "a b (1).txt"}},
			}},
			{Role: neutral.Assistant, Parts: []neutral.Part{
				{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "functions.f:0", Name: "f", Arguments: ""}},
				text("Calling."),
				{Kind: neutral.ReasoningPart, Text: "Hm.", Opaque: own},
				{Kind: neutral.ReasoningPart, Text: "Not yours.", Opaque: foreign},
				{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "t2", Name: "g", Arguments: `[1]`}},
			}},
			{Role: neutral.User, Parts: []neutral.Part{
				text("And?"),
				{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "functions.f:0", IsError: true, Parts: []neutral.Part{
					text("no"), {Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/webp", Base64: "aGkh"}, Cache: short},
				}}},
				{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "t2"}},
			}},
			userSays("Go on."),
		},
		Tools: []neutral.ToolDefinition{
			{Name: "f", Description: "F.", Schema: []byte(`{"type":"object"}`), Cache: hour}, {Name: "g"},
		},
		Choice: neutral.ToolChoice{Mode: neutral.ChoiceNamed, Name: "f"},
		Stop:   []string{"\n", "END"}, MaxOutputTokens: 100,
		Sampling: neutral.Sampling{Temperature: "1.5", TopP: "0.5", TopK: "40"},
	}
	id := callID("functions.f:0")
	dialecttest.SameJSON(t, `{"messages":[
		{"role":"user","content":[{"text":"Look:"},
			{"image":{"format":"jpeg","source":{"bytes":"aGk="}}},{"cachePoint":{"type":"default"}},
			{"document":{"format":"pdf","name":"a b (1)","source":{"bytes":"aGkh"}}},
			{"document":{"format":"txt","name":"a b (1) 2","source":{"bytes":"aGkh"}}}]},
		{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"c2ln"}}},{"text":"Calling."},
			{"toolUse":{"toolUseId":"`+id+`","name":"f","input":{}}},{"toolUse":{"toolUseId":"t2","name":"g","input":{"arguments":"[1]"}}}]},
		{"role":"user","content":[
			{"toolResult":{"toolUseId":"`+id+`","content":[{"text":"no"},{"image":{"format":"webp","source":{"bytes":"aGkh"}}}],"status":"error"}},{"cachePoint":{"type":"default"}},
			{"toolResult":{"toolUseId":"t2","content":[]}},{"text":"And?"},{"text":"Go on."}]}],
		"system":[{"text":"Rules."},{"cachePoint":{"type":"default","ttl":"1h"}}],
		"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"F.","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default","ttl":"1h"}},
			{"toolSpec":{"name":"g","inputSchema":{"json":{"type":"object","properties":{}}}}}],"toolChoice":{"tool":{"name":"f"}}},
		"inferenceConfig":{"maxTokens":100,"temperature":1,"stopSequences":["END"]},
		"additionalModelRequestFields":{"top_k":40}}`, string(build(t, n, target()).Body))

	tg := target()
	tg.WithoutSeals = true
	if body := string(build(t, n, tg).Body); strings.Contains(body, "reasoningContent") {
		t.Errorf("K5: %s", body)
	}
}

// fields reads parts of the body that is built for a model.
func fields(t *testing.T, model string, n *neutral.Request) gjson.Result {
	t.Helper()
	tg := target()
	tg.UpstreamModel = model
	return gjson.ParseBytes(build(t, n, tg).Body)
}

// What a model refuses it is not sent; what it may be asked it is asked in its own
// words.
//
// Rules: P5.
func TestModelsAreAskedInTheirOwnWords_P5(t *testing.T) {
	yes := true
	ask := func(effort string, budget, maxTokens int64) *neutral.Request {
		n := simple()
		n.Reasoning = &neutral.ReasoningOptions{Effort: effort, BudgetTokens: budget}
		n.MaxOutputTokens = maxTokens
		n.Sampling = neutral.Sampling{Temperature: "0.5", TopP: "0.9", TopK: "7"}
		n.Tools = []neutral.ToolDefinition{{Name: "f", Strict: &yes, Cache: &neutral.CacheMarker{TTL: "1h"}}}
		n.System = []neutral.Part{{Kind: neutral.TextPart, Text: "S", Cache: &neutral.CacheMarker{TTL: "1h"}}}
		return n
	}
	const point, hour = `{"cachePoint":{"type":"default"}}`, `{"cachePoint":{"type":"default","ttl":"1h"}}`
	for _, tt := range []struct {
		model, extra, inference, system, tool string
		n                                     *neutral.Request
	}{
		{"anthropic.claude-3-5-sonnet-20240620-v1:0", `{"top_k":7}`, `{"maxTokens":9000,"temperature":0.5,"topP":0.9}`, point, point, ask("high", 0, 9000)},
		{"anthropic.claude-3-7-sonnet-20250219-v1:0", `{"thinking":{"type":"enabled","budget_tokens":6750}}`, `{"maxTokens":9000}`, point, point, ask("high", 0, 9000)},
		{"us.anthropic.claude-opus-4-1-20250805-v1:0", `{"top_k":7}`, `{"maxTokens":1000,"temperature":0.5}`, point, point, ask("high", 0, 1000)},
		{claude, `{"thinking":{"type":"enabled","budget_tokens":4000}}`, `{"maxTokens":9000}`, hour, hour, ask("", 4000, 9000)},
		{"us.anthropic.claude-opus-4-6-v1", `{"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}}`, `{"maxTokens":9000}`, hour, hour, ask("", 4000, 9000)},
		{"anthropic.claude-opus-4-7", `{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`, `{"maxTokens":10}`, hour, hour, ask("minimal", 0, 10)},
		{"arn:aws:bedrock:us-east-1:1:application-inference-profile/x1", `{"thinking":{"type":"enabled","budget_tokens":2048}}`, `{"maxTokens":9000}`, hour, hour, ask("low", 0, 9000)},
		{"amazon.nova-2-lite-v1:0", `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"medium"}}`, `{"maxTokens":9000}`, point, "", ask("high", 0, 9000)},
		{"us.amazon.nova-pro-v1:0", "", `{"maxTokens":9000,"temperature":0.5,"topP":0.9}`, point, "", ask("high", 0, 9000)},
		{"openai.gpt-oss-120b-1:0", `{"reasoning_effort":"high"}`, `{"maxTokens":9000,"temperature":0.5,"topP":0.9}`, "", "", ask("high", 0, 9000)},
		{"mistral.mistral-large-2407-v1:0", `{"top_k":7}`, `{"maxTokens":9000,"temperature":0.5,"topP":0.9}`, "", "", ask("high", 0, 9000)},
		{"meta.llama3-1-70b-instruct-v1:0", "", `{"maxTokens":9000,"temperature":0.5,"topP":0.9}`, "", "", ask("high", 0, 9000)},
	} {
		t.Run(tt.model, func(t *testing.T) {
			got := fields(t, tt.model, tt.n)
			for path, want := range map[string]string{
				"additionalModelRequestFields": tt.extra, "inferenceConfig": tt.inference, "system.1": tt.system, "toolConfig.tools.1": tt.tool,
			} {
				if got := got.Get(path).Raw; got != want {
					t.Errorf("%s = %s, want %s", path, got, want)
				}
			}
			if strict := got.Get("toolConfig.tools.0.toolSpec.strict").Bool(); strict != modelOf(tt.model).strictTools {
				t.Errorf("strict = %v", strict)
			}
		})
	}
}

func TestClaudeVersions(t *testing.T) {
	for id, want := range map[string]int{
		"anthropic.claude-v2:1": 0, "anthropic.claude-instant-v1": 0, "anthropic.claude-3-haiku-20240307-v1:0": 300,
		"us.anthropic.claude-3-7-sonnet-20250219-v1:0": 307, "us.anthropic.claude-sonnet-4-20250514-v1:0": 400,
		"anthropic.claude-opus-4-1-20250805-v1:0": 401, claude: 405, "global.anthropic.claude-opus-4-6-v1": 406, "anthropic.claude-sonnet-5": 500,
	} {
		if got, known := claudeVersion(id); got != want || !known {
			t.Errorf("%s: %d, %v; want %d", id, got, known, want)
		}
	}
	if _, known := claudeVersion("example.fable-5-v1:0"); known {
		t.Error("a version of another model")
	}
}

func TestThinkingGivesWay(t *testing.T) {
	thinking := func(n *neutral.Request, model string) string {
		return fields(t, model, n).Get("additionalModelRequestFields.thinking.type").Str
	}
	n := simple()
	n.Reasoning = &neutral.ReasoningOptions{Effort: "low"}
	n.Tools = []neutral.ToolDefinition{{Name: "f"}}
	if got := thinking(n, claude); got != "enabled" {
		t.Errorf("thinking %q", got)
	}
	n.Choice.Mode = neutral.ChoiceAny
	if got := thinking(n, claude); got != "" {
		t.Errorf("beside a forced call: %q", got)
	}
	n.Choice = neutral.ToolChoice{}
	n.Messages = append(n.Messages,
		neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{
			{Kind: neutral.ReasoningPart, Text: "x", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: "s"}},
			{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "t", Name: "f"}},
		}},
		neutral.Message{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "t"}}}})
	if got := thinking(n, claude); got != "" {
		t.Errorf("in a turn that lost its reasoning: %q", got)
	}
	if got := thinking(n, "anthropic.claude-opus-4-6-v1"); got != "adaptive" {
		t.Errorf("adaptive in such a turn: %q", got)
	}
	n.Reasoning = &neutral.ReasoningOptions{Disabled: true}
	if got := thinking(n, "anthropic.claude-opus-4-6-v1"); got != "disabled" {
		t.Errorf("turned off: %q", got)
	}
}

// A history with calls needs tools, and the dialect has no choice of none.
func TestToolsOfTheHistory(t *testing.T) {
	n := simple()
	n.Messages = append(n.Messages,
		neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "t", Name: "f"}}}},
		neutral.Message{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: "t"}}}})
	got := fields(t, claude, n)
	if got.Get("toolConfig.tools.#").Int() != 1 || got.Get("toolConfig.tools.0.toolSpec.name").Str != "f" || got.Get("system.0.text").Str != noToolInstruction {
		t.Errorf("tools gone: %s", got.Raw)
	}
	n.Tools, n.Choice.Mode = []neutral.ToolDefinition{{Name: "f"}, {Name: "g"}}, neutral.ChoiceNone
	got = fields(t, claude, n)
	if got.Get("toolConfig.tools.#").Int() != 2 || got.Get("toolConfig.toolChoice").Exists() || got.Get("system.0.text").Str != noToolInstruction {
		t.Errorf("tools forbidden: %s", got.Raw)
	}
	n.Messages = n.Messages[:1]
	if got = fields(t, claude, n); got.Get("toolConfig").Exists() || got.Get("system").Exists() {
		t.Errorf("forbidden without a history: %s", got.Raw)
	}
}

func TestStructuredOutput(t *testing.T) {
	n := simple()
	n.Format = &neutral.Format{Name: "city", Description: "D", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	dialecttest.SameJSON(t, `{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"city","description":"D",
		"schema":"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"}}}}`, fields(t, claude, n).Get("outputConfig").Raw)
	n.Format = &neutral.Format{}
	if got := fields(t, claude, n); got.Get("outputConfig").Exists() || got.Get("system.0.text").Str != jsonInstruction {
		t.Errorf("any JSON: %s", got.Raw)
	}
}

func TestTurnsAreArranged(t *testing.T) {
	turn := func(role neutral.Role, s string) neutral.Message {
		return neutral.Message{Role: role, Parts: []neutral.Part{text(s)}}
	}
	for _, tt := range []struct {
		name string
		in   []neutral.Message
		want string
	}{
		{"nothing", nil, `[{"role":"user","content":[{"text":"Begin."}]}]`},
		{"blank", []neutral.Message{turn(neutral.User, " \n")}, `[{"role":"user","content":[{"text":"Begin."}]}]`},
		{"the assistant first", []neutral.Message{turn(neutral.Assistant, "a")}, `[{"role":"user","content":[{"text":"Begin."}]},{"role":"assistant","content":[{"text":"a"}]}]`},
		{"neighbours", []neutral.Message{turn(neutral.User, "a"), turn(neutral.Assistant, ""), turn(neutral.User, "b")}, `[{"role":"user","content":[{"text":"a"},{"text":"b"}]}]`},
		{"a refusal", []neutral.Message{turn(neutral.User, "a"), {Role: neutral.Assistant, Parts: []neutral.Part{{Kind: neutral.RefusalPart, Text: "No."}}}}, `[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"text":"No."}]}]`},
		{"a document alone", []neutral.Message{{Role: neutral.User, Parts: []neutral.Part{{Kind: neutral.DocumentPart, Media: neutral.Media{Base64: "aGkh", Name: "x.md"}}}}}, `[{"role":"user","content":[{"text":"x.md"},{"document":{"format":"md","name":"x","source":{"bytes":"aGkh"}}}]}]`},
	} {
		got := fields(t, claude, &neutral.Request{Messages: tt.in})
		if got := got.Get("messages").Raw; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Rules: P11.
func TestBetaFlags_P11(t *testing.T) {
	req := asking(simple())
	req.Flags.AnthropicBeta = []string{"context-1m-2025-08-07", "made-up-2099-01-01", "interleaved-thinking-2025-05-14"}
	flags := func(model string, allowed []string) string {
		tg := target()
		tg.UpstreamModel, tg.BetaFlags = model, allowed
		up, err := Outbound{}.Build(req, tg)
		if err != nil {
			t.Fatal(err)
		}
		return gjson.GetBytes(up.Body, "additionalModelRequestFields.anthropic_beta").Raw
	}
	if got := flags(claude, nil); got != `["context-1m-2025-08-07","interleaved-thinking-2025-05-14"]` {
		t.Errorf("known: %s", got)
	}
	if got := flags(claude, []string{"interleaved-thinking-2025-05-14"}); got != `["interleaved-thinking-2025-05-14"]` {
		t.Errorf("allowed: %s", got)
	}
	if got := flags("amazon.nova-pro-v1:0", nil); got != "" {
		t.Errorf("Nova: %s", got)
	}
	req.Dialect = neutral.Chat
	if got := flags(claude, nil); got != "" {
		t.Errorf("of another dialect: %s", got)
	}
}

// One image is copied once (S9): 16 MiB must not cost three times their size.
func TestLargeImage_S9(t *testing.T) {
	n := simple()
	n.Messages[0].Parts = append(n.Messages[0].Parts, neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: strings.Repeat("aGkh", 1<<20)}})
	body := build(t, n, target()).Body
	if cap(body) > len(body)+len(body)/4 {
		t.Errorf("%d bytes for a body of %d: the buffer grew", cap(body), len(body))
	}
	if !slices.Equal(body, build(t, n, target()).Body) {
		t.Error("the same request gave other bytes (P12)")
	}
}

// Rules: C14.
func TestAccessKeysAreNotPrinted_C14(t *testing.T) {
	tg := target()
	tg.Access.Session = "token"
	for _, out := range []string{fmt.Sprint(tg.Access), fmt.Sprintf("%v %+v %#v", tg, tg, tg.Access)} {
		if strings.Contains(out, "wJalr") || strings.Contains(out, "token") {
			t.Errorf("printed: %s", out)
		}
	}
}
