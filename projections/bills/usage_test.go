package bills_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/projections/bills"
)

// Usage grouped any way has the same sums, page by page, and is one organization's: its
// days are UTC's and both ends are included (Z6, D2).
func TestUsageAddsUpHoweverItIsGrouped_Z6(t *testing.T) {
	l := newLedger(t)
	day := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	var want request.Amounts
	for i := range 24 {
		l.settle(day.Add(time.Duration(i)*5*time.Hour), 100, func(s *request.AttemptSettled) {
			s.Key, s.Model = fmt.Sprint("k", i%3), fmt.Sprint("m", i%2)
			if i%4 == 0 {
				s.Basis, s.Usage, s.Amounts = usage.BasisUnknown, usage.Usage{}, request.Amounts{}
			}
			want = want.Add(s.Amounts)
		})
	}
	l.settle(day.Add(-time.Nanosecond*1000), 1, nil) // the day before
	l.settle(day.AddDate(0, 0, 5), 1, nil)           // the day after the last
	l.settle(day, 1, func(s *request.AttemptSettled) { s.Tenant = "globex" })
	l.caughtUp()
	dimensions := bills.Dimensions()
	for mask := range 8 {
		q := bills.UsageQuery{Tenant: "acme", Since: day, Until: day.AddDate(0, 0, 4)}
		for i, d := range dimensions {
			if mask&(1<<i) != 0 {
				q.By = append(q.By, d)
			}
		}
		var sum request.Amounts
		var attempts, unknown int64
		var names []string
		for cursor := ""; ; {
			page, err := bills.ReadUsage(t.Context(), l.pool, q, cursor, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range page.Rows {
				sum, attempts, unknown = sum.Add(row.Amounts), attempts+row.Attempts, unknown+row.UnknownAttempts
				name := ""
				for i, part := range []*string{row.Day, row.Model, row.Key} {
					if (part != nil) != slices.Contains(q.By, dimensions[i]) {
						t.Fatalf("grouped by %v: %+v", q.By, row)
					}
					if part != nil {
						name += *part + " "
					}
				}
				names = append(names, name)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if sum != want || attempts != 24 || unknown != 6 {
			t.Errorf("by %v: %+v in %d attempts, %d unknown; want %+v", q.By, sum, attempts, unknown, want)
		}
		if !slices.IsSorted(names) || len(slices.Compact(names)) != len(names) {
			t.Errorf("by %v the rows are %q", q.By, names)
		}
	}
	for _, cursor := range []string{"x", "AAAA", "W10", "WyIiLCIiLCIiLCIiXQ"} {
		if _, err := bills.ReadUsage(t.Context(), l.pool, bills.UsageQuery{Tenant: "acme"}, cursor, 1); !errors.Is(err, bills.ErrCursor) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}
