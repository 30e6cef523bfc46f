package bills

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

const (
	// maxPeriods bounds a list of bills: two years; older ones are asked for by name.
	maxPeriods = 24
	// maxLines bounds one bill. A line is a deployment in one of a few roles, and an
	// organization with more of them than this has another problem.
	maxLines = 10_000
	// DefaultLimit and MaxLimit bound a page of a line's attempts.
	DefaultLimit = 100
	MaxLimit     = 1000
)

// ErrNotFound is a bill or a line that is not there, or not this organization's.
var ErrNotFound = errors.New("bills: not found")

// Status says whether a bill may still change.
type Status string

// A bill is open while its period can still be settled in.
const (
	Open   Status = "open"
	Closed Status = "closed"
)

// Bill is an organization's month, as api.md shows it.
type Bill struct {
	Period string `json:"period"`
	Status Status `json:"status"`
	request.Amounts
	UnknownAttempts int64        `json:"unknown_attempts"`
	Lines           []Line       `json:"lines"`
	Adjustments     []Adjustment `json:"adjustments"`
}

// Line is a sum over attempts that are alike. Deployment is null where the route is
// masked, but for the operator (X1).
type Line struct {
	ID                string               `json:"id"`
	Model             string               `json:"model"`
	Deployment        *string              `json:"deployment"`
	CredentialOwner   request.Owner        `json:"credential_owner"`
	FallbackKind      request.FallbackKind `json:"fallback_kind"`
	Attempts          int64                `json:"attempts"`
	UnknownAttempts   int64                `json:"unknown_attempts"`
	InputTokens       int64                `json:"input_tokens"`
	CachedInputTokens int64                `json:"cached_input_tokens"`
	OutputTokens      int64                `json:"output_tokens"`
	request.Amounts
}

// Adjustment corrects a bill that was closed, on the next one that was not (M14).
type Adjustment struct {
	OfPeriod string `json:"of_period"`
	Reason   string `json:"reason"`
	Charge   int64  `json:"charge_nanousd"`
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// View is for whom a bill is read.
type View uint8

// Caller does not see where masked routes went; Operator does.
const (
	Caller View = iota
	Operator
)

// Get reads one bill.
func Get(ctx context.Context, db Querier, tenant, period string, view View) (Bill, error) {
	list, err := read(ctx, db, view, `tenant = $1 and period = $2`, tenant, period)
	if err != nil {
		return Bill{}, err
	}
	if len(list) == 0 {
		return Bill{}, ErrNotFound
	}
	return list[0], nil
}

// List reads an organization's bills, newest first.
func List(ctx context.Context, db Querier, tenant string, view View) ([]Bill, error) {
	return read(ctx, db, view, fmt.Sprintf(`tenant = $1 and period in (
		select distinct period from bill_lines where tenant = $1 order by period desc limit %d)`, maxPeriods), tenant)
}

func read(ctx context.Context, db Querier, view View, where string, args ...any) ([]Bill, error) {
	rows, err := db.Query(ctx, fmt.Sprintf(`
		select period, line, model, deployment, masked, credential_owner, fallback_kind, attempts, unknown_attempts,
			input_tokens, cached_input_tokens, output_tokens,
			list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd
		from bill_lines where %s
		order by period desc, model, deployment, credential_owner, fallback_kind limit %d`, where, maxPeriods*maxLines), args...)
	if err != nil {
		return nil, fmt.Errorf("read bills: %w", err)
	}
	bills := []Bill{}
	var period, deployment string
	var masked bool
	var l Line
	_, err = pgx.ForEachRow(rows, []any{
		&period, &l.ID, &l.Model, &deployment, &masked, &l.CredentialOwner, &l.FallbackKind, &l.Attempts, &l.UnknownAttempts,
		&l.InputTokens, &l.CachedInputTokens, &l.OutputTokens,
		&l.List, &l.Charge, &l.ProviderCost, &l.Subsidy, &l.Surcharge,
	}, func() error {
		if n := len(bills); n == 0 || bills[n-1].Period != period {
			bills = append(bills, Bill{Period: period, Status: Open, Adjustments: []Adjustment{}})
		}
		line := l
		if !masked || view == Operator {
			name := deployment
			line.Deployment = &name
		}
		bill := &bills[len(bills)-1]
		bill.Lines = append(bill.Lines, line)
		bill.Amounts = bill.Add(line.Amounts)
		bill.UnknownAttempts += line.UnknownAttempts
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read bills: %w", err)
	}
	return bills, nil
}

// Attempt is one row of the ledger, as a line's attempts are shown.
type Attempt struct {
	RequestID       uuid.UUID            `json:"request_id"`
	Attempt         int                  `json:"attempt"`
	At              time.Time            `json:"at"`
	Key             string               `json:"key"`
	Provider        *string              `json:"provider"`
	Model           string               `json:"model"`
	Deployment      *string              `json:"deployment"`
	CredentialOwner request.Owner        `json:"credential_owner"`
	FallbackKind    request.FallbackKind `json:"fallback_kind"`
	Basis           usage.Basis          `json:"basis"`
	Usage           usage.Usage          `json:"usage"`
	request.Amounts
}

// Page is a page of a line's attempts, oldest first.
type Page struct {
	Attempts []Attempt
	// Next is the cursor of the page that follows, empty on the last.
	Next string
}

// sqlAttempts walks one index from the cursor on and stops at the limit.
const sqlAttempts = `
select request_id, attempt, at, key, provider, model, deployment, masked, credential_owner, fallback_kind, basis,
	input_tokens, cached_input_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
	list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd
from ledger_attempts
where tenant = $1 and period = $2 and line = $3 and (at, request_id, attempt) > ($4, $5, $6)
order by at, request_id, attempt limit $7`

// LineAttempts are the attempts that a line adds up (M14). cursor is empty or a
// former page's Next; limit is bounded to MaxLimit, zero means DefaultLimit.
func LineAttempts(ctx context.Context, db Querier, tenant, period, line string, view View, cursor string, limit int) (Page, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	after, err := decodeCursor(cursor)
	if err != nil {
		return Page{}, err
	}
	rows, err := db.Query(ctx, sqlAttempts,
		tenant, period, line, after.at, after.request, after.attempt, limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("read attempts: %w", err)
	}
	attempts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Attempt, error) { return scanAttempt(row, view) })
	if err != nil {
		return Page{}, fmt.Errorf("read attempts: %w", err)
	}
	if len(attempts) == 0 && cursor == "" {
		return Page{}, ErrNotFound // a line without attempts is none
	}
	page := Page{Attempts: attempts}
	if len(attempts) > limit {
		page.Attempts = attempts[:limit]
		page.Next = encodeCursor(attempts[limit-1])
	}
	return page, nil
}

func scanAttempt(row pgx.CollectableRow, view View) (Attempt, error) {
	var a Attempt
	var provider, deployment string
	var masked bool
	var in, cached, w5, w1, out, reasoning *int64
	err := row.Scan(&a.RequestID, &a.Attempt, &a.At, &a.Key, &provider, &a.Model, &deployment, &masked,
		&a.CredentialOwner, &a.FallbackKind, &a.Basis, &in, &cached, &w5, &w1, &out, &reasoning,
		&a.List, &a.Charge, &a.ProviderCost, &a.Subsidy, &a.Surcharge)
	a.At = a.At.UTC()
	a.Usage = usage.Usage{
		Input: count(in), CachedInput: count(cached), CacheWrite5m: count(w5), CacheWrite1h: count(w1),
		Output: count(out), Reasoning: count(reasoning),
	}
	if !masked || view == Operator {
		a.Provider, a.Deployment = &provider, &deployment
	}
	return a, err
}

func count(n *int64) usage.Count {
	if n == nil {
		return usage.Count{}
	}
	return usage.Of(*n)
}
