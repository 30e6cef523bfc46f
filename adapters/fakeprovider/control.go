package fakeprovider

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// maxScriptBytes bounds a posted script.
const maxScriptBytes = 1 << 20

// registerControl adds the paths by which a test or a drill steers the server
// from another process.
func (s *Server) registerControl() {
	s.mux.HandleFunc("POST /_fake/script", s.postScript)
	s.mux.HandleFunc("POST /_fake/reset", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("GET /_fake/ledger", s.getLedger)
	s.mux.HandleFunc("GET /_fake/stats", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Stats()) })
	s.mux.HandleFunc("GET /_fake/help", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, Help())
	})
}

func (s *Server) postScript(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxScriptBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script, err := ParseScript(body)
	if err == nil {
		err = s.SetScript(script)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// getLedger answers with the calls after a sequence number, so that a long
// ledger can be read in pages: ?after=SEQUENCE&limit=N.
func (s *Server) getLedger(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.FormValue("after"), 10, 64) // absent or wrong: from the start
	limit, _ := strconv.Atoi(r.FormValue("limit"))             // absent or wrong: all
	writeJSON(w, s.ledger.snapshot(after, limit))
}

// modelInfo is a model as OpenAI lists it.
type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func describe(id string) modelInfo {
	return modelInfo{ID: id, Object: "model", Created: 1700000000, OwnedBy: "fakeprovider"}
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	names := s.options.Models
	if len(names) == 0 {
		names = ModelNames()
	}
	data := make([]modelInfo, 0, len(names))
	for _, name := range names {
		data = append(data, describe(name))
	}
	writeJSON(w, map[string]any{"object": "list", "data": data})
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, describe(r.PathValue("id")))
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client left: nobody to tell
}
