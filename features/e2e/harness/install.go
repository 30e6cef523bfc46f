package harness

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// Installation is a database with a configuration. Any number of workers may run
// on it.
type Installation struct {
	// URL is the database's address.
	URL string
	env []string
}

// Install configures a fresh database.
func Install(t testing.TB, config Config) *Installation {
	t.Helper()
	return InstallOn(t, pgtest.NewDatabase(t), config)
}

// InstallOn is Install on a database of the test's own. It is migrated.
func InstallOn(t testing.TB, url string, config Config) *Installation {
	t.Helper()
	in := &Installation{URL: url}
	// A fixed directory, so that no test finds what a developer's own run has left.
	in.env = append(config.secrets(), "DATABASE_URL="+url, "SLUICE_DATA_DIR="+t.TempDir(), "SLUICE_MASTER_KEY="+masterKey, internalHosts)
	in.Must(t, "migrate")
	in.Apply(t, config)
	for _, p := range config.Providers {
		if p.Stored {
			in.store(t, p)
		}
	}
	return in
}

// internalHosts opens this machine, where the tests' providers are.
const internalHosts = network.HostsEnv + "=127.0.0.1"

// masterKey seals the credentials that an installation keeps.
var masterKey = base64.StdEncoding.EncodeToString(make([]byte, 32))

// With is the installation with more in its environment; what comes later wins.
func (in *Installation) With(env ...string) *Installation {
	return &Installation{URL: in.URL, env: append(slices.Clone(in.env), env...)}
}

func (in *Installation) store(t testing.TB, p Provider) {
	t.Helper()
	if r := runWith(t, in.env, p.secret(), "credentials", "set", p.ID, "k1"); r.Code != 0 {
		t.Fatalf("credentials set: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// Run runs a command on the installation.
func (in *Installation) Run(t testing.TB, args ...string) Result {
	t.Helper()
	return Run(t, in.env, args...)
}

// Through is the installation as those see it who reach its database at another address.
func (in *Installation) Through(url string) *Installation {
	// The last of a variable's values counts.
	return &Installation{URL: in.URL, env: append(slices.Clone(in.env), "DATABASE_URL="+url)}
}

// Must is Run for a command that has to succeed; it returns what was printed.
func (in *Installation) Must(t testing.TB, args ...string) string {
	t.Helper()
	r := in.Run(t, args...)
	if r.Code != 0 {
		t.Fatalf("sluice %v: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Apply makes the configuration this one. Running workers hear of it by themselves.
func (in *Installation) Apply(t testing.TB, config Config) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(path, []byte(config.YAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	in.Must(t, "apply", "-f", path)
}

// Key creates a caller's key, with the scopes that a key has by itself or these.
func (in *Installation) Key(t testing.TB, tenant string, scopes ...string) string {
	t.Helper()
	_, key := in.NewKey(t, tenant, scopes...)
	return key
}

// NewKey is Key and says the key's id too.
func (in *Installation) NewKey(t testing.TB, tenant string, scopes ...string) (id, key string) {
	t.Helper()
	args := []string{"keys", "create", "--tenant", tenant, "--output", "json"}
	for scope := range slices.Values(scopes) {
		args = append(args, "--scope", scope)
	}
	var created struct{ ID, Key string }
	if err := json.Unmarshal([]byte(in.Must(t, args...)), &created); err != nil {
		t.Fatalf("keys create printed no JSON: %v", err)
	}
	return created.ID, created.Key
}
