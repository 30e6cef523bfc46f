package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	// keyPrefix makes a leaked key findable by scanners.
	keyPrefix = "sk-sluice-"
	// KeyRandomBytes is the randomness of a key: 256 bits.
	KeyRandomBytes = 32
	// minKeyRandomBytes is the least that NewKey takes: 128 bits.
	minKeyRandomBytes = 16
	// shownChars of the random part are kept in the clear to tell keys apart: 24 of
	// the 256 bits.
	shownChars = 6
)

// ErrWeakKey is too little randomness for a key.
var ErrWeakKey = errors.New("catalog: a key needs at least 128 random bits")

// Scopes lists what a key may be allowed to do (Z3).
func Scopes() []Scope { return []Scope{ScopeInference, ScopeRead, ScopeAdmin} }

// NewKey makes a caller's key and its plaintext, which is shown once and kept
// nowhere. A zero expires never expires. Without scopes a key may do inference
// and read its own trail.
func NewKey(id uuid.UUID, random []byte, tenant string, scopes []Scope, now, expires time.Time) (Key, string, error) {
	if len(random) < minKeyRandomBytes {
		return Key{}, "", ErrWeakKey
	}
	if len(scopes) == 0 {
		scopes = []Scope{ScopeInference, ScopeRead}
	}
	for _, scope := range scopes {
		if !slices.Contains(Scopes(), scope) {
			return Key{}, "", fmt.Errorf("catalog: unknown scope %q", scope)
		}
	}
	plaintext := keyPrefix + hex.EncodeToString(random)
	return Key{
		ID:        id.String(),
		Tenant:    tenant,
		Hash:      HashKey(plaintext),
		Prefix:    plaintext[:len(keyPrefix)+shownChars],
		Scopes:    set(scopes),
		CreatedAt: now.UTC(),
		ExpiresAt: expires,
	}, plaintext, nil
}

// HashKey is what is stored of a key and looked up: hex SHA-256 of all of it. A
// slow, salted hash protects secrets that people choose; a key is 256 random
// bits, which nobody can enumerate at any speed, and a slow hash would cost every
// request tens of milliseconds.
func HashKey(plaintext string) string {
	sum := sha256.Sum256([]byte(plaintext))
	return hex.EncodeToString(sum[:])
}

// Usable reports whether the key opens anything at this time: not revoked, not
// expired (Z3). A revocation holds as soon as it is known: comparing its time with
// a clock that runs behind would keep the key alive.
func (k *Key) Usable(now time.Time) bool {
	if !k.RevokedAt.IsZero() {
		return false
	}
	return k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt)
}

// ReplyModel is what the model field of the key's replies holds: by the key, else by
// its organization (N23).
func (s *Snapshot) ReplyModel(key *Key) ReplyModel {
	if key.ReplyModel != "" {
		return key.ReplyModel
	}
	if t := s.tenants[key.Tenant]; t != nil && t.ReplyModel != "" {
		return t.ReplyModel
	}
	return ReplyRequested
}

// May reports whether the key has the scope.
func (k *Key) May(scope Scope) bool { return slices.Contains(k.Scopes, scope) }
