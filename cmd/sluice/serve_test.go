package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/domain/event"
	workerevents "github.com/sluice-gateway/sluice/domain/worker"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgserver"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/migrations"
)

// readLog is the whole log.
func readLog(t *testing.T) (all []eventstore.Recorded) {
	t.Helper()
	db, err := findDatabase()
	if err != nil {
		t.Fatal(err)
	}
	log, err := db.openLog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeStore(log); err != nil {
			t.Error(err)
		}
	}()
	all, err = log.ReadAll(t.Context(), 0, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// configure applies acme's configuration with a provider at base and returns a key.
func configure(t *testing.T, base string) string {
	t.Helper()
	useDatabase(t)
	t.Setenv("SLUICE_TEST_UP_KEY", "upstream-credential")
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", acme(base)))
	return strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme"))
}

const hello = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

func TestServe(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	key := configure(t, fake.URL()+"/v1")
	s := serve(t)

	for _, probe := range []string{"/livez", "/startupz", "/readyz"} { // O2
		if code, body := get(t, s.admin+probe, ""); code != http.StatusOK {
			t.Errorf("%s: %d %s", probe, code, body)
		}
	}
	if code, body := do(t, http.MethodPost, s.public+"/v1/chat/completions", key, hello); code != http.StatusOK || !strings.Contains(body, `"chat.completion"`) {
		t.Fatalf("%d %s", code, body)
	}
	// The read model follows without being asked for.
	eventually(t, "the request is listed", func() bool {
		_, body := get(t, s.public+"/v1/requests", key)
		return strings.Contains(body, `"completed"`)
	})
	if code, body := get(t, s.admin+"/metrics", ""); code != http.StatusOK || !strings.Contains(body, "sluice_log_events_total") {
		t.Errorf("%d %.200s", code, body)
	}
	// C11: a change is picked up without a restart.
	other := strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme"))
	eventually(t, "the new key opens", func() bool {
		code, _ := get(t, s.public+"/v1/models", other)
		return code == http.StatusOK
	})
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, s.stderr)
	}
}

// O11: what ran is in the log; the end of a drain is too.
func TestWorkerSaysWhatRan_O11(t *testing.T) {
	configure(t, nowhere)
	s := serve(t)
	if code := s.end(); code != exitDone {
		t.Fatalf("exit %d:\n%s", code, s.stderr)
	}
	var life []string
	for _, e := range readLog(t) {
		if !strings.HasPrefix(e.Stream, "worker/") {
			continue
		}
		life = append(life, e.Type)
		decoded, err := event.Decode(e.Type, e.Version, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		if started, ok := decoded.(workerevents.WorkerStarted); ok {
			want := workerevents.WorkerStarted{
				Commit: commitID(), Build: build,
				SchemaVersion: migrations.Latest(), MigrationsDigest: migrations.Digest(migrations.Latest()),
			}
			if started != want {
				t.Errorf("got %+v, want %+v", started, want)
			}
		}
		if e.Stream != workerevents.Stream(e.Meta.Worker) {
			t.Errorf("written by %q into %s", e.Meta.Worker, e.Stream)
		}
	}
	if got := strings.Join(life, " "); got != "worker_started worker_drained" {
		t.Errorf("the worker's life: %s", got)
	}
}

// O2: a worker whose store is away says so, refuses with our own fault and comes
// back by itself.
func TestReadinessFollowsTheStore_O2(t *testing.T) {
	server := pgtest.NewServer(t, pgserver.Options{})
	setDatabase(t, server.URL(""))
	must(t, "migrate")
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", acme(nowhere)))
	key := strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme"))
	s := serve(t)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not ready without a store", func() bool {
		code, body := get(t, s.admin+"/readyz", "")
		return code == http.StatusServiceUnavailable && strings.Contains(body, `"store"`)
	})
	if code, _ := get(t, s.admin+"/livez", ""); code != http.StatusOK {
		t.Errorf("not alive: %d", code)
	}
	if code, body := do(t, http.MethodPost, s.public+"/v1/chat/completions", key, hello); code != http.StatusServiceUnavailable || !strings.Contains(body, "gateway_unavailable") {
		t.Errorf("%d %s", code, body)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "ready again", func() bool {
		code, _ := get(t, s.admin+"/readyz", "")
		return code == http.StatusOK
	})
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, s.stderr)
	}
}

// slowUpstream is a provider that answers when it is released.
func slowUpstream(t *testing.T) (base string, called chan struct{}, release func()) {
	t.Helper()
	fake, err := fakeprovider.New(fakeprovider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	called, hold := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(hold) })
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(called)
		<-hold
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		release()
		up.Close()
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	return up.URL + "/v1", called, release
}

// O3: not ready at once, the running answer ends and is settled, exit 0.
func TestDrainFinishesWhatRuns_O3(t *testing.T) {
	base, called, release := slowUpstream(t)
	key := configure(t, base)
	s := serve(t)

	answered := make(chan string, 1)
	go func() {
		code, body := do(t, http.MethodPost, s.public+"/v1/chat/completions", key, hello)
		answered <- fmt.Sprint(code, body)
	}()
	<-called
	s.stop()
	eventually(t, "not ready while draining", func() bool {
		code, body := get(t, s.admin+"/readyz", "")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "draining")
	})
	release()
	if got := <-answered; !strings.HasPrefix(got, "200") || !strings.Contains(got, "chat.completion") {
		t.Errorf("the running answer: %s", got)
	}
	if code := s.wait(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, s.stderr)
	}
	types := map[string]int{}
	for _, e := range readLog(t) {
		types[e.Type]++
	}
	if types["attempt_settled"] != 1 || types["request_finalized"] != 1 || types["worker_drained"] != 1 {
		t.Errorf("written: %v", types)
	}
}

// O3: the second signal does not wait.
func TestSecondSignalEndsAtOnce_O3(t *testing.T) {
	base, called, _ := slowUpstream(t)
	key := configure(t, base)
	cmd, stderr := process(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	said := decode[struct{ Listen string }](t, stderr.line(t, `"msg":"serving"`, nil))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if reply, err := post("http://"+said.Listen+"/v1/chat/completions", key, hello); err == nil {
			_ = reply.Body.Close()
			t.Errorf("answered %d", reply.StatusCode)
		}
	}()
	<-called
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	stderr.line(t, `"msg":"draining"`, nil)
	select {
	case err := <-ended:
		t.Fatalf("ended with an answer running: %v", err)
	default:
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a process that was ended says that all is well")
	}
	<-gone
}

func TestPortTaken(t *testing.T) {
	configure(t, nowhere)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	address := taken.Addr().String()
	refused(t, exitFailed, address+" is taken: stop what listens there, or choose another address with SLUICE_LISTEN",
		"serve", "--listen", address, "--admin-listen", "127.0.0.1:0")
	refused(t, exitFailed, address+" is taken: stop what listens there, or choose another address with SLUICE_ADMIN_LISTEN",
		"serve", "--listen", "127.0.0.1:0", "--admin-listen", address)
	refused(t, exitFailed, "choose another address with --listen", "fakeprovider", "--listen", address)
	for _, e := range readLog(t) {
		if strings.HasPrefix(e.Stream, "worker/") {
			t.Errorf("a worker that never served wrote %s", e.Type)
		}
	}
}

// Rules: O9.
func TestFakeProvider_O9(t *testing.T) {
	script := writeFile(t, "script.json", `{"rules":[{"model":"m","outcomes":["503","ok"]}]}`)
	b := start(t, "fakeprovider", "--listen", "127.0.0.1:0", "--script", script)
	_, base, _ := strings.Cut(b.stdout.line(t, "base_url", b.ended), "base_url ")
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		if code, body := do(t, http.MethodPost, base+"/chat/completions", "k", hello); code != want {
			t.Errorf("got %d, want %d: %s", code, want, body)
		}
	}
	if code := b.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, b.stderr)
	}
	refused(t, exitFailed, "is no script", "fakeprovider", "--script", writeFile(t, "bad.json", "{"))
}
