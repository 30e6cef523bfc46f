package e2e_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestBadSurroundingsAreOneClearLine: exit 1, one line that says what is wrong, and
// nothing that looks like a crash or a password.
func TestBadSurroundingsAreOneClearLine(t *testing.T) {
	foreign := pgtest.NewEmptyDatabase(t)
	execute(t, foreign, "create table customers (id int)")
	ready := pgtest.NewDatabase(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("version: 1\nproviders:\n  - id: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := strings.Replace(ready, "/sluice_test_", "/sluice_absent_", 1)

	for name, c := range map[string]struct {
		database string
		args     []string
		says     string
	}{
		"database absent":     {absent, []string{"serve"}, "does not exist"},
		"server absent":       {"postgres://user:hunter2@127.0.0.1:1/sluice", []string{"serve"}, "cannot be reached"},
		"no database named":   {"", []string{"serve"}, "DATABASE_URL"},
		"schema missing":      {pgtest.NewEmptyDatabase(t), []string{"serve"}, "sluice migrate"},
		"foreign schema":      {foreign, []string{"migrate"}, "another application"},
		"port taken":          {ready, []string{"serve", "--listen", taken.Addr().String()}, "is taken"},
		"admin port taken":    {ready, []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", taken.Addr().String()}, "is taken"},
		"broken file":         {ready, []string{"apply", "-f", broken}, "broken.yaml: line 3"},
		"file absent":         {ready, []string{"apply", "-f", broken + "x"}, "does not exist"},
		"tenant absent":       {ready, []string{"keys", "create", "--tenant", "nobody"}, "nobody"},
		"request of no trail": {ready, []string{"trail", "01a22987-1698-7b92-af67-2c5cfb464bf3"}, "no request"},
	} {
		t.Run(name, func(t *testing.T) {
			var env []string
			if c.database != "" {
				env = []string{"DATABASE_URL=" + c.database}
			}
			r := harness.Run(t, append(env, "SLUICE_DATA_DIR="+t.TempDir()), c.args...)
			if r.Code != 1 || strings.Count(r.Stderr, "\n") != 1 || !strings.Contains(r.Stderr, c.says) || r.Stdout != "" {
				t.Errorf("exit %d, want 1 and one line with %q:\n%s%s", r.Code, c.says, r.Stdout, r.Stderr)
			}
			if strings.Contains(r.Stderr, "hunter2") {
				t.Errorf("a password is shown: %s", r.Stderr)
			}
		})
	}
	if r := harness.Run(t, nil, "serve", "--nonsense"); r.Code != 2 {
		t.Errorf("bad usage: exit %d", r.Code)
	}
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
