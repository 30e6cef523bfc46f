package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestBaseURLsInsideAreRefusedUntilOpened_Z1_N11: a provider on the own network is not
// called, and the operator is told so when it is configured, by the doctor, and in the
// trail of each request; the one variable opens it, and nothing beside it.
//
// Rules: Z1, N11.
func TestBaseURLsInsideAreRefusedUntilOpened_Z1_N11(t *testing.T) {
	fake, other := fakeprovider.Start(t, fakeprovider.Options{}), fakeprovider.Start(t, fakeprovider.Options{})
	config := harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: fake.URL()}, {ID: "b", URL: other.URL()}},
		Models: []harness.Model{
			{Slug: "inside", Routes: []string{"a/fake-ok", "b/fake-ok"}},
			{Slug: "other", Routes: []string{"b/fake-ok"}},
		},
	}
	in := harness.Install(t, config)
	key := in.Key(t, "acme")
	host := strings.TrimPrefix(fake.URL(), "http://")

	closed := in.With("SLUICE_INTERNAL_HOSTS=")
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte(config.YAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := closed.Run(t, "apply", "-f", file); r.Code != 0 || !strings.Contains(r.Stderr, "SLUICE_INTERNAL_HOSTS="+host) {
		t.Errorf("apply: exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := closed.Run(t, "doctor"); r.Code != 1 || !strings.Contains(r.Stdout, "SLUICE_INTERNAL_HOSTS="+host) {
		t.Errorf("doctor: exit %d: %s", r.Code, r.Stdout)
	}
	client := closed.Serve(t).Client(key)
	reply := client.Chat(t, "inside", "hello")
	if reply.Status != 503 || reply.Get("error.code").String() != "no_route_allowed" {
		t.Fatal(reply)
	}
	if trail := client.Trail(t, reply.ID()); strings.Count(string(trail.Body), `"base_url_refused"`) != 2 {
		t.Error(trail)
	}
	if absent := client.Chat(t, "nothing-of-the-kind", "hello"); absent.Get("error.code").String() != "model_not_found" {
		t.Error(absent)
	}

	opened := in.With("SLUICE_INTERNAL_HOSTS=" + host).Serve(t).Client(key)
	if reply := opened.Chat(t, "inside", "hello"); reply.Status != 200 || reply.Header.Get("X-Sluice-Provider") != "a" {
		t.Error(reply)
	}
	if reply := opened.Chat(t, "other", "hello"); reply.Get("error.code").String() != "no_route_allowed" {
		t.Error(reply)
	}
	if n := other.Ledger().Total; n != 0 {
		t.Errorf("%d calls of what was not opened", n)
	}

	if r := in.With("SLUICE_INTERNAL_HOSTS=http://llm:8000").Run(t, "serve"); r.Code != 1 || !strings.Contains(r.Stderr, "SLUICE_INTERNAL_HOSTS") || strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("a list that cannot be read: exit %d: %s", r.Code, r.Stderr)
	}
}
