package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// commandPatience bounds a command that has to end by itself. It also covers a
// migration on a busy machine.
var commandPatience = time.Minute

var binary struct {
	once sync.Once
	path string
	err  error
}

// BinaryEnv names the variable that points the tests at a sluice that is built
// already: a release, say.
const BinaryEnv = "SLUICE_TEST_BINARY"

// Binary builds sluice, once a test binary, and returns its path. When the tests
// run under the race detector, so does what they drive.
func Binary(t testing.TB) string {
	t.Helper()
	binary.once.Do(func() { binary.path, binary.err = build() })
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return binary.path
}

// build keeps its result in the user's cache, one for each test package: linking is
// then done only when something has changed, and nothing is left to be removed.
func build() (string, error) {
	if given := os.Getenv(BinaryEnv); given != "" {
		return filepath.Abs(given)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	owner := sha256.Sum256(fmt.Appendf(nil, "%s race=%t", here, raceEnabled))
	path := filepath.Join(cache, "sluice-test", fmt.Sprintf("%x", owner[:8]), "sluice")
	args := []string{"build", "-buildvcs=false", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	output, err := exec.Command("go", append(args, "github.com/sluice-gateway/sluice/cmd/sluice")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("sluice cannot be built: %w\n%s", err, output)
	}
	return path, nil
}

// Result is what a command left behind.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs sluice to its end. Env is added to the test's own environment; a
// DATABASE_URL of that is not passed on.
func Run(t testing.TB, env []string, args ...string) Result {
	t.Helper()
	return runWith(t, env, "", args...)
}

// runWith is Run with a text on standard input.
func runWith(t testing.TB, env []string, stdin string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(t), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = environment(env)
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("sluice %s: %v", strings.Join(args, " "), err)
	}
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// environment is the test's own without what would steer sluice.
func environment(add []string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "SLUICE_") && !strings.HasPrefix(pair, "DATABASE_URL=") {
			env = append(env, pair)
		}
	}
	return append(env, add...)
}
