package clients_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// npmPatience bounds an installation; the agents are some 200 MB on the wire.
const npmPatience = 5 * time.Minute

// oldestNode is what the newest of the clients ask for.
const oldestNode = 20

// major is 20 of "v20.20.2".
func major(version string) int {
	number, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, _ := strconv.Atoi(number) // what is no number is older than any
	return n
}

// installedMark is a copy of the lock file beside what was installed from it.
const installedMark = "node_modules/.installed-lock.json"

// installFromNPM installs the lock file of a directory, unless that is done already,
// and skips the test where it cannot. No package's own scripts run.
func installFromNPM(t *testing.T, dir string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed, so no client from npm can be driven", program)
		}
	}
	if version, err := exec.CommandContext(t.Context(), "node", "--version").Output(); err != nil || major(string(version)) < oldestNode {
		t.Skipf("SKIPPED: the clients from npm need Node %d, and here is %s (%v)", oldestNode, strings.TrimSpace(string(version)), err)
	}
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(dir, installedMark)
	if installed, err := os.ReadFile(mark); err == nil && bytes.Equal(installed, lock) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), npmPatience)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--no-progress", "--prefer-offline", "--ignore-scripts")
	install.Dir = dir
	if output, err := install.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the clients of %s cannot be installed (no package registry?): %v\n%s", dir, err, output)
	}
	if err := os.WriteFile(mark, lock, 0o600); err != nil {
		t.Fatal(err)
	}
}
