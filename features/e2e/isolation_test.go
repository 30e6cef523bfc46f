package e2e_test

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/http/api"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// shared are the endpoints that show an organization nothing but what is everybody's or
// what it has just sent.
var shared = map[string]bool{
	"GET /v1/models": true, "GET /v1/models/{id...}": true, "POST /v1/messages/count_tokens": true,
}

// TestAStrangerSeesNothingAtAnyEndpoint_Z6 walks the table of routes: whatever one
// organization has made, another one's key finds none of it, under no path, and cannot
// tell it from what never was. A new route fails here until it is looked at.
//
// Rules: Z6.
func TestAStrangerSeesNothingAtAnyEndpoint_Z6(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-words:5"}, "broken": {"b/fake-401"}})
	for i := range s.config.Tenants {
		s.config.Tenants[i].KeepsResponses, s.config.Tenants[i].MonthlyUSD = true, "1000.00"
	}
	s.Apply(t, s.config)
	keyID, key := s.NewKey(t, "acme")
	mine, stranger := s.worker.Client(key), s.worker.Client(s.Key(t, "umbrella"))
	harness.Eventually(t, "the worker knows keys and budgets", func() bool {
		return mine.Get(t, "/v1/budgets").Get("data.#").Int() == 1 && stranger.Get(t, "/v1/budgets").Get("data.#").Int() == 1
	})
	const keyed = "idempotency-key-of-acme"
	chat := mine.Chat(t, "m", "hello", "Idempotency-Key", keyed, "X-Request-Id", "client-id-of-acme")
	kept := mine.Do(t, "POST", "/v1/responses", `{"model":"m","input":"hello"}`)
	if chat.Status != 200 || kept.Status != 200 {
		t.Fatal(chat, kept)
	}
	period, bill := billed(t, mine, 2)
	line := bill.Get("lines.0.id").String()
	harness.Eventually(t, "the search has both", func() bool { return mine.Get(t, "/v1/requests").Get("data.#").Int() == 2 })
	telling := []string{"acme", keyID, chat.ID(), kept.ID(), kept.Get("id").String(), line}

	for _, endpoint := range api.Endpoints() {
		t.Run(endpoint, func(t *testing.T) {
			method, pattern, _ := strings.Cut(endpoint, " ")
			id := chat.ID()
			if strings.Contains(pattern, "/responses/") {
				id = kept.Get("id").String()
			}
			path := strings.NewReplacer("{id}", id, "{id...}", "m", "{period}", period, "{line}", line).Replace(pattern)
			switch {
			case method == "POST" && pattern == "/v1/responses":
				reply := stranger.Do(t, method, path, `{"model":"m","input":"and?","previous_response_id":"`+id+`"}`)
				never := stranger.Do(t, method, path, `{"model":"m","input":"and?","previous_response_id":"resp_never"}`)
				if reply.Status != never.Status || reply.Status == 200 {
					t.Errorf("another's response is a conversation's: %s; of one that never was: %s", reply, never)
				}
			case method == "POST" && !shared[endpoint]:
				// The same idempotency key is another organization's own.
				body := strings.NewReplacer("CHAT", harness.ChatBody("m", "hello", nil)).Replace(map[string]string{
					"/v1/chat/completions": "CHAT", "/v1/messages": "CHAT", "/v1/embeddings": `{"model":"m","input":"hello"}`,
				}[pattern])
				if body == "" {
					t.Fatal("say what a stranger sends here")
				}
				reply := stranger.Do(t, method, path, body, "Idempotency-Key", keyed)
				if reply.Header.Get("Idempotent-Replayed") != "" || reply.ID() == chat.ID() || reply.Status == 409 {
					t.Errorf("%s", reply)
				}
			case shared[endpoint]:
			case strings.Contains(pattern, "{"):
				reply := stranger.Do(t, method, path, "")
				if reply.Status != 404 && !(pattern == "/v1/bills/{period}" && reply.Get("charge_nanousd").Int() != bill.Get("charge_nanousd").Int()) {
					t.Errorf("%s", reply)
				}
				sees(t, reply, telling, id)
			default:
				sees(t, stranger.Do(t, method, path, ""), telling, "")
			}
			if method == "GET" && !shared[endpoint] {
				if reply := mine.Get(t, path); reply.Status != 200 {
					t.Errorf("its own is not there, so this shows nothing: %s", reply)
				}
			}
		})
	}
	// Nor did a stranger's DELETE take anything away.
	if reply := mine.Get(t, "/v1/responses/"+kept.Get("id").String()); reply.Status != 200 {
		t.Errorf("%s", reply)
	}
}

// sees checks that a reply holds nothing telling but what was asked for.
func sees(t *testing.T, reply harness.Reply, telling []string, asked string) {
	t.Helper()
	for _, word := range telling {
		if word != asked && strings.Contains(string(reply.Body), word) {
			t.Errorf("a stranger sees %q: %s", word, reply)
		}
	}
}
