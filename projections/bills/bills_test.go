package bills_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { pgtest.Main(m) }

const period = "2026-11"

// project applies a batch as the runner would: the wanted events only.
func project(t testing.TB, pool *pgxpool.Pool, batch []eventstore.Recorded) {
	t.Helper()
	batch = slices.DeleteFunc(slices.Clone(batch), func(r eventstore.Recorded) bool { return r.Type != "attempt_settled" })
	err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
		return bills.Projection{}.Apply(context.Background(), tx, batch)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// attempt is a settlement, the first of its request, with a few facts chosen.
func attempt(n int, change func(*request.AttemptSettled)) []eventstore.Recorded {
	s := request.AttemptSettled{
		Attempt: 1, Tenant: "acme", Key: "k1", Provider: "p1", Model: "fable-5", Deployment: "fable-5@p1",
		CredentialOwner: request.Operator, FallbackKind: request.NoFallback,
		Basis: usage.BasisReported, Usage: usage.Usage{Input: usage.Of(805), CachedInput: usage.Of(512), Output: usage.Of(96)},
		Amounts: request.Amounts{List: 50, Charge: 40, ProviderCost: 30, Subsidy: 10, Surcharge: 1},
	}
	if change != nil {
		change(&s)
	}
	return projectiontest.Stream(n, s)
}

func get(t testing.TB, pool *pgxpool.Pool, tenant string, view bills.View) bills.Bill {
	t.Helper()
	bill, err := bills.Get(t.Context(), pool, tenant, period, view)
	if err != nil {
		t.Fatal(err)
	}
	return bill
}

// A bill has a line for every model, deployment, credential owner and fallback
// kind, and its shape is that of api.md (M14).
func TestBill_M14(t *testing.T) {
	pool := projectiontest.NewPool(t)
	project(t, pool, slices.Concat(
		attempt(0, nil),
		attempt(1, nil),
		attempt(2, func(s *request.AttemptSettled) {
			s.CredentialOwner, s.Charge = request.Workspace, 0
		}),
		attempt(3, func(s *request.AttemptSettled) { s.FallbackKind = request.SameModel }),
		attempt(4, func(s *request.AttemptSettled) {
			s.Deployment, s.Provider, s.Masked = "fable-5@hidden", "hidden", true
		}),
		attempt(5, func(s *request.AttemptSettled) { s.Model = "fable-4" }),
		attempt(6, func(s *request.AttemptSettled) {
			s.Basis, s.Usage, s.Amounts = usage.BasisUnknown, usage.Usage{}, request.Amounts{}
		}),
		attempt(7, func(s *request.AttemptSettled) { s.Tenant = "globex" }),
	))
	for name, view := range map[string]bills.View{"caller.json": bills.Caller, "operator.json": bills.Operator} {
		out, err := json.MarshalIndent(get(t, pool, "acme", view), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, out)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Masked routes stay masked on a bill and on its attempts (X1).
func TestMaskedStaysMasked_X1(t *testing.T) {
	pool := projectiontest.NewPool(t)
	project(t, pool, attempt(0, func(s *request.AttemptSettled) {
		s.Provider, s.Deployment, s.Masked = "hidden", "fable-5@hidden", true
	}))
	for _, view := range []bills.View{bills.Caller, bills.Operator} {
		bill := get(t, pool, "acme", view)
		page, err := bills.LineAttempts(t.Context(), pool, "acme", period, bill.Lines[0].ID, view, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := json.Marshal([]any{bill, page.Attempts})
		if got := strings.Contains(string(out), "hidden"); got != (view == bills.Operator) {
			t.Errorf("view %d: %s", view, out)
		}
	}
}

// A settlement that is read again, in its batch or in a later one, counts once (I5).
func TestSettlementCountsOnce_I5(t *testing.T) {
	pool := projectiontest.NewPool(t)
	once := attempt(0, nil)
	project(t, pool, slices.Concat(once, once))
	project(t, pool, once)
	bill := get(t, pool, "acme", bills.Operator)
	if bill.Lines[0].Attempts != 1 || bill.Charge != 40 {
		t.Errorf("%+v", bill)
	}
}

// The month is the settlement's, in UTC, not the request's.
func TestPeriodIsTheSettlements(t *testing.T) {
	pool := projectiontest.NewPool(t)
	late := attempt(0, nil)
	late[0].At = time.Date(2026, 11, 30, 23, 30, 0, 0, time.FixedZone("", -3600)) // December in UTC
	project(t, pool, late)
	if _, err := bills.Get(t.Context(), pool, "acme", period, bills.Caller); !errors.Is(err, bills.ErrNotFound) {
		t.Errorf("November: %v", err)
	}
	list, err := bills.List(t.Context(), pool, "acme", bills.Caller)
	if err != nil || len(list) != 1 || list[0].Period != "2026-12" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Over any history and however it is cut into batches: the charges of a bill are
// the charges of its events (invariant 6), its lines are the sums of their
// attempts, and every attempt stands in exactly one line (M14).
func TestBillsAddUp_M14(t *testing.T) {
	pool := projectiontest.NewPool(t)
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := pool.Exec(t.Context(), "with l as (delete from bill_lines), u as (delete from usage_days) delete from ledger_attempts"); err != nil {
			rt.Fatal(err)
		}
		log := projectiontest.Lives(rt, 5)
		want := map[string]request.Amounts{}
		attempts := map[string]int64{}
		for _, rec := range log {
			e, err := event.Decode(rec.Type, rec.Version, rec.Data)
			if err != nil {
				rt.Fatal(err)
			}
			if s, ok := e.(request.AttemptSettled); ok {
				want[s.Tenant] = want[s.Tenant].Add(s.Amounts)
				attempts[s.Tenant]++
			}
		}
		for rest := log; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "batch")
			project(t, pool, rest[:n])
			rest = rest[n:]
		}
		for tenant, amounts := range want {
			bill := get(t, pool, tenant, bills.Operator)
			if bill.Amounts != amounts {
				rt.Fatalf("%s: bill %+v, events %+v", tenant, bill.Amounts, amounts)
			}
			var seen int64
			for _, line := range bill.Lines {
				sum, n := sumIn(t, pool, tenant, period, line.ID)
				if sum != line.Amounts || n != line.Attempts {
					rt.Fatalf("line %+v, but its %d attempts have %+v", line, n, sum)
				}
				seen += n
			}
			if seen != attempts[tenant] {
				rt.Fatalf("%s: %d attempts in lines, %d in the log", tenant, seen, attempts[tenant])
			}
		}
	})
}

func TestNothingIsFound(t *testing.T) {
	pool := projectiontest.NewPool(t)
	project(t, pool, attempt(0, nil))
	line := get(t, pool, "acme", bills.Caller).Lines[0].ID
	if _, err := bills.Get(t.Context(), pool, "globex", period, bills.Caller); !errors.Is(err, bills.ErrNotFound) {
		t.Errorf("another's bill: %v", err)
	}
	if _, err := bills.LineAttempts(t.Context(), pool, "globex", period, line, bills.Caller, "", 0); !errors.Is(err, bills.ErrNotFound) {
		t.Errorf("another's line: %v", err)
	}
	if _, err := bills.LineAttempts(t.Context(), pool, "acme", period, line, bills.Caller, "AAAA", 0); !errors.Is(err, bills.ErrCursor) {
		t.Errorf("no cursor: %v", err)
	}
	if list, err := bills.List(t.Context(), pool, "globex", bills.Caller); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A rebuild leaves the same bytes however often it is run, and a dry run says what
// it would change before anything changes (M15).
func TestRebuildAndDryRun_M15(t *testing.T) {
	pool := projectiontest.NewPool(t)
	log := projectiontest.NewLog(slices.Concat(attempt(0, nil), attempt(1, nil),
		attempt(2, func(s *request.AttemptSettled) { s.Tenant = "globex" }))...)
	rebuilder := projections.NewRebuilder(pool, log)
	dump := func() string {
		var all string
		err := pool.QueryRow(t.Context(), `select
			(select string_agg(t::text, e'\n' order by request_id, attempt) from ledger_attempts t) ||
			(select string_agg(t::text, e'\n' order by tenant, period, line) from bill_lines t)`).Scan(&all)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	rebuild := func() string {
		if err := rebuilder.Rebuild(t.Context(), bills.Projection{}, nil); err != nil {
			t.Fatal(err)
		}
		return dump()
	}
	first := rebuild()
	if second := rebuild(); second != first {
		t.Errorf("(-first +second):\n%s", cmp.Diff(first, second))
	}
	if _, err := pool.Exec(t.Context(), "update bill_lines set charge_nanousd = 1 where tenant = 'acme'"); err != nil {
		t.Fatal(err)
	}
	sabotaged := dump()
	got, err := bills.DryRun(t.Context(), rebuilder, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(got)
	want := `{"projection":"bills","events":3,"tenants":[` +
		`{"tenant":"acme","before_nanousd":1,"after_nanousd":80,"difference_nanousd":79},` +
		`{"tenant":"globex","before_nanousd":40,"after_nanousd":40,"difference_nanousd":0}]}`
	if string(out) != want {
		t.Errorf("dry run:\n%s\nwant\n%s", out, want)
	}
	if dump() != sabotaged {
		t.Error("the dry run changed the bills")
	}
	if rebuild() != first {
		t.Error("the rebuild did not repair the bills")
	}
}
