package embeddings

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

var out = Outbound{chat.Outbound{}}

func parsed(t testing.TB, body string) *dialect.Request {
	t.Helper()
	req, err := Inbound{}.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// Rules: A6.
func TestParseCountsEveryFormOfInput_A6(t *testing.T) {
	for input, want := range map[string]dialect.Parts{
		`"a\nb"`:      {Messages: 1, Spans: []dialect.Span{{Start: 22, End: 26, Escaped: true}}},
		`["a","bc"]`:  {Messages: 2, Spans: []dialect.Span{{Start: 23, End: 24}, {Start: 27, End: 29}}},
		`[1,2,3]`:     {Base64Bytes: 12},
		`[[1,2],[3]]`: {Base64Bytes: 12},
	} {
		req := parsed(t, `{"model":"m","input":`+input+`}`)
		if diff := cmp.Diff(want, req.Parts); diff != "" {
			t.Errorf("%s: %s", input, diff)
		}
		if !req.WholeOnly || req.Stream || !cmp.Equal(req.Needs, []catalog.Capability{catalog.Embeddings}) || req.Lacks(neutral.Messages) != dialect.Vectors {
			t.Errorf("request = %+v", req)
		}
	}
}

// Rules: Z5.
func TestParseRefusesWithTheField_Z5(t *testing.T) {
	for body, param := range map[string]string{
		`{"input":"x"}`:                         "model",
		`{"model":7,"input":"x"}`:               "model",
		`{"model":"a","model":"b","input":"x"}`: "model",
		`{"model":"m"}`:                         "input",
		`{"model":"m","input":null}`:            "input",
		`{"model":"m","input":[{"a":1}]}`:       "input",
		`{"model":"m","input":true}`:            "input",
		`[]`:                                    "",
		`{"model":"m","input":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "",
	} {
		_, err := Inbound{}.Parse([]byte(body))
		if inv, ok := errors.AsType[*dialect.InvalidError](err); !ok || inv.Param != param {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Rules: P4.
func TestOnlyTheModelIsChanged_P4(t *testing.T) {
	req := parsed(t, `{ "unknown":[1.0], "model":"m", "input":"x" }`)
	up, err := out.Build(req, dialect.Target{BaseURL: "https://api.openai.com/v1", Secret: "s", UpstreamModel: "up"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(up.Body); got != `{ "unknown":[1.0], "model":"up", "input":"x" }` {
		t.Error(got)
	}
	if up.URL != "https://api.openai.com/v1/embeddings" || up.Header.Get("Authorization") != "Bearer s" || up.Method != http.MethodPost {
		t.Errorf("upstream = %+v", up)
	}
	answer, f := out.DecodeWhole(req, []byte(`{"object":"list","data":[{"embedding":"AAAA"}],"model":"up-2026","usage":{"prompt_tokens":4,"total_tokens":4},"x":1}`))
	if f != nil {
		t.Fatal(f)
	}
	if answer.Usage != (usage.Usage{Input: usage.Of(4), Output: usage.Of(0)}) || answer.Empty || !answer.Usage.Usable() {
		t.Errorf("answer = %+v", answer)
	}
	body, err := Inbound{}.Whole(req, &answer, dialect.Meta{Model: "m"})
	if err != nil || string(body) != `{"object":"list","data":[{"embedding":"AAAA"}],"model":"m","usage":{"prompt_tokens":4,"total_tokens":4},"x":1}` {
		t.Errorf("%s, %v", body, err)
	}
}

// Rules: W2, W8.
func TestRepliesThatAreNone_W2_W8(t *testing.T) {
	req := parsed(t, `{"model":"m","input":"x"}`)
	for body, want := range map[string]failure.Class{
		`<html>`:      failure.BadPayload,
		`{"data":{}}`: failure.BadPayload,
		`{"data":[]}`: failure.EmptyCompletion,
		`{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`: failure.ProviderQuota,
	} {
		if _, f := out.DecodeWhole(req, []byte(body)); f == nil || f.Class != want {
			t.Errorf("%s: %v, want %s", body, f, want)
		}
	}
	answer, f := out.DecodeWhole(req, []byte(`{"data":[{}]}`))
	if f != nil || answer.Usage != (usage.Usage{}) {
		t.Errorf("usage that was not reported: %+v, %v (M4)", answer.Usage, f)
	}
}

// All that is no embeddings request is the other dialect's.
func TestOtherRequestsGoToTheOtherDialect(t *testing.T) {
	req, err := chat.Inbound{}.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	up, err := out.Build(req, dialect.Target{BaseURL: "https://api.openai.com/v1", UpstreamModel: "up"})
	if err != nil || !strings.HasSuffix(up.URL, "/chat/completions") {
		t.Errorf("%+v, %v", up, err)
	}
	if _, f := out.DecodeWhole(req, []byte(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)); f != nil {
		t.Error(f)
	}
}

func FuzzEmbeddings(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":["a",1,[2]],"data":[1],"usage":{"prompt_tokens":1e3}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Inbound{}.Parse(body)
		if err != nil {
			req = &dialect.Request{Dialect: neutral.Embeddings, Raw: body}
		}
		for range req.Texts() {
		}
		_, _ = out.Build(req, dialect.Target{BaseURL: "https://x.test", UpstreamModel: "u"})
		if answer, f := out.DecodeWhole(req, body); f == nil {
			_, _ = Inbound{}.Whole(req, &answer, dialect.Meta{Model: "m"})
		}
	})
}
