package secrets

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

func mastersOf(t interface{ Fatal(...any) }, current, previous []byte) MasterKeys {
	values := map[string][]byte{MasterKeyEnv: current, PreviousMasterKeyEnv: previous}
	m, err := MasterKeysFrom(func(name string) string { return base64.StdEncoding.EncodeToString(values[name]) })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What was sealed is opened again, under the current or the previous master key, in
// its own place and nowhere else, and not after any byte was changed.
//
// Rules: Z2.
func TestSealedSecretsOpenInTheirPlaceOnly_Z2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), keyBytes, keyBytes)
		first, second := key.Draw(t, "first"), key.Draw(t, "second")
		if bytes.Equal(first, second) {
			t.Skip("one key")
		}
		secret := Secret(rapid.StringN(1, 100, -1).Draw(t, "secret"))
		of, id := catalog.CredentialOf{Provider: "p", Key: "k"}, uuid.New()
		box, err := mastersOf(t, first, nil).seal(secret, of, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []MasterKeys{mastersOf(t, first, nil), mastersOf(t, second, first)} {
			if got, err := m.open(box, of, id); err != nil || got.Reveal() != secret.Reveal() {
				t.Fatalf("not opened: %v", err)
			}
		}
		opens := func(m MasterKeys, box sealed, of catalog.CredentialOf, id uuid.UUID, why string) {
			if got, err := m.open(box, of, id); !errors.Is(err, ErrNotOpened) || got != "" {
				t.Fatalf("%s: opened, %v", why, err)
			}
		}
		m := mastersOf(t, first, nil)
		opens(mastersOf(t, second, nil), box, of, id, "another master key")
		opens(MasterKeys{}, box, of, id, "no master key")
		opens(m, box, catalog.CredentialOf{Provider: "p", Key: "other"}, id, "another key")
		opens(m, box, catalog.CredentialOf{Tenant: "p", Key: "k"}, id, "another's connection")
		opens(m, box, of, uuid.New(), "another row")
		broken := func(b []byte) []byte {
			b = bytes.Clone(b)
			b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			return b
		}
		opens(m, sealed{box.MasterKey, broken(box.Key), box.Secret}, of, id, "a changed data key")
		opens(m, sealed{box.MasterKey, box.Key, broken(box.Secret)}, of, id, "a changed secret")
		opens(m, sealed{box.MasterKey, nil, nil}, of, id, "nothing")
	})
}

// Rules: Z2.
func TestMasterKeysAreRead_Z2(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, keyBytes))
	for name, value := range map[string]string{
		"short": base64.StdEncoding.EncodeToString([]byte("short")), "long": good[:43] + good, "no base64": "not base64 of CANARY",
	} {
		for _, env := range []string{MasterKeyEnv, PreviousMasterKeyEnv} {
			_, err := MasterKeysFrom(func(asked string) string {
				if asked == env {
					return value
				}
				return ""
			})
			var bad *MasterKeyError
			if !errors.As(err, &bad) || bad.Env != env || strings.Contains(err.Error(), value) {
				t.Errorf("%s in %s: %v", name, env, err)
			}
		}
	}
	m, err := MasterKeysFrom(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var missing *MasterKeyError
	if _, err := m.seal("s", catalog.CredentialOf{}, uuid.Nil); !errors.As(err, &missing) || !missing.Missing {
		t.Errorf("sealed with no key: %v", err)
	}
}
