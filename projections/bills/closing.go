package bills

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/domain/billing"
)

var (
	// ErrClosed is a bill that is closed already.
	ErrClosed = errors.New("bills: closed already")
	// ErrPeriod is a text that is no period, 2026-11.
	ErrPeriod = errors.New("bills: not a period")
)

// NotEndedError refuses to close a bill whose month is not over.
type NotEndedError struct {
	Period string
	Ends   time.Time
}

func (e *NotEndedError) Error() string {
	return fmt.Sprintf("the bill of %s can be closed once the month is over, at %s", e.Period, e.Ends.Format(time.RFC3339))
}

// EarlierError refuses to close a bill before one that comes first: what a closed bill
// lacks goes to the next one, so there is only ever one next.
type EarlierError struct{ Tenant, Period, Open string }

func (e *EarlierError) Error() string {
	return fmt.Sprintf("the bill of %s for %s is still open: close it before that of %s", e.Tenant, e.Open, e.Period)
}

// Closing is what has to be said to close a bill.
type Closing struct {
	Adjusted []billing.BillAdjusted
	Closed   billing.BillClosed
	// Bill is the bill as it is closed.
	Bill Bill
}

// PlanClosing reads one bill as it stands and says its closing (M14). now must not be
// before the end of the period. The error is ErrNotFound for a bill without lines,
// ErrClosed, ErrPeriod, a *NotEndedError or an *EarlierError. Nothing is written: the
// caller says it, and the bill is closed when the view has read it.
func PlanClosing(ctx context.Context, pool *pgxpool.Pool, shard int16, tenant, period string, now time.Time) (Closing, error) {
	end, ok := billing.End(period)
	switch {
	case !ok:
		return Closing{}, ErrPeriod
	case now.Before(end):
		return Closing{}, &NotEndedError{Period: period, Ends: end}
	}
	var c Closing
	// One moment: the totals are those of the place that the closing names.
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, pool, snapshot, func(tx pgx.Tx) (err error) {
		c, err = planClosing(ctx, tx, shard, tenant, period)
		return err
	})
	return c, err
}

func planClosing(ctx context.Context, tx pgx.Tx, shard int16, tenant, period string) (c Closing, err error) {
	var earlier string
	err = tx.QueryRow(ctx, `
		select coalesce(min(l.period), '') from bill_lines l
		where l.tenant = $1 and l.period < $2
			and not exists (select from bill_closings c where c.tenant = l.tenant and c.period >= l.period)`,
		tenant, period).Scan(&earlier)
	if err != nil {
		return c, err
	}
	c.Bill, err = Get(ctx, tx, tenant, period, Caller)
	switch {
	case err != nil:
		return c, err
	case c.Bill.Status == Closed:
		return c, ErrClosed
	case earlier != "":
		return c, &EarlierError{Tenant: tenant, Period: period, Open: earlier}
	}
	for _, a := range c.Bill.Adjustments {
		c.Adjusted = append(c.Adjusted, billing.BillAdjusted{
			Tenant: tenant, Period: period, OfPeriod: a.OfPeriod, Reason: a.Reason, Amounts: a.Amounts,
		})
	}
	c.Closed = billing.BillClosed{
		Tenant: tenant, Period: period, Amounts: c.Bill.Amounts, UnknownAttempts: c.Bill.UnknownAttempts,
		Lines: len(c.Bill.Lines), LinesDigest: c.Bill.Digest(),
	}
	err = tx.QueryRow(ctx, `
		select position, (select coalesce(max(position), 0) from bill_corrections)
		from projection_checkpoints where name = $1 and target = 'live' and shard = $2`,
		Projection{}.Name(), shard).Scan(&c.Closed.Through, &c.Closed.CorrectionsThrough)
	return c, err
}

// Billed are the organizations that have a bill for a period, in order. The error is
// ErrPeriod for what is none.
func Billed(ctx context.Context, db Querier, period string) ([]string, error) {
	if _, ok := billing.End(period); !ok {
		return nil, ErrPeriod
	}
	rows, err := db.Query(ctx, `select distinct tenant from bill_lines where period = $1`, period)
	if err != nil {
		return nil, err
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(tenants)
	return tenants, err
}

// Changed are the closed bills that are not what was said when they were closed, as
// "tenant/period": none, or something is wrong with the view or the log (M14).
func Changed(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	changed := []string{}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, pool, snapshot, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant, period, lines_digest from bill_closings order by tenant, period`)
		if err != nil {
			return err
		}
		type closing struct{ Tenant, Period, Digest string }
		closings, err := pgx.CollectRows(rows, pgx.RowToStructByPos[closing])
		if err != nil {
			return err
		}
		for _, c := range closings {
			bill, err := Get(ctx, tx, c.Tenant, c.Period, Caller)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			if bill.Digest() != c.Digest {
				changed = append(changed, c.Tenant+"/"+c.Period)
			}
		}
		return nil
	})
	return changed, err
}
