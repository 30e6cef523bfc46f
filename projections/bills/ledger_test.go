package bills_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

var (
	november = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	december = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
)

// ledger is a log with a live view of its bills.
type ledger struct {
	t        testing.TB
	pool     *pgxpool.Pool
	log      *projectiontest.Log
	rebuild  *projections.Rebuilder
	streams  map[string]int64
	requests int
}

func newLedger(t testing.TB) *ledger {
	l := &ledger{t: t, pool: projectiontest.NewPool(t), log: projectiontest.NewLog(), streams: map[string]int64{}}
	l.rebuild = projections.NewRebuilder(l.pool, l.log)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	runner := projections.NewRunner(l.pool, l.log, projections.Options{Poll: time.Millisecond}, bills.Projection{})
	go func() { defer close(done); runner.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return l
}

// say writes events and waits until the live view has read them.
func (l *ledger) say(stream string, at time.Time, events ...event.Event) {
	l.t.Helper()
	for _, e := range events {
		enc := event.Encode(e)
		l.streams[stream]++
		l.log.Append(eventstore.Recorded{
			Event:  eventstore.Event{Type: enc.Type, Version: enc.Version, At: at, Data: enc.Data},
			Stream: stream, StreamVersion: l.streams[stream], RecordedAt: at,
		})
	}
}

// caughtUp waits for the live view.
func (l *ledger) caughtUp() {
	l.t.Helper()
	head, _ := l.log.Head(l.t.Context(), 0)
	for at := int64(-1); at != head.Position; {
		var stalled string
		err := l.pool.QueryRow(l.t.Context(), `
			select coalesce(max(position), 0), coalesce((select max(reason) from projection_stalls), '')
			from projection_checkpoints where name = 'bills' and target = 'live'`).Scan(&at, &stalled)
		if err != nil || stalled != "" {
			l.t.Fatal(err, stalled)
		}
	}
}

// settle writes a settlement of an attempt with so many input tokens at 1 nano-USD.
func (l *ledger) settle(at time.Time, tokens int64, change func(*request.AttemptSettled)) {
	l.requests++
	s := request.AttemptSettled{
		Attempt: 1, Tenant: "acme", Key: "k1", Provider: "p1", Model: "fable-5", Deployment: "fable-5@p1",
		CredentialOwner: request.Operator, FallbackKind: request.NoFallback, Basis: usage.BasisReported,
		Usage:   usage.Usage{Input: usage.Of(tokens), Output: usage.Of(0)},
		Amounts: request.Amounts{List: money.NanoUSD(tokens), Charge: money.NanoUSD(tokens), ProviderCost: money.NanoUSD(tokens)},
	}
	if change != nil {
		change(&s)
	}
	l.say("request/"+projectiontest.RequestID(l.requests).String(), at, s)
}

// correct says what a token of input truly cost, in nano-USD, from one time to another.
func (l *ledger) correct(from, to time.Time, nano int64, reason string) {
	price, zero := decimal.New(nano, -3), decimal.Zero
	l.say("deployment/fable-5@p1", to, catalog.PriceCorrected{
		Deployment: "fable-5@p1", From: from, To: to, Prices: money.Prices{Input: &price, Output: &zero}, Reason: reason,
	})
}

// close closes a bill as the command does.
func (l *ledger) close(tenant, period string) (bills.Closing, error) {
	l.caughtUp()
	c, err := bills.PlanClosing(l.t.Context(), l.pool, 0, tenant, period, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return c, err
	}
	events := []event.Event{}
	for _, a := range c.Adjusted {
		events = append(events, a)
	}
	l.say(billing.Stream(tenant, period), december, append(events, c.Closed)...)
	return c, nil
}

func (l *ledger) bill(tenant, period string) bills.Bill {
	l.t.Helper()
	l.caughtUp()
	b, err := bills.Get(l.t.Context(), l.pool, tenant, period, bills.Caller)
	if err != nil && !errors.Is(err, bills.ErrNotFound) {
		l.t.Fatal(err)
	}
	return b
}

func (l *ledger) rebuilt() {
	l.t.Helper()
	if err := l.rebuild.Rebuild(l.t.Context(), bills.Projection{}, nil); err != nil {
		l.t.Fatal(err)
	}
}

func (l *ledger) dryRun() bills.Difference {
	l.t.Helper()
	l.caughtUp()
	d, err := bills.DryRun(l.t.Context(), l.rebuild, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

// verified: what follows the log live is what it makes from the beginning (E4).
func (l *ledger) verified() string {
	l.t.Helper()
	l.caughtUp()
	v, err := l.rebuild.Verify(l.t.Context(), bills.Projection{}, nil)
	if err != nil || !v.OK() {
		l.t.Fatalf("%+v, %v", v, err)
	}
	return v.Live.Sum
}

// A correction changes no bill until the bills are rebuilt; the dry run says by how
// much, the rebuild does just that, twice the same, and only to the attempts that were
// settled on the deployment within the interval (M15). Before and after, the live view
// is what the log adds up to (E4).
func TestACorrectionWaitsForTheRebuild_M15_E4(t *testing.T) {
	l := newLedger(t)
	at := november.AddDate(0, 0, 10)
	l.settle(at.Add(-time.Microsecond), 100, nil) // before the interval
	l.settle(at, 1000, nil)
	l.settle(at.Add(time.Hour), 10, func(s *request.AttemptSettled) { s.Deployment = "fable-5@p2" })
	l.settle(at.Add(time.Hour), 10, func(s *request.AttemptSettled) { s.Tenant = "globex" })
	l.settle(at.Add(time.Hour), 10, func(s *request.AttemptSettled) {
		s.Basis, s.Usage, s.Amounts = usage.BasisUnknown, usage.Usage{}, request.Amounts{}
	})
	l.settle(at.Add(2*time.Hour), 100, nil) // behind it
	l.correct(at, at.Add(2*time.Hour), 3, "read wrongly")

	if b := l.bill("acme", "2026-11"); b.Charge != 1210 {
		t.Fatalf("before the rebuild the bill is %d", b.Charge)
	}
	before := l.verified()
	want := []bills.TenantDifference{
		{Tenant: "acme", Before: 1210, After: 3210, Difference: 2000},
		{Tenant: "globex", Before: 10, After: 30, Difference: 20},
	}
	if diff := gocmp.Diff(want, l.dryRun().Tenants); diff != "" {
		t.Fatal(diff)
	}
	if l.verified() != before {
		t.Fatal("the dry run changed the bills")
	}
	l.rebuilt()
	b := l.bill("acme", "2026-11")
	if b.Charge != 3210 || b.List != 3210 || b.ProviderCost != 3210 || b.UnknownAttempts != 1 || len(b.Adjustments) != 0 {
		t.Errorf("%+v", b)
	}
	first := l.verified()
	l.rebuilt()
	if l.verified() != first {
		t.Error("a second rebuild made other bytes")
	}
	for _, d := range l.dryRun().Tenants {
		if d.Difference != 0 {
			t.Errorf("after the rebuild there is still %+v", d)
		}
	}
	// A settlement of that interval that comes only now is priced by the correction too,
	// by the live view and by a rebuild alike.
	l.settle(at.Add(time.Minute), 1, nil)
	if b := l.bill("acme", "2026-11"); b.Charge != 3213 {
		t.Errorf("with one more the bill is %d", b.Charge)
	}
	l.verified()
}

// A closed bill never changes. A settlement that comes late and a correction stand on
// the next bill as adjustments, which are traced to their attempts as lines are (M14).
func TestAClosedBillNeverChanges_M14(t *testing.T) {
	l := newLedger(t)
	at := november.AddDate(0, 0, 10)
	l.settle(at, 1000, nil)
	l.settle(at, 100, nil)
	l.settle(december.Add(time.Hour), 7, nil)
	if _, err := l.close("acme", "2026-12"); !errors.As(err, new(*bills.EarlierError)) {
		t.Fatalf("December before November: %v", err)
	}
	closing, err := l.close("acme", "2026-11")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.bill("acme", "2026-11")
	if closed.Status != bills.Closed || closed.Charge != 1100 || closing.Closed.Charge != 1100 {
		t.Fatalf("%+v", closed)
	}
	if _, err := l.close("acme", "2026-11"); !errors.Is(err, bills.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	l.settle(at, 5, nil) // late
	l.correct(november, december, 2, "list price doubled")
	l.rebuilt()

	if diff := gocmp.Diff(closed, l.bill("acme", "2026-11")); diff != "" {
		t.Errorf("the closed bill changed (-was +is):\n%s", diff)
	}
	next := l.bill("acme", "2026-12")
	slices.SortFunc(next.Adjustments, func(a, b bills.Adjustment) int { return cmp.Compare(a.Reason, b.Reason) })
	if next.Charge != 7+10+1100 || len(next.Adjustments) != 2 ||
		next.Adjustments[0].Reason != "late_settlement" || next.Adjustments[0].Charge != 10 || next.Adjustments[0].Attempts != 1 ||
		next.Adjustments[1].Reason != "list price doubled" || next.Adjustments[1].Charge != 1100 || next.Adjustments[1].Attempts != 2 {
		t.Fatalf("%+v", next)
	}
	for _, a := range next.Adjustments {
		if sum, n := sumIn(t, l.pool, "acme", "2026-12", a.ID); sum != a.Amounts || n != a.Attempts {
			t.Errorf("adjustment %+v, but its %d attempts have %+v", a, n, sum)
		}
	}
	l.verified()

	// What stands on December's bill stays there when that is closed, and the next
	// correction goes to January's.
	if closing, err = l.close("acme", "2026-12"); err != nil || len(closing.Adjusted) != 2 {
		t.Fatalf("%+v, %v", closing, err)
	}
	december12 := l.bill("acme", "2026-12")
	l.correct(november, december, 1, "it had not")
	l.rebuilt()
	if diff := gocmp.Diff(december12, l.bill("acme", "2026-12")); diff != "" {
		t.Errorf("December changed (-was +is):\n%s", diff)
	}
	if january := l.bill("acme", "2027-01"); january.Charge != -1105 || len(january.Adjustments) != 1 {
		t.Errorf("%+v", january)
	}
	l.verified()
}

// What was settled between the look at a bill and the word that closes it is not in the
// closed bill, whose total was said already, but in the next.
//
// Rules: M14.
func TestASettlementBehindTheClosingIsLate_M14(t *testing.T) {
	l := newLedger(t)
	l.settle(november, 1000, nil)
	l.caughtUp()
	c, err := bills.PlanClosing(t.Context(), l.pool, 0, "acme", "2026-11", december)
	if err != nil {
		t.Fatal(err)
	}
	l.settle(november, 1, func(s *request.AttemptSettled) { s.Model = "fable-4" })
	l.caughtUp()
	l.say(billing.Stream("acme", "2026-11"), december, c.Closed)
	b := l.bill("acme", "2026-11")
	if b.Charge != 1000 || len(b.Lines) != 1 || b.Digest() != c.Closed.LinesDigest {
		t.Errorf("%+v", b)
	}
	if next := l.bill("acme", "2026-12"); next.Charge != 1 || next.Adjustments[0].OfPeriod != "2026-11" {
		t.Errorf("%+v", next)
	}
	l.verified()
}

// Rules: M14.
func TestABillIsClosedOnceItsMonthIsOver_M14(t *testing.T) {
	l := newLedger(t)
	l.settle(november, 1, nil)
	l.caughtUp()
	_, err := bills.PlanClosing(t.Context(), l.pool, 0, "acme", "2026-11", december.Add(-time.Nanosecond))
	if e, ok := errors.AsType[*bills.NotEndedError](err); !ok || !e.Ends.Equal(december) {
		t.Errorf("an instant before its end: %v", err)
	}
	if _, err = bills.PlanClosing(t.Context(), l.pool, 0, "acme", "2026-11", december); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if _, err = bills.PlanClosing(t.Context(), l.pool, 0, "acme", "2026-13", december); !errors.Is(err, bills.ErrPeriod) {
		t.Errorf("no month: %v", err)
	}
	if _, err = bills.PlanClosing(t.Context(), l.pool, 0, "globex", "2026-11", december); !errors.Is(err, bills.ErrNotFound) {
		t.Errorf("nobody's bill: %v", err)
	}
}

// A rebuild that was interrupted and finds another correction in the log begins again:
// what it had made lacks it.
//
// Rules: M15.
func TestAnInterruptedRebuildTakesInWhatWasCorrectedSince_M15(t *testing.T) {
	l := newLedger(t)
	l.settle(november, 100, nil)
	l.caughtUp()
	ctx, stop := context.WithCancel(t.Context())
	err := l.rebuild.Rebuild(ctx, bills.Projection{}, func(projections.Progress) { stop() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("not interrupted: %v", err)
	}
	l.correct(november, december, 5, "late news")
	l.rebuilt()
	if b := l.bill("acme", "2026-11"); b.Charge != 500 {
		t.Errorf("the bill is %d", b.Charge)
	}
}

// sumIn adds up the attempts of a line or an adjustment, page by page.
func sumIn(t testing.TB, pool *pgxpool.Pool, tenant, period, line string) (sum request.Amounts, n int64) {
	t.Helper()
	for cursor := ""; ; {
		page, err := bills.LineAttempts(t.Context(), pool, tenant, period, line, bills.Operator, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Attempts {
			sum = sum.Add(a.Amounts)
			n++
		}
		if cursor = page.Next; cursor == "" {
			return sum, n
		}
	}
}

// What stands in the log for ever is made the same way for ever (M14, E8).
func TestTheDigestsFormIsFixed_M14_E8(t *testing.T) {
	b := bills.Bill{
		Lines: []bills.Line{{
			ID: "l1", Model: "m", Attempts: 1, UnknownAttempts: 2, InputTokens: 3, CachedInputTokens: 4, OutputTokens: 5,
			Amounts: request.Amounts{List: 6, Charge: 7, ProviderCost: 8, Subsidy: 9, Surcharge: 10},
		}},
		Adjustments: []bills.Adjustment{{ID: "a1", OfPeriod: "2026-10", Reason: "r", Attempts: 1, Amounts: request.Amounts{List: -1, Charge: -2}}},
	}
	// printf 'line l1 1 2 3 4 5 6 7 8 9 10\nadjustment a1 1 -1 -2 0 0 0\n' | sha256sum
	if got := b.Digest(); got != "sha256:d6b0c56449c79bf88a67941d3d8bbca251c856ee471c9c4822764a646414edb7" {
		t.Errorf("the digest is %s", got)
	}
}

// An adjustment is shown with everything that a line has (M14).
func TestAdjustmentJSON_M14(t *testing.T) {
	out, err := json.Marshal(bills.Adjustment{
		ID: "a1", OfPeriod: "2026-10", Reason: "late_settlement", Attempts: 1, Amounts: request.Amounts{List: -1, Charge: -2},
	})
	want := `{"id":"a1","of_period":"2026-10","reason":"late_settlement","attempts":1,` +
		`"list_nanousd":-1,"charge_nanousd":-2,"provider_cost_nanousd":0,"subsidy_nanousd":0,"surcharge_nanousd":0}`
	if err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
}
