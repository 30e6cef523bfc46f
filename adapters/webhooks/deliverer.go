// Package webhooks sends what the log has to tell (U4): it takes messages from the queue
// that projections/webhooks fills, posts them, and watches the read models.
package webhooks

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

const (
	// slots are how many messages a worker sends at once; each is a goroutine and a
	// connection.
	slots = 32
	// failingSlots of them at most are for webhooks that failed last time: those that
	// take long to fail do not keep the others waiting.
	failingSlots = 8
	// perWebhook are how many messages one webhook is sent at once, over all workers. One
	// that failed is sent one.
	perWebhook = 4
	// postTimeout bounds an attempt from the name's resolution to the end of the answer.
	postTimeout = 10 * time.Second
	// lease is for how long a worker has a message to itself: an attempt, and writing
	// down how it ended. Behind it another sends it again.
	lease = postTimeout + 2*noteTimeout
	// noteTimeout bounds writing an outcome down, also while the worker stops.
	noteTimeout = 5 * time.Second
	// poll is how often a worker looks for messages that are due. Whoever waits for one
	// waits that long; an idle look is one step in an index.
	poll = time.Second
	// lastPoll bounds the wait between looks that fail.
	lastPoll = 30 * time.Second
)

// Config is what a Deliverer needs.
type Config struct {
	DB *pgxpool.Pool
	// Webhook is a webhook as it is configured now; its address and secret are used,
	// whatever they were when the message was queued.
	Webhook func(tenant, id string) (catalog.Webhook, bool)
	// Secret finds what signs.
	Secret func(ctx context.Context, tenant string, w catalog.Webhook) (secrets.Secret, error)
	// Opened are the hosts inside the own network that may be posted to; no other is (Z1).
	Opened network.Hosts
	// Resolver is nil for the system's.
	Resolver *net.Resolver
	Now      func() time.Time
	// Random is in [0, 1).
	Random func() float64
	Logger *slog.Logger
	// dial and transport are for tests.
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	transport http.RoundTripper
}

// Deliverer sends messages. Every worker has one: the queue gives each message to one of
// them at a time.
type Deliverer struct {
	Config
	client *http.Client
	// transport is what Run closes; nil for a test's own.
	transport *http.Transport
	// freed says that an attempt has ended: there is room for another.
	freed   chan struct{}
	running sync.WaitGroup
	// healthy and failing are the attempts that run.
	healthy, failing atomic.Int64
	delivered        atomic.Int64
	failed           atomic.Int64
	gaveUp           atomic.Int64
}

// New makes a Deliverer; Run lets it work.
func New(c Config) *Deliverer {
	d := &Deliverer{Config: c, freed: make(chan struct{}, 1)}
	guard := &network.Guard{Opened: c.Opened, Dialer: net.Dialer{Timeout: postTimeout, Resolver: c.Resolver}}
	dial, round := c.dial, c.transport
	if dial == nil {
		dial = guard.DialContext
	}
	if round == nil {
		d.transport = newTransport(dial)
		round = d.transport
	}
	d.client = &http.Client{
		Transport: round,
		// A redirect is an answer like any other that is not 2xx: following one would take
		// the message to where nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return d
}

func newTransport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:         dial, // no proxy: it would resolve names behind the guard's back
		TLSHandshakeTimeout: postTimeout,
		Protocols:           protocols,
		DisableCompression:  true,
		MaxIdleConns:        slots,
		MaxIdleConnsPerHost: perWebhook,
		IdleConnTimeout:     30 * time.Second,
		// An answer says nothing that is kept.
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// Run sends messages until ctx ends, and returns when no attempt is left. Attempts that
// are cut off are made again by whoever comes next.
func (d *Deliverer) Run(ctx context.Context) {
	defer func() {
		d.running.Wait()
		if d.transport != nil {
			d.transport.CloseIdleConnections()
		}
	}()
	wait, broken := poll, false
	for ctx.Err() == nil {
		err := d.look(ctx)
		switch {
		case err == nil:
			wait, broken = poll, false
		case ctx.Err() == nil:
			if !broken { // once, not at every look
				d.Logger.Error("webhooks cannot be sent", "error", err)
			}
			wait, broken = min(2*wait, lastPoll), true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-d.freed:
		}
		timer.Stop()
	}
}

// look takes what is due and begins to send it. Webhooks that work come first.
func (d *Deliverer) look(ctx context.Context) error {
	for _, failing := range []bool{false, true} {
		room, count := int64(slots)-d.healthy.Load()-d.failing.Load(), &d.healthy
		if failing {
			room, count = min(room, failingSlots-d.failing.Load()), &d.failing
		}
		if room <= 0 {
			continue
		}
		taken, err := d.take(ctx, failing, room)
		if err != nil {
			return err
		}
		for _, m := range taken {
			count.Add(1)
			d.running.Go(func() {
				d.attempt(ctx, m)
				count.Add(-1)
				select {
				case d.freed <- struct{}{}:
				default: // a signal that waits already says the same
				}
			})
		}
	}
	return nil
}

// attempt sends one message once and writes down how that ended.
func (d *Deliverer) attempt(ctx context.Context, m message) {
	w, ok := d.Webhook(m.Tenant, m.Webhook)
	if !ok || w.Disabled {
		// The log says that it is there, and this worker has not heard of it yet; or the
		// reverse.
		d.note(ctx, m, func(ctx context.Context) error { return d.postpone(ctx, m) })
		return
	}
	began := d.Now()
	r := d.post(ctx, m, w)
	if ctx.Err() != nil && r.cause != "" {
		d.note(ctx, m, func(ctx context.Context) error { return d.postpone(ctx, m) })
		return
	}
	if r.cause == "" {
		d.delivered.Add(1)
		d.note(ctx, m, func(ctx context.Context) error { return d.succeeded(ctx, m, r.status) })
		return
	}
	d.failed.Add(1)
	next, dead := webhook.Next(r.cause, m.Attempts, d.Now(), m.ExpiresAt, r.retryAfter, d.Random())
	if dead {
		d.gaveUp.Add(1)
		d.Logger.Warn("a webhook was not told", "webhook", m.Webhook, "tenant", m.Tenant, "type", m.Type,
			"id", m.ID, "cause", r.cause, "status", r.status, "attempts", m.Attempts)
	}
	d.note(ctx, m, func(ctx context.Context) error { return d.didFail(ctx, m, r, began, next, dead) })
}

// note writes an outcome, also while the worker stops. One that cannot be written is
// found out by the end of the lease: the message is sent again, under the same id.
func (d *Deliverer) note(ctx context.Context, m message, write func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	if err := write(ctx); err != nil {
		d.Logger.Warn("how a webhook's message ended was not written; it may be sent again", "id", m.ID, "error", err)
	}
}

// Stats counts attempts since the worker started.
type Stats struct{ Delivered, Failed, GaveUp int64 }

// Stats reads the counters.
func (d *Deliverer) Stats() Stats {
	return Stats{Delivered: d.delivered.Load(), Failed: d.failed.Load(), GaveUp: d.gaveUp.Load()}
}
