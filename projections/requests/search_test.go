package requests_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// completed is a request that was answered, with a few of its facts chosen.
func completed(n int, change func(*request.RequestAdmitted, *request.AttemptReserved, *request.AttemptSettled, *request.RequestFinalized)) []eventstore.Recorded {
	ttft := int64(340)
	a := projectiontest.Admitted("acme")
	r := request.AttemptReserved{Attempt: 1, Provider: "p1", Model: "fable-5", Reserved: 100}
	s := request.AttemptSettled{
		Attempt: 1, Basis: usage.BasisReported, Usage: usage.Usage{Input: usage.Of(805), CachedInput: usage.Of(512), Output: usage.Of(96)},
		Amounts: request.Amounts{List: 50, Charge: 40, ProviderCost: 30, Subsidy: 10},
	}
	f := request.RequestFinalized{Outcome: request.Completed, Attempts: 1, DurationMS: 1240, TTFTMS: &ttft}
	if change != nil {
		change(&a, &r, &s, &f)
	}
	return projectiontest.Stream(n, a, r, s, f)
}

func list(t testing.TB, pool *pgxpool.Pool, f requests.Filter, cursor string, limit int) requests.Page {
	t.Helper()
	page, err := requests.List(t.Context(), pool, f, cursor, limit)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func ids(page requests.Page) (list []int) {
	for _, row := range page.Rows {
		list = append(list, int(row.ID[15]))
	}
	return list
}

// Every filter of GET /v1/requests finds exactly its requests (X2).
func TestFilters_X2(t *testing.T) {
	pool := projectiontest.NewPool(t)
	type facts = func(*request.RequestAdmitted, *request.AttemptReserved, *request.AttemptSettled, *request.RequestFinalized)
	for n, change := range []facts{
		0: nil,
		1: func(a *request.RequestAdmitted, _ *request.AttemptReserved, _ *request.AttemptSettled, _ *request.RequestFinalized) {
			a.Tenant = "globex"
		},
		2: func(a *request.RequestAdmitted, _ *request.AttemptReserved, _ *request.AttemptSettled, _ *request.RequestFinalized) {
			a.Key = "k2"
		},
		3: func(a *request.RequestAdmitted, _ *request.AttemptReserved, _ *request.AttemptSettled, _ *request.RequestFinalized) {
			a.RequestedModel, a.CanonicalModel = "slow", "fable-4"
		},
		4: func(_ *request.RequestAdmitted, r *request.AttemptReserved, _ *request.AttemptSettled, _ *request.RequestFinalized) {
			r.Provider = "p2"
		},
		5: func(_ *request.RequestAdmitted, r *request.AttemptReserved, _ *request.AttemptSettled, _ *request.RequestFinalized) {
			r.Provider, r.Masked = "p2", true
		},
		6: func(_ *request.RequestAdmitted, _ *request.AttemptReserved, s *request.AttemptSettled, f *request.RequestFinalized) {
			f.Outcome, s.Charge = request.Truncated, 4000
		},
	} {
		project(t, pool, completed(n, change))
	}
	moment := func(n int) time.Time { return projectiontest.Start.Add(time.Duration(n) * time.Millisecond) }
	for name, c := range map[string]struct {
		filter requests.Filter
		want   []int
	}{
		"operator sees all":             {requests.Filter{}, []int{6, 5, 4, 3, 2, 1, 0}},
		"tenant":                        {requests.Filter{Tenant: "acme"}, []int{6, 5, 4, 3, 2, 0}},
		"since is inclusive":            {requests.Filter{Tenant: "acme", Since: moment(5)}, []int{6, 5}},
		"until is not":                  {requests.Filter{Tenant: "acme", Until: moment(3)}, []int{2, 0}},
		"key":                           {requests.Filter{Tenant: "acme", Key: "k2"}, []int{2}},
		"requested model":               {requests.Filter{Tenant: "acme", Model: "slow"}, []int{3}},
		"canonical model":               {requests.Filter{Tenant: "acme", Model: "fable-4"}, []int{3}},
		"provider, but masked":          {requests.Filter{Tenant: "acme", Provider: "p2"}, []int{4}},
		"provider, for the operator":    {requests.Filter{Provider: "p2"}, []int{5, 4}},
		"outcome":                       {requests.Filter{Tenant: "acme", Outcome: request.Truncated}, []int{6}},
		"outcome completed":             {requests.Filter{Tenant: "acme", Outcome: request.Completed}, []int{5, 4, 3, 2, 0}},
		"least cost":                    {requests.Filter{Tenant: "acme", MinCost: 41}, []int{6}},
		"least cost is inclusive":       {requests.Filter{Tenant: "acme", MinCost: 4000}, []int{6}},
		"class that nobody asked for":   {requests.Filter{Tenant: "acme", Class: "assistant"}, nil},
		"all of one request's together": {requests.Filter{Tenant: "acme", Since: moment(6), Key: "k1", Model: "fast", Provider: "p1", Outcome: request.Truncated, MinCost: 1}, []int{6}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ids(list(t, pool, c.filter, "", 0))); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

// Pages follow one another without a gap or a repetition while requests arrive,
// also between requests of the same microsecond (X2).
func TestPagesAreStableUnderLoad_X2(t *testing.T) {
	pool := projectiontest.NewPool(t)
	for n := range 25 {
		life := completed(n, nil)
		for i := range life {
			life[i].At = projectiontest.Start.Add(time.Duration(n/5) * time.Microsecond) // five at a time
		}
		project(t, pool, life)
	}
	var seen []int
	arriving := 100
	for cursor := ""; ; {
		page := list(t, pool, requests.Filter{Tenant: "acme"}, cursor, 4)
		seen = append(seen, ids(page)...)
		project(t, pool, completed(arriving, nil)) // at the top, above every page
		arriving++
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	var want []int
	for n := 24; n >= 0; n-- {
		want = append(want, n)
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestLimitIsBounded(t *testing.T) {
	pool := projectiontest.NewPool(t)
	var all []eventstore.Recorded
	for n := range requests.MaxLimit + 1 {
		all = append(all, projectiontest.Stream(n, projectiontest.Admitted("acme"))...)
	}
	project(t, pool, all)
	for limit, want := range map[int]int{0: requests.DefaultLimit, -1: requests.DefaultLimit, 3: 3, 1 << 30: requests.MaxLimit} {
		if page := list(t, pool, requests.Filter{}, "", limit); len(page.Rows) != want || page.Next == "" {
			t.Errorf("limit %d: %d rows, next %q", limit, len(page.Rows), page.Next)
		}
	}
}

func TestGetIsOfOneOrganization(t *testing.T) {
	pool := projectiontest.NewPool(t)
	project(t, pool, completed(0, nil))
	id := projectiontest.RequestID(0)
	for _, tenant := range []string{"acme", ""} {
		if row, err := requests.Get(t.Context(), pool, tenant, id); err != nil || row.ID != id {
			t.Errorf("tenant %q: %+v, %v", tenant, row, err)
		}
	}
	if _, err := requests.Get(t.Context(), pool, "globex", id); !errors.Is(err, requests.ErrNotFound) {
		t.Errorf("another's request: %v", err)
	}
	if _, err := requests.Get(t.Context(), pool, "acme", uuid.Max); !errors.Is(err, requests.ErrNotFound) {
		t.Errorf("no request: %v", err)
	}
}

// The shapes of api.md, byte for byte.
func TestJSON(t *testing.T) {
	pool := projectiontest.NewPool(t)
	project(t, pool, completed(0, nil), projectiontest.Stream(1, projectiontest.Admitted("acme")))
	page := list(t, pool, requests.Filter{Tenant: "acme"}, "", 0)
	out, err := json.MarshalIndent(page.JSON(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "list.json", out)
	if out, err = json.MarshalIndent(page.Rows[1].Detail(false), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "detail.json", out)
}

// Rules: X1.
func TestMaskedProviderIsTheOperators_X1(t *testing.T) {
	row := fold(t, projectiontest.Admitted("acme"), event.Event(request.AttemptReserved{Attempt: 1, Provider: "hidden-east", Masked: true}))
	caller, _ := json.Marshal(row.Detail(false))
	if strings.Contains(string(caller), "hidden-east") {
		t.Errorf("the caller sees %s", caller)
	}
	if operator := row.Detail(true); operator.Provider == nil || *operator.Provider != "hidden-east" {
		t.Errorf("the operator sees %v", operator.Provider)
	}
}
