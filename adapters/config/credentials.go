package config

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

const (
	// MaxSecretBytes bounds a credential: the longest there are, a service account's
	// JSON, have 3 KiB.
	MaxSecretBytes = 16 << 10
	// showFrom is how long a secret has to be for its last four characters to be told.
	showFrom = 16
)

// NotStoredError is a credential that the configuration does not keep here: storing
// it would never be used, and deleting it has nothing to delete.
type NotStoredError struct {
	Of     catalog.CredentialOf
	Reason string
}

func (e *NotStoredError) Error() string { return e.Of.String() + " " + e.Reason }

// SecretError is a secret that no provider can have given out. It never repeats it.
type SecretError struct{ Reason string }

func (e *SecretError) Error() string { return "the secret " + e.Reason }

// StoreCredential seals a secret and says in the log that it is held from now on, in
// the place of the one before. The row comes first and the event second: a crash
// between them leaves a row that nothing names, never a name without its row. The
// error is a *SecretError, a *NotStoredError, a *secrets.MasterKeyError, a
// *StaleError, or the database's or the log's own.
func StoreCredential(ctx context.Context, log Log, vault *secrets.Vault, of catalog.CredentialOf, secret secrets.Secret,
	by eventstore.Meta, now time.Time,
) (catalog.StoredCredential, error) {
	secret = secrets.Secret(strings.TrimSpace(secret.Reveal()))
	held := catalog.StoredCredential{CredentialOf: of, ID: uuid.Must(uuid.NewV7()), LastFour: lastFour(secret)}
	switch {
	case secret == "":
		return held, &SecretError{Reason: "is empty"}
	case len(secret) > MaxSecretBytes:
		return held, &SecretError{Reason: fmt.Sprintf("is longer than %d KiB", MaxSecretBytes>>10)}
	case !strings.HasPrefix(secret.Reveal(), "{") && strings.ContainsFunc(secret.Reveal(), unicode.IsControl):
		// A service account's JSON has lines. Anything else goes into a header, which
		// carries none: each call would fail, as if the provider were down.
		return held, &SecretError{Reason: "is more than one line or holds a control character: store one key"}
	}
	state, err := live.Read(ctx, log)
	if err != nil {
		return held, err
	}
	if !state.Objects().Stores(of) {
		return held, &NotStoredError{Of: of, Reason: "is not in the configuration with `stored: true`: apply that first"}
	}
	if err := vault.Put(ctx, of, held.ID, secret); err != nil {
		return held, err
	}
	if err := tell(ctx, log, state, of, catalog.CredentialStored{StoredCredential: held}, by, now); err != nil {
		return held, err
	}
	return held, vault.Drop(ctx, of, held.ID)
}

// DeleteCredential says that a credential is held no more and deletes it. It is
// always possible, whatever chain needs it (C6). The error is a *NotStoredError for
// one that is not held, a *StaleError, or the database's or the log's own.
func DeleteCredential(ctx context.Context, log Log, vault *secrets.Vault, of catalog.CredentialOf, by eventstore.Meta, now time.Time) error {
	state, err := live.Read(ctx, log)
	if err != nil {
		return err
	}
	_, held := state.Credential(of)
	if held {
		if err := tell(ctx, log, state, of, catalog.CredentialDeleted{CredentialOf: of}, by, now); err != nil {
			return err
		}
	}
	// Also what an interrupted command may have left.
	if err := vault.Drop(ctx, of, uuid.Nil); err != nil {
		return err
	}
	if !held {
		return &NotStoredError{Of: of, Reason: "is not held"}
	}
	return nil
}

// tell appends at the revision that was decided on: of two commands at once, the one
// that comes second must not delete the row of the first.
func tell(ctx context.Context, log Log, state *catalog.State, of catalog.CredentialOf, e any, by eventstore.Meta, now time.Time) error {
	stream := of.Stream()
	_, err := log.AppendAll(ctx, []eventstore.Append{write(stream, state.Revision(stream), by, now, e)})
	return stale(err)
}

// lastFour are the characters by which people tell secrets apart.
func lastFour(s secrets.Secret) string {
	runes := []rune(s.Reveal())
	if len(runes) < showFrom {
		return ""
	}
	return string(runes[len(runes)-4:])
}
