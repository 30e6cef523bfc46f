package secrets_test

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Rules: I3.
func TestAnInstallationHasOneSecretOfItsOwn_I3(t *testing.T) {
	read := func(url string) []byte {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), "set role sluice_app"); err != nil {
			t.Fatal(err)
		}
		secret, err := secrets.Installation(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	url := pgtest.NewDatabase(t)
	first := read(url)
	if len(first) != 32 || !bytes.Equal(first, read(url)) {
		t.Errorf("secret of %d bytes, or not the same twice", len(first))
	}
}
