package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// caller sends requests to a bench with its key.
type caller struct {
	t            *testing.T
	address, key string
}

func (c caller) do(method, path, body string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.key != "" {
		req.Header.Set("X-Api-Key", c.key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	reply, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer reply.Body.Close()
	read, err := io.ReadAll(reply.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply, string(read)
}

func calling(t *testing.T, b *gatewaytest.Bench) caller {
	t.Helper()
	address, key := serve(t, b)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return caller{t, address, key}
}

// member reads a member of a JSON document by its path.
func member(t *testing.T, body string, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

const (
	chatBody      = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]`
	messagesBody  = chatBody
	responsesBody = `{"model":"m","max_output_tokens":50,"input":"hi"`
)

// Every inference path answers in its own dialect, whole and streamed, under each
// prefix, with both request ids and its own terminator (P1, P11).
func TestEveryPathAnswersInItsDialect_P1_P11(t *testing.T) {
	c := calling(t, gatewaytest.New(t, "fake-ok"))
	for _, d := range []struct{ path, body, object, last string }{
		{"/v1/chat/completions", chatBody, "chat.completion", "data: [DONE]\n\n"},
		{"/openai/v1/chat/completions", chatBody, "chat.completion", "data: [DONE]\n\n"},
		{"/v1/messages", messagesBody, "", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
		{"/v1/messages?beta=true", messagesBody, "", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
		{"/anthropic/v1/messages", messagesBody, "", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
		{"/v1/responses", responsesBody, "response", ""},
		{"/openai/v1/responses", responsesBody, "response", ""},
	} {
		reply, body := c.do("POST", d.path, d.body+"}")
		if reply.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", d.path, reply.StatusCode, body)
			continue
		}
		if got, _ := member(t, body, "object").(string); got != d.object {
			t.Errorf("%s: object %q, want %q", d.path, got, d.object)
		}
		if model := member(t, body, "model"); model != "m" {
			t.Errorf("%s: model %v, want the requested one (N23)", d.path, model)
		}
		ids(t, d.path, reply)

		reply, body = c.do("POST", d.path, d.body+`,"stream":true}`)
		if got := reply.Header.Get("Content-Type"); got != "text/event-stream" || reply.Header.Get("Cache-Control") != "no-cache" || reply.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: headers %v", d.path, reply.Header)
		}
		if !strings.HasSuffix(body, d.last) || (d.object != "chat.completion" && strings.Contains(body, "[DONE]")) {
			t.Errorf("%s: the stream ends in %q", d.path, body[max(0, len(body)-120):])
		}
		if d.object == "response" && strings.Count(body, "event: response.completed\n") != 1 {
			t.Errorf("%s: no response.completed in %s", d.path, body)
		}
		ids(t, d.path, reply)
	}
}

func ids(t *testing.T, path string, reply *http.Response) {
	t.Helper()
	if id := reply.Header.Get("X-Request-Id"); len(id) != 36 || reply.Header.Get("Request-Id") != id {
		t.Errorf("%s: x-request-id %q, request-id %q", path, id, reply.Header.Get("Request-Id"))
	}
}

// Whoever refuses, the edge, the key check, the gateway, does so in the dialect of
// the path, with both ids (P11).
func TestErrorsAreInTheDialectOfThePath_P11(t *testing.T) {
	known := calling(t, gatewaytest.New(t, "fake-ok"))
	stranger := known
	stranger.key = "sk-sluice-nobody"
	for _, path := range []string{
		"/v1/messages", "/anthropic/v1/messages", "/v1/messages/count_tokens", "/anthropic/v1/models", "/anthropic/v1/nothing", "/v1/messages/batches",
		"/v1/chat/completions", "/v1/responses", "/v1/responses/resp_1", "/v1/embeddings", "/openai/v1/nothing", "/v1/nothing", "/openai/v1/responses",
	} {
		anthropic := strings.Contains(path, "anthropic") || strings.Contains(path, "messages")
		method := "POST"
		for _, who := range []caller{stranger, known} {
			reply, body := who.do(method, path, `{"model":"no-such-model","messages":[{"role":"user","content":"x"}],"max_tokens":5,"input":"x"}`)
			if reply.StatusCode < 400 {
				t.Errorf("%s: %d", path, reply.StatusCode)
				continue
			}
			ids(t, path, reply)
			if reply.Header.Get("X-Should-Retry") == "" {
				t.Errorf("%s: no x-should-retry", path)
			}
			if got := member(t, body, "type") == "error"; got != anthropic {
				t.Errorf("%s: %s", path, body)
			}
			if anthropic && member(t, body, "request_id") != reply.Header.Get("Request-Id") {
				t.Errorf("%s: request_id differs from the header: %s", path, body)
			}
			if kind, _ := member(t, body, "error", "type").(string); kind == "" {
				t.Errorf("%s: no error type in %s", path, body)
			}
		}
	}
	if reply, body := known.do("POST", "/anthropic/v1/nothing", "{}"); member(t, body, "error", "type") != "not_found_error" || reply.StatusCode != http.StatusNotFound {
		t.Errorf("no such path: %d %s", reply.StatusCode, body)
	}
	if reply, body := known.do("GET", "/v1/models/none", "", "Anthropic-Version", "2023-06-01"); member(t, body, "type") != "error" || reply.StatusCode != http.StatusNotFound {
		t.Errorf("models in Anthropic's shape: %d %s", reply.StatusCode, body)
	}
}

// count_tokens answers for every model, whoever serves it, with the estimate that
// admission uses; it is no attempt (P11).
func TestCountTokens_P11(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	c := calling(t, b)
	short := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	long := `{"model":"m","system":"be kind","messages":[{"role":"user","content":"` + strings.Repeat("many words ", 100) + `"}]}`
	var counts []float64
	for _, body := range []string{short, long} {
		reply, got := c.do("POST", "/v1/messages/count_tokens", body)
		n, _ := member(t, got, "input_tokens").(float64)
		if reply.StatusCode != http.StatusOK || n < 1 {
			t.Fatalf("%d %s", reply.StatusCode, got)
		}
		ids(t, "count_tokens", reply)
		counts = append(counts, n)
	}
	if counts[1] < counts[0]+200 {
		t.Errorf("counts = %v", counts)
	}
	if calls := b.Provider.Ledger().Calls; len(calls) != 0 {
		t.Errorf("the provider was called %d times", len(calls))
	}
	if reply, _ := c.do("POST", "/v1/messages/count_tokens", `{"model":"none","messages":[{"role":"user","content":"hi"}]}`); reply.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown model: %d", reply.StatusCode)
	}
}

// A response is kept only where the organization lets it be kept, for the caller who
// made it (K6).
func TestStoredResponses_K6(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	b.Objects.Tenants[0].Retention = catalog.Retention{Responses: true}
	c := calling(t, b)
	_, created := c.do("POST", "/v1/responses", responsesBody+"}")
	id, _ := member(t, created, "id").(string)
	if reply, body := c.do("GET", "/v1/responses/"+id, ""); reply.StatusCode != http.StatusOK || member(t, body, "id") != id {
		t.Errorf("get: %d %s", reply.StatusCode, body)
	}
	reply, body := c.do("POST", "/v1/responses", `{"model":"m","max_output_tokens":50,"input":"and?","previous_response_id":"`+id+`"}`)
	if reply.StatusCode != http.StatusOK || !strings.Contains(body, "messages=3") {
		t.Errorf("continued: %d %s", reply.StatusCode, body)
	}
	if reply, body := c.do("DELETE", "/v1/responses/"+id, ""); reply.StatusCode != http.StatusOK || member(t, body, "deleted") != true {
		t.Errorf("delete: %d %s", reply.StatusCode, body)
	}
	if reply, body := c.do("GET", "/v1/responses/"+id, ""); reply.StatusCode != http.StatusNotFound || !strings.Contains(body, "Send the whole conversation") {
		t.Errorf("gone: %d %s", reply.StatusCode, body)
	}
	if calls := b.Provider.Ledger().Calls; len(calls) != 2 {
		t.Errorf("the provider was called %d times for two requests: reading costs nothing", len(calls))
	}

	keepsNothing := calling(t, gatewaytest.New(t, "fake-ok"))
	_, created = keepsNothing.do("POST", "/v1/responses", responsesBody+"}")
	id, _ = member(t, created, "id").(string)
	if reply, _ := keepsNothing.do("GET", "/v1/responses/"+id, ""); reply.StatusCode != http.StatusNotFound {
		t.Errorf("kept against the organization's setting: %d", reply.StatusCode)
	}
}

// A request that no route can be told is refused with its field before any attempt; a
// route of the caller's own dialect is asked as it stands (A3, P4).
func TestUntranslatableRequests_A3_P4(t *testing.T) {
	body := `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,@@@@"}}]}]}`
	for protocol, want := range map[catalog.Protocol]int{catalog.Anthropic: http.StatusBadRequest, catalog.OpenAI: http.StatusOK} {
		b := gatewaytest.New(t, "fake-ok")
		b.Objects.Providers[0].Protocol = protocol
		reply, got := calling(t, b).do("POST", "/v1/chat/completions", body)
		if reply.StatusCode != want {
			t.Errorf("%s: %d %s", protocol, reply.StatusCode, got)
		}
		if want == http.StatusBadRequest {
			if param := member(t, got, "error", "param"); param != "messages[0].content[0].image_url.url" || len(b.Provider.Ledger().Calls) != 0 {
				t.Errorf("param %v, %d calls", param, len(b.Provider.Ledger().Calls))
			}
		}
	}
}

// An address in a private network is refused with its field before any attempt: a
// provider that stands there too would fetch it for the caller. The operator may open
// its host (Z1).
func TestAddressesOfPrivateNetworks_Z1(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"http://pictures.internal/a.png"}}`
	bodies := map[string]struct{ path, body, param string }{
		"chat": {
			"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},` + image + `]}]}`,
			"messages[0].content[1].image_url.url",
		},
		"responses": {
			"/v1/responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"http://pictures.internal/a.png"}]}]}`,
			"input[0].content[0].image_url",
		},
		"responses, document": {
			"/v1/responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_url":"http://pictures.internal/a.pdf"}]}]}`,
			"input[0].content[0].file_url",
		},
		"messages": {
			"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://pictures.internal/a.png"}}]}]}`,
			"messages[0].content[0].source.url",
		},
		"messages, inside a tool's result": {
			"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"http://pictures.internal/a.png"}}]}]}]}`,
			"messages[0].content[0].content[0].source.url",
		},
	}
	for name, c := range bodies {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, "fake-ok")
			reply, got := calling(t, b).do("POST", c.path, c.body)
			if reply.StatusCode != http.StatusBadRequest || !strings.Contains(got, c.param) || len(b.Provider.Ledger().Calls) != 0 {
				t.Errorf("%d %s, %d calls; the field is %s", reply.StatusCode, got, len(b.Provider.Ledger().Calls), c.param)
			}
		})
	}

	opened := gatewaytest.New(t, "fake-ok")
	opened.InternalHosts = network.MustHosts("pictures.internal")
	if reply, got := calling(t, opened).do("POST", "/v1/chat/completions", bodies["chat"].body); reply.StatusCode != http.StatusOK {
		t.Errorf("opened: %d %s", reply.StatusCode, got)
	}
}

// Embeddings are an attempt like any other: reserved, called, settled (P1).
func TestEmbeddings_P1(t *testing.T) {
	b := gatewaytest.New(t, "fake-500,ok", "fake-ok")
	c := calling(t, b)
	reply, body := c.do("POST", "/v1/embeddings", `{"model":"m","input":["a","b"],"dimensions":3,"unknown":1}`)
	if reply.StatusCode != http.StatusOK || member(t, body, "object") != "list" || member(t, body, "model") != "m" {
		t.Fatalf("%d %s", reply.StatusCode, body)
	}
	if got := reply.Header.Get("X-Sluice-Attempts"); got != "2" {
		t.Errorf("attempts = %s", got)
	}
	if cost := reply.Header.Get("X-Sluice-Cost-Nanousd"); cost == "" || cost == "0" {
		t.Errorf("cost = %q", cost)
	}
	b.Log.NothingHeld(t)
	for _, bad := range []string{`{"model":"m"}`, `{"model":"m","input":{}}`, `{"input":"x"}`, `[]`} {
		if reply, _ := c.do("POST", "/v1/embeddings", bad); reply.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, reply.StatusCode)
		}
	}
	// A provider of another protocol has no embeddings.
	b = gatewaytest.New(t, "fake-ok")
	b.Objects.Providers[0].Protocol = catalog.Anthropic
	if reply, body := calling(t, b).do("POST", "/v1/embeddings", `{"model":"m","input":"x"}`); reply.StatusCode != http.StatusBadRequest || member(t, body, "error", "code") != "capability_unavailable" {
		t.Errorf("%d %s", reply.StatusCode, body)
	}
}

// Version and beta flags reach a provider of the caller's own dialect, and nothing
// else of the caller's headers does (P11, Z4).
func TestFlagsReachAnthropic_P11_Z4(t *testing.T) {
	var seen http.Header
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}`)
	}))
	t.Cleanup(upstream.Close)
	b := gatewaytest.New(t, "up")
	b.Objects.Providers[0].Protocol, b.Objects.Providers[0].BaseURL = catalog.Anthropic, upstream.URL
	c := calling(t, b)
	reply, body := c.do("POST", "/v1/messages?beta=true", messagesBody+"}",
		"Anthropic-Version", "2023-06-01", "Anthropic-Beta", "a-2025-01-01, b-2025-02-02", "X-Claude-Code-Session-Id", "s", "Cookie", "c", "OpenAI-Organization", "o")
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", reply.StatusCode, body)
	}
	if got := seen.Get("Anthropic-Beta"); strings.ReplaceAll(got, " ", "") != "a-2025-01-01,b-2025-02-02" || seen.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("version %q, beta %q", seen.Get("Anthropic-Version"), got)
	}
	if seen.Get("X-Api-Key") != "sk-provider" {
		t.Errorf("x-api-key = %q", seen.Get("X-Api-Key"))
	}
	for _, private := range []string{"X-Claude-Code-Session-Id", "Cookie", "Openai-Organization", "Authorization"} {
		if v := seen.Get(private); v != "" {
			t.Errorf("%s: %s went upstream", private, v)
		}
	}
}
