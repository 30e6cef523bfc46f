package billing_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/billing"
	"github.com/sluice-gateway/sluice/adapters/config"
	events "github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/views"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	november = time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	december = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
)

// office is a real log with a worker's views behind it.
type office struct {
	t     *testing.T
	store *eventstore.Store
	pool  *pgxpool.Pool
	billing.Closer
	requests int
}

func open(t *testing.T) *office {
	url := pgtest.NewDatabase(t)
	store, err := eventstore.Open(context.Background(), eventstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, store: store, pool: projectiontest.OpenPool(t, url)}
	o.Closer = billing.Closer{Log: store, Pool: o.pool, By: eventstore.Meta{Actor: "tests"}}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	runner := projections.NewRunner(o.pool, store, projections.Options{Poll: time.Millisecond}, views.All()...)
	running.Go(func() { runner.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o *office) say(stream string, at time.Time, e event.Event) {
	o.t.Helper()
	enc := event.Encode(e)
	_, err := o.store.Append(o.t.Context(), eventstore.Append{
		Stream: stream, Expected: eventstore.AnyVersion,
		Events: []eventstore.Event{{Type: enc.Type, Version: enc.Version, At: at, Data: enc.Data}},
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// settle writes a settlement of so many tokens at 1 nano-USD each.
func (o *office) settle(at time.Time, tokens int64) {
	o.requests++
	o.say("request/"+projectiontest.RequestID(o.requests).String(), at, request.AttemptSettled{
		Attempt: 1, Tenant: "acme", Key: "k1", Provider: "p1", Model: "m", Deployment: "m@p1",
		CredentialOwner: request.Operator, FallbackKind: request.NoFallback, Basis: usage.BasisReported,
		Usage:   usage.Usage{Input: usage.Of(tokens), Output: usage.Of(0)},
		Amounts: request.Amounts{List: money.NanoUSD(tokens), Charge: money.NanoUSD(tokens), ProviderCost: money.NanoUSD(tokens)},
	})
}

func (o *office) close(period string) (bills.Closing, error) {
	o.t.Helper()
	if err := o.CaughtUp(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	return o.Close(o.t.Context(), "acme", period, december.AddDate(0, 1, 0))
}

// said are the events of a bill's stream.
func (o *office) said(period string) (list []event.Event) {
	o.t.Helper()
	recorded, err := o.store.ReadStream(o.t.Context(), events.Stream("acme", period), 1, 100)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, rec := range recorded {
		e, err := event.Decode(rec.Type, rec.Version, rec.Data)
		if err != nil || rec.Meta.Actor != "tests" {
			o.t.Fatal(e, err, rec.Meta)
		}
		list = append(list, e)
	}
	return list
}

// Closing says the whole bill in the log, once, and opens the next; what comes after it
// is said when that one is closed (M14). Verifying agrees at every step (E4).
func TestClosingSaysTheBill_M14_E4(t *testing.T) {
	o := open(t)
	o.settle(november, 1000)
	closing, err := o.close("2026-11")
	if err != nil {
		t.Fatal(err)
	}
	digest := closing.Bill.Digest()
	amounts := request.Amounts{List: 1000, Charge: 1000, ProviderCost: 1000}
	want := []event.Event{
		events.BillOpened{Tenant: "acme", Period: "2026-11"},
		events.BillClosed{Tenant: "acme", Period: "2026-11", Through: 1, Amounts: amounts, Lines: 1, LinesDigest: digest},
	}
	if diff := cmp.Diff(want, o.said("2026-11")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]event.Event{events.BillOpened{Tenant: "acme", Period: "2026-12"}}, o.said("2026-12")); diff != "" {
		t.Error(diff)
	}
	if _, err := o.close("2026-11"); !errors.Is(err, bills.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}

	o.settle(november, 7) // late
	o.say("deployment/m@p1", november, catalog.DeploymentDefined{Deployment: catalog.Deployment{ID: "m@p1"}})
	two, zero := decimal.RequireFromString("0.002"), decimal.Zero
	correction := catalog.PriceCorrected{
		Deployment: "m@p1", From: november, To: december, Prices: money.Prices{Input: &two, Output: &zero}, Reason: "doubled",
	}
	if _, err := config.CorrectPrice(t.Context(), o.store, correction, o.By, december); err != nil {
		t.Fatal(err)
	}
	keeper := views.NewKeeper(o.pool, o.store)
	if err := keeper.Rebuild(t.Context(), "bills", nil); err != nil {
		t.Fatal(err)
	}
	if closing, err = o.close("2026-12"); err != nil {
		t.Fatal(err)
	}
	said := o.said("2026-12")
	if len(said) != 4 || closing.Bill.Charge != 1014 {
		t.Fatalf("%+v\n%+v", said, closing.Bill)
	}
	if err := o.CaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the live view, and one that was made again
		report, err := keeper.Verify(t.Context(), december, nil)
		if err != nil || !report.Views[1].OK() || len(report.ChangedBills) != 0 {
			t.Fatalf("%+v, %v", report, err)
		}
		bill, err := bills.Get(t.Context(), o.pool, "acme", "2026-11", bills.Caller)
		if err != nil || bill.Digest() != digest || bill.Status != bills.Closed {
			t.Errorf("November is %+v, %v", bill, err)
		}
		if err := keeper.Rebuild(t.Context(), "bills", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A closed bill that was changed behind Sluice's back is found by what was said of it
// (M14).
func TestAChangedBillIsFound_M14(t *testing.T) {
	o := open(t)
	o.settle(november, 1000)
	if _, err := o.close("2026-11"); err != nil {
		t.Fatal(err)
	}
	if err := o.CaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if changed, err := bills.Changed(t.Context(), o.pool); err != nil || len(changed) != 0 {
		t.Fatalf("%v, %v", changed, err)
	}
	if _, err := o.pool.Exec(t.Context(), "update bill_lines set charge_nanousd = charge_nanousd - 1"); err != nil {
		t.Fatal(err)
	}
	if changed, err := bills.Changed(t.Context(), o.pool); err != nil || !cmp.Equal(changed, []string{"acme/2026-11"}) {
		t.Errorf("%v, %v", changed, err)
	}
}

// A correction is refused with everything that is wrong with it, and nothing is written;
// one of a deployment that never was names it (M15).
func TestACorrectionIsHeldToWhatPricesAre_M15(t *testing.T) {
	o := open(t)
	o.say("deployment/m@p1", november, catalog.DeploymentDefined{Deployment: catalog.Deployment{ID: "m@p1"}})
	before, _ := o.store.Head(t.Context(), 0)
	price := func(s string) *decimal.Decimal { d := decimal.RequireFromString(s); return &d }
	good := catalog.PriceCorrected{
		Deployment: "m@p1", From: november, To: december, Reason: "r", Prices: money.Prices{Input: price("1"), Output: price("2")},
	}
	for name, change := range map[string]func(*catalog.PriceCorrected){
		"prices.input":                           func(c *catalog.PriceCorrected) { c.Prices.Input = nil },
		"prices.output":                          func(c *catalog.PriceCorrected) { c.Prices.Output = price("-1") },
		"prices.cache_read":                      func(c *catalog.PriceCorrected) { c.Prices.CacheRead = price("0.0000000000001") },
		"reason":                                 func(c *catalog.PriceCorrected) { c.Reason = " " },
		"to":                                     func(c *catalog.PriceCorrected) { c.To = c.From },
		"from":                                   func(c *catalog.PriceCorrected) { c.From = time.Time{} },
		"prices.long_context.above_input_tokens": func(c *catalog.PriceCorrected) { c.Prices.LongContext = &money.LongContext{} },
	} {
		c := good
		change(&c)
		_, err := config.CorrectPrice(t.Context(), o.store, c, o.By, december)
		e, ok := errors.AsType[*config.InvalidError](err)
		if !ok || e.Problems[0].Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := config.CorrectPrice(t.Context(), o.store, good, o.By, december.Add(-time.Second)); !errors.As(err, new(*config.InvalidError)) {
		t.Errorf("the future was corrected: %v", err)
	}
	never := good
	never.Deployment = "nobody"
	if _, err := config.CorrectPrice(t.Context(), o.store, never, o.By, december); !errors.As(err, new(*config.UnknownError)) {
		t.Errorf("nobody's price: %v", err)
	}
	if after, _ := o.store.Head(t.Context(), 0); after.Position != before.Position {
		t.Error("a refused correction was written")
	}
	position, err := config.CorrectPrice(t.Context(), o.store, good, o.By, december)
	if err != nil || position != before.Position+1 {
		t.Errorf("%d, %v", position, err)
	}
	list, err := config.PriceCorrections(t.Context(), o.store, "m@p1")
	if err != nil || len(list) != 1 || list[0].Position != position || list[0].Actor != "tests" || list[0].Reason != "r" {
		t.Errorf("%+v, %v", list, err)
	}
}
