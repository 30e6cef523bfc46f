package main

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// shell runs a line as a developer pastes it.
func shell(t *testing.T, line string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

func dev(t *testing.T) *background {
	t.Helper()
	return start(t, "dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
}

var keyIn = regexp.MustCompile(`sk-sluice-[0-9a-f]+`)

// O8: the curl line works as pasted, a trail line shows the request just made, and
// a second start has the data and the key of the first.
func TestDev_O8(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a PostgreSQL of its own")
	}
	setDatabase(t, "")
	oneDev(t)
}

// The same on a database that was given.
//
// Rules: O8.
func TestDevOnAGivenDatabase_O8(t *testing.T) {
	setDatabase(t, pgtest.NewEmptyDatabase(t))
	oneDev(t)
}

func oneDev(t *testing.T) {
	t.Helper()
	first := dev(t)
	curl := first.stdout.line(t, "curl -s http", first.ended)
	if answer := shell(t, curl); !strings.Contains(answer, `"chat.completion"`) {
		t.Fatalf("%s\n%s", curl, answer)
	}
	line := first.stdout.line(t, "request 0", first.ended)
	for _, says := range []string{"demo", "@fake-b", "attempts", "completed", "USD", " ms"} {
		if !strings.Contains(line, says) {
			t.Errorf("the request's line does not say %q: %s", says, line)
		}
	}
	id := strings.Fields(line)[1]
	_, trail, _ := strings.Cut(first.stdout.line(t, "trail: ", first.ended), "trail: ")
	if got := shell(t, trail); !strings.Contains(got, id) || !strings.Contains(got, `"attempt_failed"`) {
		t.Errorf("%s\n%s", trail, got)
	}
	// The commands find dev's database by themselves.
	if got := must(t, "trail", id); !strings.Contains(got, "failover") {
		t.Error(got)
	}
	if code := first.end(); code != exitDone {
		t.Fatalf("exit %d:\n%s%s", code, first.stdout, first.stderr)
	}

	second := dev(t)
	again := second.stdout.line(t, "curl -s http", second.ended)
	if keyIn.FindString(again) != keyIn.FindString(curl) {
		t.Errorf("another key: %s", again)
	}
	list := second.stdout.line(t, "/v1/requests?limit=1", second.ended)
	eventually(t, "the first start's request is listed", func() bool { return strings.Contains(shell(t, list), id) })
	shell(t, again)
	if code := second.end(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, second.stderr)
	}
	if strings.Contains(second.stderr.String(), "ERROR") {
		t.Errorf("complaints: %s", second.stderr)
	}
}

// What a developer has configured stays; the demo is for empty databases.
//
// Rules: O8.
func TestDevLeavesConfigurationAlone_O8(t *testing.T) {
	useDatabase(t)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", acme(nowhere)))
	before := must(t, "export")
	b := dev(t)
	b.stdout.line(t, "The configuration is your own", b.ended)
	if after := must(t, "export"); after != before {
		t.Errorf("dev changed it:\n%s", after)
	}
	if code := b.end(); code != exitDone {
		t.Errorf("exit %d: %s", code, b.stderr)
	}
}

// dev opens its own fake provider, at its one address, and nothing else: not another
// port of this machine, and not to the pictures of a request.
//
// Rules: Z1, O8.
func TestDevOpensItsOwnProviderOnly_Z1_O8(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a PostgreSQL of its own")
	}
	setDatabase(t, "")
	t.Setenv(network.HostsEnv, "")
	other := fakeprovider.Start(t, fakeprovider.Options{})
	b := dev(t)
	curl := b.stdout.line(t, "curl -s http", b.ended)
	if answer := shell(t, curl); !strings.Contains(answer, `"chat.completion"`) {
		t.Fatalf("%s\n%s", curl, answer)
	}
	picture := strings.Replace(curl, `"content":"Say hello"`, `"content":[{"type":"image_url","image_url":{"url":"http://127.0.0.1:9/a.png"}}]`, 1)
	if answer := shell(t, picture); !strings.Contains(answer, "must not point into a private network") {
		t.Errorf("a picture of this machine: %s", answer)
	}

	own, err := devDir(dataDir()).read(fakeProviderFile)
	if err != nil {
		t.Fatal(err)
	}
	text := must(t, "export")
	if r := sluice(t, "apply", "-f", writeFile(t, "sluice.yaml", text)); r.code != exitDone || strings.Contains(r.stderr, "own network") {
		t.Errorf("dev's own provider: exit %d: %s", r.code, r.stderr)
	}
	if f := findings(t, must(t, "doctor", "--output", "json"))["base URLs"]; f.Verdict != ok {
		t.Errorf("dev's own provider: %+v", f)
	}
	elsewhere := strings.TrimPrefix(other.URL(), "http://")
	r := sluice(t, "apply", "-f", writeFile(t, "sluice.yaml", strings.ReplaceAll(text, own, elsewhere)))
	if r.code != exitDone || !strings.Contains(r.stderr, network.HostsEnv+"="+elsewhere) {
		t.Errorf("another provider: exit %d: %s", r.code, r.stderr)
	}
	eventually(t, "the other provider is refused", func() bool { return strings.Contains(shell(t, curl), "no_route_allowed") })
	if n := other.Ledger().Total; n != 0 {
		t.Errorf("%d calls of another port", n)
	}
}

// A default port that is taken gives way; one that was asked for does not.
//
// Rules: O8.
func TestDevPorts_O8(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	at := taken.Addr().String()
	l, err := listen(address{value: at, setting: "SLUICE_LISTEN", free: true})
	if err != nil || l.Addr().String() == at {
		t.Fatalf("no other port: %v", err)
	}
	if said := (greeting{}).instead(l.Addr().String(), at); !strings.Contains(said, at+" is taken") {
		t.Errorf("says %q", said)
	}
	_ = l.Close()
	t.Setenv("SLUICE_LISTEN", at)
	none := ""
	if public, admin := (addresses{&none, &none}).resolve(true); public.free || !admin.free {
		t.Errorf("asked for: %+v, default: %+v", public, admin)
	}
}

// One directory is one dev's.
func TestDevTwiceOnOneDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a PostgreSQL of its own")
	}
	setDatabase(t, "")
	first := dev(t)
	first.stdout.line(t, "sluice dev is ready", first.ended)
	refused(t, exitFailed, "stop it or choose another directory", "dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	if _, err := os.Stat(devDir(dataDir()).path(databaseFile)); err != nil {
		t.Errorf("the second one took the first one's database away: %v", err)
	}
}
