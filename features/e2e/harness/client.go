package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// callTimeout ends a call that nobody answers.
const callTimeout = 60 * time.Second

// Client calls the gateway as a plain HTTP client, which shows what is on the wire;
// what official clients make of it is features/clients' business.
type Client struct {
	Base, Key string
	// Transport is shared and keeps no connection by default: what is kept would
	// outlive the test.
	Transport http.RoundTripper
}

var noKeepAlive = &http.Transport{DisableKeepAlives: true, DisableCompression: true}

// Reply is a whole reply.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get reads a member of a JSON body, in the syntax of gjson.
func (r Reply) Get(path string) gjson.Result { return gjson.GetBytes(r.Body, path) }

// ID is the request's id.
func (r Reply) ID() string { return r.Header.Get("X-Request-Id") }

// String is for messages of failed tests.
func (r Reply) String() string { return fmt.Sprintf("%d %v\n%s", r.Status, r.Header, r.Body) }

// Data are the payloads of a stream's events.
func (r Reply) Data() []string {
	var data []string
	for line := range strings.Lines(string(r.Body)) {
		if payload, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, strings.TrimRight(payload, "\r\n"))
		}
	}
	return data
}

// Text is what a chat answer says, streamed or not.
func (r Reply) Text() string {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return r.Get("choices.0.message.content").String()
	}
	var text strings.Builder
	for _, data := range r.Data() {
		text.WriteString(gjson.Get(data, "choices.0.delta.content").String())
	}
	return text.String()
}

// IsWhole says whether a chat answer came to its end.
func (r Reply) IsWhole() bool {
	if r.Status != http.StatusOK {
		return false
	}
	if data := r.Data(); len(data) > 0 {
		return data[len(data)-1] == "[DONE]"
	}
	return r.Get("choices.0.finish_reason").String() != ""
}

// Try makes one call. Headers are name and value in turn. The reply is what came,
// also beside an error that broke it off.
func (c Client) Try(method, path, body string, headers ...string) (Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	response, err := c.Open(ctx, method, path, strings.NewReader(body), headers...)
	if err != nil {
		return Reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return Reply{response.StatusCode, response.Header, text}, err
}

// Open makes a call whose reply the test reads as it comes.
func (c Client) Open(ctx context.Context, method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	transport := c.Transport
	if transport == nil {
		transport = noKeepAlive
	}
	return (&http.Client{Transport: transport}).Do(request)
}

// Do is Try for a call that has to be answered.
func (c Client) Do(t testing.TB, method, path, body string, headers ...string) Reply {
	t.Helper()
	reply, err := c.Try(method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply
}

// Get reads a path of the API.
func (c Client) Get(t testing.TB, path string) Reply {
	t.Helper()
	return c.Do(t, http.MethodGet, path, "")
}

// ChatPath is the one inference path of the Chat dialect.
const ChatPath = "/v1/chat/completions"

// Chat asks a model, without a stream.
func (c Client) Chat(t testing.TB, model, prompt string, headers ...string) Reply {
	t.Helper()
	return c.Do(t, http.MethodPost, ChatPath, ChatBody(model, prompt, nil), headers...)
}

// Stream asks a model for a stream and reads it to its end.
func (c Client) Stream(t testing.TB, model, prompt string, headers ...string) Reply {
	t.Helper()
	return c.Do(t, http.MethodPost, ChatPath, ChatBody(model, prompt, map[string]any{"stream": true}), headers...)
}

// ChatBody is a chat request with one message and further members.
func ChatBody(model, prompt string, more map[string]any) string {
	request := map[string]any{
		"model":      model,
		"messages":   []any{map[string]any{"role": "user", "content": prompt}},
		"max_tokens": 64,
	}
	for name, value := range more {
		request[name] = value
	}
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(request); err != nil {
		panic(err) // a test's own value that is no JSON
	}
	return body.String()
}

// Trail is a request's trail as its caller reads it.
func (c Client) Trail(t testing.TB, id string) Reply {
	t.Helper()
	return c.Get(t, "/v1/requests/"+id+"/trail")
}
