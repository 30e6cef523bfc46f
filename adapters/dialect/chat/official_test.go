package chat

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// official is OpenAI's own client before a handler.
func official(t *testing.T, handler http.HandlerFunc) openai.Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return openai.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey("k"), option.WithMaxRetries(0), option.WithHTTPClient(s.Client()))
}

var params = openai.ChatCompletionNewParams{
	Model:    servedAs,
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
}

// relay answers with a provider's body after decoder and encoder, and with the error
// event that belongs to how it ended.
func relay(t *testing.T, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		dec, enc := Outbound{}.NewStream(asking(true), strings.NewReader(body)), Inbound{}.NewStream(asking(true), meta)
		var out []byte
		for {
			var c neutral.Chunk
			if err := dec.Next(&c); errors.Is(err, io.EOF) {
				out = enc.End(enc.KeepAlive(out))
				break
			} else if err != nil {
				out = enc.Fail(out, apierror.New(apierror.UpstreamTruncated))
				break
			}
			var err error
			if out, err = enc.Encode(enc.KeepAlive(out), &c); err != nil {
				t.Error(err)
			}
		}
		_, _ = w.Write(out)
	}
}

// Rules: P7, P8.
func TestTheOfficialClientAcceptsRecordedStreams_P7_P8(t *testing.T) {
	for _, file := range recorded(t, ".chunks.txt") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			lines := readLines(t, file)
			want := through(t, asking(true), strings.NewReader(frame(lines...)))
			client := official(t, relay(t, frame(lines...)))
			stream := client.Chat.Completions.NewStreaming(t.Context(), params)
			defer stream.Close()
			var acc openai.ChatCompletionAccumulator
			chunks := 0
			for stream.Next() {
				chunks++
				if !acc.AddChunk(stream.Current()) {
					t.Errorf("chunk %d was not accepted: %s", chunks, stream.Current().RawJSON())
				}
			}
			if err := stream.Err(); err != nil || chunks != len(lines) {
				t.Fatalf("%d chunks of %d, then %v", chunks, len(lines), err)
			}
			if acc.Model != servedAs || acc.Choices[0].FinishReason != string(want.tally.Stop) {
				t.Errorf("model %q, finish reason %q, want %q", acc.Model, acc.Choices[0].FinishReason, want.tally.Stop)
			}
			var text, arguments string
			for _, e := range want.events {
				switch e.Kind {
				case neutral.Text:
					text += string(e.Text)
				case neutral.ToolCallDelta:
					arguments += string(e.Text)
				}
			}
			var got string
			for _, call := range acc.Choices[0].Message.ToolCalls {
				got += call.Function.Arguments
			}
			if acc.Choices[0].Message.Content != text || got != arguments || len(acc.Choices[0].Message.ToolCalls) != want.tally.ToolCalls {
				t.Errorf("client has %q and calls %q, want %q and %q", acc.Choices[0].Message.Content, got, text, arguments)
			}
		})
	}
}

// Rules: P7, P8.
func TestTheOfficialClientAcceptsRecordedAnswers_P7_P8(t *testing.T) {
	for _, file := range recorded(t, ".json") {
		if strings.Contains(file, "mistral-reasoning") || strings.HasSuffix(file, "parts.json") {
			// Content in parts is Mistral's own; to pass it on is what lossless means, and
			// this client has no type for it.
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			client := official(t, func(w http.ResponseWriter, _ *http.Request) {
				answer, f := Outbound{}.DecodeWhole(asking(false), body)
				if f != nil {
					t.Error(f)
				}
				out, err := Inbound{}.Whole(asking(false), &answer, meta)
				if err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(out)
			})
			got, err := client.Chat.Completions.New(t.Context(), params)
			if err != nil || got.Model != servedAs || len(got.Choices) == 0 || got.Usage.PromptTokens == 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A client must not take a broken stream for a finished one.
//
// Rules: S3, P7.
func TestTheOfficialClientSeesABreak_S3_P7(t *testing.T) {
	client := official(t, relay(t, open(role, hello)))
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	defer stream.Close()
	chunks := 0
	for stream.Next() {
		chunks++
	}
	if err := stream.Err(); err == nil || chunks != 2 {
		t.Errorf("%d chunks, then %v", chunks, err)
	}
}

// Rules: P7.
func TestTheOfficialClientReadsErrors_P7(t *testing.T) {
	client := official(t, func(w http.ResponseWriter, _ *http.Request) {
		e := apierror.New(apierror.InsufficientQuota)
		status, header, body := Inbound{}.Error(e)
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
	_, err := client.Chat.Completions.New(t.Context(), params)
	got, ok := errors.AsType[*openai.Error](err)
	if !ok || got.StatusCode != 429 || got.Code != "insufficient_quota" || got.Type != "insufficient_quota" || got.Message == "" {
		t.Errorf("error = %+v", err)
	}
}
