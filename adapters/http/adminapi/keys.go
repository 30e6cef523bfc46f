package adminapi

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// shownKey is a key as it may be shown: never the hash, which could be tried
// against guesses.
type shownKey struct {
	ID         string             `json:"id"`
	Tenant     string             `json:"tenant"`
	Prefix     string             `json:"prefix"`
	Scopes     []catalog.Scope    `json:"scopes"`
	Team       string             `json:"team,omitempty"`
	Identity   string             `json:"identity,omitempty"`
	Class      string             `json:"class,omitempty"`
	Models     []string           `json:"models,omitempty"`
	ReplyModel catalog.ReplyModel `json:"reply_model,omitempty"`
	State      string             `json:"state"`
	CreatedAt  time.Time          `json:"created_at"`
	ExpiresAt  time.Time          `json:"expires_at,omitzero"`
	RevokedAt  time.Time          `json:"revoked_at,omitzero"`
	Revision   int64              `json:"revision"`
}

func (a *API) shown(k catalog.Key, revision int64) shownKey {
	state := "active"
	switch {
	case !k.RevokedAt.IsZero():
		state = "revoked"
	case !k.Usable(a.Now()):
		state = "expired"
	}
	return shownKey{
		ID: k.ID, Tenant: k.Tenant, Prefix: k.Prefix, Scopes: k.Scopes, Team: k.Team, Identity: k.Identity, Class: k.Class, Models: k.Models, ReplyModel: k.ReplyModel, State: state,
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt, Revision: revision,
	}
}

// keyBody is what a new key shall be.
type keyBody struct {
	Scopes []catalog.Scope `json:"scopes"`
	// Team and Identity are whose the key is, for limits of their own (R8).
	Team     string   `json:"team"`
	Identity string   `json:"identity"`
	Class    string   `json:"class"`
	Models   []string `json:"models"`
	// ReplyModel is requested or canonical (N23).
	ReplyModel catalog.ReplyModel `json:"reply_model"`
	// ExpiresAt is a time as RFC 3339 writes it.
	ExpiresAt string `json:"expires_at"`
}

// createKey makes a key and shows it, once: the body of this reply is the only
// place where it ever stands.
func (a *API) createKey(ctx context.Context, c *call) *edge.Reply {
	want, err := a.keyRequest(c)
	if err != nil {
		return a.refuse(err)
	}
	key, plaintext, err := config.CreateKey(ctx, a.Log, want, a.Random, c.by, a.Now())
	if err != nil {
		return a.refuse(err)
	}
	reply := document(http.StatusCreated, struct {
		shownKey
		Key string `json:"key"`
	}{a.shown(key, 1), plaintext})
	reply.Header.Set("ETag", etag(1))
	// So that this worker knows the key when its caller does; the others hear of it.
	_ = a.Catalog.Refresh(ctx)
	return reply
}

func (a *API) keyRequest(c *call) (config.KeyRequest, error) {
	want := config.KeyRequest{Tenant: c.Params["tenant"]}
	var sent keyBody
	if len(c.Body) > 0 {
		doc, err := body(c, false)
		if err == nil {
			err = doc.Decode(&sent)
		}
		if err != nil {
			return want, err
		}
	}
	want.Scopes, want.Class, want.Models, want.ReplyModel = sent.Scopes, sent.Class, sent.Models, sent.ReplyModel
	for _, s := range sent.Scopes {
		if !known(s) {
			return want, badField("scopes", "a scope is one of inference, read and admin")
		}
	}
	want.Team, want.Identity = sent.Team, sent.Identity
	for field, name := range map[string]string{"team": sent.Team, "identity": sent.Identity} {
		if name != "" && !catalog.ValidID(name) {
			return want, badField(field, "holds something else than letters, digits and . _ @ : + -")
		}
	}
	switch sent.ReplyModel {
	case "", catalog.ReplyRequested, catalog.ReplyCanonical:
	default:
		return want, badField("reply_model", "is requested or canonical")
	}
	if sent.Class != "" && len(sent.Models) > 0 {
		return want, badField("models", "a key is confined to a class or to models, not both")
	}
	if sent.ExpiresAt != "" {
		at, err := time.Parse(time.RFC3339, sent.ExpiresAt)
		if err != nil {
			return want, badField("expires_at", "must be a time such as 2027-01-31T12:00:00Z")
		}
		if !at.After(a.Now()) {
			return want, badField("expires_at", "is in the past")
		}
		want.ExpiresAt = at
	}
	return want, nil
}

func known(s catalog.Scope) bool {
	for _, k := range catalog.Scopes() {
		if k == s {
			return true
		}
	}
	return false
}

func (a *API) listKeys(ctx context.Context, c *call) *edge.Reply {
	from, limit, refused := paging(c)
	if refused != nil {
		return refused.reply()
	}
	keys := []shownKey{}
	err := a.Catalog.Read(ctx, func(state *catalog.State) error {
		owner := catalog.ObjectID{Kind: catalog.KindTenant, Name: c.Params["tenant"]}
		if _, ok := state.Tenant(owner.Name); !ok {
			return notFound(owner.String(), state.RevisionOf(owner))
		}
		for _, k := range state.Keys() {
			if k.Tenant == owner.Name {
				keys = append(keys, a.shown(k, state.Revision(catalog.KeyStream(k.ID))))
			}
		}
		return nil
	})
	if err != nil {
		return a.refuse(err)
	}
	return document(http.StatusOK, pageOf(keys, from, limit))
}

func (a *API) getKey(ctx context.Context, c *call) *edge.Reply {
	shown, err := a.findKey(ctx, c)
	if err != nil {
		return a.refuse(err)
	}
	reply := document(http.StatusOK, shown)
	reply.Header.Set("ETag", etag(shown.Revision))
	return reply
}

// findKey is one key of the organization in the path; another one's is not there.
func (a *API) findKey(ctx context.Context, c *call) (shown shownKey, err error) {
	id := catalog.ObjectID{Kind: catalog.KindKey, Name: c.Params["id"]}
	err = a.Catalog.Read(ctx, func(state *catalog.State) error {
		k, ok := state.Key(id.Name)
		if !ok || k.Tenant != c.Params["tenant"] {
			return notFound(id.String(), 0)
		}
		shown = a.shown(k, state.RevisionOf(id))
		return nil
	})
	return shown, err
}

// revokeKey ends a key for good (Z3). It needs no revision: a key that leaked is not
// to be kept alive by an edit, and revoking twice is revoking once.
func (a *API) revokeKey(ctx context.Context, c *call) *edge.Reply {
	before, err := a.findKey(ctx, c)
	if err != nil {
		return a.refuse(err)
	}
	expected, err := ifMatch(c)
	if err != nil {
		return a.refuse(err)
	}
	if expected != nil && *expected != before.Revision {
		return a.refuse(&config.RevisionError{
			ID: catalog.ObjectID{Kind: catalog.KindKey, Name: before.ID}, Have: before.Revision,
		})
	}
	if err := config.RevokeKey(ctx, a.Log, before.ID, c.by, a.Now()); err != nil {
		return a.refuse(err)
	}
	return a.getKey(ctx, c)
}
