package harness

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Worker is a running sluice serve.
type Worker struct {
	// URL and Admin are the addresses of its two listeners.
	URL, Admin string

	cmd    *exec.Cmd
	stderr *output
	ended  chan struct{} // closed once the process is gone
}

// Serve starts a worker and returns when it is ready. A worker that the test did
// not end itself is stopped with the test, and has to end well.
func (in *Installation) Serve(t testing.TB) *Worker {
	t.Helper()
	w := &Worker{stderr: &output{}, ended: make(chan struct{})}
	w.cmd = exec.Command(Binary(t), "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	w.cmd.Env, w.cmd.Stderr = environment(in.env), w.stderr
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = w.cmd.Wait(); close(w.ended) }()
	t.Cleanup(func() {
		switch {
		case w.isGone():
		case t.Failed(): // its own end would only add to the noise
			w.Kill()
		default:
			w.Stop(t)
		}
	})
	if !within(patience, func() bool { return w.readAddresses() || w.isGone() }) || w.URL == "" {
		t.Fatalf("sluice serve did not start:\n%s", w.stderr)
	}
	Eventually(t, "the worker is ready", w.IsReady)
	return w
}

// readAddresses finds the ports in what the worker says when it serves: it chooses
// them itself, so that no two tests can race for one.
func (w *Worker) readAddresses() bool {
	for line := range strings.Lines(w.stderr.String()) {
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

// Stderr is everything the worker has said so far.
func (w *Worker) Stderr() string { return w.stderr.String() }

// Terminate asks the worker to stop and does not wait.
func (w *Worker) Terminate(t testing.TB) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("the worker is gone already: %v\n%s", err, w.stderr)
	}
}

// Stop asks the worker to stop and checks that it ends well.
func (w *Worker) Stop(t testing.TB) {
	t.Helper()
	w.Terminate(t)
	w.WaitEnded(t)
}

// WaitEnded waits for a worker that was asked to stop; it has to exit with 0.
func (w *Worker) WaitEnded(t testing.TB) {
	t.Helper()
	if !within(patience, w.isGone) {
		w.Kill()
		t.Fatalf("the worker did not end:\n%s", w.stderr)
	}
	if code := w.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the worker ended with exit %d:\n%s", code, w.stderr)
	}
}

// Kill ends the worker as a crash would (kill -9) and returns when it is gone.
func (w *Worker) Kill() {
	_ = w.cmd.Process.Signal(os.Kill) // the only error: it is gone
	<-w.ended
}

func (w *Worker) isGone() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// output is a process's, readable while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps what was said.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all that was said.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
