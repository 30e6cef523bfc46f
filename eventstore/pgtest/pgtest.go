// Package pgtest gives tests a PostgreSQL and databases of their own.
//
// A test package calls [Main] from its TestMain; its tests call [NewDatabase].
// The first one that does starts one server for the package (see pgserver for
// where it comes from), Main stops it. Packages do not share a server: a private
// one starts in a second or two, and one shared by parallel test binaries would
// need a count of its users that survives their crashes.
//
// No PostgreSQL is a failure with a message that says how to get one, never a
// skip: a suite that passes because it did not run is worse than a red one.
//
// The server runs outside the test's process, so none of this may be called
// inside a testing/synctest bubble; call it before and pass the URL in. A single
// test that uses goleak calls [NewDatabase] first and then
// goleak.VerifyNone(t, goleak.IgnoreCurrent()).
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/eventstore/pgserver"
)

// AddressEnv names the variable that points the tests at a server of the
// developer's choice. Its user must be allowed to create databases.
const AddressEnv = "SLUICE_TEST_DATABASE_URL"

const (
	// startTimeout covers the slowest choice, a download of the programs.
	startTimeout = 5 * time.Minute
	stopTimeout  = 10 * time.Second
)

// shared is the test binary's server, started by the first test that needs it.
var shared struct {
	mu       sync.Mutex
	inMain   bool
	server   *pgserver.Server
	template string // its name, once made
	err      error  // the first failure; it will not get better
}

// Main runs a package's tests, stops its server and exits. Goroutines that the
// tests left behind fail the run; ignore names those that are not theirs.
func Main(m *testing.M, ignore ...goleak.Option) {
	shared.inMain = true
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: cannot stop PostgreSQL:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(append(ignore, libraryGoroutines()...)...); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// libraryGoroutines are those of testcontainers, which keeps a connection to its
// cleanup container for the life of the process.
func libraryGoroutines() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"),
	}
}

// Server is the package's shared server. Do not kill it; see [NewServer].
func Server(t testing.TB) *pgserver.Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if err := startShared(); err != nil {
		t.Fatal(err)
	}
	return shared.server
}

// startShared starts the server unless it runs. The caller holds shared.mu.
func startShared() error {
	switch {
	case !shared.inMain:
		return errors.New("pgtest: this package's TestMain must call pgtest.Main, or its server would be left running")
	case shared.server != nil || shared.err != nil:
		return shared.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := pgserver.Find(ctx, pgserver.Options{AddressEnv: []string{AddressEnv}})
	if err != nil {
		shared.err = fmt.Errorf("pgtest: %w", err)
		return shared.err
	}
	fmt.Fprintln(os.Stderr, "pgtest: using", server.Description())
	shared.server = server
	return nil
}

func stopShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(dropTemplate(ctx), shared.server.Stop(ctx))
}

// NewServer starts a server of the test's own, for tests that kill it, and stops
// it when the test ends. Never the one named by the environment: that is
// somebody's. Crash tests want [pgserver.Options].Durable.
func NewServer(t testing.TB, opts pgserver.Options) *pgserver.Server {
	t.Helper()
	opts.AddressEnv = nil
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := pgserver.Find(ctx, opts)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Errorf("pgtest: cannot stop PostgreSQL: %v", err)
		}
	})
	return server
}
