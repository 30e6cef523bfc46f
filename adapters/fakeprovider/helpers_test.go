package fakeprovider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func chatBody(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"stream":%v,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello there"}]}`, model, stream)
}

// caller is a client of one server.
type caller struct {
	t      *testing.T
	server *fakeprovider.Server
	client *http.Client
}

// start runs a server on the loopback and a client for it.
func start(t *testing.T, options fakeprovider.Options) caller {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	c := caller{t, fakeprovider.Start(t, options), &http.Client{Transport: transport, CheckRedirect: noRedirect}}
	t.Cleanup(transport.CloseIdleConnections)
	return c
}

// on is the same client for a subtest.
func (c caller) on(t *testing.T) caller {
	c.t = t
	return c
}

// startInMemory runs both in a synctest bubble, where time is virtual.
func startInMemory(t *testing.T, options fakeprovider.Options) caller {
	t.Helper()
	pipe := fakeprovider.NewPipe()
	transport := &http.Transport{DisableCompression: true, DialContext: pipe.Dial}
	c := caller{t, fakeprovider.StartOn(t, pipe, options), &http.Client{Transport: transport, CheckRedirect: noRedirect}}
	t.Cleanup(transport.CloseIdleConnections)
	return c
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// reply is what a call got. err is the error of the call or of its body.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (c caller) post(ctx context.Context, body, key string) reply {
	c.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Idempotency-Key", "idem-1")
	response, err := c.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, all, err}
}

func (c caller) call(model string, stream bool) reply {
	c.t.Helper()
	return c.post(c.t.Context(), chatBody(model, stream), "sk-test-1234")
}

// lastCall waits until the newest call is done and returns it.
func (c caller) lastCall() fakeprovider.Call {
	c.t.Helper()
	var last fakeprovider.Call
	err := c.server.Await(c.t.Context(), func(calls []fakeprovider.Call) bool {
		last = calls[len(calls)-1]
		return last.Done
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return last
}

// sseData decodes a stream as the HTML standard says and returns the data of
// the events it dispatches. It is written on its own, after the standard's
// algorithm, so that the server's framing is held against something.
func sseData(stream []byte) []string {
	stream = bytes.TrimPrefix(stream, []byte("\xEF\xBB\xBF"))
	text := strings.ReplaceAll(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	var events, data []string
	for _, line := range lines[:len(lines)-1] { // what follows the last line end is no line
		switch field, value, _ := strings.Cut(line, ":"); {
		case line == "" && data != nil:
			events, data = append(events, strings.Join(data, "\n")), nil
		case field == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return events
}

// chunk is a Chat Completions chunk or whole answer.
type chunk struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Error   *apiError       `json:"error"`
	Usage   *tokenUsage     `json:"usage"`
	Raw     json.RawMessage `json:"-"`
	Choices []struct {
		Delta        message `json:"delta"`
		Message      message `json:"message"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

type apiError struct {
	Message  string `json:"message"`
	Type     string `json:"type"`
	Code     any    `json:"code"`
	Metadata struct {
		Raw string `json:"raw"`
	} `json:"metadata"`
}

type message struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls"`
}

type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type tokenUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// chunks decodes the events of a stream; done says that [DONE] was last.
func (c caller) chunks(body []byte) (chunks []chunk, done bool) {
	c.t.Helper()
	for _, data := range sseData(body) {
		if data == "[DONE]" {
			done = true
			continue
		}
		chunks = append(chunks, c.decode([]byte(data)))
	}
	return chunks, done
}

func (c caller) decode(body []byte) chunk {
	c.t.Helper()
	var out chunk
	if err := json.Unmarshal(body, &out); err != nil {
		c.t.Fatalf("not JSON: %v: %.300s", err, body)
	}
	out.Raw = body
	return out
}

// gathered is a stream put together, or a whole answer.
type gathered struct {
	content, reasoning, refusal, finish string
	calls                               []toolCall
	outputs                             int // chunks that carry output
	usage                               *tokenUsage
	failure                             *apiError
}

func gather(chunks []chunk) gathered {
	var g gathered
	for _, c := range chunks {
		if c.Usage != nil {
			g.usage = c.Usage
		}
		if c.Error != nil {
			g.failure = c.Error
		}
		for _, choice := range c.Choices {
			if choice.FinishReason != nil {
				g.finish = *choice.FinishReason
			}
			g.add(choice.Delta)
			g.add(choice.Message)
		}
	}
	return g
}

func (g *gathered) add(m message) {
	before := len(g.content) + len(g.reasoning) + len(g.refusal)
	if m.Content != nil {
		g.content += *m.Content
	}
	if m.Refusal != nil {
		g.refusal += *m.Refusal
	}
	g.reasoning += m.Reasoning
	if len(g.content)+len(g.reasoning)+len(g.refusal) > before || len(m.ToolCalls) > 0 {
		g.outputs++
	}
	for _, call := range m.ToolCalls {
		if call.ID != "" {
			g.calls = append(g.calls, call)
			continue
		}
		g.calls[*call.Index].Function.Arguments += call.Function.Arguments
	}
}

// answer makes a call and puts its answer together in either form.
func (c caller) answer(body string, stream bool) gathered {
	c.t.Helper()
	r := c.post(c.t.Context(), body, "sk-test-1234")
	if r.err != nil || r.status != http.StatusOK {
		c.t.Fatalf("status %d, error %v: %.300s", r.status, r.err, r.body)
	}
	if !stream {
		return gather([]chunk{c.decode(r.body)})
	}
	chunks, _ := c.chunks(r.body)
	return gather(chunks)
}
