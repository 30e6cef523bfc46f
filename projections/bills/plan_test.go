package bills

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// Tracing a line to its attempts costs a page, whatever the size of the ledger.
//
// Rules: M14.
func TestAttemptsPlan_M14(t *testing.T) {
	pool := projectiontest.NewPool(t)
	fill := `insert into ledger_attempts (request_id, attempt, tenant, period, line, at, key, provider, model, deployment,
			credential_owner, fallback_kind, basis, input_tokens, cached_input_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
			output_tokens, reasoning_tokens, list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd, masked)
		select gen_random_uuid(), 1, 't', '2026-11', 'line' || i % 4, timestamptz '2026-11-01' + i * interval '1 s', 'k', 'p', 'm', 'd',
		       'operator', 'none', 'reported', 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false
		from generate_series(1, 50000) i`
	if _, err := pool.Exec(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	projectiontest.Owner(t, pool.Config().ConnString(), "analyze ledger_attempts")
	rows, err := pool.Query(t.Context(), "explain (costs off) "+sqlAttempts,
		"t", "2026-11", "line1", time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC), uuid.Nil, 0, 101)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if !strings.Contains(plan, "Index Scan using ledger_attempts_line_at_request_id_attempt_idx") || strings.Contains(plan, "Sort") {
		t.Errorf("the plan is\n%s", plan)
	}
}

// FuzzCursor: no text makes decoding panic or yield what encoding would not give.
func FuzzCursor(f *testing.F) {
	f.Add(encodeCursor(Attempt{RequestID: uuid.Max, At: projectiontest.Start, Attempt: 3}))
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := decodeCursor(text)
		if err != nil || text == "" {
			return
		}
		if again := encodeCursor(Attempt{RequestID: p.request, At: p.at, Attempt: int(p.attempt)}); again != text {
			t.Errorf("%q decodes to what encodes as %q", text, again)
		}
	})
}

// FuzzUsageCursor: no text makes decoding panic, and what it yields is text that
// PostgreSQL takes.
func FuzzUsageCursor(f *testing.F) {
	day := "2026-11-29"
	f.Add(encodeUsageCursor(UsageRow{Day: &day}))
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		last, err := decodeUsageCursor(text)
		if err != nil {
			return
		}
		for _, name := range last {
			if strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
				t.Errorf("%q decodes to %q", text, last)
			}
		}
	})
}
