package e2e_test

import (
	"flag"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/eventstore/pgserver"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// The full drill is `go test ./features/e2e -run Drill -rounds 200 -timeout 60m`.
var (
	drillRounds = flag.Int("rounds", 12, "how often the crash drill kills something")
	drillSeed   = flag.Uint64("seed", 1, "what the crash drill's chances come from")
	drillTime   = flag.Duration("drill-time", time.Minute, "when the crash drill stops killing, whatever -rounds says; 0: never")
)

// drillClients load the two workers while they are killed.
const drillClients = 16

// drill is an installation that is killed piece by piece.
type drill struct {
	t        *testing.T
	random   *rand.Rand
	server   *pgserver.Server
	fake     *fakeprovider.Server
	in       *harness.Installation
	workers  [2]*harness.Worker
	balancer *harness.Balancer
	load     *load

	workerKills, storeKills int
}

// TestCrashDrill_E11_E3_I5 kills workers and PostgreSQL at random points under load
// and then compares the log with what every client and the provider hold.
//
// Requests that were open when their worker died stay open: they are counted and
// shown, and everything but their end is held to the same promises.
//
// Rules: E11, E3, I5.
func TestCrashDrill_E11_E3_I5(t *testing.T) {
	d := newDrill(t)
	deadline := time.Now().Add(*drillTime)
	for round := range *drillRounds {
		if *drillTime > 0 && time.Now().After(deadline) {
			t.Logf("stopped after %d of %d rounds by -drill-time", round, *drillRounds)
			break
		}
		d.round()
	}
	d.load.end()
	awaitProjections(t, d.workers[0])
	for _, w := range d.workers {
		w.Stop(t)
	}
	d.compare()
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	d := &drill{t: t, random: rand.New(rand.NewPCG(*drillSeed, 0))}
	d.server = pgtest.NewServer(t, pgserver.Options{Durable: true})
	d.fake = fakeprovider.Start(t, fakeprovider.Options{LedgerCalls: 1 << 22})
	config := harness.Config{
		// Both are one server, so that one ledger has all calls.
		Providers: []harness.Provider{{ID: "a", URL: d.fake.URL()}, {ID: "b", URL: d.fake.URL()}},
		Tenants:   []harness.Tenant{{ID: "acme", MonthlyUSD: "1000000.00"}},
	}
	for slug, routes := range loadModels {
		config.Models = append(config.Models, harness.Model{
			Slug: slug, Routes: routes,
			// The failures here are wanted: an open circuit would hide them.
			Policy: "{circuit: {failures_to_open: 1000, open_for: 1s}}",
		})
	}
	d.in = harness.InstallOn(t, d.server.URL(""), config)
	key := d.in.Key(t, "acme")
	d.workers = [2]*harness.Worker{d.in.Serve(t), d.in.Serve(t)}
	d.balancer = harness.Balance(t, d.workers[:]...)
	d.load = startLoad(t, harness.Client{Base: d.balancer.URL, Key: key}, drillClients, *drillSeed)
	return d
}

// round lets the load run to a random point, kills something, and lets it run on
// for a while with that piece gone before it is started again.
func (d *drill) round() {
	d.t.Helper()
	d.awaitAnswers(1 + d.random.Int64N(60))
	if d.random.IntN(2) == 0 {
		d.killStore()
	} else {
		d.killWorker(d.random.IntN(len(d.workers)))
	}
	d.awaitAnswers(10)
}

// awaitAnswers waits for so many whole answers more.
func (d *drill) awaitAnswers(n int64) {
	d.t.Helper()
	want := d.load.whole.Load() + n
	harness.Eventually(d.t, "the load goes on", func() bool { return d.load.whole.Load() >= want })
}

func (d *drill) killStore() {
	d.t.Helper()
	d.storeKills++
	if err := d.server.Kill(); err != nil {
		d.t.Fatal(err)
	}
	if err := d.server.Start(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *drill) killWorker(i int) {
	d.t.Helper()
	d.workerKills++
	d.workers[i].Kill()
	d.balancer.Use(d.workers[1-i])
	d.workers[i] = d.in.Serve(d.t)
	d.balancer.Use(d.workers[:]...)
}

// awaitProjections waits until every read model has come to the end of the log, so
// that verify compares all of it.
func awaitProjections(t *testing.T, worker *harness.Worker) {
	t.Helper()
	metrics := harness.Client{Base: worker.Admin}
	harness.Eventually(t, "the projections catch up", func() bool {
		found := projectionLag.FindAllStringSubmatch(string(metrics.Get(t, "/metrics").Body), -1)
		return len(found) > 0 && !slices.ContainsFunc(found, func(lag []string) bool { return lag[1] != "0" })
	})
}

var projectionLag = regexp.MustCompile(`(?m)^sluice_projection_lag_events\{.*\} (\d+)$`)

// compare is the drill's verdict.
func (d *drill) compare() {
	t := d.t
	t.Helper()
	a := auditLog(t, d.in)
	neverSent := a.checkCalls(d.fake.Ledger().Calls)
	for id := range d.load.acknowledged {
		if l := a.lives[id]; l == nil || l.outcome != "completed" {
			a.problem("%s: a client holds the whole answer, the log says %+v", id, l)
		}
	}
	for id := range d.load.told {
		if l := a.lives[id]; l == nil || l.final != 1 || l.outcome == "completed" {
			a.problem("%s: a client was told that it failed, the log says %+v", id, l)
		}
	}
	held, settled := a.money()
	if countedHeld, countedSettled := d.in.Spending(t, "acme"); countedHeld != held || countedSettled != settled {
		a.problem("the counters hold %d and have settled %d nano-USD, the log adds up to %d and %d", countedHeld, countedSettled, held, settled)
	}
	a.report(t)
	t.Log(d.in.Must(t, "verify", "--chain"))
	t.Logf("seed %d: %d kills of a worker, %d of PostgreSQL; %d requests and %d events in the log; "+
		"%d answers acknowledged, %d other ends %v; %d requests left open; %d calls seen, %d reservations never sent",
		*drillSeed, d.workerKills, d.storeKills, len(a.lives), a.events,
		len(d.load.acknowledged), d.load.other.Load(), d.load.ends, len(a.open()), d.fake.Ledger().Total, neverSent)
}
