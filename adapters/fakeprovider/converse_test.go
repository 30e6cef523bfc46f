package fakeprovider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

const wellSigned = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261129/us-east-1/bedrock/aws4_request, " +
	"SignedHeaders=content-type;host;x-amz-date, Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// What a stream delivers, event by event.
func TestConverseStreams(t *testing.T) {
	for outcome, want := range map[string]string{
		"words:2":                   "messageStart text text contentBlockStop messageStop metadata",
		"reasoning:1+words:1":       "messageStart reasoningContent reasoningContent contentBlockStop text contentBlockStop messageStop metadata",
		"tool+whole-call":           "messageStart contentBlockStart toolUse contentBlockStop messageStop metadata",
		"words:1+no-finish":         "messageStart text contentBlockStop metadata",
		"words:1+usage:before-last": "messageStart text contentBlockStop metadata messageStop",
		"words:1+usage:absent":      "messageStart text contentBlockStop messageStop",
		"empty":                     "messageStart messageStop metadata",
	} {
		p, err := parseOutcome(outcome)
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, request{model: "m", promptTokens: 7}, callFacts{sequence: 1}, 0)
		var said []string
		tokens := 0
		for _, e := range (converse{}).events(a) {
			var body struct{ Delta map[string]json.RawMessage }
			if err := json.Unmarshal(e.data, &body); err != nil {
				t.Fatalf("%v: %s", err, e.data)
			}
			word := e.name
			for kind := range body.Delta {
				word = kind
			}
			said, tokens = append(said, word), tokens+e.tokens
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", outcome, got, want)
		}
		if tokens != a.usage.output {
			t.Errorf("%s delivers %d tokens of %d", outcome, tokens, a.usage.output)
		}
	}
}

func TestConverseFramesAreTheVendors(t *testing.T) {
	c := converse{}
	b := c.frame(nil, framing{}, 0, event{name: "messageStop", data: []byte(`{"stopReason":"end_turn"}`)})
	b = c.frame(b, framing{}, 1, c.errorEvent(failure{kind: "throttled"}, nil, false))
	r := bytes.NewReader(b)
	for _, want := range []struct{ kind, header, name string }{
		{"event", ":event-type", "messageStop"}, {"exception", ":exception-type", "throttlingException"},
	} {
		m, err := eventstream.NewDecoder().Decode(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m.Headers.Get(":message-type").String() != want.kind || m.Headers.Get(want.header).String() != want.name || !json.Valid(m.Payload) {
			t.Errorf("%s: %v %s", want.name, m.Headers, m.Payload)
		}
	}
}

func TestConverseRequests(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/model/m/converse-stream", nil)
	r.SetPathValue("model", "fake-429:2")
	r.Header.Set("Authorization", "Bearer k")
	in, err := converse{}.parse(r, []byte(`{"system":[{"text":"abcd"},{"cachePoint":{"type":"default"}}],"inferenceConfig":{"maxTokens":9},
		"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{}}],"toolChoice":{"tool":{"name":"f"}}},
		"outputConfig":{"textFormat":{"structure":{"jsonSchema":{"schema":"{\"type\":\"object\"}"}}}},
		"messages":[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":[{"text":"no"}]},
			{"role":"user","content":[{"toolResult":{"content":[{"text":"four"},{"image":{}}]}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if in.model != "fake-429:2" || !in.stream || in.promptTokens != promptTokens(12, 3, 1, 1) || !in.toolAnswered || in.toolChoice != "f" ||
		in.maxTokens != 9 || string(in.tools[0].parameters) != `{"type":"object"}` || string(in.schema) != `{"type":"object"}` {
		t.Errorf("request = %+v", in)
	}
}

// A request must say who sent it, in the form of Signature Version 4 or with a key.
func TestConverseWantsASignature(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 31, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, authorization, date, session string
		ok                                 bool
	}{
		{"signed", wellSigned, "20261129T123015Z", "", true},
		{"an API key", "Bearer k", "", "", true},
		{"nothing", "", "", "", false},
		{"another day", wellSigned, "20261128T123015Z", "", false},
		{"long ago", wellSigned, "20261129T120000Z", "", false},
		{"in the future", wellSigned, "20261129T130000Z", "", false},
		{"no date", wellSigned, "", "", false},
		{"another service", strings.Replace(wellSigned, "/bedrock/", "/s3/", 1), "20261129T123015Z", "", false},
		{"half a signature", wellSigned[:len(wellSigned)-1], "20261129T123015Z", "", false},
		{"the host unsigned", strings.Replace(wellSigned, "host;", "", 1), "20261129T123015Z", "", false},
		{"a session unsigned", wellSigned, "20261129T123015Z", "token", false},
	} {
		h := http.Header{"Authorization": {tt.authorization}, "X-Amz-Date": {tt.date}}
		if tt.session != "" {
			h.Set("X-Amz-Security-Token", tt.session)
		}
		if err := signed(h, now); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if key := keyOf(http.Header{"Authorization": {wellSigned}}); key != "AKIDEXAMPLE" {
		t.Errorf("key = %q", key)
	}
}

// Every failure that the grammar knows has a body in this protocol, and one of
// Bedrock's own names its exception in the header.
func TestConverseFailures(t *testing.T) {
	for kind, forms := range chatFailures {
		for form := range forms {
			f := failure{kind: kind, form: form}
			status, body := converse{}.failure(f, callFacts{model: "m"})
			if status < 300 || (len(body) == 0 && kind != "redirect") {
				t.Errorf("%s %s: %d %s", kind, form, status, body)
			}
			if e := (converse{}).errorEvent(f, nil, false); !strings.HasSuffix(e.name, exceptionSuffix) || !json.Valid(e.data) {
				t.Errorf("%s %s: %s %s", kind, form, e.name, e.data)
			}
		}
	}
	f := failure{kind: "throttled"}
	_, body := converse{}.failure(f, callFacts{})
	if kind := (converse{}).failureHeader(f).Get("X-Amzn-Errortype"); !strings.HasPrefix(kind, "ThrottlingException:") || bytes.Contains(body, []byte("__type")) {
		t.Errorf("%s %s", kind, body)
	}
}
