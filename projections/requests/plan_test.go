package requests

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// Every search walks an index in the order of the answer and stops at its limit:
// no sort, no scan of the table, whatever its size (X2).
func TestSearchPlans_X2(t *testing.T) {
	pool := projectiontest.NewPool(t)
	// A hundred thousand requests of ten organizations, so that the planner has a
	// reason to choose.
	fill := `insert into requests
		select (lpad(to_hex((extract(epoch from timestamptz '2026-11-01') * 1000)::bigint + i * 1000), 12, '0') || '7' || lpad(to_hex(i % 4096), 3, '0') || '8000000000000000')::uuid, 't' || i % 10, 'k' || i % 20, timestamptz '2026-11-01' + i * interval '1 s', 'final', 'fast',
		       'm' || i % 7, '', 'chat', false, '', '', case when i % 20 < 10 then 'failed' else 'completed' end, '', 1, 0,
		       'p' || i % 3, false, 'reported', 1, 1, 1, 1, 1, 1, i, i, i, 0, 0, 1, 1
		from generate_series(1, 100000) i`
	if _, err := pool.Exec(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	projectiontest.Owner(t, pool.Config().ConnString(), "analyze requests")
	from := &cursorKey{at: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), id: uuid.Max}
	for name, c := range map[string]struct {
		filter Filter
		from   *cursorKey
		index  string
	}{
		"newest of a tenant":       {Filter{Tenant: "t1"}, nil, "requests_tenant_at_id_idx"},
		"next page of a tenant":    {Filter{Tenant: "t1"}, from, "requests_tenant_at_id_idx"},
		"a time of a tenant":       {Filter{Tenant: "t1", Since: from.at, Until: from.at.Add(time.Hour)}, nil, "requests_tenant_at_id_idx"},
		"a key of a tenant":        {Filter{Tenant: "t1", Key: "k11"}, from, "requests_tenant_key_at_id_idx"},
		"failures of a tenant":     {Filter{Tenant: "t0", Outcome: request.Failed}, from, "requests_tenant_outcome_at_id_idx"},
		"newest of all":            {Filter{}, nil, "requests_pkey"},
		"a time of all":            {Filter{Since: from.at, Until: from.at.Add(time.Hour)}, nil, "requests_pkey"},
		"next page of all":         {Filter{}, from, "requests_pkey"},
		"dear ones of a tenant":    {Filter{Tenant: "t1", MinCost: 10}, nil, "requests_tenant_at_id_idx"},
		"provider of a tenant":     {Filter{Tenant: "t1", Provider: "p1"}, nil, "requests_tenant_at_id_idx"},
		"completed of a tenant":    {Filter{Tenant: "t1", Outcome: request.Completed}, nil, "requests_tenant_at_id_idx"},
		"model asked or stood for": {Filter{Tenant: "t1", Model: "m1"}, nil, "requests_tenant_at_id_idx"},
	} {
		t.Run(name, func(t *testing.T) {
			sql, args := searchSQL(c.filter, c.from, 51)
			rows, err := pool.Query(t.Context(), "explain (costs off) "+sql, args...)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var plan strings.Builder
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&plan, line)
			}
			if !strings.Contains(plan.String(), c.index) || strings.Contains(plan.String(), "Sort") || strings.Contains(plan.String(), "Seq Scan") {
				t.Errorf("want %s in order, got\n%s", c.index, plan.String())
			}
		})
	}
}

// FuzzCursor: no text makes decoding panic or yield what encoding would not give.
func FuzzCursor(f *testing.F) {
	f.Add(encodeCursor(Row{ID: uuid.Max, At: projectiontest.Start}))
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := decodeCursor(text)
		if err != nil || key == nil {
			return
		}
		if again := encodeCursor(Row{ID: key.id, At: key.at}); again != text {
			t.Errorf("%q decodes to what encodes as %q", text, again)
		}
	})
}
