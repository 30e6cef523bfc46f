package config_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

const storedKey = `
version: 1
providers:
  - {id: p, protocol: openai, base_url: "http://127.0.0.1:9000/v1", keys: [{id: k, stored: true}, {id: e, env: P_KEY}]}
`

var ofP = catalog.CredentialOf{Provider: "p", Key: "k"}

// masters are master keys made of two bytes, 0 for none.
func masters(t *testing.T, current, previous byte) secrets.MasterKeys {
	t.Helper()
	keys, err := secrets.MasterKeysFrom(func(name string) string {
		b := map[string]byte{secrets.MasterKeyEnv: current, secrets.PreviousMasterKeyEnv: previous}[name]
		if b == 0 {
			return ""
		}
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), 32)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// storeAndPool are a log and, beside it, the rights of the application.
func storeAndPool(t *testing.T) (*eventstore.Store, *pgxpool.Pool) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c.ConnConfig.RuntimeParams["role"] = "sluice_app"
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return storeAt(t, url), pool
}

// worker is a Source over its own catalog.
func worker(t *testing.T, log config.Log, vault *secrets.Vault) (*live.Live, *secrets.Source) {
	t.Helper()
	w := live.New(log)
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, secrets.NewSource(vault, w.Current, time.Now)
}

func lookup(t *testing.T, w *live.Live, source *secrets.Source) (string, error) {
	t.Helper()
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, ok := w.Current().Provider("p")
	if !ok {
		t.Fatal("no provider")
	}
	c, err := source.Lookup(t.Context(), p, "k")
	if (err == nil) != source.Holds(p, "k") {
		t.Errorf("held is %t, and looking it up gives %v", source.Holds(p, "k"), err)
	}
	return c.Key.Reveal(), err
}

func stored(t *testing.T, pool *pgxpool.Pool) (rows int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "select count(*) from stored_credentials").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// A credential is stored, opened by a worker, replaced, felt by the worker with its
// next refresh, deleted, and gone from table and memory.
//
// Rules: Z2, C14, C11.
func TestStoredCredentialLives_Z2(t *testing.T) {
	log, pool := storeAndPool(t)
	vault := &secrets.Vault{DB: pool, Masters: masters(t, 'a', 0)}
	apply(t, log, mustLoad(t, storedKey))
	w, source := worker(t, log, vault)
	if _, err := lookup(t, w, source); err == nil {
		t.Error("one is held before it was stored")
	}
	for _, secret := range []string{"sk-first-0123456789-aaaa", "sk-second-0123456789-bbbb"} {
		held, err := config.StoreCredential(t.Context(), log, vault, ofP, secrets.Secret(secret+"\n"), operator, time.Now())
		if err != nil || held.LastFour != secret[len(secret)-4:] {
			t.Fatalf("last four %q, %v", held.LastFour, err)
		}
		if got, err := lookup(t, w, source); got != secret || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if n := stored(t, pool); n != 1 {
			t.Errorf("%d rows are stored", n)
		}
	}
	if err := config.DeleteCredential(t.Context(), log, vault, ofP, operator, time.Now()); err != nil {
		t.Fatal(err)
	}
	var missing *secrets.MissingError
	if _, err := lookup(t, w, source); !errors.As(err, &missing) || !missing.Stored {
		t.Errorf("after deleting: %v", err)
	}
	if n := stored(t, pool); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	var not *config.NotStoredError
	if err := config.DeleteCredential(t.Context(), log, vault, ofP, operator, time.Now()); !errors.As(err, &not) {
		t.Errorf("deleting again: %v", err)
	}
}

// What is not kept here, no secret at all, and one that nothing seals are refused,
// and nothing is stored.
//
// Rules: Z2, C14.
func TestStoringIsRefused_Z2(t *testing.T) {
	log, pool := storeAndPool(t)
	apply(t, log, mustLoad(t, storedKey))
	for name, c := range map[string]struct {
		of      catalog.CredentialOf
		secret  string
		current byte
		want    any
	}{
		"environment":   {catalog.CredentialOf{Provider: "p", Key: "e"}, "sk", 'a', new(*config.NotStoredError)},
		"no such key":   {catalog.CredentialOf{Provider: "p", Key: "x"}, "sk", 'a', new(*config.NotStoredError)},
		"no provider":   {catalog.CredentialOf{Provider: "q", Key: "k"}, "sk", 'a', new(*config.NotStoredError)},
		"empty":         {ofP, " \n", 'a', new(*config.SecretError)},
		"two lines":     {ofP, "sk-one\nsk-two", 'a', new(*config.SecretError)},
		"too long":      {ofP, strings.Repeat("k", config.MaxSecretBytes+1), 'a', new(*config.SecretError)},
		"no master key": {ofP, "sk", 0, new(*secrets.MasterKeyError)},
	} {
		vault := &secrets.Vault{DB: pool, Masters: masters(t, c.current, 0)}
		_, err := config.StoreCredential(t.Context(), log, vault, c.of, secrets.Secret(c.secret), operator, time.Now())
		if err == nil || !errors.As(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := stored(t, pool); n != 0 {
		t.Errorf("%d rows are stored", n)
	}
}

// A short secret's end would tell much of it.
//
// Rules: Z2.
func TestShortSecretsHaveNoLastFour_Z2(t *testing.T) {
	log, pool := storeAndPool(t)
	apply(t, log, mustLoad(t, storedKey))
	vault := &secrets.Vault{DB: pool, Masters: masters(t, 'a', 0)}
	held, err := config.StoreCredential(t.Context(), log, vault, ofP, "short-secret", operator, time.Now())
	if err != nil || held.LastFour != "" {
		t.Errorf("last four %q, %v", held.LastFour, err)
	}
}

// A master key is changed without a moment at which nothing opens: the previous one
// opens, a rotation seals again, and then the previous one is not needed. Neither
// alone opens what the other sealed.
//
// Rules: Z2.
func TestMasterKeyRotates_Z2(t *testing.T) {
	log, pool := storeAndPool(t)
	apply(t, log, mustLoad(t, storedKey))
	vault := func(current, previous byte) *secrets.Vault {
		return &secrets.Vault{DB: pool, Masters: masters(t, current, previous)}
	}
	open := func(current, previous byte) error {
		w, source := worker(t, log, vault(current, previous))
		got, err := lookup(t, w, source)
		if err == nil && got != "sk-rotated" {
			t.Errorf("opened %q", got)
		}
		return err
	}
	if _, err := config.StoreCredential(t.Context(), log, vault('a', 0), ofP, "sk-rotated", operator, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := open('b', 0); !errors.Is(err, secrets.ErrNotOpened) {
		t.Errorf("another master key: %v", err)
	}
	if err := open('b', 'a'); err != nil {
		t.Errorf("with the previous one: %v", err)
	}
	rotate := func(v *secrets.Vault) secrets.Rotation {
		r, err := v.Rotate(t.Context(), read(t, log).Credentials())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := rotate(vault('b', 0)); len(r.Unopened) != 1 || r.Resealed != 0 {
		t.Errorf("rotated without the previous one: %+v", r)
	}
	if r := rotate(vault('b', 'a')); r.Resealed != 1 || len(r.Unopened) != 0 {
		t.Errorf("rotated: %+v", r)
	}
	if r := rotate(vault('b', 'a')); r.Resealed != 0 || r.Unchanged != 1 {
		t.Errorf("rotated again: %+v", r)
	}
	if err := open('b', 0); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if err := open('a', 0); !errors.Is(err, secrets.ErrNotOpened) {
		t.Errorf("the old master key after the rotation: %v", err)
	}
}

// A row in another's place opens nothing, and no dump of the database holds a secret.
//
// Rules: Z2, C14.
func TestOnlySealedBytesAreStored_Z2_C14(t *testing.T) {
	log, pool := storeAndPool(t)
	apply(t, log, mustLoad(t, strings.Replace(storedKey, "{id: e, env: P_KEY}", "{id: e, stored: true}", 1)))
	vault := &secrets.Vault{DB: pool, Masters: masters(t, 'a', 0)}
	const canary = "sk-canary-5f70bf18a086"
	mine, err := config.StoreCredential(t.Context(), log, vault, ofP, canary, operator, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := config.StoreCredential(t.Context(), log, vault, catalog.CredentialOf{Provider: "p", Key: "e"}, "sk-other", operator, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var dump string
	if err := pool.QueryRow(t.Context(), `
		select (select string_agg(encode(s.sealed, 'escape') || encode(s.sealed_key, 'escape') || s::text, '') from stored_credentials s)
		    || (select string_agg(e::text, '') from log_events e)`).Scan(&dump); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(dump, canary) || !strings.Contains(dump, mine.ID.String()) {
		t.Error("the dump holds the secret, or is no dump")
	}
	if _, err := pool.Exec(t.Context(), `
		update stored_credentials m set sealed_key = o.sealed_key, sealed = o.sealed from stored_credentials o
		where m.id = $1 and o.id = $2`, mine.ID, other.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := vault.Open(t.Context(), mine); !errors.Is(err, secrets.ErrNotOpened) {
		t.Errorf("another's row was opened: %v", err)
	}
}
