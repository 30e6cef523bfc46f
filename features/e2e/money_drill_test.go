package e2e_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/eventstore/pgserver"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// The full drill is `go test ./features/e2e -run MoneyDrill -drill-requests 100000 -timeout 120m`.
var drillRequests = flag.Int64("drill-requests", 1500, "how many requests the money drill sends")

const (
	// heldFor is how long answers of the database are kept back: longer than a caller
	// waits for its settlement, which is then written after its caller was let go.
	heldFor = 2500 * time.Millisecond
	// fewDisturbances is how many the shortest drill has, and requestsADisturbance how
	// seldom they are in a long one.
	fewDisturbances, requestsADisturbance = 6, 2500
)

// moneyDrill is an installation under load while pieces of it are disturbed.
type moneyDrill struct {
	t        *testing.T
	random   *rand.Rand
	server   *pgserver.Server
	fake     *fakeprovider.Server
	in       *harness.Installation
	keys     []moneyKey
	wires    [2]*harness.Wire
	workers  [2]*harness.Worker
	balancer *harness.Balancer
	load     *moneyLoad

	kills, cuts, delays, restarts int
}

// TestMoneyDrill_M16_R1_M15_O10 sends requests of every kind to two workers while
// providers fail, clients leave, workers and the database are killed and answers of the
// database are lost, and then compares, to the nano-dollar: the provider's own ledger,
// the log, the counters and windows, the bills and the usage. No limit was exceeded at
// any position of the log, and a price that is corrected over half of it changes what it
// should, twice the same.
//
// Rules: M16, R1, R2, R4, R8, R10, M2, M4, M5, M15, O10, E4, I5.
func TestMoneyDrill_M16_R1_M15_O10(t *testing.T) {
	if *drillRequests > 10_000 {
		harness.BePatient(t, 20)
	}
	d := newMoneyDrill(t)
	began := time.Now()
	d.disturb()
	d.load.clients.Wait()
	took := time.Since(began)
	for _, w := range d.workers {
		w.Stop(t) // what is still to be written is written then
	}
	d.compare(took)
}

func newMoneyDrill(t *testing.T) *moneyDrill {
	t.Helper()
	d := &moneyDrill{t: t, random: rand.New(rand.NewPCG(*drillSeed, 0))}
	d.server = pgtest.NewServer(t, pgserver.Options{Durable: true})
	d.fake = fakeprovider.Start(t, fakeprovider.Options{LedgerCalls: 1 << 22, Script: moneyScript})
	d.in = harness.InstallOn(t, d.server.URL(""), moneyConfig(d.fake.URL(), *drillRequests))
	for _, tenant := range []string{"wide", "tight", "busy", "watched", "owner"} {
		for range 2 {
			id, secret := d.in.NewKey(t, tenant)
			d.keys = append(d.keys, moneyKey{tenant, id, secret})
		}
	}
	for i := range d.workers {
		d.wires[i] = harness.NewWire(t, d.in.URL)
		d.workers[i] = d.in.Through(d.wires[i].URL).Serve(t)
	}
	d.balancer = harness.Balance(t, d.workers[:]...)
	d.load = startMoneyLoad(t, d.balancer.URL, d.keys, *drillRequests, *drillSeed)
	return d
}

// disturb disturbs something at random moments, but every kind of it in turn.
func (d *moneyDrill) disturb() {
	d.t.Helper()
	times := max(fewDisturbances, *drillRequests/requestsADisturbance)
	for i := range times {
		from, until := *drillRequests*i/times, *drillRequests*(i+1)/times
		d.await(from + 1 + d.random.Int64N((until-from)/2))
		one := d.random.IntN(len(d.workers))
		switch i % fewDisturbances {
		case 0, 3:
			d.killWorker(one)
		case 1, 4:
			d.loseAnswers(one)
		case 2:
			d.delayAnswers(one)
		case 5:
			d.killStore()
		}
	}
}

// await waits until so many requests have ended.
func (d *moneyDrill) await(n int64) {
	d.t.Helper()
	harness.Eventually(d.t, "the load goes on", func() bool { return d.load.done.Load() >= min(n, *drillRequests-moneyClients) })
}

func (d *moneyDrill) killWorker(i int) {
	d.t.Helper()
	d.kills++
	d.workers[i].Kill()
	d.balancer.Use(d.workers[1-i])
	d.workers[i] = d.in.Through(d.wires[i].URL).Serve(d.t)
	d.balancer.Use(d.workers[:]...)
}

// loseAnswers lets the database hear and do what a worker wants, and lose what it says
// to that: the worker cannot know whether its appends were written.
func (d *moneyDrill) loseAnswers(i int) {
	d.t.Helper()
	d.cuts++
	d.wires[i].Hold()
	harness.Eventually(d.t, "the database answers", func() bool { return d.wires[i].Kept() > 0 })
	d.wires[i].Cut()
}

// delayAnswers keeps the database's answers back for longer than a caller waits: its
// settlement comes late.
func (d *moneyDrill) delayAnswers(i int) {
	d.t.Helper()
	d.delays++
	d.wires[i].Hold()
	<-time.After(heldFor)
	d.wires[i].Release()
}

func (d *moneyDrill) killStore() {
	d.t.Helper()
	d.restarts++
	if err := d.server.Kill(); err != nil {
		d.t.Fatal(err)
	}
	if err := d.server.Start(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// compare is the drill's verdict.
func (d *moneyDrill) compare(took time.Duration) {
	t := d.t
	t.Helper()
	limits := moneyLimits(*drillRequests)
	a := auditMoney(t, d.in, limits)
	sums := a.compareLedger(d.fake.Ledger().Calls)
	d.compareAnswers(a)
	a.compareCounters(t, d.in)

	worker := d.in.Serve(t)
	awaitProjections(t, worker)
	reader := func(tenant string) harness.Client {
		for _, k := range d.keys {
			if k.tenant == tenant {
				return worker.Client(k.secret)
			}
		}
		return harness.Client{}
	}
	a.compareBills(t, reader)
	d.verify(a, "--chain")
	lines, attempts := a.correctHalf(t, d.in, reader)
	d.verify(a)
	a.report(t)
	d.tell(a, sums, took)
	t.Logf("the correction covered %d attempts and changed %d lines", attempts, lines)
}

// verify runs the product's own verification. What a killed worker left open is overdue
// once the drill takes longer than a request may: that is told, and nothing else.
func (d *moneyDrill) verify(a *moneyAudit, args ...string) {
	t := d.t
	t.Helper()
	open := map[string]bool{}
	for _, id := range a.open() {
		open[id] = true
	}
	said := d.in.Run(t, append([]string{"verify"}, args...)...)
	for line := range strings.Lines(said.Stdout) {
		text := strings.TrimSpace(line)
		id, _, _ := strings.Cut(strings.TrimPrefix(text, "request/"), " ")
		overdue := open[id] && strings.Contains(text, "open although its deadline")
		if !overdue && !strings.HasPrefix(text, "ok ") && !strings.HasPrefix(text, "fail  requests' lives") && text != "" {
			t.Errorf("verify: %s", text)
		}
	}
	t.Log(said.Stdout)
}

// compareAnswers: who holds a whole answer was told what the log says it cost.
func (d *moneyDrill) compareAnswers(a *moneyAudit) {
	charges := map[string]int64{}
	for _, one := range a.attempts {
		charges[one.request] += one.charge
	}
	for id, cost := range d.load.acknowledged {
		if l := a.lives[id]; l == nil || l.outcome != "completed" {
			a.problem("%s: a client holds the whole answer, the log says %+v", id, l)
		} else if cost >= 0 && cost != charges[id] {
			a.problem("%s: a client was told that it cost %d, the log says %d", id, cost, charges[id])
		}
	}
}

// tell says what the drill was about, and whether everything that it is for took place.
func (d *moneyDrill) tell(a *moneyAudit, sums ledgerSums, took time.Duration) {
	t := d.t
	t.Helper()
	l := d.load
	t.Logf("seed %d: %d requests in %s, %d of them whole, %d refused, %d left early, %d lost, %d times told that the gateway is not there; "+
		"%d kills of a worker, %d of PostgreSQL, %d times answers of it lost, %d times late",
		*drillSeed, l.done.Load(), took.Round(time.Second), l.whole.Load(), l.refused.Load(), l.early.Load(), l.lost.Load(), l.unsettled.Load(),
		d.kills, d.restarts, d.cuts, d.delays)
	t.Logf("log: %d requests, %d events, %d attempts, %d left open; provider: %d calls, %d reservations never sent",
		len(a.lives), a.events, len(a.attempts), len(a.open()), sums.calls, sums.neverSent)
	t.Logf("nano-USD: the provider bills %d: %d of usage that the log has (and prices at %d), %d of what it counted itself (at %d), %d of what it cannot know",
		sums.cost, sums.known, sums.logged, sums.counted, sums.estimated, sums.silent)
	t.Logf("limits: %s", a.limits.told())
	for _, event := range []string{
		"reservation_overrun", "meter_hold_placed", "model_changed", "attempt_throttled", "request_refused", "limit_observed", "budget_threshold_reached",
	} {
		if a.counts[event] == 0 {
			t.Errorf("the drill brought no %s about", event)
		}
	}
	for _, unit := range []string{"nanousd", "requests", "tokens"} {
		if a.limits.refusals[unit] == 0 {
			t.Errorf("no limit of %s refused anything", unit)
		}
	}
	if sums.known == 0 || sums.known != sums.logged || sums.cost != sums.known+sums.counted+sums.silent {
		t.Errorf("the provider's ledger and the log do not add up: %+v", sums)
	}
}
