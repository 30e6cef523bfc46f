// Package secrets finds the credentials of providers. Configuration says where a
// secret is kept, never what it is (C14); only this package ever holds one, and
// nothing in it prints one.
package secrets

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Secret is the value of a credential. It prints and logs as a placeholder.
type Secret string

// String hides the value from %s and %v.
func (Secret) String() string { return "[secret]" }

// GoString hides the value from %#v.
func (Secret) GoString() string { return "[secret]" }

// LogValue hides the value from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("[secret]") }

// MarshalText hides the value from JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Reveal is the value itself, for the header or signature that needs it.
func (s Secret) Reveal() string { return string(s) }

// Credential opens one provider: a key, or an access key with its secret.
type Credential struct {
	Key       Secret
	AccessKey Secret
	SecretKey Secret
	// SessionToken goes with a temporary access key; empty for a lasting one.
	SessionToken Secret
}

// MissingError is a credential whose variable is not set or empty on this worker:
// the route is skipped as `credential_missing`. Env is empty when the provider has
// no such key.
type MissingError struct {
	Provider, KeyID, Env string
	// Webhook is set, in the place of Provider and KeyID, for a webhook's secret.
	Webhook string
	// Stored says that it should be in the database and none is.
	Stored bool
}

func (e *MissingError) Error() string {
	switch {
	case e.Webhook != "" && e.Stored:
		return fmt.Sprintf("webhook %s: no secret is stored", e.Webhook)
	case e.Webhook != "":
		return fmt.Sprintf("webhook %s: environment variable %s is not set", e.Webhook, e.Env)
	case e.Stored:
		return fmt.Sprintf("provider %s, key %s: no credential is stored", e.Provider, e.KeyID)
	case e.Env == "":
		return fmt.Sprintf("provider %s has no key %s", e.Provider, e.KeyID)
	}
	return fmt.Sprintf("provider %s, key %s: environment variable %s is not set", e.Provider, e.KeyID, e.Env)
}

// Env looks credentials up in environment variables. Source adds those that are
// stored.
type Env struct {
	// getenv is os.LookupEnv but in tests. The process's environment is in memory:
	// a cache over it could only be stale.
	getenv func(string) (string, bool)
}

// NewEnv reads the environment of this process.
func NewEnv() *Env { return &Env{getenv: os.LookupEnv} }

// Lookup finds the credential behind one key of a provider. The error is a
// *MissingError.
func (e *Env) Lookup(provider *catalog.Provider, keyID string) (Credential, error) {
	for _, k := range provider.Keys {
		if k.ID == keyID {
			return e.credential(provider.ID, k)
		}
	}
	if len(provider.Keys) == 0 && keyID == "" {
		// A model server in the own network that asks for no key.
		return Credential{}, nil
	}
	return Credential{}, &MissingError{Provider: provider.ID, KeyID: keyID}
}

// Holds reports whether this worker has the credential behind one key of a provider.
func (e *Env) Holds(provider *catalog.Provider, keyID string) bool {
	_, err := e.Lookup(provider, keyID)
	return err == nil
}

func (e *Env) credential(provider string, k catalog.ProviderKey) (Credential, error) {
	if k.Stored {
		return Credential{}, &MissingError{Provider: provider, KeyID: k.ID, Stored: true}
	}
	var c Credential
	for _, v := range []struct {
		env  string
		into *Secret
	}{{k.Env, &c.Key}, {k.EnvAccessKey, &c.AccessKey}, {k.EnvSecretKey, &c.SecretKey}, {k.EnvSessionToken, &c.SessionToken}} {
		if v.env == "" {
			continue
		}
		value := e.value(v.env)
		if value == "" {
			return Credential{}, &MissingError{Provider: provider, KeyID: k.ID, Env: v.env}
		}
		*v.into = value
	}
	return c, nil
}

// Has reports whether a variable is set.
func (e *Env) Has(name string) bool { return e.value(name) != "" }

// value reads a variable. A file that was read into one often ends in a newline, which
// no header may hold.
func (e *Env) value(name string) Secret {
	value, _ := e.getenv(name)
	return Secret(strings.TrimSpace(value))
}
