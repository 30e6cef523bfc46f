package eventstore

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// panicEnv tells a copy of the test binary to panic in its lane on this database.
const panicEnv = "SLUICE_TEST_PANIC_ON"

// A lane that panics ends its process. One that hung instead would stay in front of a
// balancer and take requests that nobody can serve.
//
// Rules: E11.
func TestAPanicInTheLaneEndsTheProcess_E11(t *testing.T) {
	if url := os.Getenv(panicEnv); url != "" {
		s := openStore(t, Config{URL: url})
		_, err := s.Append(t.Context(), Append{
			Stream: newRequest(), Events: happened(1), Checks: []budget.Check{{Key: "k", Limit: 1, Ask: 2}},
			Refuse: func(budget.Refusal) ([]Event, []budget.Delta) { panic("of the caller's making") },
		})
		t.Fatalf("the append came back: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAPanicInTheLaneEndsTheProcess_E11$", "-test.timeout", "1m")
	cmd.Env = append(os.Environ(), panicEnv+"="+pgtest.NewDatabase(t))
	out, err := cmd.CombinedOutput()
	exit, exited := errors.AsType[*exec.ExitError](err)
	if !exited || exit.ExitCode() != 2 || !strings.Contains(string(out), "panic: of the caller's making") ||
		strings.Contains(string(out), "timed out") {
		t.Errorf("%v\n%s", err, out)
	}
}
