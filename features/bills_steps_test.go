package features_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cucumber/godog"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/billing"
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
)

// later is when bills are closed: every month of the scenarios is over.
var later = time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC)

// billScene is a real log with bills behind it.
type billScene struct {
	t        *testing.T
	store    *eventstore.Store
	pool     *pgxpool.Pool
	closer   billing.Closer
	rebuild  *projections.Rebuilder
	requests int
	bill     bills.Bill
	tenant   string
	end      func() error
}

func registerBillSteps(sc *godog.ScenarioContext, t *testing.T) {
	s := &billScene{t: t}
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		*s = billScene{t: t}
		return ctx, nil
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, _ error) (context.Context, error) {
		if s.end != nil {
			return ctx, s.end()
		}
		return ctx, nil
	})
	sc.Step(`^(\d+) tokens of "([^"]*)" are settled on "([^"]*)" at "([^"]*)"$`, s.settle)
	sc.Step(`^the price of "([^"]*)" is corrected to (\d+) from "([^"]*)" to "([^"]*)"$`, s.correct)
	sc.Step(`^the "([^"]*)" bill of "([^"]*)" is (open|closed) at (-?\d+)$`, s.billIs)
	sc.Step(`^it has the lines$`, s.lines)
	sc.Step(`^it has the adjustments$`, s.adjustments)
	sc.Step(`^every line is the sum of its attempts$`, s.linesAddUp)
	sc.Step(`^the dry run says$`, s.dryRun)
	sc.Step(`^the bills are what the log adds up to$`, func(ctx context.Context) error { _, err := s.verified(ctx); return err })
	sc.Step(`^the bills are rebuilt$`, func(ctx context.Context) error { return s.rebuild.Rebuild(ctx, bills.Projection{}, nil) })
	sc.Step(`^a second rebuild leaves the same bytes$`, s.sameBytes)
	sc.Step(`^the "([^"]*)" bill of "([^"]*)" is closed$`, s.closeBill)
	sc.Step(`^closing the "([^"]*)" bill of "([^"]*)" is refused$`, s.notClosed)
}

// begin makes the database, for the scenarios that need one.
func (s *billScene) begin() error {
	if s.store != nil {
		return nil
	}
	url := pgtest.NewDatabase(s.t)
	store, err := eventstore.Open(context.Background(), eventstore.Config{URL: url})
	if err != nil {
		return err
	}
	s.store, s.pool = store, projectiontest.OpenPool(s.t, url)
	s.closer = billing.Closer{Log: store, Pool: s.pool}
	s.rebuild = projections.NewRebuilder(s.pool, store)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		projections.NewRunner(s.pool, store, projections.Options{Poll: time.Millisecond}, bills.Projection{}).Run(ctx)
	})
	s.end = func() error {
		stop()
		running.Wait()
		return store.Close(context.Background())
	}
	return nil
}

func (s *billScene) say(ctx context.Context, stream string, at time.Time, e event.Event) error {
	if err := s.begin(); err != nil {
		return err
	}
	enc := event.Encode(e)
	_, err := s.store.Append(ctx, eventstore.Append{
		Stream: stream, Expected: eventstore.AnyVersion,
		Events: []eventstore.Event{{Type: enc.Type, Version: enc.Version, At: at, Data: enc.Data}},
	})
	return err
}

func (s *billScene) settle(ctx context.Context, tokens int64, tenant, deployment, day string) error {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return err
	}
	s.requests++
	cost := money.NanoUSD(tokens)
	return s.say(ctx, "request/"+projectiontest.RequestID(s.requests).String(), at, request.AttemptSettled{
		Attempt: 1, Tenant: tenant, Key: "k1", Provider: "p", Model: "fable-5", Deployment: deployment,
		CredentialOwner: request.Operator, FallbackKind: request.NoFallback,
		Basis: usage.BasisReported, Usage: usage.Usage{Input: usage.Of(tokens), Output: usage.Of(0)},
		Amounts: request.Amounts{List: cost, Charge: cost, ProviderCost: cost},
	})
}

func (s *billScene) correct(ctx context.Context, deployment string, nano int64, from, to string) error {
	price, zero := decimal.New(nano, -3), decimal.Zero // per million tokens
	c := catalog.PriceCorrected{Deployment: deployment, Prices: money.Prices{Input: &price, Output: &zero}, Reason: "seen later"}
	var err error
	if c.From, err = time.Parse(time.DateOnly, from); err != nil {
		return err
	}
	if c.To, err = time.Parse(time.DateOnly, to); err != nil {
		return err
	}
	return s.say(ctx, "deployment/"+deployment, later, c)
}

func (s *billScene) billIs(ctx context.Context, period, tenant, status string, charge int64) (err error) {
	if err := s.closer.CaughtUp(ctx); err != nil {
		return err
	}
	s.tenant = tenant
	if s.bill, err = bills.Get(ctx, s.pool, tenant, period, bills.Operator); err != nil {
		return err
	}
	if string(s.bill.Status) != status || int64(s.bill.Charge) != charge {
		return fmt.Errorf("it is %s at %d", s.bill.Status, s.bill.Charge)
	}
	return nil
}

func (s *billScene) lines(want *godog.Table) error {
	got := [][]string{{"deployment", "attempts", "charge"}}
	for _, l := range s.bill.Lines {
		got = append(got, []string{*l.Deployment, fmt.Sprint(l.Attempts), fmt.Sprint(int64(l.Charge))})
	}
	return sameTable(want, got)
}

func (s *billScene) adjustments(want *godog.Table) error {
	got := [][]string{{"of", "reason", "charge"}}
	slices.SortFunc(s.bill.Adjustments, func(a, b bills.Adjustment) int { return cmp.Compare(a.Reason, b.Reason) })
	for _, a := range s.bill.Adjustments {
		got = append(got, []string{a.OfPeriod, a.Reason, fmt.Sprint(int64(a.Charge))})
	}
	return sameTable(want, got)
}

func (s *billScene) linesAddUp(ctx context.Context) error {
	for _, l := range s.bill.Lines {
		page, err := bills.LineAttempts(ctx, s.pool, s.tenant, s.bill.Period, l.ID, bills.Operator, "", bills.MaxLimit)
		if err != nil {
			return err
		}
		var sum request.Amounts
		for _, a := range page.Attempts {
			sum = sum.Add(a.Amounts)
		}
		if sum != l.Amounts || int64(len(page.Attempts)) != l.Attempts {
			return fmt.Errorf("%d attempts of line %s have %+v", len(page.Attempts), l.ID, sum)
		}
	}
	return nil
}

func (s *billScene) dryRun(ctx context.Context, want *godog.Table) error {
	if err := s.closer.CaughtUp(ctx); err != nil {
		return err
	}
	d, err := bills.DryRun(ctx, s.rebuild, nil)
	if err != nil {
		return err
	}
	got := [][]string{{"tenant", "before", "after", "difference"}}
	for _, t := range d.Tenants {
		got = append(got, []string{t.Tenant, fmt.Sprint(t.Before), fmt.Sprint(t.After), fmt.Sprint(t.Difference)})
	}
	return sameTable(want, got)
}

// verified is the digest of the bills, if they are what the log makes.
func (s *billScene) verified(ctx context.Context) (string, error) {
	if err := s.closer.CaughtUp(ctx); err != nil {
		return "", err
	}
	v, err := s.rebuild.Verify(ctx, bills.Projection{}, nil)
	if err == nil && !v.OK() {
		err = fmt.Errorf("the log makes %+v, the bills are %+v", v.Rebuilt, v.Live)
	}
	return v.Live.Sum, err
}

func (s *billScene) sameBytes(ctx context.Context) error {
	first, err := s.verified(ctx)
	if err != nil {
		return err
	}
	if err := s.rebuild.Rebuild(ctx, bills.Projection{}, nil); err != nil {
		return err
	}
	second, err := s.verified(ctx)
	if err == nil && first != second {
		err = fmt.Errorf("first %s, then %s", first, second)
	}
	return err
}

func (s *billScene) closeBill(ctx context.Context, period, tenant string) error {
	if err := s.closer.CaughtUp(ctx); err != nil {
		return err
	}
	if _, err := s.closer.Close(ctx, tenant, period, later); err != nil {
		return err
	}
	return s.closer.CaughtUp(ctx)
}

func (s *billScene) notClosed(ctx context.Context, period, tenant string) error {
	if err := s.closeBill(ctx, period, tenant); err == nil {
		return fmt.Errorf("it was closed")
	}
	return nil
}

func sameTable(want *godog.Table, got [][]string) error {
	var rows [][]string
	for _, row := range want.Rows {
		var cells []string
		for _, c := range row.Cells {
			cells = append(cells, c.Value)
		}
		rows = append(rows, cells)
	}
	if diff := gocmp.Diff(rows, got); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	return nil
}
