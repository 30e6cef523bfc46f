// Package api is the outer contract over HTTP: paths, headers, fields and codes.
// It reads what a caller sent into the gateway's words and says what came of it in
// the caller's dialect. Sockets are edge's, decisions are gateway's.
package api

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/embeddings"
	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// Catalog is the worker's live catalog; Current is nil before the first snapshot.
type Catalog interface {
	Current() *catalog.Snapshot
}

// Server is what answers inference requests.
type Server interface {
	Serve(ctx context.Context, in gateway.Incoming) *gateway.Outcome
	Refuse(ctx context.Context, in gateway.Incoming, e *apierror.Error) *gateway.Outcome
}

// Log reads one request's own events.
type Log interface {
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
}

// Circuits tells which circuits of this worker are not closed.
type Circuits interface {
	Open(now time.Time) []health.Circuit
}

// Config is what the API is made of.
type Config struct {
	Catalog Catalog
	Health  Circuits
	Gateway Server
	// Tokens counts what is not sent to a provider (A6).
	Tokens gateway.Estimator
	// Stored are the responses that callers may come back to (K6). nil keeps none.
	Stored *responses.Store
	Log    Log
	// Requests is where the search of requests reads.
	Requests requests.Querier
	// Ledger is where bills and usage are read.
	Ledger   bills.Querier
	Counters Counters
	// ShardOf tells which part of the log holds an organization.
	ShardOf func(tenant string) int16
	Now     func() time.Time
	Logger  *slog.Logger
}

// API answers the inference and tenant paths. It is safe for concurrent use.
type API struct {
	Config
}

// New makes an API.
func New(c Config) *API { return &API{Config: c} }

// route is one row of the contract. The scope is checked before the handler runs,
// so that no handler can forget it (Z6).
type route struct {
	method  string
	pattern string
	scope   catalog.Scope
	handle  handler
}

type handler func(ctx context.Context, c *call) *edge.Reply

// routes is the whole outer contract of this listener.
func (a *API) routes() []route {
	return []route{
		{"POST", "/v1/chat/completions", catalog.ScopeInference, a.inference(chat.Inbound{})},
		{"POST", "/v1/messages", catalog.ScopeInference, a.inference(messages.Inbound{})},
		{"POST", "/v1/messages/count_tokens", catalog.ScopeInference, a.countTokens},
		{"POST", "/v1/responses", catalog.ScopeInference, a.createResponse},
		{"GET", "/v1/responses/{id}", catalog.ScopeInference, a.getResponse},
		{"DELETE", "/v1/responses/{id}", catalog.ScopeInference, a.deleteResponse},
		{"POST", "/v1/embeddings", catalog.ScopeInference, a.inference(embeddings.Inbound{})},
		{"GET", "/v1/models", catalog.ScopeInference, a.listModels},
		{"GET", "/v1/models/{id...}", catalog.ScopeInference, a.getModel},
		{"GET", "/v1/health", catalog.ScopeRead, a.getHealth},
		{"GET", "/v1/requests", catalog.ScopeRead, a.listRequests},
		{"GET", "/v1/requests/{id}", catalog.ScopeRead, a.getRequest},
		{"GET", "/v1/requests/{id}/trail", catalog.ScopeRead, a.getTrail},
		{"GET", "/v1/usage", catalog.ScopeRead, a.getUsage},
		{"GET", "/v1/budgets", catalog.ScopeRead, a.getBudgets},
		{"GET", "/v1/promotions", catalog.ScopeRead, a.getPromotions},
		{"GET", "/v1/bills", catalog.ScopeRead, a.listBills},
		{"GET", "/v1/bills/{period}", catalog.ScopeRead, a.getBill},
		{"GET", "/v1/bills/{period}/lines/{line}/attempts", catalog.ScopeRead, a.getLineAttempts},
	}
}

// Endpoints lists every row of the contract as "METHOD /path/{name}", in its order.
func Endpoints() []string {
	var list []string
	for _, r := range new(API).routes() {
		list = append(list, r.method+" "+r.pattern)
	}
	return list
}

// vendorPrefixes are base paths for clients that take one per vendor; the handlers
// are the same.
var vendorPrefixes = []string{"", "/openai", anthropicPrefix}

// Register puts every route on a server.
func (a *API) Register(s *edge.Server) {
	for _, r := range a.routes() {
		for _, prefix := range vendorPrefixes {
			s.Handle(r.method, prefix+r.pattern, a.guarded(r))
		}
	}
}

// call is one request after its key was read.
type call struct {
	*edge.Request
	key      *catalog.Key
	snapshot *catalog.Snapshot
}

// guarded is the one door: a known key, with the route's scope.
func (a *API) guarded(r route) edge.Handler {
	return func(ctx context.Context, req *edge.Request) *edge.Reply {
		snapshot := a.Catalog.Current()
		if snapshot == nil {
			return a.unavailable(req)
		}
		key, refused := a.authenticate(snapshot, req)
		if refused == nil && !key.May(r.scope) {
			refused = forbidden(r.scope)
		}
		if refused != nil {
			return a.fail(req, refused)
		}
		return r.handle(ctx, &call{Request: req, key: key, snapshot: snapshot})
	}
}
