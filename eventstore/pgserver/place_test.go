package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openTempDir is t.TempDir with every directory on the way open to the server's
// account.
func openTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sluice-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBlockedAtNamesTheClosedDirectory(t *testing.T) {
	open := openTempDir(t)
	closed := filepath.Join(open, "closed")
	if err := os.MkdirAll(filepath.Join(closed, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	stranger := &account{uid: 65533, gid: 65533}
	tests := []struct {
		as   *account
		path string
		want string
	}{
		{stranger, open, ""},
		{stranger, filepath.Join(open, "not", "yet"), ""},
		{stranger, closed, closed},
		{stranger, filepath.Join(closed, "inner", "not yet"), closed},
		{&account{uid: uint32(os.Geteuid())}, filepath.Join(closed, "inner"), ""},
		{nil, closed, ""},
	}
	for _, test := range tests {
		if got := test.as.blockedAt(test.path); got != test.want {
			t.Errorf("%v on the way to %s: blocked at %q, want %q", test.as, test.path, got, test.want)
		}
	}
}

func TestSocketPathFitsWhateverTheDataDir(t *testing.T) {
	root := openTempDir(t)
	for _, name := range []string{"short", strings.Repeat("long", 30), "with,comma"} {
		p, err := newPlace(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		beside := filepath.Dir(filepath.Dir(p.socket)) == p.base
		if len(p.socket) > socketPathMaxBytes || beside != (name == "short") {
			t.Errorf("%s: socket %s", name, p.socket)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Dir(p.socket)); !beside && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the socket's directory is left behind: %v", name, err)
		}
	}
}

// Rules: O8.
func TestRootKeepsDataWhereTheAccountCanGo_O8(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server under another account")
	}
	previous := openDataDir
	openDataDir = filepath.Join(openTempDir(t), "lib")
	t.Cleanup(func() { openDataDir = previous })
	closed := filepath.Join(openTempDir(t), "root")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	server := openForTest(t, Options{DataDir: filepath.Join(closed, "dev")})
	if got := server.backend.(*cluster).place.base; filepath.Dir(got) != openDataDir {
		t.Errorf("data in %s, want it under %s", got, openDataDir)
	}
	if !strings.Contains(server.Description(), "cannot enter "+closed) {
		t.Errorf("the description does not say why: %s", server.Description())
	}
}

func TestAbandonedClustersAreSwept(t *testing.T) {
	root := openTempDir(t)
	cluster := func(name string, age time.Duration) string {
		dir := filepath.Join(root, tempPrefix+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			lock, err := lockDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lock.release() })
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(dir, then, then); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	wants := map[string]bool{
		cluster("abandoned", 2*abandonedAfter): false,
		cluster("used", 2*abandonedAfter):      true,
		cluster("young", 0):                    true,
	}
	sweepAbandoned(root)
	for dir, want := range wants {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: kept %t, want %t", dir, err == nil, want)
		}
	}
}
