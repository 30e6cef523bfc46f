package gateway_test

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
	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/idempotency"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
	"github.com/sluice-gateway/sluice/eventstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a gateway over a log in memory and a scripted provider.
type bench struct {
	*gateway.Gateway
	log      *memoryLog
	provider *fakeprovider.Server
	key      *catalog.Key
	client   *provider.Client
	objects  catalog.Objects
	controls gateway.Controls
}

// with sends what follows under other controls.
func (b *bench) with(edit func(*gateway.Controls)) *bench {
	edit(&b.controls)
	return b
}

// policy changes the model's policy.
func (b *bench) policy(edit func(*catalog.Policy)) { edit(&b.objects.Models[0].Policy) }

// newBench serves the model "m" over one deployment a name: fake-provider model
// names, which say how the calls of that rung end.
func newBench(t *testing.T, upstreamModels ...string) *bench {
	t.Helper()
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	b := &bench{log: newMemoryLog(), provider: fake}
	b.objects = objectsOf(fake.URL()+"/v1", upstreamModels)
	b.key = &catalog.Key{ID: "key1", Tenant: "acme"}
	b.controls.Fallback = walk.FallbackAny
	b.client = provider.New(provider.Config{Outbound: map[catalog.Protocol]dialect.Outbound{catalog.OpenAI: chat.Outbound{}}})
	t.Cleanup(b.client.Close)
	b.Gateway = gateway.New(gateway.Config{
		Log: b.log, Providers: b.client, Estimator: estimator(), Secrets: anySecret{}, Health: quietHealth{},
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

func (b *bench) snapshot() *catalog.Snapshot { return catalog.NewSnapshot(b.objects) }

// chat sends a body and returns the outcome.
func (b *bench) chat(ctx context.Context, body string) *gateway.Outcome {
	return b.keyed(ctx, "", body)
}

// keyed is chat under an idempotency key.
func (b *bench) keyed(ctx context.Context, key, body string) *gateway.Outcome {
	controls := b.controls
	controls.IdempotencyKey = key
	return b.Serve(ctx, gateway.Incoming{
		Dialect: chat.Inbound{}, Body: []byte(body), Key: b.key, Snapshot: b.snapshot(), Controls: controls, At: time.Now(),
	})
}

const (
	whole  = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`
	stream = `{"model":"m","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	// longStream asks for more than one write takes, whatever comes at once.
	longStream = `{"model":"m","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// collector keeps what a stream sends.
type collector struct {
	mu   sync.Mutex
	sent strings.Builder
	// before runs ahead of each write and may refuse it.
	before func(event string) error
}

func (c *collector) Write(event []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before != nil {
		if err := c.before(string(event)); err != nil {
			return err
		}
	}
	c.sent.Write(event)
	return nil
}

// moves says what the log has of the only request, one word an event.
func (l *memoryLog) moves(t *testing.T) []string {
	t.Helper()
	var words []string
	var life request.Life
	for _, e := range l.events(t) {
		if err := life.Apply(e); err != nil {
			t.Fatalf("the log holds an impossible life: %v", err)
		}
		word := event.Name(e)
		switch e := e.(type) {
		case request.AttemptReserved:
			word += " " + string(e.Kind)
		case request.AttemptFailed:
			word += " " + string(e.Failure)
		case request.AttemptSettled:
			word += " " + string(e.Basis)
		case request.RequestFinalized:
			word += " " + string(e.Outcome)
		}
		words = append(words, word)
	}
	return words
}

// memoryLog is a Log that keeps its promises without a database.
type memoryLog struct {
	mu       sync.Mutex
	streams  map[string][]eventstore.Event
	counters sim.Counters
	commits  int
	// fail, when set, is asked before each append.
	fail func(a eventstore.Append) error
	// entered, when set, gets every append before it is written.
	entered func(a eventstore.Append)
}

func newMemoryLog() *memoryLog {
	return &memoryLog{streams: map[string][]eventstore.Event{}, counters: sim.Counters{}}
}

// AppendAll writes a group or nothing.
func (l *memoryLog) AppendAll(_ context.Context, group []eventstore.Append) ([]eventstore.Result, error) {
	for _, a := range group {
		if l.entered != nil {
			l.entered(a)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range group {
		if l.fail != nil {
			if err := l.fail(a); err != nil {
				return nil, err
			}
		}
		have := int64(len(l.streams[a.Stream]))
		if a.Expected != eventstore.AnyVersion && a.Expected != have {
			return nil, &eventstore.ConflictError{Stream: a.Stream, Expected: a.Expected, Actual: have}
		}
	}
	l.commits++
	var results []eventstore.Result
	for _, a := range group {
		events, deltas := a.Events, a.Deltas
		refusal := budget.Decide(l.counters, a.Checks)
		if refusal != nil {
			events, deltas = a.Refuse(*refusal)
		}
		l.streams[a.Stream] = append(l.streams[a.Stream], events...)
		budget.Apply(l.counters, deltas)
		results = append(results, eventstore.Result{Version: int64(len(l.streams[a.Stream])), Refusal: refusal})
	}
	return results, nil
}

// ReadStream reads one stream back.
func (l *memoryLog) ReadStream(_ context.Context, stream string, _ int64, _ int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []eventstore.Recorded
	for i, e := range l.streams[stream] {
		list = append(list, eventstore.Recorded{Event: e, Stream: stream, StreamVersion: int64(i + 1)})
	}
	return list, nil
}

func (l *memoryLog) events(t *testing.T) []event.Event {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []event.Event
	requests := 0
	for name, stored := range l.streams {
		if !strings.HasPrefix(name, "request/") {
			continue
		}
		if requests++; requests > 1 {
			t.Fatal("more than one request in the log")
		}
		for _, s := range stored {
			e, err := event.Decode(s.Type, s.Version, s.Data)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, e)
		}
	}
	return list
}

// nothingHeld checks that every hold was given back.
func (l *memoryLog) nothingHeld(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, c := range l.counters {
		if c.Held != 0 {
			t.Errorf("%s still holds %d", key, c.Held)
		}
	}
}

type anySecret struct{}

func (anySecret) Secret(*catalog.Provider, string) (string, bool) { return "sk-provider", true }

// quietHealth has no circuits.
type quietHealth struct{ sim.World }

func (quietHealth) Credentials(p *catalog.Provider) []walk.Credential {
	return (&sim.World{}).Credentials(p)
}
func (quietHealth) FirstCredential(*catalog.Provider, int) int { return 0 }
func (quietHealth) Claim(*walk.Rung, string, walk.Pass, time.Time) walk.Verdict {
	return walk.Verdict{}
}
func (quietHealth) CacheEstimate(*walk.Rung) float64 { return 0 }
func (quietHealth) Uniform() float64                 { return 0 }

func (quietHealth) Observe(*walk.Rung, string, string, *failure.Failure, time.Time) {}

func monthKey() budget.Key {
	return budget.Key("org/acme/usd/month/" + time.Now().UTC().Format("2006-01"))
}

func counterOf(settled int64) budget.Counter { return budget.Counter{Settled: settled} }

func (b *bench) dialect() dialect.Inbound { return chat.Inbound{} }
