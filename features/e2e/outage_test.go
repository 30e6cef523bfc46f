package e2e_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/eventstore/pgserver"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// openStream asks for a stream and returns once its first output is here.
func openStream(t *testing.T, client harness.Client, model string) *http.Response {
	t.Helper()
	body := harness.ChatBody(model, "hello", map[string]any{"stream": true})
	response, err := client.Open(context.Background(), "POST", harness.ChatPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if _, err := response.Body.Read(make([]byte, 1)); err != nil || response.StatusCode != 200 {
		t.Fatalf("no stream: %d, %v", response.StatusCode, err)
	}
	return response
}

// rest reads a stream to its end.
func rest(t *testing.T, response *http.Response) harness.Reply {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
	return harness.Reply{Status: response.StatusCode, Header: response.Header, Body: text}
}

// TestStoreDown_O5_A2: our own fault is said as such, never as the caller's; what
// was running is settled once when the store is back.
//
// Rules: O5, A2.
func TestStoreDown_O5_A2(t *testing.T) {
	server := pgtest.NewServer(t, pgserver.Options{Durable: true})
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	in := harness.InstallOn(t, server.URL(""), harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: fake.URL()}},
		Models: []harness.Model{
			{Slug: "m", Routes: []string{"a/fake-ok"}},
			{Slug: "slow", Routes: []string{"a/fake-words:30+gap:50ms"}},
		},
	})
	key := in.Key(t, "acme")
	worker := in.Serve(t)
	client := worker.Client(key)
	if reply := client.Chat(t, "m", "hello"); !reply.IsWhole() {
		t.Fatalf("%s", reply)
	}
	open := openStream(t, client, "slow")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}

	for _, stream := range []bool{false, true} {
		body := harness.ChatBody("m", "hello", map[string]any{"stream": stream})
		reply := client.Do(t, "POST", harness.ChatPath, body)
		checkError(t, reply, 503, "gateway_unavailable")
		checkRetryAfter(t, reply)
	}
	// Reading what only the store knows is as impossible; whose key it is, is known.
	checkError(t, client.Get(t, "/v1/requests/"+open.Header.Get("X-Request-Id")), 503, "gateway_unavailable")
	checkError(t, worker.Client("sk-sluice-nobody").Chat(t, "m", "hello"), 401, "invalid_api_key")
	harness.Eventually(t, "the worker says that it is not ready", func() bool { return !worker.IsReady() })
	rest(t, open)

	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "requests are served again", func() bool { return client.Chat(t, "m", "hello").IsWhole() })
	harness.Eventually(t, "the worker is ready again", worker.IsReady)
	checkOpenStreamSettledOnce(t, client, open.Header.Get("X-Request-Id"))
	worker.Stop(t)
	checkLogAgainstLedger(t, in, fake)
}

func checkOpenStreamSettledOnce(t *testing.T, client harness.Client, id string) {
	t.Helper()
	harness.Eventually(t, "the stream that was open is settled", func() bool {
		return client.Trail(t, id).Get("entries.@reverse.0.event").String() == "request_finalized"
	})
	trail := client.Trail(t, id)
	if n := trail.Get(`entries.#(event=="attempt_settled")#|#`).Int(); n != 1 {
		t.Errorf("%d settlements: %s", n, trail.Body)
	}
	if tokens := trail.Get(`entries.#(event=="attempt_settled").usage.output_tokens`).Int(); tokens != 30 {
		t.Errorf("%d output tokens of 30 were settled: %s", tokens, trail.Body)
	}
}

// TestTermDrains_O3: not ready at once, what runs comes to its end, exit 0.
//
// Rules: O3.
func TestTermDrains_O3(t *testing.T) {
	s := newScene(t, map[string][]string{"slow": {"a/fake-words:60+gap:70ms"}})
	key := s.client.Key
	worker := s.Serve(t)
	open := openStream(t, worker.Client(key), "slow")
	worker.Terminate(t)
	harness.Eventually(t, "the worker is not ready", func() bool { return !worker.IsReady() })
	if s.a.Ledger().Calls[0].Done {
		t.Error("the stream was over before the worker said that it is not ready")
	}
	harness.Eventually(t, "no new connection is taken", func() bool {
		_, err := worker.Client(key).Try("GET", "/v1/models", "")
		return err != nil
	})
	reply := rest(t, open)
	if !reply.IsWhole() || len(reply.Data()) < 60 {
		t.Errorf("the running stream was not brought to its end: %s", reply)
	}
	worker.WaitEnded(t)
	trail := s.client.Trail(t, reply.ID())
	if trail.Get("outcome").String() != "completed" || trail.Get(`entries.#(event=="attempt_settled")#|#`).Int() != 1 {
		t.Errorf("%s", trail)
	}
}
