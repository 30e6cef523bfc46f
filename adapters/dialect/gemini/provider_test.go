package gemini_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/gemini"
	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// caller is a Chat Completions caller of a provider that speaks Gemini.
type caller struct {
	t      *testing.T
	client *provider.Client
	base   string
}

func newCaller(t *testing.T) caller {
	t.Helper()
	server := fakeprovider.Start(t, fakeprovider.Options{})
	client := provider.New(provider.Config{InternalHosts: network.MustHosts("127.0.0.1"), Outbound: map[catalog.Protocol]dialect.Outbound{catalog.Gemini: gemini.Outbound{}}})
	t.Cleanup(client.Close)
	return caller{t, client, server.URL()}
}

const question = `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]}`

// call is one attempt: what came of it in the caller's own dialect, and its failure.
func (c caller) call(model string, stream bool) (string, neutral.Tally, *failure.Failure) {
	c.t.Helper()
	req, err := chat.Inbound{}.Parse([]byte(question))
	if err != nil {
		c.t.Fatal(err)
	}
	reply, f := c.client.Do(c.t.Context(), provider.Call{
		Protocol: catalog.Gemini, BaseURL: c.base, Secret: "k", UpstreamModel: model, Request: req, Stream: stream,
		Limits: provider.Limits{FirstByte: 2 * time.Second, StreamIdle: 2 * time.Second, Whole: 2 * time.Second},
	})
	if f != nil {
		return "", neutral.Tally{}, f
	}
	defer reply.Close()
	meta := dialect.Meta{RequestID: "r", Model: "asked/for"}
	if !stream {
		answer, f := reply.Answer()
		if f != nil {
			return "", neutral.Tally{}, f
		}
		body, err := chat.Inbound{}.Whole(req, &answer, meta)
		if err != nil {
			c.t.Fatal(err)
		}
		return string(body), neutral.Tally{Usage: answer.Usage, Stop: answer.Stop, ToolCalls: answer.ToolCalls}, nil
	}
	enc := chat.Inbound{}.NewStream(req, meta)
	var out []byte
	for {
		chunk, err := reply.Next()
		if errors.Is(err, io.EOF) {
			return string(enc.End(out)), reply.Tally(), nil
		}
		if f, ok := errors.AsType[*failure.Failure](err); ok {
			return "", reply.Tally(), f
		}
		if out, err = enc.Encode(out, chunk); err != nil {
			c.t.Fatal(err)
		}
	}
}

// What a provider answers reaches a caller of another dialect, whole and as a stream,
// with the same facts.
//
// Rules: P3.
func TestAnswersReachAChatCaller_P3(t *testing.T) {
	c := newCaller(t)
	for outcome, want := range map[string]struct {
		stop  neutral.StopReason
		calls int
		has   string
	}{
		"fake-words:3":             {neutral.StopEnd, 0, `"finish_reason":"stop"`},
		"fake-reasoning:2+words:3": {neutral.StopEnd, 0, `"reasoning_content":`},
		"fake-tools:2":             {neutral.StopToolCalls, 2, `"finish_reason":"tool_calls"`},
		"fake-text-tool":           {neutral.StopToolCalls, 1, `"id":"call_fake-`},
		"fake-finish:length":       {neutral.StopLength, 0, `"finish_reason":"length"`},
		"fake-cjk+split:1":         {neutral.StopEnd, 0, `你好`},
		"fake-words:3+crlf+gzip":   {neutral.StopEnd, 0, `"asked/for"`},
	} {
		for _, stream := range []bool{false, true} {
			out, tally, f := c.call(outcome, stream)
			if f != nil {
				t.Errorf("%s, stream %v: %v", outcome, stream, f)
				continue
			}
			if tally.Stop != want.stop || tally.ToolCalls != want.calls || !strings.Contains(out, want.has) || !tally.Usage.Usable() {
				t.Errorf("%s, stream %v: %+v\n%s", outcome, stream, tally, out)
			}
		}
	}
}

// Whatever the provider does wrong has its class (W2, S4).
func TestFaults_W2_S4(t *testing.T) {
	c := newCaller(t)
	for outcome, want := range map[string]failure.Class{
		"fake-401":             failure.ProviderAuth,
		"fake-403":             failure.ProviderAuth,
		"fake-404":             failure.DeploymentGone,
		"fake-400":             failure.InvalidRequest,
		"fake-429":             failure.Throttled,
		"fake-500":             failure.ServerError,
		"fake-503":             failure.ServerError,
		"fake-529":             failure.ServerError,
		"fake-context":         failure.ContextLength,
		"fake-policy":          failure.ContentPolicy,
		"fake-funding":         failure.ProviderQuota,
		"fake-funding:billing": failure.ProviderQuota,
		"fake-funding:cap":     failure.ProviderQuota,
		"fake-html":            failure.BadPayload,
		"fake-empty":           failure.EmptyCompletion,
		"fake-finish:error":    failure.StreamErrorEvent,
		"fake-malformed:2":     failure.BadPayload,
	} {
		for _, stream := range []bool{false, true} {
			if _, _, f := c.call(outcome, stream); f == nil || f.Class != want {
				t.Errorf("%s, stream %v: %v, want %s", outcome, stream, f, want)
			}
		}
	}
	if _, _, f := c.call("fake-429:retry-info", true); f == nil || f.Class != failure.Throttled || f.Retry.After != 34400*time.Millisecond {
		t.Errorf("a throttle with RetryInfo: %+v", f)
	}
	for outcome, want := range map[string]failure.Class{
		"fake-cut:2:eof":           failure.StreamTruncated,
		"fake-cut:2:rst":           failure.StreamTruncated,
		"fake-tool-cut:eof":        failure.StreamTruncated,
		"fake-no-done":             failure.StreamTruncated,
		"fake-error:1":             failure.StreamErrorEvent,
		"fake-error:1:throttled":   failure.Throttled,
		"fake-error:1:funding:cap": failure.ProviderQuota,
		"fake-bare-error:1":        failure.StreamErrorEvent,
		"fake-error:first:auth":    failure.ProviderAuth,
	} {
		if _, _, f := c.call(outcome, true); f == nil || f.Class != want {
			t.Errorf("%s: %v, want %s", outcome, f, want)
		}
	}
}

// With a credentials file the call goes to Vertex AI with a token of the address that
// the file names, asked for once; without one there is no call, and an address inside
// the own network is not asked.
//
// Rules: Z1.
func TestVertexIsCalledWithAToken(t *testing.T) {
	asked := 0
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		if asked > 1 {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, `{"access_token":"token-9876","token_type":"Bearer","expires_in":3600}`)
	}))
	defer issuer.Close()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := func(email string) string {
		text, err := json.Marshal(map[string]string{
			"type": "service_account", "client_email": email, "token_uri": issuer.URL,
			"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	server := fakeprovider.Start(t, fakeprovider.Options{})
	client := provider.New(provider.Config{InternalHosts: network.MustHosts("127.0.0.1"), Outbound: map[catalog.Protocol]dialect.Outbound{catalog.Gemini: gemini.Outbound{Tokens: gemini.NewTokens()}}})
	defer client.Close()
	req, err := chat.Inbound{}.Parse([]byte(question))
	if err != nil {
		t.Fatal(err)
	}
	call := provider.Call{
		Protocol: catalog.Gemini, BaseURL: server.URL() + "/v1/projects/p/locations/l", Secret: file("a@p.test"),
		UpstreamModel: "fake-ok", Request: req,
	}
	for range 2 {
		reply, f := client.Do(t.Context(), call)
		if f != nil {
			t.Fatal(f)
		}
		if _, f := reply.Answer(); f != nil {
			t.Fatal(f)
		}
		reply.Close()
	}
	call.Secret = file("b@p.test")
	if _, f := client.Do(t.Context(), call); f == nil || f.Class != failure.ProviderAuth || f.Code != "token_refused" || f.PossiblyBilled {
		t.Errorf("without a token: %+v", f)
	}
	// The file may be a tenant's, and names an address to ask.
	closed := provider.New(provider.Config{
		InternalHosts: network.MustHosts(strings.TrimPrefix(server.URL(), "http://")),
		Outbound:      map[catalog.Protocol]dialect.Outbound{catalog.Gemini: gemini.Outbound{Tokens: gemini.NewTokens()}},
	})
	defer closed.Close()
	call.Secret = file("a@p.test")
	if _, f := closed.Do(t.Context(), call); f == nil || f.Class != failure.ProviderAuth || f.Code != "token_address_refused" || f.PossiblyBilled {
		t.Errorf("a token's address inside: %+v", f)
	}
	calls := server.Ledger().Calls
	if asked != 2 || len(calls) != 2 || calls[1].KeyLast4 != "9876" || calls[1].Path != "/v1/projects/p/locations/l/publishers/google/models/fake-ok:generateContent" {
		t.Errorf("asked %d times, calls %+v", asked, calls)
	}
}
