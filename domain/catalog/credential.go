package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// CredentialOf names a stored credential by what it opens: the key of a provider's
// pool or, with Tenant in the place of Provider, an organization's connection; or it
// signs what a webhook is sent.
type CredentialOf struct {
	Provider string `json:"provider,omitempty"`
	Tenant   string `json:"tenant,omitempty"`
	// Webhook is set for the secret of a webhook, the operator's without Tenant; Key is
	// then empty.
	Webhook string `json:"webhook,omitempty"`
	// Key is the id of the key, or of the connection.
	Key string `json:"key"`
}

// Stream is where it is told that one is held: beside what it opens.
func (of CredentialOf) Stream() string {
	switch {
	case of.Webhook != "":
		return webhookStream(of.Tenant, of.Webhook)
	case of.Tenant != "":
		return connectionStream(of.Tenant, of.Key)
	}
	return providerStream(of.Provider)
}

// String names it for people.
func (of CredentialOf) String() string {
	switch {
	case of.Webhook != "" && of.Tenant != "":
		return "webhook " + of.Webhook + " of tenant " + of.Tenant
	case of.Webhook != "":
		return "webhook " + of.Webhook
	case of.Tenant != "":
		return "connection " + of.Key + " of tenant " + of.Tenant
	}
	return "key " + of.Key + " of provider " + of.Provider
}

// CredentialOf says which stored credential a key of the pool stands for. The one
// key of a connection's pool is TENANT/CONNECTION: no other id holds a slash.
func (p *Provider) CredentialOf(keyID string) CredentialOf {
	if tenant, connection, ok := strings.Cut(keyID, "/"); ok {
		return CredentialOf{Tenant: tenant, Key: connection}
	}
	return CredentialOf{Provider: p.ID, Key: keyID}
}

// StoredCredential says that a sealed secret is held, and which. The secret itself
// is in no event (C14, Z2).
type StoredCredential struct {
	CredentialOf
	// ID finds the sealed secret. Another secret in its place has another id.
	ID uuid.UUID `json:"id"`
	// LastFour are the secret's last characters, empty for a secret so short that they
	// would tell much of it.
	LastFour string `json:"last_four,omitempty"`
}

// CredentialStored says that a secret is held from now on, in the place of the one
// before. Stream provider/<id>, connection/<tenant>/<id>, or the webhook's.
type CredentialStored struct {
	StoredCredential
}

// CredentialDeleted says that none is held any more.
type CredentialDeleted struct {
	CredentialOf
}

// Credential is the stored credential of a key or a connection, if one is held.
func (s *State) Credential(of CredentialOf) (StoredCredential, bool) {
	c, ok := s.credentials[of]
	return c, ok
}

// Credentials are all that are held: the providers' first, each by its name.
func (s *State) Credentials() []StoredCredential {
	return slices.SortedFunc(maps.Values(s.credentials), func(a, b StoredCredential) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Webhook, b.Webhook))
	})
}

// Credential is the stored credential of a key or a connection, if one is held.
func (s *Snapshot) Credential(of CredentialOf) (StoredCredential, bool) {
	c, ok := s.credentials[of]
	return c, ok
}

// Credentials are all that are held, in no order.
func (s *Snapshot) Credentials() iter.Seq2[CredentialOf, StoredCredential] {
	return maps.All(s.credentials)
}

// forgetCredentials drops what belonged to an object that was removed: one that is
// made again under the same name begins without a credential.
func (s *State) forgetCredentials(stream string) {
	maps.DeleteFunc(s.credentials, func(of CredentialOf, _ StoredCredential) bool { return of.Stream() == stream })
}

// Stores reports whether the configuration says that this credential is stored.
func (o Objects) Stores(of CredentialOf) bool {
	if of.Webhook != "" {
		w, _ := o.webhook(of.Tenant, of.Webhook)
		return w.Stored
	}
	if of.Tenant != "" {
		t, _ := find(o.Tenants, ObjectID{Kind: KindTenant, Name: of.Tenant})
		c, _ := t.Connection(of.Key)
		return c.Stored
	}
	p, _ := find(o.Providers, ObjectID{Kind: KindProvider, Name: of.Provider})
	return slices.ContainsFunc(p.Keys, func(k ProviderKey) bool { return k.ID == of.Key && k.Stored })
}
