package converse_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/converse"
	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// attempt asks the fake Bedrock over a socket and reads all of its answer.
func attempt(t *testing.T, fake *fakeprovider.Server, outcome string, stream bool) (neutral.Answer, *failure.Failure) {
	t.Helper()
	client := provider.New(provider.Config{InternalHosts: network.MustHosts("127.0.0.1"), Outbound: map[catalog.Protocol]dialect.Outbound{catalog.Bedrock: converse.Outbound{}}})
	t.Cleanup(client.Close)
	req, err := chat.Inbound{}.Parse([]byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}],
		"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	reply, f := client.Do(t.Context(), provider.Call{
		Protocol: catalog.Bedrock, BaseURL: fake.URL(), Region: "us-east-1", UpstreamModel: "fake-" + outcome,
		Access: dialect.AccessKey{ID: "AKIDEXAMPLE", Secret: "secret"}, Request: req, Stream: stream,
	})
	if f != nil {
		return neutral.Answer{}, f
	}
	defer reply.Close()
	return reply.Answer()
}

// A whole answer and one that is put together from a stream say the same (S11).
func TestFakeBedrockAnswers_S11(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	for _, outcome := range []string{
		"words:5", "cjk+split:1", "reasoning:3+words:2", "tools:2", "text-tool", "words:3+usage:before-last",
		"cached:3", "words:2+no-done", "words:2+no-role", "finish:length",
	} {
		whole, f := attempt(t, fake, outcome, false)
		if f != nil {
			t.Errorf("%s: %v", outcome, f)
			continue
		}
		streamed, f := attempt(t, fake, outcome, true)
		if f != nil {
			t.Errorf("%s as a stream: %v", outcome, f)
			continue
		}
		if whole.Usage.Input != streamed.Usage.Input || whole.Stop != streamed.Stop || len(whole.Output) != len(streamed.Output) {
			t.Errorf("%s: %+v and %+v", outcome, whole, streamed)
			continue
		}
		for i := range whole.Output {
			w, s := whole.Output[i], streamed.Output[i]
			w.Call.ID, s.Call.ID = "", ""
			if w.Kind != s.Kind || w.Text != s.Text || w.Opaque != s.Opaque || w.Call != s.Call {
				t.Errorf("%s: part %d: %+v and %+v", outcome, i, w, s)
			}
		}
	}
	for _, call := range fake.Ledger().Calls {
		if call.Status != 200 || call.KeyLast4 != "MPLE" {
			t.Errorf("call %+v", call)
		}
	}
}

// Rules: W4, S4.
func TestFakeBedrockFailures_W4_S4(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	for _, tt := range []struct {
		outcome string
		class   failure.Class
		stream  bool
	}{
		{"429", failure.Throttled, false},
		{"500", failure.ServerError, false},
		{"502", failure.ServerError, true},
		{"529", failure.ServerError, true},
		{"401", failure.ProviderAuth, false},
		{"403", failure.DeploymentGone, false},
		{"404", failure.DeploymentGone, false},
		{"400", failure.InvalidRequest, true},
		{"context", failure.ContextLength, true},
		{"context:limit", failure.ContextLength, false},
		{"policy", failure.ContentPolicy, false},
		{"funding", failure.ProviderQuota, false},
		{"error:first:throttled", failure.Throttled, true},
		{"error:2:server_error", failure.StreamErrorEvent, true},
		{"error:2:finish", failure.StreamErrorEvent, true},
		{"cut:3:rst", failure.StreamTruncated, true},
		{"cut:3:eof", failure.StreamTruncated, true},
		{"tool-cut:eof", failure.StreamTruncated, true},
		{"malformed:2", failure.BadPayload, true},
		{"no-finish", failure.StreamTruncated, true},
		{"html", failure.BadPayload, true},
		{"empty-body", failure.StreamTruncated, true},
		{"empty", failure.EmptyCompletion, true},
		{"empty", failure.EmptyCompletion, false},
	} {
		answer, f := attempt(t, fake, tt.outcome, tt.stream)
		if f == nil && tt.class == failure.EmptyCompletion && answer.Empty {
			continue
		}
		if f == nil || f.Class != tt.class {
			t.Errorf("%s: %+v, want %s", tt.outcome, f, tt.class)
		}
	}
}

// Chunks of a stream are said in a caller's dialect as they come.
//
// Rules: P3.
func TestFakeBedrockToChat_P3(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	client := provider.New(provider.Config{InternalHosts: network.MustHosts("127.0.0.1"), Outbound: map[catalog.Protocol]dialect.Outbound{catalog.Bedrock: converse.Outbound{}}})
	t.Cleanup(client.Close)
	req, err := chat.Inbound{}.Parse([]byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	reply, f := client.Do(t.Context(), provider.Call{
		Protocol: catalog.Bedrock, BaseURL: fake.URL(), UpstreamModel: "fake-text-tool", Secret: "api-key", Request: req, Stream: true,
	})
	if f != nil {
		t.Fatal(f)
	}
	defer reply.Close()
	enc := chat.Inbound{}.NewStream(req, dialect.Meta{RequestID: "r", Model: "m"})
	var out []byte
	for {
		chunk, err := reply.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err = enc.Encode(out, chunk); err != nil {
			t.Fatal(err)
		}
	}
	out = enc.End(out)
	for _, want := range []string{`"content":"let me look"`, `"tool_calls":[{"index":0,"id":"call_fake_`, `"finish_reason":"tool_calls"`, "data: [DONE]"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
}
