package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-gateway/sluice/adapters/bus"
	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/adapters/holds"
	"github.com/sluice-gateway/sluice/adapters/http/admin"
	"github.com/sluice-gateway/sluice/adapters/http/adminapi"
	"github.com/sluice-gateway/sluice/adapters/http/api"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/adapters/webhooks"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/idempotency"
	workerevents "github.com/sluice-gateway/sluice/domain/worker"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	live "github.com/sluice-gateway/sluice/projections/catalog"
	"github.com/sluice-gateway/sluice/projections/views"
)

const (
	// drain is how long running requests may take to end once the worker was asked
	// to stop (O3). It is what operators configure as their grace period.
	drain = 60 * time.Second
	// sayTimeout bounds an append of the worker's own stream.
	sayTimeout = 10 * time.Second
	// recallTimeout bounds how long a start waits for what circuits said: they are nice to
	// have.
	recallTimeout = 2 * time.Second
	// poolConns are the connections for read models: one for each projection that
	// this worker leads, and some for searches.
	poolConns = 10
)

// workerConfig is what a worker is started with.
type workerConfig struct {
	db            database
	public, admin address
	logger        *slog.Logger
	// provider is an address inside the network that providers may be called at, beside
	// those of SLUICE_INTERNAL_HOSTS; empty for none.
	provider string
}

// worker is a running gateway: everything that serve and dev have in common.
// openWorker makes it piece by piece, from the log outwards to the sockets; run
// lets it work and ends the pieces in the opposite order.
type worker struct {
	id     string
	logger *slog.Logger
	// secret is the installation's, behind keyed hashes.
	secret []byte

	// opened are the hosts inside the network that requests may point at, and callable
	// those that base URLs may (Z1).
	opened, callable network.Hosts

	store   *eventstore.Store
	pool    *pgxpool.Pool
	catalog *live.Live
	gateway *gateway.Gateway
	calls   *provider.Client
	health  *health.Registry
	// credentials are the providers' keys that this worker holds.
	credentials *secrets.Source
	vault       *secrets.Vault
	runner      *projections.Runner
	bus         *bus.Bus
	news        *news
	probe       *probe
	holds       *holds.Reconciler
	hooks       *webhooks.Deliverer
	// reconciler compares everything with the log, over connections of its own.
	reconciler     *reconciler.Reconciler
	reconcilerPool *pgxpool.Pool
	// operators is the admin API.
	operators *adminapi.API

	publicListener, adminListener net.Listener
	public, admin                 *edge.Server

	draining atomic.Bool
}

// openWorker connects everything and binds both addresses. It serves nothing yet.
// What it opened is closed again when a later step fails.
func openWorker(ctx context.Context, cfg workerConfig) (_ *worker, err error) {
	w := &worker{id: uuid.Must(uuid.NewV7()).String(), logger: cfg.logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.opened, err = network.HostsFrom(os.Getenv(network.HostsEnv)); err != nil {
		return nil, err
	}
	if w.callable, err = internalHosts(cfg.provider); err != nil {
		return nil, err
	}
	if err := cfg.db.check(ctx); err != nil {
		return nil, err
	}
	if w.publicListener, err = listen(cfg.public); err != nil {
		return nil, err
	}
	if w.adminListener, err = listen(cfg.admin); err != nil {
		return nil, err
	}
	if w.bus, err = openBus(); err != nil {
		return nil, err
	}
	if err := w.openLog(ctx, cfg.db); err != nil {
		return nil, err
	}
	w.wire(cfg.db)
	w.recall(ctx)
	return w, nil
}

// openLog opens the log and reads the first catalog from it: a worker without one
// could only answer 503.
func (w *worker) openLog(ctx context.Context, db database) (err error) {
	w.store, err = eventstore.Open(ctx, eventstore.Config{URL: db.url, Logger: w.logger})
	if err != nil {
		return db.about(err)
	}
	if w.pool, err = db.openPool(ctx, poolConns); err != nil {
		return err
	}
	if err = w.openReconciler(ctx, db); err != nil {
		return err
	}
	if w.secret, err = secrets.Installation(ctx, w.pool); err != nil {
		return err
	}
	masters, err := secrets.MasterKeysFrom(os.Getenv)
	if err != nil {
		return err
	}
	w.catalog = live.New(w.store)
	w.vault = &secrets.Vault{DB: w.pool, Masters: masters}
	w.credentials = secrets.NewSource(w.vault, w.catalog.Current, time.Now)
	return w.catalog.Refresh(ctx)
}

// openReconciler prepares what compares everything with the log (R7).
func (w *worker) openReconciler(ctx context.Context, db database) error {
	every, budget, err := reconcileSettings(os.Getenv)
	if err != nil {
		return err
	}
	if w.reconcilerPool, err = db.openPool(ctx, reconcilerConns); err != nil {
		return err
	}
	c := reconcilerOn(w.reconcilerPool, w.store)
	c.Worker, c.Every, c.TimeBudget, c.Jitter, c.Logger = w.id, every, budget, mathrand.Float64, w.logger
	w.reconciler = reconciler.New(c)
	return nil
}

// recall lets the worker begin with what is known of routes and accounts (H11, H12).
// Without it the worker would be as good, and find out again by failed calls.
func (w *worker) recall(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, recallTimeout)
	defer cancel()
	if err := w.health.Recall(ctx, w.store, time.Now()); err != nil {
		w.logger.Warn("circuits begin closed: what workers knew of them could not be read", "cause", err)
	}
}

// wire joins the pieces. It does no I/O and cannot fail.
func (w *worker) wire(db database) {
	w.calls = provider.New(provider.Config{Outbound: registry.Outbound(), InternalHosts: w.callable})
	w.health = health.New(health.Config{Secrets: w.credentials, SecretID: w.credentials.SecretID, Log: w.store, Worker: w.id, Logger: w.logger})
	w.gateway = gateway.New(gateway.Config{
		Log: w.store, Providers: w.calls, Estimator: tokens.NewEstimator(), Secrets: w.credentials,
		Health:        w.health,
		InternalHosts: w.opened,
		Hasher:        idempotency.NewHasher(w.secret),
		ShardOf:       func(string) int16 { return 0 },
		Worker:        w.id, Now: time.Now, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
		Logger: w.logger,
	})
	w.runner = projections.NewRunner(w.pool, w.store, projections.Options{Logger: w.logger}, w.followers(views.All())...)
	w.news = newNews(w.runner)
	w.probe = &probe{db: db, log: w.store}
	w.holds = &holds.Reconciler{
		Log: w.store, Held: w.pool, ShardOf: w.gateway.ShardOf, TTL: holds.DefaultTTL, Worker: w.id,
		Now: time.Now, Logger: w.logger,
	}

	w.wireWebhooks()

	outer := api.New(api.Config{
		Catalog: w.catalog, Gateway: w.gateway, Tokens: w.gateway.Estimator, Stored: responses.NewStore(time.Now), Log: w.store, Requests: w.pool,
		Ledger: w.pool, Counters: w.store, ShardOf: w.gateway.ShardOf,
		Health: w.health,
		Now:    time.Now, Logger: w.logger,
	})
	w.public = edge.New(edge.Config{Listener: w.publicListener, OnError: outer.EdgeError, Logger: w.logger})
	outer.Register(w.public)

	w.operators = adminapi.New(adminapi.Config{
		Log: w.store, Catalog: w.catalog, Bootstrap: os.Getenv("SLUICE_ADMIN_KEY"), Worker: w.id,
		Vault: w.vault, Holds: w.credentials.Holds, Refuses: w.calls.Refuses, Circuits: w.health, Requests: w.pool, Deliveries: w.pool, Projections: w.runner,
		Rebuild:         views.NewKeeper(w.pool, w.store).Rebuild,
		Reconciliations: w.reconciler,
		Now:             time.Now, Random: rand.Reader, Logger: w.logger,
	})
	w.admin = edge.New(edge.Config{Listener: w.adminListener, OnError: adminapi.EdgeError, Logger: w.logger})
	w.operators.Register(w.admin)
	admin.Register(w.admin, admin.Config{
		Started: func() bool { return w.catalog.Current() != nil },
		Ready:   w.problems,
		Metrics: w.metrics(),
	})
}

// run serves until ctx ends or a piece fails, then drains. The pieces run under a
// context of their own, because they have to outlive ctx for as long as requests
// are still being answered. ready is called once requests are answered; it may be
// nil.
func (w *worker) run(ctx context.Context, ready func()) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := w.say(background, 0, w.started()); err != nil {
		return err
	}
	pieces, failed := errgroup.WithContext(background)
	if err := w.bus.Subscribe(background, w.news.hear); err != nil {
		return err
	}
	for _, piece := range []func(context.Context){
		func(ctx context.Context) { bus.Feed(ctx, w.store, w.bus, w.logger) },
		w.news.run, w.runner.Run, w.health.Run, w.probe.run, w.operators.Run, w.holds.Run,
		w.hooks.Run, w.hooks.Keep, w.reconciler.Run,
	} {
		pieces.Go(func() error { piece(background); return nil })
	}
	pieces.Go(func() error { return w.catalog.Run(background, w.news.catalog) })
	pieces.Go(func() error { return w.admin.Serve(background) })
	pieces.Go(func() error { return w.public.Serve(background) })
	w.logger.Info("serving", "worker", w.id, "listen", w.publicListener.Addr().String(), "admin", w.adminListener.Addr().String())
	if ready != nil {
		ready()
	}

	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	drained := w.drain(background)
	stop()
	return errors.Join(pieces.Wait(), drained)
}

// drain ends the worker's requests (O3): not ready at once, so that balancers turn
// away; no new connection; running answers end by themselves; then everything that
// was settled is written. Probes are answered all the while.
func (w *worker) drain(ctx context.Context) error {
	w.draining.Store(true)
	w.logger.Info("draining", "worker", w.id, "at_most", drain)
	patience, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	// An answer that outlasts the patience is ended and settled as far as it came.
	if err := w.public.Shutdown(patience); err != nil {
		w.logger.Warn("answers were cut off by the end of the drain", "cause", err)
	}
	w.gateway.Close()
	return w.say(ctx, 1, workerevents.WorkerDrained{})
}

// close gives back what is open; openWorker's and run's last step.
func (w *worker) close() error {
	var errs []error
	// A second close of a listener that its server has closed is no news.
	for _, l := range []net.Listener{w.publicListener, w.adminListener} {
		if l != nil {
			_ = l.Close()
		}
	}
	if w.bus != nil {
		errs = append(errs, w.bus.Close())
	}
	if w.calls != nil {
		w.calls.Close()
	}
	for _, pool := range []*pgxpool.Pool{w.pool, w.reconcilerPool} {
		if pool != nil {
			pool.Close()
		}
	}
	if w.store != nil {
		errs = append(errs, closeStore(w.store))
	}
	return errors.Join(errs...)
}

// started is what ran, as the log keeps it (O11).
func (w *worker) started() workerevents.WorkerStarted {
	v := thisVersion()
	return workerevents.WorkerStarted{
		Commit: v.Commit, Build: v.Build, SchemaVersion: v.SchemaVersion, MigrationsDigest: v.MigrationsDigest,
	}
}

// say writes an event of the worker's own stream.
func (w *worker) say(ctx context.Context, version int64, e event.Event) error {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	encoded := event.Encode(e)
	_, err := w.store.Append(ctx, eventstore.Append{
		Stream: workerevents.Stream(w.id), Expected: version, Meta: eventstore.Meta{Worker: w.id},
		Events:   []eventstore.Event{{Type: encoded.Type, Version: encoded.Version, At: time.Now().UTC(), Data: encoded.Data}},
		Priority: eventstore.Settlement,
	})
	if err != nil {
		return fmt.Errorf("%s was not written: %w", encoded.Type, err)
	}
	return nil
}
