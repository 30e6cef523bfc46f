package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/migrations"
)

// commands lists every command line there is, groups included.
func commands(root *cobra.Command) (all []*cobra.Command) {
	for _, c := range root.Commands() {
		all = append(append(all, c), commands(c)...)
	}
	return all
}

func words(c *cobra.Command) []string { return strings.Fields(c.CommandPath())[1:] }

func TestEveryCommandHelpsWithAnExample(t *testing.T) {
	for _, c := range commands(newRoot()) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			r := sluice(t, append(words(c), "--help")...)
			if r.code != exitDone || r.stderr != "" {
				t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
			}
			if !strings.Contains(r.stdout, "Examples:\n") || !strings.Contains(r.stdout, "sluice "+strings.Join(words(c), " ")) {
				t.Errorf("no example of its own:\n%s", r.stdout)
			}
			if c.Short == "" {
				t.Error("no short description")
			}
		})
	}
}

// The commands of this release; those that come later must not be there half.
func TestCommands(t *testing.T) {
	var names []string
	for _, c := range newRoot().Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	want := "apply bills credentials dev doctor equivalence explain export fakeprovider history keys migrate prices rebuild reconcile revert serve trail verify version"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBadUsageExits2(t *testing.T) {
	setDatabase(t, "")
	for _, c := range []struct{ line, says string }{
		{"", "name a command"},
		{"keys", "create, list, revoke"},
		{"sevre", `did you mean serve?`},
		{"keys crate", `did you mean create?`},
		{"help sevre", "sevre"},
		{"serve extra", "extra"},
		{"serve --bogus", "--bogus"},
		{"version --output xml", "must be json or text"},
		{"apply", "-f FILE"},
		{"keys create", "--tenant"},
		{"keys create --tenant t --scope root", "inference, read, admin"},
		{"keys create --tenant t --expires soon", "--expires"},
		{"keys create --tenant t --expires 2001-01-01", "in the past"},
		{"keys revoke", "arg"},
		{"rebuild", "arg"},
		{"rebuild requests --dry-run", "for bills"},
		{"trail", "arg"},
		{"trail xyz", "x-request-id"},
		{"verify --head 0:zero:ff", "shard:position:hash"},
		{"reconcile --checks horoscopes", "counters"},
		{"reconcile --time-budget 1ms", "between 1s and 24h"},
		{"reconcile --time-budget soon", "--time-budget"},
		{"reconcile bills", "unknown command"},
	} {
		t.Run(c.line, func(t *testing.T) {
			refused(t, exitUsage, c.says, strings.Fields(c.line)...)
		})
	}
}

// Rules: O11.
func TestVersion_O11(t *testing.T) {
	v := decode[map[string]any](t, must(t, "version", "--output", "json"))
	if v["schema_version"] != float64(migrations.Latest()) || v["migrations_digest"] != migrations.Digest(migrations.Latest()) {
		t.Errorf("not this build's schema: %v", v)
	}
	if v["go"] != runtime.Version() || v["commit"] == "" || v["build"] == "" {
		t.Errorf("does not say what was built: %v", v)
	}
}

// Without a terminal there is neither colour nor progress.
func TestPlainWithoutTerminal(t *testing.T) {
	useDatabase(t)
	for _, line := range []string{"doctor", "verify", "rebuild requests", "version", "keys list"} {
		r := sluice(t, strings.Fields(line)...)
		if strings.ContainsAny(r.stdout+r.stderr, "\x1b\r") {
			t.Errorf("%s: escapes without a terminal: %q %q", line, r.stdout, r.stderr)
		}
	}
}

func TestPaint(t *testing.T) {
	if got := paint(true).red("no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("on: %q", got)
	}
	if got := paint(false).red("no"); got != "no" {
		t.Errorf("off: %q", got)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if isTerminal(null) || bool(newPaint(null)) {
		t.Error("/dev/null is taken for a terminal")
	}
}

// Progress is for work over a second, on a terminal, and leaves nothing behind.
func TestProgress(t *testing.T) {
	var screen bytes.Buffer
	p := &progress{w: &screen, on: true, began: time.Now()}
	p.show("too early")
	p.done()
	if screen.Len() > 0 {
		t.Errorf("quick work shows %q", &screen)
	}
	p.began = p.began.Add(-2 * progressAfter)
	p.show("%d of %d", 1, 2)
	p.show("too often")
	p.done()
	if got := screen.String(); got != "\r\x1b[K1 of 2\r\x1b[K" {
		t.Errorf("got %q", got)
	}
	p = &progress{w: &screen, began: time.Now().Add(-time.Hour)}
	screen.Reset()
	p.show("no terminal")
	p.done()
	if screen.Len() > 0 {
		t.Errorf("without a terminal: %q", &screen)
	}
}

// A failure and what failed after it are still one line.
func TestErrorsAreOneLine(t *testing.T) {
	var stderr strings.Builder
	err := &runError{errors.Join(errors.New("the first"), context.Canceled)}
	if code := report(&stderr, newRoot(), err); code != exitFailed || stderr.String() != "sluice: the first; interrupted\n" {
		t.Errorf("exit %d: %q", code, stderr.String())
	}
}

// What the data directory keeps is for its owner alone, and the same every time.
func TestDevDirKeepsSecrets(t *testing.T) {
	dir, err := openDevDir(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]func() (string, error){masterKeyFile: dir.masterKey, adminKeyFile: dir.adminKey} {
		first, err := secret()
		again, err2 := secret()
		if err != nil || err2 != nil || first == "" || first != again {
			t.Fatalf("%s: %q then %q (%v, %v)", name, first, again, err, err2)
		}
		info, err := os.Stat(dir.path(name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}
