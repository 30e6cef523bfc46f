package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

var provider = &catalog.Provider{ID: "p", Keys: []catalog.ProviderKey{
	{ID: "k1", Env: "P_KEY"},
	{ID: "gone", Env: "P_GONE"},
	{ID: "empty", Env: "P_EMPTY"},
	{ID: "aws", EnvAccessKey: "P_ACCESS", EnvSecretKey: "P_SECRET"},
	{ID: "sts", EnvAccessKey: "P_ACCESS", EnvSecretKey: "P_SECRET", EnvSessionToken: "P_SESSION"},
	{ID: "stale", EnvAccessKey: "P_ACCESS", EnvSecretKey: "P_SECRET", EnvSessionToken: "P_GONE"},
	{ID: "half", EnvAccessKey: "P_ACCESS", EnvSecretKey: "P_GONE"},
}}

func env() *Env {
	values := map[string]string{"P_KEY": "sk-live-1\n", "P_EMPTY": " \n", "P_ACCESS": "AKIA1", "P_SECRET": "s3cret", "P_SESSION": "t0ken"}
	return &Env{getenv: func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}}
}

func TestLookup(t *testing.T) {
	c, err := env().Lookup(provider, "k1")
	if err != nil || c.Key.Reveal() != "sk-live-1" {
		t.Errorf("k1: %q, %v", c.Key.Reveal(), err)
	}
	c, err = env().Lookup(provider, "aws")
	if err != nil || c.AccessKey.Reveal() != "AKIA1" || c.SecretKey.Reveal() != "s3cret" || c.Key != "" {
		t.Errorf("aws: %v", err)
	}
	c, err = env().Lookup(provider, "sts")
	if err != nil || c.AccessKey.Reveal() != "AKIA1" || c.SessionToken.Reveal() != "t0ken" {
		t.Errorf("sts: %v", err)
	}
	for key, want := range map[string]MissingError{
		"stale": {Provider: "p", KeyID: "stale", Env: "P_GONE"},
		"gone":  {Provider: "p", KeyID: "gone", Env: "P_GONE"},
		"empty": {Provider: "p", KeyID: "empty", Env: "P_EMPTY"},
		"half":  {Provider: "p", KeyID: "half", Env: "P_GONE"},
		"other": {Provider: "p", KeyID: "other"},
	} {
		c, err := env().Lookup(provider, key)
		var missing *MissingError
		if !errors.As(err, &missing) || *missing != want || c != (Credential{}) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestHolds(t *testing.T) {
	for _, key := range []string{"k1", "aws", "sts"} {
		if !env().Holds(provider, key) {
			t.Errorf("%s is not held", key)
		}
	}
	for _, key := range []string{"gone", "empty", "half", "stale", "other"} {
		if env().Holds(provider, key) {
			t.Errorf("%s is held", key)
		}
	}
}

func TestNewEnvReadsTheProcess(t *testing.T) {
	t.Setenv("SLUICE_TEST_SECRET", "v")
	p := &catalog.Provider{Keys: []catalog.ProviderKey{{ID: "k", Env: "SLUICE_TEST_SECRET"}}}
	if c, err := NewEnv().Lookup(p, "k"); err != nil || c.Key.Reveal() != "v" {
		t.Error("not read")
	}
}

// However a credential is printed, it is not (C14).
func TestSecretsAreNeverPrinted_C14(t *testing.T) {
	c, err := env().Lookup(provider, "k1")
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "secret", c.Key, "credential", c)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "secret", c.Key, "credential", c)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		fmt.Sprint(c), fmt.Sprintf("%s %v %+v %#v %q %x", c.Key, c, c, c, c.Key, c.Key), logged.String(), string(encoded),
	} {
		if strings.Contains(out, "live") || strings.Contains(out, fmt.Sprintf("%x", "sk-live-1")) {
			t.Errorf("printed: %s", out)
		}
	}
}

// TestAProviderWithoutKeysNeedsNone: a key that is not among those of a provider
// that has some is still missing.
func TestAProviderWithoutKeysNeedsNone(t *testing.T) {
	env := NewEnv()
	if _, err := env.Lookup(&catalog.Provider{ID: "local"}, ""); err != nil {
		t.Error(err)
	}
	if _, err := env.Lookup(&catalog.Provider{ID: "p", Keys: []catalog.ProviderKey{{ID: "k1", Env: "X"}}}, ""); err == nil {
		t.Error("a nameless key of a provider with keys was found")
	}
}
