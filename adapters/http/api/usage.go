package api

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/holds"
)

// defaultUsageDays is how far back usage is summed when nobody says from when.
const defaultUsageDays = 31

// getUsage is GET /v1/usage?group_by=model,key,day: sums of the organization's settled
// attempts, by whole days in UTC.
func (a *API) getUsage(ctx context.Context, c *call) *edge.Reply {
	q := query{values: c.Query}
	today := a.Now().UTC().Truncate(24 * time.Hour)
	ask := bills.UsageQuery{Tenant: c.key.Tenant, Until: q.day("until", today)}
	ask.Since = q.day("since", ask.Until.AddDate(0, 0, 1-defaultUsageDays))
	for _, name := range strings.FieldsFunc(q.text("group_by"), func(r rune) bool { return r == ',' }) {
		d := bills.Dimension(strings.TrimSpace(name))
		if !slices.Contains(bills.Dimensions(), d) {
			return a.fail(c.Request, badQuery("group_by", "made of model, key and day, with commas between"))
		}
		ask.By = append(ask.By, d)
	}
	cursor, limit := q.text("cursor"), int(min(q.number("limit"), bills.MaxUsageRows))
	switch {
	case q.bad != nil:
		return a.fail(c.Request, q.bad)
	case ask.Until.Before(ask.Since), ask.Until.After(ask.Since.AddDate(0, 0, bills.MaxUsageDays-1)):
		return a.fail(c.Request, badQuery("since", "before until and at most "+strconv.Itoa(bills.MaxUsageDays)+" days from it"))
	}
	page, err := bills.ReadUsage(ctx, a.Ledger, ask, cursor, limit)
	if err != nil {
		return a.billsFailed(c, err)
	}
	held, err := holds.Unresolved(ctx, a.Ledger, c.key.Tenant)
	if err != nil {
		return a.billsFailed(c, err)
	}
	return writeJSON(struct {
		list[bills.UsageRow]
		// Unresolved is what attempts hold whose usage never arrived, of whatever day (D2).
		Unresolved holds.Sum `json:"unresolved_meter_holds"`
	}{listOf(page.Rows, page.Next), held})
}

// day reads a date, or a time, whose UTC day is meant.
func (q *query) day(name string, otherwise time.Time) time.Time {
	v := q.values.Get(name)
	if v == "" {
		return otherwise
	}
	if day, err := time.Parse(time.DateOnly, v); err == nil {
		return day
	}
	t, err := time.Parse(time.RFC3339, strings.ReplaceAll(v, " ", "+"))
	if err != nil && q.bad == nil {
		q.bad = badQuery(name, "a day such as 2026-11-29, or a time in it")
	}
	return t.UTC().Truncate(24 * time.Hour)
}
