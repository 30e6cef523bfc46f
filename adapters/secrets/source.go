package secrets

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

const (
	// maxOpened bounds how many opened secrets are in memory. Past it one is opened
	// again when it is asked for, which is one indexed read.
	maxOpened = 4096
	// openTimeout bounds reading a sealed secret: a request waits for it.
	openTimeout = 2 * time.Second
	// triedAgainAfter is how long a secret that could not be opened counts as missing,
	// so that its routes are skipped instead of failing one request after the other.
	triedAgainAfter = 15 * time.Second
)

// Source is where a worker finds credentials: in its environment, or sealed in the
// database. Each key says which of the two it is; there is no falling back from one
// to the other, because that would be a credential nobody chose.
type Source struct {
	env   *Env
	vault *Vault
	// current is the catalog in use, which says what is held; nil before the first.
	current func() *catalog.Snapshot
	now     func() time.Time

	opening singleflight.Group

	mu sync.RWMutex
	// of is the snapshot that opened was last compared with.
	of     *catalog.Snapshot
	opened map[uuid.UUID]Secret
	failed map[uuid.UUID]time.Time
}

// NewSource joins the environment of this process with a vault.
func NewSource(vault *Vault, current func() *catalog.Snapshot, now func() time.Time) *Source {
	return &Source{
		env: NewEnv(), vault: vault, current: current, now: now,
		opened: map[uuid.UUID]Secret{}, failed: map[uuid.UUID]time.Time{},
	}
}

// Holds reports, from memory, whether this worker has the credential behind one key
// of a provider, or has reason to believe that it can open it.
func (s *Source) Holds(p *catalog.Provider, keyID string) bool {
	if !isStored(p, keyID) {
		return s.env.Holds(p, keyID)
	}
	held, ok := s.held(p, keyID)
	if !ok {
		return false
	}
	s.mu.RLock()
	failed, isFailed := s.failed[held.ID]
	s.mu.RUnlock()
	return !isFailed || s.now().Sub(failed) >= triedAgainAfter
}

// Lookup finds the credential behind one key of a provider. The error is a
// *MissingError, ErrGone, ErrNotOpened or the database's.
func (s *Source) Lookup(ctx context.Context, p *catalog.Provider, keyID string) (Credential, error) {
	if !isStored(p, keyID) {
		return s.env.Lookup(p, keyID)
	}
	held, ok := s.held(p, keyID)
	if !ok {
		return Credential{}, &MissingError{Provider: p.ID, KeyID: keyID, Stored: true}
	}
	secret, err := s.secret(ctx, held)
	return Credential{Key: secret}, err
}

// Webhook finds the secret that signs what a webhook is sent; tenant is empty for the
// operator's. The error is a *MissingError, ErrGone, ErrNotOpened or the database's.
func (s *Source) Webhook(ctx context.Context, tenant string, w catalog.Webhook) (Secret, error) {
	if !w.Stored {
		if secret := s.env.value(w.Env); secret != "" {
			return secret, nil
		}
		return "", &MissingError{Webhook: w.ID, Env: w.Env}
	}
	snapshot := s.current()
	if snapshot == nil {
		return "", &MissingError{Webhook: w.ID, Stored: true}
	}
	held, ok := snapshot.Credential(catalog.WebhookSecret(tenant, w.ID))
	if !ok {
		return "", &MissingError{Webhook: w.ID, Stored: true}
	}
	return s.secret(ctx, held)
}

// secret is one from memory, or opened.
func (s *Source) secret(ctx context.Context, held catalog.StoredCredential) (Secret, error) {
	s.mu.RLock()
	secret, ok := s.opened[held.ID]
	s.mu.RUnlock()
	if ok {
		return secret, nil
	}
	return s.open(ctx, held)
}

// SecretID tells which secret a key of a provider stands for now, and is none: another
// one in its place has another id. What the environment holds is the same for as long
// as the process runs, so the variables' names will do.
func (s *Source) SecretID(p *catalog.Provider, keyID string) string {
	for _, k := range p.Keys {
		if k.ID == keyID && !k.Stored {
			return strings.Trim(strings.Join([]string{k.Env, k.EnvAccessKey, k.EnvSecretKey}, " "), " ")
		}
	}
	held, _ := s.held(p, keyID)
	return held.ID.String()
}

func isStored(p *catalog.Provider, keyID string) bool {
	for _, k := range p.Keys {
		if k.ID == keyID {
			return k.Stored
		}
	}
	return false
}

// held asks the catalog in use, not the one that a request was admitted with: a
// deleted credential opens nothing from the moment the worker hears of it.
func (s *Source) held(p *catalog.Provider, keyID string) (catalog.StoredCredential, bool) {
	snapshot := s.current()
	if snapshot == nil {
		return catalog.StoredCredential{}, false
	}
	return snapshot.Credential(p.CredentialOf(keyID))
}

// open reads and opens a secret once, for however many requests want it. It goes on
// when the request that began it leaves: the others still wait.
func (s *Source) open(ctx context.Context, held catalog.StoredCredential) (Secret, error) {
	secret, err, _ := s.opening.Do(held.ID.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
		defer cancel()
		secret, err := s.vault.Open(ctx, held)
		s.remember(held, secret, err)
		return secret, err
	})
	if err != nil {
		return "", err
	}
	return secret.(Secret), nil
}

func (s *Source) remember(held catalog.StoredCredential, secret Secret, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune()
	if err != nil {
		s.failed[held.ID] = s.now()
		return
	}
	delete(s.failed, held.ID)
	s.opened[held.ID] = secret
}

// prune drops what the catalog names no more, and anything when there is too much.
// It needs mu.
func (s *Source) prune() {
	if snapshot := s.current(); snapshot != s.of {
		s.of = snapshot
		named := map[uuid.UUID]bool{}
		for _, c := range snapshot.Credentials() {
			named[c.ID] = true
		}
		keep(s.opened, named)
		keep(s.failed, named)
	}
	shrink(s.opened)
	shrink(s.failed)
}

func keep[T any](kept map[uuid.UUID]T, named map[uuid.UUID]bool) {
	for id := range kept {
		if !named[id] {
			delete(kept, id)
		}
	}
}

func shrink[T any](kept map[uuid.UUID]T) {
	for id := range kept {
		if len(kept) < maxOpened {
			return
		}
		delete(kept, id)
	}
}
