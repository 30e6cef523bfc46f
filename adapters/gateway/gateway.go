// Package gateway carries requests through their walk. The walk decides; this
// package owns what the decision needs of the world: the log, the providers, time.
//
// One request in order: Serve reads it and starts the walk, walker.run obeys the
// walk's moves, reserve makes a reservation durable, attempt calls a provider,
// stream sends what comes, settle writes the end.
package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/idempotency"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/eventstore"
)

// Log is what the gateway needs of the event store.
type Log interface {
	// AppendAll writes all of a group in one commit, or nothing.
	AppendAll(ctx context.Context, group []eventstore.Append) ([]eventstore.Result, error)
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
}

// Providers makes one attempt.
type Providers interface {
	Do(ctx context.Context, call provider.Call) (*provider.Reply, *failure.Failure)
	// Refuses reports whether a base URL would not be called, by what it says (Z1).
	Refuses(baseURL string) bool
}

// Estimator counts a request's tokens, once (A6).
type Estimator interface {
	Estimate(r *dialect.Request) tokens.Estimate
}

// Secrets opens the credentials that the catalog names.
type Secrets interface {
	Lookup(ctx context.Context, p *catalog.Provider, keyID string) (secrets.Credential, error)
}

// Health is what the circuits know, and how they learn of an attempt's end.
type Health interface {
	walk.World
	// Observe records how an attempt on a route ended; f is nil for an answer that
	// ended properly.
	Observe(r *walk.Rung, keyID, caller string, f *failure.Failure, now time.Time)
}

// Config is what a Gateway is made of.
type Config struct {
	Log       Log
	Providers Providers
	Estimator Estimator
	Secrets   Secrets
	Health    Health
	// Hasher makes the keyed hashes of idempotency keys and bodies (I3).
	Hasher idempotency.Hasher
	// ShardOf places an organization in the log.
	ShardOf func(tenant string) int16
	// InternalHosts are the hosts of private networks that a request may point at (Z1).
	InternalHosts network.Hosts
	// AdmissionSlots and AdmissionWait are those of A7; 0 is the default.
	AdmissionSlots int
	AdmissionWait  time.Duration
	// Worker is this process in the log's envelope (E12).
	Worker string
	Now    func() time.Time
	NewID  func() uuid.UUID
	Logger *slog.Logger
}

// Gateway serves requests. It is safe for concurrent use.
type Gateway struct {
	Config
	replays   *replays
	told      *told
	issuers   *issuers
	admission *admission
	// closing are the settlements that outlive their request: a client that left, a
	// log that was away. Close waits for them.
	closing sync.WaitGroup
}

// New makes a Gateway.
func New(c Config) *Gateway {
	slots, wait := cmp.Or(c.AdmissionSlots, DefaultAdmissionSlots), cmp.Or(c.AdmissionWait, DefaultAdmissionWait)
	return &Gateway{Config: c, replays: newReplays(c.Now), told: newTold(), issuers: newIssuers(c.Now), admission: newAdmission(slots, wait)}
}

// Close waits until every settlement is written or has given up.
func (g *Gateway) Close() { g.closing.Wait() }

// Incoming is one request as the edge hands it over.
type Incoming struct {
	Dialect  dialect.Inbound
	Body     []byte
	Key      *catalog.Key
	Snapshot *catalog.Snapshot
	Controls Controls
	// Flags go to providers of the caller's own dialect.
	Flags dialect.Flags
	At    time.Time
}

// Controls are what a caller asked for beside the body; each may only narrow what
// the operator allows.
type Controls struct {
	Fallback        walk.Fallback
	MaxAttempts     int
	Deadline        time.Duration
	ClientRequestID string
	// ClientRetry is the SDK's own retry count: a client's retry is a new request.
	ClientRetry int
	Correlation string
	// Class is the traffic class that takes the place of a model (N9); Priority is the
	// request's own, empty for its class's (N12).
	Class    string
	Priority catalog.Priority
	// Conversation is the caller's own name for the conversation, a hint.
	Conversation string
	// Hold asks for an answer that begins when it is complete (S13).
	Hold bool
	// IdempotencyKey is the caller's, empty for none (I1).
	IdempotencyKey string
}

// Writer takes whole events and blocks while the client is slow (S9).
type Writer interface {
	Write(event []byte) error
}

// Outcome is what the caller gets: exactly one of Err, Whole and Stream is set.
type Outcome struct {
	RequestID string
	Facts     Facts
	Err       *apierror.Error
	Whole     []byte
	// Stream sends the answer from its first output to its end. It must be called
	// once: it is what settles the request.
	Stream func(ctx context.Context, w Writer) error
	// Gone is set when the client left and nothing is to be sent.
	Gone bool
	// Replayed is set on an answer that was given before (I1).
	Replayed bool
}

// Facts are what the reply headers tell (X4).
type Facts struct {
	Attempts       int
	FallbackDepth  int
	Provider       string
	CanonicalModel string
	FallbackKind   string
	// CostNanoUSD is set on a whole answer.
	CostNanoUSD *int64
	// Limits are what is left of the caller's windows (R8).
	Limits RateLimits
}
