package responses

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	client "github.com/openai/openai-go/v3/responses"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// official is OpenAI's own client before a handler.
func official(t *testing.T, handler http.HandlerFunc) openai.Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return openai.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey("k"), option.WithMaxRetries(0), option.WithHTTPClient(s.Client()))
}

var params = client.ResponseNewParams{Model: servedAs, Input: client.ResponseNewParamsInputUnion{OfString: openai.String("hi")}}

// relay answers with a provider's body after decoder and encoder, and with the event
// that belongs to how it ended.
func relay(t *testing.T, out dialect.Outbound, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		dec, enc := out.NewStream(asking(), strings.NewReader(body)), Inbound{}.NewStream(asking(), meta)
		var sent []byte
		for {
			var c neutral.Chunk
			if err := dec.Next(&c); errors.Is(err, io.EOF) {
				sent = enc.End(enc.KeepAlive(sent))
				break
			} else if err != nil {
				sent = enc.Fail(sent, apierror.New(apierror.UpstreamTruncated))
				break
			}
			var err error
			if sent, err = enc.Encode(enc.KeepAlive(sent), &c); err != nil {
				t.Error(err)
			}
		}
		_, _ = w.Write(sent)
	}
}

// listen takes a stream as the client does: every event through its own accumulator.
func listen(t *testing.T, c openai.Client) (*client.Response, []string) {
	t.Helper()
	stream := c.Responses.NewStreaming(t.Context(), params)
	defer stream.Close()
	var acc client.ResponseAccumulator
	var kinds []string
	for stream.Next() {
		e := stream.Current()
		kinds = append(kinds, e.Type)
		var server client.ResponsesServerEventUnion
		if err := json.Unmarshal([]byte(e.RawJSON()), &server); err != nil {
			t.Fatal(err)
		}
		if err := acc.AddEvent(server); err != nil {
			t.Errorf("event %d was not accepted: %v: %s", len(kinds), err, e.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	r, err := acc.ReconstructedResponse()
	if err != nil {
		t.Fatal(err)
	}
	return r, kinds
}

// heard is what a client has of a response, by the words of joined.
func heard(r *client.Response) map[string]string {
	by, calls := map[string]string{}, 0
	for _, item := range r.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				if part.Type == "output_text" {
					by["text"] += part.Text
				} else {
					by["refusal"] += part.Refusal
				}
			}
		case "function_call":
			by["call "+itoa(calls)] = item.CallID + " " + item.Name + " " + item.Arguments.OfString
			calls++
		}
	}
	return by
}

// Rules: P7, P8.
func TestTheOfficialClientAcceptsRecordedStreams_P7_P8(t *testing.T) {
	for _, r := range recorded(t) {
		if !r.ends() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			want := through(t, asking(), strings.NewReader(framed(r.lines...)))
			got, kinds := listen(t, official(t, relay(t, Outbound{}, framed(r.lines...))))
			if len(kinds) != len(r.lines) || got.Model != servedAs || got.Status != "completed" {
				t.Errorf("%d events of %d, model %q, %s", len(kinds), len(r.lines), got.Model, got.Status)
			}
			if got.Usage.OutputTokens != want.tally.Usage.Output.N && want.tally.Usage.Output.N > 0 {
				t.Errorf("usage %+v, want %+v", got.Usage, want.tally.Usage)
			}
			if want := joined(want.events); got.OutputText() != "" && got.OutputText() != want["text"] {
				t.Errorf("client has %q, want %q", got.OutputText(), want["text"])
			}
		})
	}
}

// Rules: P7, P8.
func TestTheOfficialClientAcceptsRecordedAnswers_P7_P8(t *testing.T) {
	for name, body := range wholes(t) {
		t.Run(name, func(t *testing.T) {
			c := official(t, func(w http.ResponseWriter, _ *http.Request) {
				answer, f := Outbound{}.DecodeWhole(asking(), []byte(body))
				if f != nil {
					t.Error(f)
				}
				out, err := Inbound{}.Whole(asking(), &answer, meta)
				if err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(out)
			})
			got, err := c.Responses.New(t.Context(), params)
			if err != nil || got.Model != servedAs || len(got.Output) == 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// chatStreams are recorded Chat Completions streams: what other providers say to a
// caller of this dialect.
func chatStreams(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	paths, _ := filepath.Glob("../../../../shared/fixtures/provider-streams/*/*.chunks.txt")
	own, err := filepath.Glob("../chat/testdata/*.chunks.txt")
	if err != nil || len(own) == 0 {
		t.Fatalf("no streams of chat: %v", err)
	}
	for _, file := range append(own, paths...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		var v struct{ Choices []any }
		if json.Unmarshal([]byte(first), &v) != nil || v.Choices == nil {
			continue
		}
		var b []byte
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" {
				b = sse.Append(b, "", []byte(line))
			}
		}
		all[filepath.Base(file)] = string(sse.Append(b, "", []byte("[DONE]")))
	}
	return all
}

// Rules: P3, P7, P8.
func TestTheOfficialClientAcceptsOtherDialects_P3_P7_P8(t *testing.T) {
	for name, body := range chatStreams(t) {
		t.Run(name, func(t *testing.T) {
			dec := chat.Outbound{}.NewStream(asking(), strings.NewReader(body))
			var events []neutral.Event
			var err error
			for err == nil {
				var c neutral.Chunk
				if err = dec.Next(&c); err == nil {
					events = append(events, kept(c.Events)...)
				}
			}
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			got, kinds := listen(t, official(t, relay(t, chat.Outbound{}, body)))
			want := joined(events)
			delete(want, "reasoning")
			delete(want, "seal")
			said := heard(got)
			for at, call := range want {
				if strings.HasSuffix(call, " ") && strings.HasPrefix(at, "call") {
					want[at] += "{}"
				}
			}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Error(diff)
			}
			tally := dec.Tally()
			if got.Usage.InputTokens != tally.Usage.Input.N || got.Usage.OutputTokens != tally.Usage.Output.N ||
				got.Usage.InputTokensDetails.CachedTokens != tally.Usage.CachedInput.N ||
				got.Usage.OutputTokensDetails.ReasoningTokens != tally.Usage.Reasoning.N {
				t.Errorf("usage %+v, want %+v", got.Usage, tally.Usage)
			}
			if got.Model != servedAs || kinds[0] != "response.created" || string(got.Status) != statusOf(tally.Stop) {
				t.Errorf("model %q, %s, events %v", got.Model, got.Status, kinds)
			}
		})
	}
}

// A client must not take a broken stream for a finished one.
//
// Rules: S3, P7.
func TestTheOfficialClientSeesABreak_S3_P7(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"before created": relay(t, Outbound{}, ""),
		"after output":   relay(t, Outbound{}, framed(created, hello)),
	} {
		stream := official(t, handler)
		s := stream.Responses.NewStreaming(t.Context(), params)
		var last client.ResponseStreamEventUnion
		for s.Next() {
			last = s.Current()
		}
		if s.Err() != nil || last.Type != "response.failed" || last.Response.Status != "failed" || last.Response.Error.Code != "upstream_truncated" {
			t.Errorf("%s: %v, last %s", name, s.Err(), last.RawJSON())
		}
		_ = s.Close()
	}
}

// Rules: P7.
func TestTheOfficialClientReadsErrors_P7(t *testing.T) {
	c := official(t, func(w http.ResponseWriter, _ *http.Request) {
		status, header, body := Inbound{}.Error(apierror.New(apierror.InsufficientQuota))
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
	_, err := c.Responses.New(t.Context(), params)
	got, ok := errors.AsType[*openai.Error](err)
	if !ok || got.StatusCode != 429 || got.Code != "insufficient_quota" || got.Message == "" {
		t.Errorf("error = %+v", err)
	}
}
