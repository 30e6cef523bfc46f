package secrets

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// shelf is the table of sealed secrets in memory.
type shelf struct {
	mu    sync.Mutex
	rows  map[uuid.UUID]sealed
	reads atomic.Int64
	// wait, if set, holds every read back until it is closed.
	wait chan struct{}
}

func (*shelf) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errors.New("nothing is written here")
}

func (s *shelf) QueryRow(_ context.Context, _ string, args ...any) pgx.Row {
	s.reads.Add(1)
	if s.wait != nil {
		<-s.wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	box, ok := s.rows[args[0].(uuid.UUID)]
	return row{box, ok}
}

type row struct {
	sealed
	ok bool
}

func (r row) Scan(into ...any) error {
	if !r.ok {
		return pgx.ErrNoRows
	}
	*into[0].(*string), *into[1].(*[]byte), *into[2].(*[]byte) = r.MasterKey, r.Key, r.Secret
	return nil
}

// desk is a Source over a shelf, and a catalog that a test turns pages of.
type desk struct {
	*Source
	shelf   *shelf
	masters MasterKeys
	state   *catalog.State
	now     time.Time
	p       *catalog.Provider
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{
		shelf: &shelf{rows: map[uuid.UUID]sealed{}}, masters: mastersOf(t, make([]byte, keyBytes), nil), state: catalog.NewState(),
		now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		p:   &catalog.Provider{ID: "p", Keys: []catalog.ProviderKey{{ID: "k", Stored: true}}},
	}
	var current atomic.Pointer[catalog.Snapshot]
	d.Source = NewSource(&Vault{DB: d.shelf, Masters: d.masters}, func() *catalog.Snapshot {
		if s := current.Load(); s == nil || s.Position != d.state.Position() {
			current.Store(d.state.Snapshot())
		}
		return current.Load()
	}, func() time.Time { return d.now })
	return d
}

func (d *desk) fold(e any) {
	d.state.Fold(catalog.Recorded{Stream: "provider/p", Position: d.state.Position() + 1, Event: e})
}

// store puts a secret on the shelf and into the catalog.
func (d *desk) store(t *testing.T, s Secret) uuid.UUID {
	t.Helper()
	of, id := catalog.CredentialOf{Provider: "p", Key: "k"}, uuid.New()
	box, err := d.masters.seal(s, of, id)
	if err != nil {
		t.Fatal(err)
	}
	d.shelf.mu.Lock()
	d.shelf.rows[id] = box
	d.shelf.mu.Unlock()
	d.fold(catalog.CredentialStored{StoredCredential: catalog.StoredCredential{CredentialOf: of, ID: id}})
	return id
}

// A secret is read and opened once, for however many requests want it at once, and is
// in memory from then on; another one in its place is opened anew, and the first is
// dropped.
//
// Rules: Z2, C11.
func TestStoredSecretIsOpenedOnce_Z2(t *testing.T) { synctest.Test(t, openedOnce) }

func openedOnce(t *testing.T) {
	d := newDesk(t)
	first := d.store(t, "one")
	d.shelf.wait = make(chan struct{})
	const requests = 16
	got := make(chan string, requests)
	for range requests {
		go func() {
			c, err := d.Lookup(t.Context(), d.p, "k")
			if err != nil {
				t.Error(err)
			}
			got <- c.Key.Reveal()
		}()
	}
	synctest.Wait() // every one of them waits for the read
	close(d.shelf.wait)
	for range requests {
		if secret := <-got; secret != "one" {
			t.Errorf("got %q", secret)
		}
	}
	if _, err := d.Lookup(t.Context(), d.p, "k"); err != nil || d.shelf.reads.Load() != 1 {
		t.Errorf("%d reads, %v", d.shelf.reads.Load(), err)
	}
	second := d.store(t, "two")
	if c, err := d.Lookup(t.Context(), d.p, "k"); err != nil || c.Key.Reveal() != "two" {
		t.Errorf("replaced: %v", err)
	}
	if _, kept := d.opened[first]; kept || len(d.opened) != 1 || d.opened[second] != "two" {
		t.Errorf("%d are in memory, the replaced one among them: %t", len(d.opened), kept)
	}
	d.fold(catalog.CredentialDeleted{CredentialOf: catalog.CredentialOf{Provider: "p", Key: "k"}})
	var missing *MissingError
	if _, err := d.Lookup(t.Context(), d.p, "k"); !errors.As(err, &missing) || d.Holds(d.p, "k") {
		t.Errorf("deleted: %v", err)
	}
}

// One that cannot be opened counts as missing for a while, so that its routes are
// skipped instead of failing request after request, and is then tried again.
//
// Rules: Z2, W15.
func TestSecretThatDoesNotOpenIsMissingForAWhile_Z2(t *testing.T) {
	d := newDesk(t)
	id := d.store(t, "one")
	box := d.shelf.rows[id]
	delete(d.shelf.rows, id)
	if !d.Holds(d.p, "k") {
		t.Fatal("not held before anybody tried")
	}
	if _, err := d.Lookup(t.Context(), d.p, "k"); !errors.Is(err, ErrGone) {
		t.Errorf("without its row: %v", err)
	}
	if d.Holds(d.p, "k") {
		t.Error("held after it could not be opened")
	}
	d.now = d.now.Add(triedAgainAfter)
	d.shelf.rows[id] = box
	if !d.Holds(d.p, "k") {
		t.Error("not tried again")
	}
	if c, err := d.Lookup(t.Context(), d.p, "k"); err != nil || c.Key.Reveal() != "one" || !d.Holds(d.p, "k") {
		t.Errorf("the second time: %v", err)
	}
}

// However many there are, only so many are in memory.
func TestOpenedSecretsAreBounded(t *testing.T) {
	kept := map[uuid.UUID]Secret{}
	for range maxOpened + 10 {
		shrink(kept)
		kept[uuid.New()] = "s"
	}
	if len(kept) != maxOpened {
		t.Errorf("%d are kept", len(kept))
	}
}

// The environment never answers for a key that is stored, nor the other way round.
//
// Rules: C14.
func TestNoFallingBackToAnotherSource_C14(t *testing.T) {
	d := newDesk(t)
	t.Setenv("P_KEY", "from the environment")
	p := &catalog.Provider{ID: "p", Keys: []catalog.ProviderKey{{ID: "k", Env: "P_KEY", Stored: true}, {ID: "e", Env: "P_NOT_SET"}}}
	d.store(t, "stored")
	d.fold(catalog.CredentialDeleted{CredentialOf: catalog.CredentialOf{Provider: "p", Key: "k"}})
	d.fold(catalog.CredentialStored{StoredCredential: catalog.StoredCredential{CredentialOf: catalog.CredentialOf{Provider: "p", Key: "e"}, ID: uuid.New()}})
	for _, key := range []string{"k", "e"} {
		var missing *MissingError
		if _, err := d.Lookup(t.Context(), p, key); !errors.As(err, &missing) || d.Holds(p, key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A key's secret has another id when it is another secret, and never one that is made
// from it.
//
// Rules: H12, E10.
func TestSecretIDTellsSecretsApart_H12(t *testing.T) {
	d := newDesk(t)
	none := d.SecretID(d.p, "k")
	first := d.store(t, "one")
	if got := d.SecretID(d.p, "k"); got != first.String() || got == none {
		t.Errorf("%q for the secret %s, %q for none", got, first, none)
	}
	second := d.store(t, "one")
	if got := d.SecretID(d.p, "k"); got != second.String() {
		t.Errorf("%q for its successor %s", got, second)
	}
	d.p.Keys = []catalog.ProviderKey{{ID: "k", Env: "A_KEY"}, {ID: "pair", EnvAccessKey: "A", EnvSecretKey: "B"}}
	if one, pair := d.SecretID(d.p, "k"), d.SecretID(d.p, "pair"); one != "A_KEY" || pair != "A B" {
		t.Errorf("%q and %q in the environment", one, pair)
	}
}
