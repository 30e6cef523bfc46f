package messages

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// official is Anthropic's own client before a handler.
func official(t *testing.T, handler http.HandlerFunc) anthropic.Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return anthropic.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey("k"), option.WithMaxRetries(0), option.WithHTTPClient(s.Client()))
}

var params = anthropic.MessageNewParams{
	Model: servedAs, MaxTokens: 100,
	Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
}

// relay answers with a provider's body after decoder and encoder, and with the error
// event that belongs to how it ended.
func relay(t *testing.T, body string, foreign bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		dec, enc := Outbound{}.NewStream(asking(), strings.NewReader(body)), Inbound{}.NewStream(asking(), meta)
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
			if foreign {
				c.Dialect = neutral.Converse
			}
			var err error
			if out, err = enc.Encode(enc.KeepAlive(out), &c); err != nil {
				t.Error(err)
			}
		}
		_, _ = w.Write(out)
	}
}

// accept reads a stream with the official client.
func accept(t *testing.T, handler http.HandlerFunc) (anthropic.Message, error) {
	t.Helper()
	client := official(t, handler)
	stream := client.Messages.NewStreaming(t.Context(), params)
	defer stream.Close()
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Errorf("not accepted: %v: %s", err, stream.Current().RawJSON())
		}
	}
	return message, stream.Err()
}

// Rules: P7, P8.
func TestTheOfficialClientAcceptsRecordedStreams_P7_P8(t *testing.T) {
	each(t, func(t *testing.T, lines []string) {
		for _, foreign := range []bool{false, true} {
			want := through(t, strings.NewReader(frame(lines...)), foreign)
			got, err := accept(t, relay(t, frame(lines...), foreign))
			if err != nil {
				t.Fatal(err)
			}
			var text, thinking, arguments string
			calls := 0
			for _, b := range got.Content {
				switch b.Type {
				case "text":
					text += b.Text
				case "thinking":
					thinking += b.Thinking
				case "tool_use":
					arguments += string(b.Input)
					calls++
				}
			}
			if text != joined(want.events, neutral.Text)+joinedRefusal(want.events, foreign) || thinking != joined(want.events, neutral.Reasoning) ||
				arguments != joined(want.events, neutral.ToolCallDelta) || calls != want.tally.ToolCalls {
				t.Errorf("foreign %v: client has %q, %q, %q", foreign, text, thinking, arguments)
			}
			u := want.tally.Usage
			if string(got.Model) != servedAs || got.StopReason == "" ||
				got.Usage.InputTokens+got.Usage.CacheReadInputTokens+got.Usage.CacheCreationInputTokens != u.Input.N || got.Usage.OutputTokens != u.Output.N {
				t.Errorf("foreign %v: %+v, want %+v", foreign, got.Usage, u)
			}
		}
	})
}

// joinedRefusal is what a refusal's explanation becomes: text, where it is written
// anew.
func joinedRefusal(events []neutral.Event, foreign bool) string {
	if !foreign {
		return ""
	}
	return joined(events, neutral.Refusal)
}

// Rules: P7, P8.
func TestTheOfficialClientAcceptsRecordedAnswers_P7_P8(t *testing.T) {
	for _, file := range recorded(t, ".json") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, foreign := range []bool{false, true} {
				client := official(t, func(w http.ResponseWriter, _ *http.Request) {
					answer, f := Outbound{}.DecodeWhole(asked(), body)
					if f != nil {
						t.Error(f)
					}
					if foreign {
						answer.Dialect = neutral.Converse
					}
					out, err := Inbound{}.Whole(asking(), &answer, meta)
					if err != nil {
						t.Error(err)
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write(out)
				})
				got, err := client.Messages.New(t.Context(), params)
				if err != nil || string(got.Model) != servedAs || got.Usage.InputTokens == 0 || got.StopReason == "" {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
}

// A client must not take a broken stream for a finished one.
//
// Rules: S3, P7.
func TestTheOfficialClientSeesABreak_S3_P7(t *testing.T) {
	lines := replies(t, "testdata/text.chunks.txt")[0]
	for _, foreign := range []bool{false, true} {
		if _, err := accept(t, relay(t, frame(lines[:5]...), foreign)); err == nil {
			t.Errorf("foreign %v: a cut stream passed for a whole one", foreign)
		}
	}
}

// Rules: P7.
func TestTheOfficialClientReadsErrors_P7(t *testing.T) {
	for code, want := range map[apierror.Code]int{apierror.InsufficientQuota: 429, apierror.GatewayUnavailable: 503, apierror.ModelNotFound: 404} {
		e := apierror.New(code)
		e.RequestID = "r1"
		client := official(t, func(w http.ResponseWriter, _ *http.Request) {
			status, header, body := Inbound{}.Error(e)
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
		})
		_, err := client.Messages.New(t.Context(), params)
		got, ok := errors.AsType[*anthropic.Error](err)
		if !ok || got.StatusCode != want || string(got.Type()) != apierror.Of(code).Anthropic {
			t.Errorf("%s: %+v", code, err)
		}
	}
}
