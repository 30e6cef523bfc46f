package matrix

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openairesponses "github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// speakers are the inbound dialects' encoders.
var speakers = map[neutral.Dialect]dialect.Inbound{
	neutral.Chat: chat.Inbound{}, neutral.Responses: responses.Inbound{}, neutral.Messages: messages.Inbound{},
}

// recording is a provider's stream as it was recorded.
type recording struct {
	name string
	from outbound
	body []byte
}

// recordings are those of the providers whose streams are server-sent events. They are
// not part of the project: they stand beside a checkout, or not. Each dialect's own
// tests have small ones of the same kinds.
func recordings(t *testing.T) (list []recording) {
	t.Helper()
	files, err := filepath.Glob("../../../shared/fixtures/provider-streams/*/*.chunks.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the recorded responses are not at ../shared beside the checkout")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first := gjson.Parse(strings.SplitN(string(data), "\n", 2)[0])
		i := slices.IndexFunc(outbounds, func(o outbound) bool { return o.dialect == spoken(first) })
		if i < 0 {
			continue
		}
		r := recording{name: strings.TrimSuffix(filepath.Base(file), ".chunks.txt"), from: outbounds[i]}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" {
				name := ""
				if r.from.dialect == neutral.Messages || r.from.dialect == neutral.Responses {
					name = gjson.Get(line, "type").Str
				}
				r.body = sse.Append(r.body, name, []byte(line))
			}
		}
		if r.from.dialect == neutral.Chat {
			r.body = sse.Append(r.body, "", []byte("[DONE]"))
		}
		list = append(list, r)
	}
	return list
}

// spoken tells the dialect of a recording by its first event.
func spoken(first gjson.Result) neutral.Dialect {
	switch kind := first.Get("type").Str; {
	case first.Get("choices").Exists():
		return neutral.Chat
	case first.Get("candidates").Exists():
		return neutral.Generate
	case strings.HasPrefix(kind, "response."):
		return neutral.Responses
	case kind == "message_start" && first.Get("message.type").Str == "message":
		return neutral.Messages
	}
	return "another"
}

// substance is what no translation may change.
type substance struct {
	Text, Reasoning, Refusal string
	Calls                    []neutral.ToolCall
	In, Out                  int64
	Length                   bool
}

// retell decodes a recording and says it in another dialect.
func retell(t *testing.T, r recording, to inbound) (told []byte, want substance) {
	t.Helper()
	req := &dialect.Request{Dialect: to.dialect, Choices: 1, Stream: true, IncludeUsage: true, Raw: []byte("{}")}
	dec := registry.Outbound()[r.from.protocol].NewStream(req, bytes.NewReader(r.body))
	enc := speakers[to.dialect].NewStream(req, dialect.Meta{RequestID: "0193a1b2-c3d4-7000-8000-0123456789ab", Model: "m"})
	for {
		var c neutral.Chunk
		err := dec.Next(&c)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not decoded: %v", err)
		}
		for i := range c.Events {
			want.add(&c.Events[i])
		}
		if told, err = enc.Encode(told, &c); err != nil {
			t.Fatalf("not said: %v", err)
		}
	}
	tally := dec.Tally()
	want.In, want.Out, want.Length = tally.Usage.Input.N, tally.Usage.Output.N, tally.Stop == neutral.StopLength
	return enc.End(told), want
}

func (s *substance) add(e *neutral.Event) {
	switch e.Kind {
	case neutral.Text:
		s.Text += string(e.Text)
	case neutral.Reasoning:
		s.Reasoning += string(e.Text)
	case neutral.Refusal:
		s.Refusal += string(e.Text)
	case neutral.ToolCallStart:
		s.Calls = append(s.Calls, neutral.ToolCall{ID: strings.Clone(e.Tool.ID), Name: strings.Clone(e.Tool.Name)})
	case neutral.ToolCallDelta:
		s.Calls[e.Index].Arguments += string(e.Text)
	}
}

// apart are recordings that no caller of another dialect can bring about, or that are
// no answer.
var apart = map[string]string{
	"openai-apply-patch-tool-delete.1": "all of its output is a call of a tool that Responses alone has (server_tools)",
	"openai-local-shell-tool.1":        "all of its output is a call of a tool that Responses alone has (server_tools)",
	"openai-shell-tool.1":              "all of its output is a call of a tool that Responses alone has (server_tools)",
	"xai-image-generation-tool.1":      "an image by a tool that Responses alone has (server_tools)",
	"openai-error.1":                   "the provider failed: nothing is passed on",
	"parallel-tool-call-wrapper.1":     "two of its lines are no JSON: it was made by hand, not recorded",
}

// TestRecordingsInEveryDialect_P8 says each recorded stream in each inbound dialect:
// its substance is the same, and the official client accepts it.
//
// Rules: P8.
func TestRecordingsInEveryDialect_P8(t *testing.T) {
	var serving []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(serving)
	}))
	t.Cleanup(server.Close)
	list := recordings(t)
	if len(list) < 40 {
		t.Errorf("only %d recordings are understood", len(list))
	}
	for _, r := range list {
		for _, to := range inbounds {
			if to.dialect == r.from.dialect {
				continue // byte for byte: each dialect's own tests
			}
			t.Run(r.name+" in "+to.name, func(t *testing.T) {
				if why := apart[r.name]; why != "" {
					t.Skip(why)
				}
				told, want := retell(t, r, to)
				back := to.readStream(told)
				if back.err != nil {
					t.Fatalf("%v\n%s", back.err, told)
				}
				got := substance{
					back.text, back.reasoning, back.refusal, back.toolCalls,
					back.Usage.Input.N, back.Usage.Output.N, back.Stop == neutral.StopLength,
				}
				if diff := cmp.Diff(comparable(want, to), comparable(got, to)); diff != "" {
					t.Error(diff)
				}
				serving = told
				if text := hear(t, server, to); text != want.Text {
					t.Errorf("the official client has %q, want %q", text, want.Text)
				}
			})
		}
	}
}

// comparable leaves out what the table of what is dropped or changed names.
func comparable(s substance, to inbound) substance {
	s.Calls = slices.Clone(s.Calls)
	for i := range s.Calls {
		// Ids are of our making where a provider had none.
		s.Calls[i].ID = ""
		if s.Calls[i].Arguments == "" {
			s.Calls[i].Arguments = "{}"
		}
		s.Calls[i].Arguments = gjson.Get(s.Calls[i].Arguments, "@ugly").Raw
	}
	if to.dialect == neutral.Messages {
		s.Text, s.Refusal = s.Text+s.Refusal, ""
	}
	return s
}

// hear reads a stream with the official client of a dialect and returns its text.
func hear(t *testing.T, server *httptest.Server, to inbound) (text string) {
	t.Helper()
	openAI := openai.NewClient(openaioption.WithBaseURL(server.URL), openaioption.WithAPIKey("k"), openaioption.WithMaxRetries(0))
	switch to.dialect {
	case neutral.Chat:
		stream := openAI.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "m"})
		defer stream.Close()
		var acc openai.ChatCompletionAccumulator
		for stream.Next() {
			if !acc.AddChunk(stream.Current()) {
				t.Errorf("not accumulated: %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Error(err)
		}
		return acc.Choices[0].Message.Content
	case neutral.Responses:
		stream := openAI.Responses.NewStreaming(t.Context(), openairesponses.ResponseNewParams{Model: "m"})
		defer stream.Close()
		var last openairesponses.ResponseStreamEventUnion
		for stream.Next() {
			last = stream.Current()
		}
		if err := stream.Err(); err != nil || (last.Type != "response.completed" && last.Type != "response.incomplete") {
			t.Errorf("%v, ends in %s", err, last.Type)
		}
		return last.Response.OutputText()
	default:
		client := anthropic.NewClient(anthropicoption.WithBaseURL(server.URL), anthropicoption.WithAPIKey("k"), anthropicoption.WithMaxRetries(0))
		stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 1})
		defer stream.Close()
		var message anthropic.Message
		for stream.Next() {
			if err := message.Accumulate(stream.Current()); err != nil {
				t.Errorf("not accumulated: %v: %s", err, stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Error(err)
		}
		for _, block := range message.Content {
			if block.Type == "text" {
				text += block.Text
			}
		}
		return text
	}
}
