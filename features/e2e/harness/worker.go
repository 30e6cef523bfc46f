package harness

import (
	"encoding/json"
	"strings"
	"testing"
)

// Worker is a running sluice serve.
type Worker struct {
	*Process
	// URL and Admin are the addresses of its two listeners.
	URL, Admin string
}

// Serve starts a worker and returns when it is ready.
func (in *Installation) Serve(t testing.TB) *Worker {
	t.Helper()
	w := &Worker{Process: Start(t, in.env, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")}
	w.Await(t, "the worker says where it serves", w.readAddresses)
	w.Await(t, "the worker is ready", w.IsReady)
	return w
}

// readAddresses finds the ports in what the worker says when it serves: it chooses
// them itself, so that no two tests can race for one.
func (w *Worker) readAddresses() bool {
	for line := range strings.Lines(w.Stderr()) {
		var said struct{ Msg, Listen, Admin string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
			w.URL, w.Admin = "http://"+said.Listen, "http://"+said.Admin
			return true
		}
	}
	return false
}

// IsReady asks the readiness probe.
func (w *Worker) IsReady() bool {
	reply, err := Client{Base: w.Admin}.Try("GET", "/readyz", "")
	return err == nil && reply.Status == 200
}

// Client calls this worker with a key.
func (w *Worker) Client(key string) Client { return Client{Base: w.URL, Key: key} }
