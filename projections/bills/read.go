package bills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Adjustment corrects a bill that was closed, on the next one that was not (M14). Its
// amounts may be negative: a credit. Its attempts are found as a line's are.
type Adjustment struct {
	ID       string `json:"id"`
	OfPeriod string `json:"of_period"`
	// Reason is late_settlement, or why a price was corrected.
	Reason   string `json:"reason"`
	Attempts int64  `json:"attempts"`
	request.Amounts
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
	list, err := read(ctx, db, view, `l.tenant = $1 and l.period = $2`, tenant, period)
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
	return read(ctx, db, view, fmt.Sprintf(`l.tenant = $1 and l.period in (
		select distinct period from bill_lines where tenant = $1 order by period desc limit %d)`, maxPeriods), tenant)
}

const sqlBills = `
select l.period, c.period is not null, l.line, l.reason, l.of_period, coalesce(p.reason, l.reason),
	l.model, l.deployment, l.masked, l.credential_owner, l.fallback_kind, l.attempts, l.unknown_attempts,
	l.input_tokens, l.cached_input_tokens, l.output_tokens,
	l.list_nanousd, l.charge_nanousd, l.provider_cost_nanousd, l.subsidy_nanousd, l.surcharge_nanousd
from bill_lines l
left join bill_closings c on c.tenant = l.tenant and c.period = l.period
left join bill_corrections p on p.position = l.correction
where %s
order by l.period desc, l.model, l.deployment, l.credential_owner, l.fallback_kind, l.of_period, l.reason, l.correction
limit %d`

func read(ctx context.Context, db Querier, view View, where string, args ...any) ([]Bill, error) {
	rows, err := db.Query(ctx, fmt.Sprintf(sqlBills, where, maxPeriods*maxLines), args...)
	if err != nil {
		return nil, fmt.Errorf("read bills: %w", err)
	}
	bills := []Bill{}
	var period, reason, ofPeriod, why, deployment string
	var closed, masked bool
	var l Line
	_, err = pgx.ForEachRow(rows, []any{
		&period, &closed, &l.ID, &reason, &ofPeriod, &why,
		&l.Model, &deployment, &masked, &l.CredentialOwner, &l.FallbackKind, &l.Attempts, &l.UnknownAttempts,
		&l.InputTokens, &l.CachedInputTokens, &l.OutputTokens,
		&l.List, &l.Charge, &l.ProviderCost, &l.Subsidy, &l.Surcharge,
	}, func() error {
		if n := len(bills); n == 0 || bills[n-1].Period != period {
			bills = append(bills, Bill{Period: period, Status: Open, Lines: []Line{}, Adjustments: []Adjustment{}})
		}
		bill := &bills[len(bills)-1]
		if closed {
			bill.Status = Closed
		}
		bill.Amounts = bill.Add(l.Amounts)
		bill.UnknownAttempts += l.UnknownAttempts
		if reason != "" {
			bill.Adjustments = append(bill.Adjustments, Adjustment{
				ID: l.ID, OfPeriod: ofPeriod, Reason: why, Attempts: l.Attempts, Amounts: l.Amounts,
			})
			return nil
		}
		line := l
		if !masked || view == Operator {
			name := deployment
			line.Deployment = &name
		}
		bill.Lines = append(bill.Lines, line)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read bills: %w", err)
	}
	return bills, nil
}

// Digest identifies the bill's lines and adjustments. It is written in the log when the
// bill is closed, so its form is fixed: a field that is shown some day is no part of it.
func (b Bill) Digest() string {
	h := sha256.New()
	for _, l := range b.Lines {
		fmt.Fprintln(h, "line", l.ID, l.Attempts, l.UnknownAttempts, l.InputTokens, l.CachedInputTokens, l.OutputTokens,
			int64(l.List), int64(l.Charge), int64(l.ProviderCost), int64(l.Subsidy), int64(l.Surcharge))
	}
	for _, a := range b.Adjustments {
		fmt.Fprintln(h, "adjustment", a.ID, a.Attempts,
			int64(a.List), int64(a.Charge), int64(a.ProviderCost), int64(a.Subsidy), int64(a.Surcharge))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Attempt is an attempt of a line with what stands there for it: its settlement and
// the corrections of its price, or, for an adjustment, those that it is about.
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
	// Corrected is set where a price correction is in the amounts.
	Corrected bool `json:"corrected,omitempty"`
	request.Amounts
}

// Page is a page of a line's attempts, oldest first.
type Page struct {
	Attempts []Attempt
	// Next is the cursor of the page that follows, empty on the last.
	Next string
}

// sqlAttempts walks one index from the cursor on and stops at the limit. An attempt's
// entries lie together there.
const sqlAttempts = `
select request_id, attempt, at, min(key), min(provider), min(model), min(deployment), bool_or(masked),
	min(credential_owner), min(fallback_kind), min(basis), bool_or(correction > 0),
	max(input_tokens), max(cached_input_tokens), max(cache_write_5m_tokens), max(cache_write_1h_tokens),
	max(output_tokens), max(reasoning_tokens),
	sum(list_nanousd)::bigint, sum(charge_nanousd)::bigint, sum(provider_cost_nanousd)::bigint,
	sum(subsidy_nanousd)::bigint, sum(surcharge_nanousd)::bigint
from ledger_attempts
where tenant = $1 and period = $2 and line = $3 and (at, request_id, attempt) > ($4, $5, $6)
group by at, request_id, attempt
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
		&a.CredentialOwner, &a.FallbackKind, &a.Basis, &a.Corrected, &in, &cached, &w5, &w1, &out, &reasoning,
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
