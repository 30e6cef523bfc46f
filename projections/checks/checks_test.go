package checks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/checks"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/views"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// scene is a real log with live views.
type scene struct {
	t       testing.TB
	store   *eventstore.Store
	pool    *pgxpool.Pool
	checker *checks.Checker
	said    int
}

func open(t testing.TB) *scene {
	t.Helper()
	url := pgtest.NewDatabase(t)
	store, err := eventstore.Open(context.Background(), eventstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	s := &scene{t: t, store: store, pool: projectiontest.OpenPool(t, url)}
	s.checker = checks.New(projectiontest.OpenPool(t, url), store)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	runner := projections.NewRunner(s.pool, store, projections.Options{Poll: 5 * time.Millisecond}, views.All()...)
	running.Go(func() { runner.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return s
}

// say appends a request's events in one decision, with their effects on the counters.
func (s *scene) say(events ...event.Event) string {
	s.t.Helper()
	part := projectiontest.Stream(s.said, events...)
	s.said++
	s.append(part[0].Stream, part)
	return part[0].Stream
}

func (s *scene) append(stream string, part []eventstore.Recorded) {
	s.t.Helper()
	a := eventstore.Append{Stream: stream, Expected: eventstore.AnyVersion}
	for _, rec := range part {
		if e, err := event.Decode(rec.Type, rec.Version, rec.Data); err == nil {
			a.Deltas = append(a.Deltas, budget.Effects(e)...)
		}
		a.Events = append(a.Events, rec.Event)
	}
	if _, err := s.store.Append(s.t.Context(), a); err != nil {
		s.t.Fatal(err)
	}
}

// caughtUp waits until every view has read the log.
func (s *scene) caughtUp() {
	s.t.Helper()
	head, err := s.store.Head(s.t.Context(), 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for behind := true; behind; {
		err := s.pool.QueryRow(s.t.Context(), `
			select count(*) < $2 or pg_sleep(0.005) is null from projection_checkpoints where target = 'live' and position >= $1`,
			head.Position, len(views.All())).Scan(&behind)
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// look makes every check.
func (s *scene) look() map[reconciliation.Check]reconciliation.CheckCompleted {
	s.t.Helper()
	all := map[reconciliation.Check]reconciliation.CheckCompleted{}
	for _, c := range reconciliation.Checks() {
		f, err := s.checker.Look(s.t.Context(), c, func(int64, int64) {})
		if err != nil {
			s.t.Fatalf("%s: %v", c, err)
		}
		all[c] = reconciliation.Complete(c, f, true, 0)
	}
	return all
}

const (
	month = "org/acme/usd/month/2026-11"
	key   = "k1"
)

// fill says requests of every kind: random lives, one whose usage is unknown, one open.
func (s *scene) fill() (unknown string) {
	for n := range 20 {
		s.say(rapid.Custom(projectiontest.Life).Example(n)...)
	}
	reserved := request.AttemptReserved{Attempt: 1, Tenant: "acme", Reserved: 500, Holds: []string{month}}
	lost := request.AttemptSettled{Attempt: 1, Tenant: "acme", Key: key, Basis: usage.BasisUnknown, Reserved: 500, Holds: []string{month}}
	unknown = s.say(projectiontest.Admitted("acme"), reserved, lost,
		request.MeterHoldPlaced{Attempt: 1, Tenant: "acme", Key: key, Model: "m", Tokens: 9},
		request.RequestFinalized{Outcome: request.Failed, Attempts: 1})
	s.say(projectiontest.Admitted("acme"), reserved) // open
	s.caughtUp()
	return unknown
}

// Everything that is kept beside the log is compared with it: as it is, all passes; with
// one row changed, missing or too much in each table, the check of that table finds it
// and names it, and no check of something else does (R7).
func TestADriftPlantedInEachTableIsNamed_R7(t *testing.T) {
	s := open(t)
	unknown := strings.TrimPrefix(s.fill(), "request/")
	for c, said := range s.look() {
		if said.Result != reconciliation.Passed || said.Compared == 0 || said.Position == 0 {
			t.Errorf("nothing differs, and %s says %+v", c, said)
		}
		if c == reconciliation.OpenHolds && (said.Open != 1 || said.OpenHeld != 500) {
			t.Errorf("one attempt is open: %+v", said)
		}
	}
	for _, c := range []struct {
		plant, mend string
		found       []reconciliation.Check
		// key has to be among the names of the first check.
		key string
		is  reconciliation.Kind
	}{
		{
			plant: "update budget_counters set held = held + 1 where key = '" + month + "'", mend: views.Budgets,
			found: []reconciliation.Check{reconciliation.Counters}, key: "0/" + month + " held", is: reconciliation.Amount,
		},
		{
			plant: "insert into budget_counters values (0, 'org/acme/usd/day/2020-01-01', 0, 7)", mend: views.Budgets,
			found: []reconciliation.Check{reconciliation.Counters}, key: "0/org/acme/usd/day/2020-01-01 settled", is: reconciliation.Amount,
		},
		{
			plant: "update budget_counters set settled = settled + 1 where key = '" + month + "'", mend: views.Budgets,
			found: []reconciliation.Check{reconciliation.Counters, reconciliation.Money}, key: "0/" + month + " settled", is: reconciliation.Amount,
		},
		{
			plant: "delete from requests where id = '" + unknown + "'", mend: "requests",
			found: []reconciliation.Check{reconciliation.Requests}, key: "requests " + unknown, is: reconciliation.Missing,
		},
		{
			plant: "update meter_holds set tokens = 10", mend: "meter_holds",
			found: []reconciliation.Check{reconciliation.MeterHolds}, key: "meter_holds " + unknown + "/1", is: reconciliation.Row,
		},
		{
			plant: "update ledger_attempts set charge_nanousd = charge_nanousd + 1 where request_id = '" + unknown + "'", mend: "bills",
			found: []reconciliation.Check{reconciliation.Bills}, key: "ledger_attempts " + unknown + "/1/0", is: reconciliation.Row,
		},
		{
			plant: "insert into bill_lines (tenant, period, line, of_period, model, deployment, credential_owner, fallback_kind, masked, " +
				"attempts, unknown_attempts, input_tokens, cached_input_tokens, output_tokens, " +
				"list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd) " +
				"values ('acme', '2026-11', 'air', '2026-11', '', '', '', '', false, 1, 0, 0, 0, 0, 5, 5, 5, 0, 0)", mend: "bills",
			found: []reconciliation.Check{reconciliation.Bills, reconciliation.Money}, key: "bill_lines acme/2026-11/air", is: reconciliation.Surplus,
		},
		{
			plant: "update usage_days set charge_nanousd = charge_nanousd + 1 where tenant = 'acme' and model = 'fable-5'", mend: "bills",
			found: []reconciliation.Check{reconciliation.Bills, reconciliation.Money}, key: "usage_days acme/2026-11-29/k1/fable-5", is: reconciliation.Row,
		},
		{
			plant: "insert into bill_closings values ('acme', '2026-11', 1, 0, 'sha256:of another bill')", mend: "bills",
			found: []reconciliation.Check{reconciliation.Bills}, key: "bill acme/2026-11", is: reconciliation.Changed,
		},
	} {
		t.Run(c.key, func(t *testing.T) {
			if tag, err := s.pool.Exec(t.Context(), c.plant); err != nil || tag.RowsAffected() != 1 {
				t.Fatal(tag, err)
			}
			for check, said := range s.look() {
				want := reconciliation.Passed
				if slices.Contains(c.found, check) {
					want = reconciliation.Differs
				}
				if said.Result != want {
					t.Errorf("%s says %s: %+v", check, said.Result, said.Drifts)
				}
				if check == c.found[0] && !slices.ContainsFunc(said.Drifts, func(d reconciliation.Drift) bool { return d.Key == c.key && d.Is == c.is }) {
					t.Errorf("%s names %+v, not %s", check, said.Drifts, c.key)
				}
			}
			if err := views.NewKeeper(s.pool, s.store).Rebuild(t.Context(), c.mend, nil); err != nil {
				t.Fatal(err)
			}
			if c.mend == views.Budgets { // a rebuild sets what the log has and leaves the rest at zero
				_, _ = s.pool.Exec(t.Context(), "delete from budget_counters where held = 0 and settled = 0")
			}
			for check, said := range s.look() {
				if said.Result != reconciliation.Passed {
					t.Errorf("after a rebuild %s says %+v", check, said)
				}
			}
		})
	}
}

// An attempt that was never settled is found although every table is what the log makes:
// the fault is in the log (R7).
func TestAnUnsettledAttemptIsFoundInTheLog_R7(t *testing.T) {
	s := open(t)
	s.fill()
	stream := s.say(projectiontest.Admitted("acme"),
		request.AttemptReserved{Attempt: 1, Tenant: "acme", Reserved: 77, Holds: []string{month}},
		request.RequestFinalized{Outcome: request.Failed, Attempts: 1})
	s.caughtUp()
	for check, said := range s.look() {
		if (said.Result == reconciliation.Passed) == (check == reconciliation.OpenHolds) {
			t.Errorf("%s says %+v", check, said)
		}
		if check == reconciliation.OpenHolds {
			if len(said.Drifts) != 1 || said.Drifts[0].Key != stream+" attempt 1" || *said.Drifts[0].Live != 77 || said.Open != 1 {
				t.Errorf("%+v", said)
			}
		}
	}
}

// A corrected price changes the bills when they are rebuilt and no counter ever: the
// sums follow the bills to what they were told, before and after (M15).
//
// Rules: R7, M15.
func TestCorrectedPricesAreNoDrift_R7_M15(t *testing.T) {
	s := open(t)
	s.fill()
	price := decimal.RequireFromString("900")
	e := event.Encode(catalog.PriceCorrected{
		Deployment: "fable-5@p1", From: projectiontest.Start.AddDate(0, 0, -1), To: projectiontest.Start.AddDate(0, 0, 1),
		Prices: money.Prices{Input: &price, Output: &price}, Reason: "read wrongly",
	})
	s.append("deployment/fable-5@p1", []eventstore.Recorded{{Event: eventstore.Event{Type: e.Type, Version: e.Version, Data: e.Data}}})
	s.caughtUp()
	charged := func() (sum int64) {
		if err := s.pool.QueryRow(t.Context(), "select sum(charge_nanousd)::bigint from bill_lines").Scan(&sum); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := charged()
	for range 2 {
		for check, said := range s.look() {
			if said.Result != reconciliation.Passed {
				t.Errorf("%s says %+v", check, said)
			}
		}
		if err := views.NewKeeper(s.pool, s.store).Rebuild(t.Context(), "bills", nil); err != nil {
			t.Fatal(err)
		}
	}
	if charged() == before {
		t.Error("the correction changed nothing")
	}
}

// What this release cannot read ends a check of money: it is not added up around it.
//
// Rules: R7, E8.
func TestAnUnknownEventIsNotAddedUpAround_R7_E8(t *testing.T) {
	s := open(t)
	s.fill()
	s.append("worker/x", []eventstore.Recorded{{Event: eventstore.Event{Type: "worker_teleported", Version: 1, Data: []byte("{}")}}})
	for _, c := range []reconciliation.Check{reconciliation.Counters, reconciliation.OpenHolds, reconciliation.Money} {
		_, err := s.checker.Look(t.Context(), c, func(int64, int64) {})
		if unknown, ok := errors.AsType[*event.UnknownTypeError](err); !ok || unknown.Type != "worker_teleported" {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// Every check ends with its context, and none of what it made stays behind.
//
// Rules: R7.
func TestChecksEndWithTheirContext_R7(t *testing.T) {
	s := open(t)
	s.fill()
	for _, c := range reconciliation.Checks() {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		_, err := s.checker.Look(ctx, c, func(done, total int64) {
			if seen++; done > total {
				t.Errorf("%s: %d of %d", c, done, total)
			}
			cancel()
		})
		if err == nil && seen > 0 && c != reconciliation.OpenHolds && c != reconciliation.Money && c != reconciliation.Counters {
			t.Errorf("%s went on to its end", c)
		}
		cancel()
		if _, err := s.checker.Look(ctx, c, func(int64, int64) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c, err)
		}
	}
	var shadows int
	err := s.pool.QueryRow(t.Context(), `select count(*) from pg_namespace where nspname like '%\_verify'`).Scan(&shadows)
	if err != nil || shadows != 0 {
		t.Errorf("%d shadows left, %v", shadows, err)
	}
	if _, err := s.checker.Look(t.Context(), "horoscopes", nil); err == nil {
		t.Error("an unknown check was made")
	}
}

// Checks beside live traffic find nothing: what is compared is of one moment.
//
// Rules: R7.
func TestLiveTrafficIsNoDrift_R7(t *testing.T) {
	s := open(t)
	s.fill()
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			s.say(rapid.Custom(projectiontest.Life).Example(n)...)
		}
	})
	defer writer.Wait()
	defer stop()
	for range 3 {
		for check, said := range s.look() {
			if said.Result != reconciliation.Passed {
				t.Errorf("%s says %+v", check, said)
			}
		}
	}
}
