// Package gatewaytest is a gateway over a log in memory and a scripted provider,
// for tests of the gateway and of what stands in front of it.
package gatewaytest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/idempotency"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// Bench is a gateway over a log in memory and a scripted provider.
type Bench struct {
	*gateway.Gateway
	Log      *Log
	Provider *fakeprovider.Server
	Key      *catalog.Key
	Client   *provider.Client
	Objects  catalog.Objects
	Controls gateway.Controls
}

// With sends what follows under other controls.
func (b *Bench) With(edit func(*gateway.Controls)) *Bench {
	edit(&b.Controls)
	return b
}

// Policy changes the model's policy.
func (b *Bench) Policy(edit func(*catalog.Policy)) { edit(&b.Objects.Models[0].Policy) }

// New serves the model "m" over one deployment a name: fake-provider model
// names, which say how the calls of that rung end.
func New(t *testing.T, upstreamModels ...string) *Bench {
	t.Helper()
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	b := &Bench{Log: NewLog(), Provider: fake}
	b.Objects = objectsOf(fake.URL()+"/v1", upstreamModels)
	b.Key = &catalog.Key{ID: "key1", Tenant: "acme"}
	b.Controls.Fallback = walk.FallbackAny
	b.Client = provider.New(provider.Config{InternalHosts: network.MustHosts("127.0.0.1"), Outbound: registry.Outbound()})
	t.Cleanup(b.Client.Close)
	b.Gateway = gateway.New(gateway.Config{
		Log: b.Log, Providers: b.Client, Estimator: estimator(), Secrets: AnySecret{}, Health: &NoCircuits{},
		Hasher:  idempotency.NewHasher([]byte("secret")),
		ShardOf: func(string) int16 { return 0 }, Worker: "w1", Now: time.Now,
		NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(b.Gateway.Close)
	return b
}

var estimator = sync.OnceValue(tokens.NewEstimator)

func objectsOf(baseURL string, upstreamModels []string) catalog.Objects {
	in, out := decimal.RequireFromString("3"), decimal.RequireFromString("15")
	objects := catalog.Objects{
		Tenants: []catalog.Tenant{{ID: "acme", Budgets: []catalog.Budget{{Scope: "organization", LimitUSD: "1", Per: catalog.PerMonth}}}},
		Models:  []catalog.Model{{Slug: "m", ExactModel: "m", Equivalence: &catalog.Equivalence{CertifiedBy: "ops", On: "2026-11-01", Evidence: "sha256:0"}}},
	}
	for i, name := range upstreamModels {
		p := catalog.Provider{ID: fmt.Sprint("p", i), Protocol: catalog.OpenAI, BaseURL: baseURL, Keys: []catalog.ProviderKey{{ID: "k1", Env: "K"}}}
		d := catalog.Deployment{ID: fmt.Sprint("d", i), Provider: p.ID, UpstreamModel: name, Prices: money.Prices{Input: &in, Output: &out}, Context: catalog.Context{MaxOutput: 1000}}
		objects.Providers = append(objects.Providers, p)
		objects.Deployments = append(objects.Deployments, d)
		objects.Models[0].Chain = append(objects.Models[0].Chain, catalog.Rung{Deployment: d.ID})
	}
	return objects
}

// Snapshot is the catalog as the bench has it now.
func (b *Bench) Snapshot() *catalog.Snapshot { return catalog.NewSnapshot(b.Objects) }

// SnapshotWithKey is the catalog with a caller's key in it, and the key.
func (b *Bench) SnapshotWithKey(t *testing.T) (*catalog.Snapshot, string) {
	t.Helper()
	state := catalog.NewState()
	position := int64(0)
	fold := func(stream string, version int64, e any) {
		position++
		state.Fold(catalog.Recorded{Stream: stream, Version: version, Position: position, At: time.Now(), Event: e})
	}
	for _, change := range catalog.Diff(state, b.Objects) {
		for i, e := range change.Events {
			fold(change.Stream, int64(i+1), e)
		}
	}
	key, plaintext, err := catalog.NewKey(uuid.New(), []byte("0123456789abcdef0123456789abcdef"), "acme", nil, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	fold(catalog.KeyStream(key.ID), 1, catalog.KeyCreated{Key: key})
	return state.Snapshot(), plaintext
}

// Chat sends a body and returns the outcome.
func (b *Bench) Chat(ctx context.Context, body string) *gateway.Outcome {
	return b.Keyed(ctx, "", body)
}

// Keyed is Chat under an idempotency key.
func (b *Bench) Keyed(ctx context.Context, key, body string) *gateway.Outcome {
	controls := b.Controls
	controls.IdempotencyKey = key
	return b.Serve(ctx, gateway.Incoming{
		Dialect: chat.Inbound{}, Body: []byte(body), Key: b.Key, Snapshot: b.Snapshot(), Controls: controls, At: time.Now(),
	})
}

const (
	Whole  = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`
	Stream = `{"model":"m","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	// LongStream asks for more than one write takes, whatever comes at once.
	LongStream = `{"model":"m","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// Collector keeps what a stream sends.
type Collector struct {
	mu   sync.Mutex
	Sent strings.Builder
	// Before runs ahead of each write and may refuse it.
	Before func(event string) error
}

// Write implements gateway.Writer.
func (c *Collector) Write(event []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Before != nil {
		if err := c.Before(string(event)); err != nil {
			return err
		}
	}
	c.Sent.Write(event)
	return nil
}

// AnySecret holds every key.
type AnySecret struct{}

// Lookup implements gateway.Secrets.
func (AnySecret) Lookup(context.Context, *catalog.Provider, string) (secrets.Credential, error) {
	return secrets.Credential{Key: "sk-provider"}, nil
}

// Holds implements health.Secrets.
func (AnySecret) Holds(*catalog.Provider, string) bool { return true }

// NoCircuits never shuts a route and learns nothing.
type NoCircuits struct{ sim.World }

// Observe implements gateway.Health.
func (*NoCircuits) Observe(*walk.Rung, string, string, *failure.Failure, time.Time) {}

// MonthKey is the counter of the organization's monthly budget.
func MonthKey() budget.Key {
	return budget.Key("org/acme/usd/month/" + time.Now().UTC().Format("2006-01"))
}

// Spent is a counter with so much settled.
func Spent(settled int64) budget.Counter { return budget.Counter{Settled: settled} }

// Dialect is what the bench's callers speak.
func (b *Bench) Dialect() dialect.Inbound { return chat.Inbound{} }
