package bills

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/request"
)

// Dimension is what usage is grouped by.
type Dimension string

// The dimensions of usage.
const (
	ByDay   Dimension = "day"
	ByModel Dimension = "model"
	ByKey   Dimension = "key"
)

// Dimensions lists them in the order in which rows are sorted.
func Dimensions() []Dimension { return []Dimension{ByDay, ByModel, ByKey} }

const (
	// MaxUsageDays bounds what one question reads: a year, both ends counted.
	MaxUsageDays = 366
	// DefaultUsageRows and MaxUsageRows bound a page.
	DefaultUsageRows = 1000
	MaxUsageRows     = 10_000
)

// UsageQuery is what is asked: an organization's days from Since to Until, both whole
// and both included, in UTC.
type UsageQuery struct {
	Tenant       string
	Since, Until time.Time
	By           []Dimension
}

// UsageRow is a sum over settled attempts, corrections of their prices included. What it
// was not grouped by is null. A count that nobody reported adds nothing; how many
// attempts that is about stands beside it (D2).
type UsageRow struct {
	Day                *string `json:"day"`
	Model              *string `json:"model"`
	Key                *string `json:"key"`
	Attempts           int64   `json:"attempts"`
	UnknownAttempts    int64   `json:"unknown_attempts"`
	InputTokens        int64   `json:"input_tokens"`
	CachedInputTokens  int64   `json:"cached_input_tokens"`
	CacheWrite5mTokens int64   `json:"cache_write_5m_tokens"`
	CacheWrite1hTokens int64   `json:"cache_write_1h_tokens"`
	OutputTokens       int64   `json:"output_tokens"`
	ReasoningTokens    int64   `json:"reasoning_tokens"`
	request.Amounts
}

// UsagePage is a page of usage, in the order of day, model and key.
type UsagePage struct {
	Rows []UsageRow
	// Next is the cursor of the page that follows, empty on the last.
	Next string
}

// ReadUsage sums an organization's usage. cursor is empty or a former page's Next of
// the same question; limit is bounded to MaxUsageRows, zero means DefaultUsageRows.
func ReadUsage(ctx context.Context, db Querier, q UsageQuery, cursor string, limit int) (UsagePage, error) {
	if limit <= 0 {
		limit = DefaultUsageRows
	}
	limit = min(limit, MaxUsageRows)
	after, err := decodeUsageCursor(cursor)
	if err != nil {
		return UsagePage{}, err
	}
	names := groupNames(q.By)
	rows, err := db.Query(ctx, fmt.Sprintf(`
		select %s, sum(attempts)::bigint, sum(unknown_attempts)::bigint, sum(input_tokens)::bigint, sum(cached_input_tokens)::bigint,
			sum(cache_write_5m_tokens)::bigint, sum(cache_write_1h_tokens)::bigint, sum(output_tokens)::bigint, sum(reasoning_tokens)::bigint,
			sum(list_nanousd)::bigint, sum(charge_nanousd)::bigint, sum(provider_cost_nanousd)::bigint,
			sum(subsidy_nanousd)::bigint, sum(surcharge_nanousd)::bigint
		from usage_days
		where tenant = $1 and day between $2 and $3 and ($7 or (%s) > ($4, $5, $6))
		group by 1, 2, 3 order by 1, 2, 3 limit $8`, names, names),
		q.Tenant, q.Since, q.Until, after[0], after[1], after[2], cursor == "", limit+1)
	if err != nil {
		return UsagePage{}, fmt.Errorf("read usage: %w", err)
	}
	var page UsagePage
	page.Rows, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (UsageRow, error) { return scanUsage(row, q.By) })
	if err != nil {
		return UsagePage{}, fmt.Errorf("read usage: %w", err)
	}
	if len(page.Rows) > limit {
		page.Rows = page.Rows[:limit]
		page.Next = encodeUsageCursor(page.Rows[limit-1])
	}
	return page, nil
}

// groupNames are the three columns to group by; one that was not asked for is the same
// for all rows.
func groupNames(by []Dimension) string {
	columns := map[Dimension]string{ByDay: `day::text collate "C"`, ByModel: `model`, ByKey: `key`}
	names := make([]string, 0, len(columns))
	for _, d := range Dimensions() {
		if !slices.Contains(by, d) {
			columns[d] = `''::text collate "C"`
		}
		names = append(names, columns[d])
	}
	return strings.Join(names, ", ")
}

func scanUsage(row pgx.CollectableRow, by []Dimension) (UsageRow, error) {
	var u UsageRow
	var day, model, key string
	err := row.Scan(&day, &model, &key, &u.Attempts, &u.UnknownAttempts, &u.InputTokens, &u.CachedInputTokens,
		&u.CacheWrite5mTokens, &u.CacheWrite1hTokens, &u.OutputTokens, &u.ReasoningTokens,
		&u.List, &u.Charge, &u.ProviderCost, &u.Subsidy, &u.Surcharge)
	for _, d := range by {
		switch d {
		case ByDay:
			u.Day = &day
		case ByModel:
			u.Model = &model
		case ByKey:
			u.Key = &key
		}
	}
	return u, err
}

// A cursor of usage is the last row's three names; what was not grouped by is empty.
func encodeUsageCursor(u UsageRow) string {
	var last [3]string
	for i, name := range []*string{u.Day, u.Model, u.Key} {
		if name != nil {
			last[i] = *name
		}
	}
	text, _ := json.Marshal(last) // three strings
	return base64.RawURLEncoding.EncodeToString(text)
}

// maxUsageCursor bounds what is decoded: three names are far shorter.
const maxUsageCursor = 4096

func decodeUsageCursor(text string) (last [3]string, err error) {
	if text == "" {
		return last, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > maxUsageCursor {
		return last, ErrCursor
	}
	var names []string
	if json.Unmarshal(b, &names) != nil || len(names) != len(last) || strings.ContainsRune(strings.Join(names, ""), 0) {
		return last, ErrCursor
	}
	copy(last[:], names)
	return last, nil
}
