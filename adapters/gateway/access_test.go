package gateway

import (
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/secrets"
)

// Each part of a credential ends up where a signature looks for it.
func TestAccessOf(t *testing.T) {
	got := accessOf(secrets.Credential{AccessKey: "id", SecretKey: "secret", SessionToken: "session"})
	if want := (dialect.AccessKey{ID: "id", Secret: "secret", Session: "session"}); got.ID != want.ID || got.Secret != want.Secret || got.Session != want.Session {
		t.Error("a part of the access key is in another's place")
	}
	if accessOf(secrets.Credential{Key: "k"}) != (dialect.AccessKey{}) {
		t.Error("an API key signs nothing")
	}
}
