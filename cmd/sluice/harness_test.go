package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// asCommand makes the test binary be sluice, for what only a process can show:
// signals.
const asCommand = "SLUICE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	// fasthttp's clock and the cleaner of an ended server's pool sleep on.
	pgtest.Main(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// patience bounds every wait for something that has to happen.
const patience = 30 * time.Second

// result is what a command left behind.
type result struct {
	code           int
	stdout, stderr string
}

// sluice runs a command line in this process.
func sluice(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// must runs a command line that has to succeed and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := sluice(t, args...)
	if r.code != exitDone {
		t.Fatalf("sluice %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// refused runs a command line that has to fail and checks its one line.
func refused(t *testing.T, code int, contains string, args ...string) {
	t.Helper()
	r := sluice(t, args...)
	if r.code != code {
		t.Errorf("sluice %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	if !strings.Contains(r.stderr, contains) {
		t.Errorf("sluice %s: stderr %q does not say %q", strings.Join(args, " "), r.stderr, contains)
	}
	if strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "sluice: ") {
		t.Errorf("sluice %s: not one clear line: %q", strings.Join(args, " "), r.stderr)
	}
}

// decode reads a command's JSON.
func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("not JSON (%v): %s", err, text)
	}
	return value
}

// useDatabase makes a fresh, migrated database the one of DATABASE_URL, and opens this
// machine to the providers of the tests.
func useDatabase(t *testing.T) string {
	t.Helper()
	url := pgtest.NewDatabase(t)
	setDatabase(t, url)
	t.Setenv(network.HostsEnv, "127.0.0.1")
	return url
}

func setDatabase(t *testing.T, url string) {
	t.Helper()
	t.Setenv("DATABASE_URL", url)
	t.Setenv("SLUICE_DATA_DIR", t.TempDir())
}

// writeFile keeps a text in the test's directory.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := t.TempDir() + "/" + name
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// watched is a buffer that can be waited on.
type watched struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newWatched() *watched { return &watched{changed: make(chan struct{})} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// line waits for a line that contains something.
func (w *watched) line(t *testing.T, contains string, ended <-chan int) string {
	t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		text, changed := w.text.String(), w.changed
		w.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.Contains(line, contains) && strings.HasSuffix(line, "\n") {
				return strings.TrimSpace(line)
			}
		}
		select {
		case <-changed:
		case code := <-ended:
			t.Fatalf("ended with exit %d before it said %q:\n%s", code, contains, w)
		case <-deadline:
			t.Fatalf("did not say %q:\n%s", contains, text)
		}
	}
}

// background is a command that goes on until it is stopped.
type background struct {
	t              *testing.T
	stop           context.CancelFunc
	ended          chan int
	stdout, stderr *watched
}

// start runs a command line that serves, and stops it with the test.
func start(t *testing.T, args ...string) *background {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{t: t, stop: cancel, ended: make(chan int, 1), stdout: newWatched(), stderr: newWatched()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.ended <- execute(ctx, args, b.stdout, b.stderr)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// end stops the command and returns its exit code.
func (b *background) end() int {
	b.t.Helper()
	b.stop()
	return b.wait()
}

func (b *background) wait() int {
	b.t.Helper()
	select {
	case code := <-b.ended:
		return code
	case <-time.After(patience):
		b.t.Fatalf("does not end:\n%s", b.stderr)
		return 0
	}
}

// serving is a running `sluice serve`.
type serving struct {
	*background
	public, admin string
}

func serve(t *testing.T) serving {
	t.Helper()
	b := start(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	said := decode[struct{ Listen, Admin string }](t, b.stderr.line(t, `"msg":"serving"`, b.ended))
	return serving{b, "http://" + said.Listen, "http://" + said.Admin}
}

// get asks once and returns status and body.
func get(t *testing.T, url, key string) (int, string) {
	t.Helper()
	return do(t, http.MethodGet, url, key, "")
}

func do(t *testing.T, method, url, key, body string) (int, string) {
	t.Helper()
	reply, err := send(method, url, key, body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Error(err)
	}
	return reply.StatusCode, string(text)
}

func post(url, key, body string) (*http.Response, error) {
	return send(http.MethodPost, url, key, body)
}

func send(method, url, key, body string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	// No connection is kept: what is kept would outlive the test.
	request.Close = true
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		cancel()
		return nil, err
	}
	reply.Body = closing{reply.Body, cancel}
	return reply, nil
}

// closing ends a request's context with its body.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c closing) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// eventually asks again until it holds, for what another goroutine or process
// brings about without telling.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// process runs this test binary as sluice.
func process(t *testing.T, args ...string) (*exec.Cmd, *watched) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := newWatched()
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, stderr
}
