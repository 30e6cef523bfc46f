package adminapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// shownCredential is all that is ever shown of a credential (Z2).
type shownCredential struct {
	Key string `json:"key,omitempty"`
	// Stored tells where it is kept: sealed in the database, or in the environment.
	Stored bool `json:"stored"`
	// Held reports whether this worker can call with it.
	Held     bool   `json:"held"`
	LastFour string `json:"last_four,omitempty"`
}

// What a path names that a credential is stored for.
func providersKey(p map[string]string) catalog.CredentialOf {
	return catalog.CredentialOf{Provider: p["id"], Key: p["key"]}
}

func connectionsKey(p map[string]string) catalog.CredentialOf {
	return catalog.CredentialOf{Tenant: p["tenant"], Key: p["id"]}
}

func webhooksSecret(p map[string]string) catalog.CredentialOf {
	return catalog.WebhookSecret(p["tenant"], p["id"])
}

// listCredentials is GET providers/{id}/credentials: one entry a key of the pool.
func (a *API) listCredentials(ctx context.Context, c *call) *edge.Reply {
	list := []shownCredential{}
	err := a.Catalog.Read(ctx, func(state *catalog.State) error {
		id := catalog.ObjectID{Kind: catalog.KindProvider, Name: c.Params["id"]}
		found, ok := state.Objects().Find(id)
		if !ok {
			return notFound(id.String(), state.RevisionOf(id))
		}
		p, _ := found.(catalog.Provider)
		for _, k := range p.Keys {
			held, _ := state.Credential(p.CredentialOf(k.ID))
			list = append(list, shownCredential{Key: k.ID, Stored: k.Stored, Held: a.Holds(&p, k.ID), LastFour: held.LastFour})
		}
		return nil
	})
	if err != nil {
		return a.refuse(err)
	}
	return document(http.StatusOK, page[shownCredential]{Data: list})
}

// putCredential stores a secret in the place of the one before. It takes no revision:
// nobody has seen the secret that it replaces.
func (a *API) putCredential(of func(path map[string]string) catalog.CredentialOf) handler {
	return func(ctx context.Context, c *call) *edge.Reply { return a.storeCredential(ctx, c, of(c.Params)) }
}

func (a *API) storeCredential(ctx context.Context, c *call, of catalog.CredentialOf) *edge.Reply {
	var sent struct {
		Secret string `json:"secret"`
	}
	doc, err := body(c, false)
	if err == nil {
		err = doc.Decode(&sent)
	}
	if err != nil {
		return a.refuse(err)
	}
	held, err := config.StoreCredential(ctx, a.Log, a.Vault, of, secrets.Secret(sent.Secret), c.by, a.Now())
	if err != nil {
		return a.refuseCredential(err)
	}
	_ = a.Catalog.Refresh(ctx)
	return document(http.StatusOK, shownCredential{Key: held.Key, Stored: true, Held: true, LastFour: held.LastFour})
}

// deleteCredential is always possible (C6).
func (a *API) deleteCredential(of func(path map[string]string) catalog.CredentialOf) handler {
	return func(ctx context.Context, c *call) *edge.Reply { return a.dropCredential(ctx, c, of(c.Params)) }
}

func (a *API) dropCredential(ctx context.Context, c *call, of catalog.CredentialOf) *edge.Reply {
	if err := config.DeleteCredential(ctx, a.Log, a.Vault, of, c.by, a.Now()); err != nil {
		if e, ok := errors.AsType[*config.NotStoredError](err); ok {
			return fail(http.StatusNotFound, codeNotFound, sentence(e.Error())).reply()
		}
		return a.refuseCredential(err)
	}
	_ = a.Catalog.Refresh(ctx)
	return document(http.StatusOK, shownCredential{Key: of.Key, Stored: true})
}

func (a *API) refuseCredential(err error) *edge.Reply {
	if e, ok := errors.AsType[*config.NotStoredError](err); ok {
		return badField("", e.Error()).reply()
	}
	if e, ok := errors.AsType[*config.SecretError](err); ok {
		return badField("secret", e.Reason).reply()
	}
	if e, ok := errors.AsType[*config.StaleError](err); ok {
		return fail(http.StatusConflict, codeConflict, sentence(e.Stream+" was changed by someone else in the meantime; nothing was stored")).reply()
	}
	if e, ok := errors.AsType[*secrets.MasterKeyError](err); ok {
		return unavailable(sentence(e.Error())).reply()
	}
	return a.refuse(err)
}
