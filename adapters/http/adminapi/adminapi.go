// Package adminapi is the operator's API under /admin/v1: every object of
// sluice.yaml at an address of its own, with revisions (C2-C10), and what the
// worker knows, to read. It reads HTTP and says errors; what an edit means is
// decided by domain/catalog and written by adapters/config, which `sluice apply`
// uses as well.
package adminapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/adapters/http/auth"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	live "github.com/sluice-gateway/sluice/projections/catalog"
	"github.com/sluice-gateway/sluice/projections/requests"
	"github.com/sluice-gateway/sluice/projections/webhooks"
)

// prefix is where the API begins on the admin listener.
const prefix = "/admin/v1"

// Log is what is needed of the event store.
type Log interface {
	config.Log
	config.StreamLog
	ReadAll(ctx context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error)
}

// Config is what the API is made of.
type Config struct {
	Log     Log
	Catalog *live.Live
	// Bootstrap is a key that may do everything before there is any other; empty
	// accepts none.
	Bootstrap string
	// Worker is written beside the actor of every change.
	Worker string
	// Vault keeps the credentials that are stored.
	Vault *secrets.Vault
	// Holds reports whether this worker has a provider's credential (C5).
	Holds func(p *catalog.Provider, keyID string) bool
	// Refuses reports whether this worker would not call a base URL, by what it says
	// (Z1). Nil refuses none.
	Refuses  func(baseURL string) bool
	Circuits interface {
		Open(now time.Time) []health.Circuit
	}
	// Requests is where the search of requests reads.
	Requests requests.Querier
	// Deliveries is where webhooks' messages wait.
	Deliveries  webhooks.DB
	Projections interface {
		Status(ctx context.Context) ([]projections.Status, error)
	}
	// Rebuild makes a read model again (views.Keeper).
	Rebuild         func(ctx context.Context, name string, progress func(projections.Progress)) error
	Reconciliations Reconciliations
	Now             func() time.Time
	Random          io.Reader
	Logger          *slog.Logger
}

// API answers the admin paths. It is safe for concurrent use. Run has to run for
// rebuilds to be done.
type API struct {
	Config
	bootstrap [sha256.Size]byte
	rebuilds  *rebuilds
}

// New makes an API.
func New(c Config) *API {
	return &API{Config: c, bootstrap: sha256.Sum256([]byte(c.Bootstrap)), rebuilds: newRebuilds(c.Rebuild, c.Now)}
}

// Run does the rebuilds that are asked for until ctx ends.
func (a *API) Run(ctx context.Context) { a.rebuilds.run(ctx, a.Logger) }

// call is one request by somebody who may make it.
type call struct {
	*edge.Request
	// by is who it is, as the log keeps it (Z7).
	by eventstore.Meta
}

type handler func(ctx context.Context, c *call) *edge.Reply

// route is one row of the contract.
type route struct {
	method, pattern string
	handle          handler
}

// routes is the whole admin API. Every row of it needs the scope admin.
func (a *API) routes() []route {
	var list []route
	for _, r := range resources {
		list = append(list,
			route{http.MethodGet, r.pattern, a.bind(r, a.get)},
			route{http.MethodPut, r.pattern, a.bind(r, a.put)},
			route{http.MethodPatch, r.pattern, a.bind(r, a.patch)},
			route{http.MethodDelete, r.pattern, a.bind(r, a.remove)},
		)
	}
	for _, l := range lists {
		list = append(list, route{http.MethodGet, l.pattern, func(ctx context.Context, c *call) *edge.Reply { return a.list(ctx, c, l) }})
		if l.owned {
			list = append(list, route{http.MethodPut, l.pattern, func(ctx context.Context, c *call) *edge.Reply { return a.putInto(ctx, c, l) }})
		}
	}
	list = append(list, a.webhookRoutes()...)
	return append(list,
		route{http.MethodGet, "/tenants/{tenant}/keys", a.listKeys},
		route{http.MethodPost, "/tenants/{tenant}/keys", a.createKey},
		route{http.MethodPut, "/tenants/{tenant}/keys", a.createKey},
		route{http.MethodGet, "/tenants/{tenant}/keys/{id}", a.getKey},
		route{http.MethodDelete, "/tenants/{tenant}/keys/{id}", a.revokeKey},
		route{http.MethodGet, "/providers/{id}/credentials", a.listCredentials},
		route{http.MethodPut, "/providers/{id}/credentials/{key}", a.putCredential(providersKey)},
		route{http.MethodDelete, "/providers/{id}/credentials/{key}", a.deleteCredential(providersKey)},
		route{http.MethodPut, "/tenants/{tenant}/connections/{id}/credential", a.putCredential(connectionsKey)},
		route{http.MethodDelete, "/tenants/{tenant}/connections/{id}/credential", a.deleteCredential(connectionsKey)},
		route{http.MethodGet, "/models/{id}/equivalence-checks", a.listChecks},
		route{http.MethodGet, "/deployments/{id}/price-corrections", a.listCorrections},
		route{http.MethodPost, "/deployments/{id}/price-corrections", a.correctPrice},
		route{http.MethodGet, "/snapshot", a.getSnapshot},
		route{http.MethodGet, "/snapshot/document", a.getSnapshotDocument},
		route{http.MethodGet, "/circuits", a.getCircuits},
		route{http.MethodGet, "/requests", a.listRequests},
		route{http.MethodGet, "/requests/{id}", a.getRequest},
		route{http.MethodGet, "/requests/{id}/trail", a.getTrail},
		route{http.MethodGet, "/events", a.listEvents},
		route{http.MethodGet, "/projections", a.getProjections},
		route{http.MethodPost, "/projections/{name}/rebuild", a.startRebuild},
		route{http.MethodGet, "/reconciliations", a.listReconciliations},
		route{http.MethodPost, "/reconciliations", a.startReconciliation},
		route{http.MethodGet, "/reconciliations/{id}", a.getReconciliation},
	)
}

// Register puts every route on the admin listener.
func (a *API) Register(s *edge.Server) {
	for _, r := range a.routes() {
		s.Handle(r.method, prefix+r.pattern, a.guarded(r.handle))
	}
}

// guarded is the one door: the bootstrap key, or a key with the scope admin.
func (a *API) guarded(handle handler) edge.Handler {
	return func(ctx context.Context, req *edge.Request) *edge.Reply {
		by, refused := a.authenticate(req)
		if refused != nil {
			return refused.reply()
		}
		reply := handle(ctx, &call{Request: req, by: by})
		reply.Header.Set("Cache-Control", "no-store")
		return reply
	}
}

func (a *API) authenticate(r *edge.Request) (eventstore.Meta, *failure) {
	by := eventstore.Meta{Worker: a.Worker}
	sent := auth.Sent(r.Header)
	if sent == "" {
		return by, fail(http.StatusUnauthorized, codeInvalidKey, "No key was sent. Send it as \"Authorization: Bearer KEY\".")
	}
	// Hashes have one length: comparing them tells nothing about the key's.
	hash := sha256.Sum256([]byte(sent))
	if a.Bootstrap != "" && subtle.ConstantTimeCompare(hash[:], a.bootstrap[:]) == 1 {
		by.Actor = "bootstrap"
		return by, nil
	}
	snapshot := a.Catalog.Current()
	if snapshot == nil {
		return by, unavailable("The configuration has not been read yet.") // never a 401 for our own fault (A2)
	}
	key, ok := snapshot.KeyByHash(catalog.HashKey(sent))
	switch {
	case !ok || !key.Usable(a.Now()):
		return by, fail(http.StatusUnauthorized, codeInvalidKey, "The key is unknown, revoked or expired.")
	case !key.May(catalog.ScopeAdmin):
		return by, fail(http.StatusForbidden, codeForbidden, "The key lacks the scope \"admin\".")
	}
	by.Actor = "admin-key/" + key.ID
	return by, nil
}
