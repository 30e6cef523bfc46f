package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// startEchoProvider is a provider whose every answer, refusal and header holds a
// planted word; the model's name says which it gives.
func startEchoProvider(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model  string `json:"model"`
			Stream bool   `json:"stream"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Errorf("the gateway sent no JSON: %v", err)
		}
		w.Header().Set("X-Request-Id", canary("provider-request-id"))
		w.Header().Set("Retry-After", canary("retry-after"))
		w.Header().Set("Openai-Organization", canary("provider-organization"))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case request.Model == "refuse":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%q,"type":%q,"param":%q,"code":%q}}`,
				canary("error-message"), canary("error-type"), canary("error-param"), canary("error-code"))
		case request.Model == "break":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, canary("error-page"))
		case request.Model == "garble":
			fmt.Fprintf(w, "%s is no JSON", canary("garbled-answer"))
		case request.Stream:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"id\":%q,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", canary("id"), canary("answer"))
			fmt.Fprintf(w, "data: {\"id\":%q,\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n", canary("id"))
		default:
			fmt.Fprintf(w, `{"id":%q,"object":"chat.completion","created":1,"model":%q,"system_fingerprint":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`,
				canary("id"), canary("answering-model"), canary("fingerprint"), canary("answer"))
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
