package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
)

// masterKey is a master key made of one byte.
func masterKey(b string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(b, 32)))
}

// setCredential runs `sluice credentials set` with a secret on standard input.
func setCredential(t *testing.T, secret string, args ...string) result {
	t.Helper()
	in, err := os.Open(writeFile(t, "secret", secret))
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = before; _ = in.Close() }()
	return sluice(t, append([]string{"credentials", "set"}, args...)...)
}

// A key that is stored is used by a running worker, replaced and deleted while it
// serves, and found nowhere but sealed: not in the table, the log, or anything that
// was printed.
//
// Rules: Z2, C14, C11, C6.
func TestStoredCredentialServes_Z2_C14(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	url := useDatabase(t)
	t.Setenv(secrets.MasterKeyEnv, masterKey("a"))
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", strings.Replace(acme(fake.URL()+"/v1"), "env: SLUICE_TEST_UP_KEY", "stored: true", 1)))
	key := strings.TrimSpace(must(t, "keys", "create", "--tenant", "acme"))
	s := serve(t)
	ask := func() int {
		code, _ := do(t, http.MethodPost, s.public+"/v1/chat/completions", key, hello)
		return code
	}
	if code := ask(); code != http.StatusForbidden && code != http.StatusServiceUnavailable {
		t.Errorf("without a credential: %d", code)
	}
	var printed strings.Builder
	for _, secret := range []string{"sk-canary-first-0123-aaaa", "sk-canary-second-4567-bbbb"} {
		r := setCredential(t, secret+"\n", "up", "k1")
		if r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		printed.WriteString(r.stdout + r.stderr)
		eventually(t, "the provider is called with the key that was stored last", func() bool {
			ask()
			calls := fake.Ledger().Calls
			return len(calls) > 0 && calls[len(calls)-1].KeyLast4 == secret[len(secret)-4:]
		})
	}
	// The ports of the running worker are taken; only what it says of keys matters here.
	t.Setenv(secrets.MasterKeyEnv, "")
	if r := sluice(t, "doctor"); !strings.Contains(r.stdout, "SLUICE_MASTER_KEY is not set") {
		t.Errorf("doctor without the master key: %s", r.stdout)
	}
	t.Setenv(secrets.MasterKeyEnv, masterKey("a"))
	if r := sluice(t, "doctor"); !strings.Contains(r.stdout, "1 stored credential") || strings.Contains(r.stdout, "not set here") {
		t.Errorf("doctor: %s", r.stdout)
	}
	list := must(t, "credentials", "list")
	if !strings.Contains(list, "key k1 of provider up  bbbb") {
		t.Errorf("list says %s", list)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var table string
	if err := conn.QueryRow(t.Context(), `
		select string_agg(c::text || encode(sealed, 'escape') || encode(sealed_key, 'escape'), '') from stored_credentials c`).Scan(&table); err != nil {
		t.Fatal(err)
	}
	for _, e := range readLog(t) {
		printed.Write(e.Data)
	}
	printed.WriteString(list + table + s.stderr.String() + must(t, "credentials", "rotate") + must(t, "export") + must(t, "history", "provider/up"))
	if strings.Contains(printed.String(), "sk-canary") || !strings.Contains(printed.String(), `"last_four":"bbbb"`) {
		t.Error("a secret is where it does not belong, or nothing was looked at")
	}

	must(t, "credentials", "delete", "up", "k1")
	eventually(t, "the deleted credential opens nothing", func() bool { return ask() != http.StatusOK })
}

// Rules: Z2.
func TestCredentialsAreRefused_Z2(t *testing.T) {
	useDatabase(t)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", acme(nowhere)))
	for name, c := range map[string]struct{ master, secret, key, want string }{
		"no master key":    {"", "sk", "k1", "SLUICE_MASTER_KEY is not set"},
		"bad master key":   {"c2hvcnQ=", "sk", "k1", "SLUICE_MASTER_KEY is not 32 bytes"},
		"in environment":   {masterKey("a"), "sk", "k1", "stored: true"},
		"nothing on stdin": {masterKey("a"), "", "k1", "the secret is empty"},
	} {
		t.Setenv(secrets.MasterKeyEnv, c.master)
		config := acme(nowhere)
		if name == "no master key" {
			config = strings.Replace(config, "env: SLUICE_TEST_UP_KEY", "stored: true", 1)
		}
		must(t, "apply", "-f", writeFile(t, "sluice.yaml", config))
		if r := setCredential(t, c.secret, "up", c.key); r.code != exitFailed || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", name, r.code, r.stderr)
		}
	}
	refused(t, exitUsage, "name a provider and its key", "credentials", "delete", "--tenant", "acme", "up", "k1")
	refused(t, exitUsage, "name a provider and its key", "credentials", "set", "up")
	refused(t, exitUsage, "name a provider and its key", "credentials", "set", "--webhook", "ops", "k1")
	refused(t, exitUsage, "name a provider and its key", "credentials", "set")
}
