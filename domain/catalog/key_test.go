package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

func newKey(t testing.TB, tenant string, scopes ...catalog.Scope) (catalog.Key, string) {
	t.Helper()
	id := uuid.MustParse("0193e8f0-0000-7000-8000-000000000001")
	key, plaintext, err := catalog.NewKey(id, bytes.Repeat([]byte{0xa5}, 32), tenant, scopes, testTime, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return key, plaintext
}

// What is kept of a key is its hash and a prefix; the key itself is nowhere (A1, Z3).
func TestKeyIsKeptAsAHash_A1_Z3(t *testing.T) {
	key, plaintext := newKey(t, "acme")
	if want := "sk-sluice-" + strings.Repeat("a5", 32); plaintext != want {
		t.Errorf("plaintext %q", plaintext)
	}
	if key.Hash != catalog.HashKey(plaintext) || len(key.Hash) != 64 {
		t.Errorf("hash %q", key.Hash)
	}
	if key.Prefix != "sk-sluice-a5a5a5" {
		t.Errorf("prefix %q", key.Prefix)
	}
	stored, err := json.Marshal(catalog.KeyCreated{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(stored), plaintext[len(key.Prefix):]) {
		t.Error("the event holds the key")
	}
	if !key.May(catalog.ScopeInference) || !key.May(catalog.ScopeRead) || key.May(catalog.ScopeAdmin) {
		t.Errorf("scopes %v", key.Scopes)
	}
}

// Rules: Z3.
func TestWeakOrMisspeltKeysAreRefused_Z3(t *testing.T) {
	id := uuid.New()
	if _, _, err := catalog.NewKey(id, make([]byte, 15), "acme", nil, testTime, time.Time{}); !errors.Is(err, catalog.ErrWeakKey) {
		t.Errorf("120 bits: %v", err)
	}
	if _, _, err := catalog.NewKey(id, make([]byte, 16), "acme", []catalog.Scope{"root"}, testTime, time.Time{}); err == nil {
		t.Error("an unknown scope is accepted")
	}
}

// Rules: Z3.
func TestExpiryAndRevocation_Z3(t *testing.T) {
	for name, c := range map[string]struct {
		expires, revoked time.Time
		want             bool
	}{
		"never expires":             {want: true},
		"expires later":             {expires: testTime.Add(time.Second), want: true},
		"expires now":               {expires: testTime},
		"expired":                   {expires: testTime.Add(-time.Second)},
		"revoked":                   {revoked: testTime.Add(-time.Second)},
		"revoked by a faster clock": {revoked: testTime.Add(time.Second)},
	} {
		key := catalog.Key{ExpiresAt: c.expires, RevokedAt: c.revoked}
		if got := key.Usable(testTime); got != c.want {
			t.Errorf("%s: usable %v", name, got)
		}
	}
}

// Keys are found in the snapshot, by hash, until they or their organization go (A1).
func TestKeyIsFoundInTheSnapshot_A1(t *testing.T) {
	state := folded(history(t, fixture()))
	key, plaintext := newKey(t, "acme")
	state.Fold(catalog.Recorded{Stream: catalog.KeyStream(key.ID), Version: 1, Position: 500, Event: catalog.KeyCreated{Key: key}})

	found, ok := state.Snapshot().KeyByHash(catalog.HashKey(plaintext))
	if !ok || found.ID != key.ID || !found.Usable(testTime) {
		t.Fatalf("found %+v, %v", found, ok)
	}
	for _, wrong := range []string{"", plaintext, catalog.HashKey(plaintext + "0"), strings.ToUpper(key.Hash)} {
		if _, ok := state.Snapshot().KeyByHash(wrong); ok {
			t.Errorf("%q opens the key", wrong)
		}
	}

	state.Fold(catalog.Recorded{Stream: catalog.KeyStream(key.ID), Version: 2, Position: 501, Event: catalog.KeyRevoked{Key: key.ID, RevokedAt: testTime}})
	if found, ok := state.Snapshot().KeyByHash(key.Hash); !ok || found.Usable(testTime) {
		t.Error("a revoked key is usable, or no longer told from an unknown one")
	}
	state.Fold(catalog.Recorded{Stream: "tenant/acme", Version: 2, Position: 502, Event: catalog.TenantRemoved{Tenant: "acme"}})
	if _, ok := state.Snapshot().KeyByHash(key.Hash); ok {
		t.Error("the key of a removed organization is still found")
	}
}
