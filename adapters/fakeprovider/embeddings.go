package fakeprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// embeddings is OpenAI's embeddings endpoint. Failures are worded as in Chat
// Completions, which the same providers speak.
type embeddings struct{ chat }

func (embeddings) register(mux *http.ServeMux, s *Server) {
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		s.serveCall(embeddings{}, w, r)
	})
}

func (embeddings) parse(_ *http.Request, body []byte) (request, error) {
	var in struct {
		Model string          `json:"model"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is not an embeddings request: %w", err)
	}
	inputs := 1
	var list []json.RawMessage
	if json.Unmarshal(in.Input, &list) == nil {
		inputs = len(list)
	}
	return request{model: in.Model, messages: inputs, promptTokens: promptTokens(len(in.Input), inputs, 0, 0)}, nil
}

// whole answers every request with one short vector: what is in it is nobody's
// business here.
func (embeddings) whole(a *answer) []byte {
	b := []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.125]}],"model":`)
	b = appendString(b, a.model)
	if a.form.usagePlace == usageAbsent {
		return append(b, '}')
	}
	tokens := int64(a.reported().input)
	b = strconv.AppendInt(append(b, `,"usage":{"prompt_tokens":`...), tokens, 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), tokens, 10)
	return append(b, `}}`...)
}
