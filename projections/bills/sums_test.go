package bills_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/bills"
)

// Whatever happens in whatever order (requests, corrections, closings, rebuilds, late
// settlements): the five sums of the events, corrected as far as the view was told, are
// those of the ledger, of the bills and of the usage; closed bills keep their bytes;
// charges of lines are never negative; the dry run says what the rebuild then does; and
// the live view is what the log makes from the beginning (M7, M14, M15, E4).
func TestTheSumsAgree_M7_M14_M15(t *testing.T) {
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		// Each makes a database and several rebuilds: more of them find nothing new.
		if checks++; checks > 25 {
			return
		}
		l := newLedger(t)
		closed := map[string]bills.Bill{}
		for range rapid.IntRange(3, 12).Draw(rt, "steps") {
			month := november.AddDate(0, rapid.IntRange(0, 2).Draw(rt, "month"), 0)
			tenant := rapid.SampledFrom([]string{"acme", "globex"}).Draw(rt, "tenant")
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1, 2:
				for range rapid.IntRange(1, 4).Draw(rt, "requests") {
					l.settle(month.Add(time.Duration(rapid.IntRange(0, 700).Draw(rt, "hour"))*time.Hour),
						rapid.Int64Range(0, 1000).Draw(rt, "tokens"), func(s *request.AttemptSettled) { vary(rt, s, tenant) })
				}
			case 3:
				from := month.Add(time.Duration(rapid.IntRange(0, 500).Draw(rt, "from")) * time.Hour)
				l.correct(from, from.Add(time.Duration(rapid.IntRange(1, 900).Draw(rt, "hours"))*time.Hour),
					rapid.Int64Range(0, 5).Draw(rt, "price"), "seen "+from.Format(time.DateOnly))
			case 4:
				said := l.dryRun()
				l.rebuilt()
				for _, d := range l.dryRun().Tenants {
					i := slices.IndexFunc(said.Tenants, func(s bills.TenantDifference) bool { return s.Tenant == d.Tenant })
					if d.Difference != 0 || said.Tenants[i].After != d.Before {
						rt.Fatalf("said %+v, did %+v", said.Tenants[i], d)
					}
				}
			case 5:
				period := billing.Period(month)
				if _, err := l.close(tenant, period); err == nil {
					closed[tenant+period] = l.bill(tenant, period)
				}
			}
		}
		l.verified()
		l.agree(rt)
		for _, tenant := range []string{"acme", "globex"} {
			for m := range 3 {
				period := billing.Period(november.AddDate(0, m, 0))
				bill := l.bill(tenant, period)
				if was, ok := closed[tenant+period]; ok {
					if diff := gocmp.Diff(was, bill); diff != "" {
						rt.Fatalf("closed bill %s of %s (-was +is):\n%s", period, tenant, diff)
					}
				}
				for _, line := range bill.Lines {
					if sum, n := sumIn(t, l.pool, tenant, period, line.ID); sum != line.Amounts || n != line.Attempts || line.Charge < 0 {
						rt.Fatalf("line %+v, but its %d attempts have %+v", line, n, sum)
					}
				}
			}
		}
	})
}

func vary(rt *rapid.T, s *request.AttemptSettled, tenant string) {
	s.Tenant = tenant
	s.Deployment = rapid.SampledFrom([]string{"fable-5@p1", "fable-5@p1", "fable-5@p2"}).Draw(rt, "deployment")
	switch rapid.IntRange(0, 4).Draw(rt, "kind") {
	case 0:
		s.CredentialOwner, s.Charge = request.Workspace, 0
	case 1:
		s.Basis, s.Usage, s.Amounts = usage.BasisUnknown, usage.Usage{}, request.Amounts{}
	case 2:
		s.Charge, s.Waived = 0, true
	}
}

// agree compares the sums of the log with those of every table.
func (l *ledger) agree(rt *rapid.T) {
	var told int64
	if err := l.pool.QueryRow(l.t.Context(), `select coalesce(max(position), 0) from bill_corrections`).Scan(&told); err != nil {
		rt.Fatal(err)
	}
	all, _ := l.log.ReadAll(l.t.Context(), 0, 0, 1<<20)
	var corrections []billing.Correction
	want := map[string]request.Amounts{}
	each := func(do func(eventstore.Recorded, event.Event)) {
		for _, rec := range all {
			e, err := event.Decode(rec.Type, rec.Version, rec.Data)
			if err != nil {
				rt.Fatal(err)
			}
			do(rec, e)
		}
	}
	each(func(rec eventstore.Recorded, e event.Event) {
		if c, ok := e.(catalog.PriceCorrected); ok && rec.Position <= told {
			corrections = append(corrections, billing.Correction{Position: rec.Position, PriceCorrected: c})
		}
	})
	each(func(rec eventstore.Recorded, e event.Event) {
		s, ok := e.(request.AttemptSettled)
		if !ok {
			return
		}
		// Said plainly: the last correction that covers the attempt prices it, or its own.
		amounts := s.Amounts
		for _, c := range corrections {
			if c.Covers(s.Deployment, rec.At) {
				amounts = billing.Reprice(s, c.Prices)
			}
		}
		want[s.Tenant] = want[s.Tenant].Add(amounts)
	})
	for _, table := range []string{"ledger_attempts", "bill_lines", "usage_days"} {
		for tenant, amounts := range want {
			var got request.Amounts
			err := l.pool.QueryRow(l.t.Context(), fmt.Sprintf(`
				select sum(list_nanousd), sum(charge_nanousd), sum(provider_cost_nanousd), sum(subsidy_nanousd), sum(surcharge_nanousd)
				from %s where tenant = $1`, table), tenant).
				Scan(&got.List, &got.Charge, &got.ProviderCost, &got.Subsidy, &got.Surcharge)
			if err != nil || got != amounts {
				rt.Fatalf("%s has %+v for %s, the log %+v, %v", table, got, tenant, amounts, err)
			}
		}
	}
}
