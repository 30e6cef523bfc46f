package config

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// KeyRequest is what a new key shall be.
type KeyRequest struct {
	Tenant string
	// Scopes are inference and read when empty.
	Scopes []catalog.Scope
	// Class or Models confine the key; empty does not (N13).
	Class  string
	Models []string
	// Team and Identity are whose the key is, empty for nobody's in particular (R8).
	Team, Identity string
	// ReplyModel is what the model field of its replies holds; empty leaves it to the
	// organization (N23).
	ReplyModel catalog.ReplyModel
	// ExpiresAt is the zero time for a key that does not expire.
	ExpiresAt time.Time
}

// UnknownError is an object that does not exist.
type UnknownError struct{ Kind, ID string }

func (e *UnknownError) Error() string { return fmt.Sprintf("%s %q does not exist", e.Kind, e.ID) }

// CreateKey makes a caller's key and returns its plaintext, which nobody can show
// again. random is crypto/rand.Reader but in tests. The error is an *UnknownError
// for an organization that is not there.
func CreateKey(ctx context.Context, log Log, want KeyRequest, random io.Reader, by eventstore.Meta, now time.Time) (catalog.Key, string, error) {
	state, err := live.Read(ctx, log)
	if err != nil {
		return catalog.Key{}, "", err
	}
	if _, ok := state.Tenant(want.Tenant); !ok {
		return catalog.Key{}, "", &UnknownError{Kind: "tenant", ID: want.Tenant}
	}
	id, err := uuid.NewV7FromReader(random)
	if err != nil {
		return catalog.Key{}, "", err
	}
	secret := make([]byte, catalog.KeyRandomBytes)
	if _, err := io.ReadFull(random, secret); err != nil {
		return catalog.Key{}, "", err
	}
	key, plaintext, err := catalog.NewKey(id, secret, want.Tenant, want.Scopes, now, want.ExpiresAt)
	if err != nil {
		return catalog.Key{}, "", err
	}
	key.Class, key.Models, key.ReplyModel = want.Class, want.Models, want.ReplyModel
	key.Team, key.Identity = want.Team, want.Identity
	created := write(catalog.KeyStream(key.ID), 0, by, now, catalog.KeyCreated{Key: key})
	if _, err := log.AppendAll(ctx, []eventstore.Append{created}); err != nil {
		return catalog.Key{}, "", stale(err)
	}
	return key, plaintext, nil
}

// RevokeKey ends a key for good (Z3). Revoking it again changes nothing.
func RevokeKey(ctx context.Context, log Log, id string, by eventstore.Meta, now time.Time) error {
	state, err := live.Read(ctx, log)
	if err != nil {
		return err
	}
	key, ok := state.Key(id)
	if !ok {
		return &UnknownError{Kind: "key", ID: id}
	}
	if !key.RevokedAt.IsZero() {
		return nil
	}
	stream := catalog.KeyStream(id)
	revoked := write(stream, state.Revision(stream), by, now, catalog.KeyRevoked{Key: id, RevokedAt: now.UTC()})
	_, err = log.AppendAll(ctx, []eventstore.Append{revoked})
	return stale(err)
}
