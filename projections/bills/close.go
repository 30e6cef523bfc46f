package bills

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// closeBill takes a closing in: from here on the bill, and every one before it, is as
// it is (M14). What the closing did not see is moved to the next bill: settlements
// behind the place in the log that it looked at, and corrections newer than those it
// had, which only a view that was rebuilt since can hold.
func closeBill(ctx context.Context, tx pgx.Tx, rec eventstore.Recorded) error {
	e, err := projections.Decode(rec)
	if err != nil {
		return err
	}
	c, ok := e.(billing.BillClosed)
	if _, isPeriod := billing.End(c.Period); !ok || !isPeriod {
		return projections.At(rec, errStray)
	}
	var last string
	err = tx.QueryRow(ctx, `select coalesce(max(period), '') from bill_closings where tenant = $1`, c.Tenant).Scan(&last)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into bill_closings (tenant, period, through, corrections_through, lines_digest) values ($1, $2, $3, $4, $5)
		on conflict do nothing`,
		c.Tenant, c.Period, c.Through, c.CorrectionsThrough, c.LinesDigest)
	if err != nil {
		return err
	}
	return moveOn(ctx, tx, c, billing.Next(max(last, c.Period)))
}

// sqlUnseen are the entries of a bill that its closing did not see, by what they will
// be summed as.
const sqlUnseen = `
select distinct position > $3, to_char(at at time zone 'UTC', 'YYYY-MM'), case when position > $3 then 0 else correction end
from ledger_attempts
where line in (select line from bill_lines where tenant = $1 and period = $2)
	and (position > $3 or correction > $4)
order by 1, 2, 3`

// moveOn moves a closed bill's unseen entries to another bill, as adjustments.
func moveOn(ctx context.Context, tx pgx.Tx, c billing.BillClosed, to string) error {
	type group struct {
		late       bool
		ofPeriod   string
		correction int64
	}
	rows, err := tx.Query(ctx, sqlUnseen, c.Tenant, c.Period, c.Through, c.CorrectionsThrough)
	if err != nil {
		return err
	}
	groups, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g group, err error) {
		err = row.Scan(&g.late, &g.ofPeriod, &g.correction)
		return g, err
	})
	if err != nil {
		return err
	}
	for _, g := range groups {
		reason := priceCorrection
		if g.late {
			reason = lateSettlement
		}
		from, _ := time.Parse(PeriodFormat, g.ofPeriod)
		those := []any{c.Tenant, c.Period, c.Through, g.late, g.correction, from, from.AddDate(0, 1, 0)}
		if _, err := tx.Exec(ctx, sqlTakeOut, those...); err != nil {
			return err
		}
		line := adjustmentLine(c.Tenant, to, g.ofPeriod, reason, g.correction)
		if _, err := tx.Exec(ctx, sqlMove, append(those, to, line, g.ofPeriod, reason)...); err != nil {
			return err
		}
	}
	// A line is the sum of its attempts: one without any is none.
	_, err = tx.Exec(ctx, `delete from bill_lines where tenant = $1 and period = $2 and attempts = 0`, c.Tenant, c.Period)
	return err
}

// unseenGroup is one group of sqlUnseen. A late settlement goes with its corrections.
const unseenGroup = `
	line in (select line from bill_lines where tenant = $1 and period = $2)
	and ((position > $3 and $4) or (position <= $3 and not $4 and correction = $5))
	and at >= $6 and at < $7`

// sqlTakeOut takes a group out of the sums of the lines that it stood in.
const sqlTakeOut = `
update bill_lines as line set
	attempts = line.attempts - gone.attempts,
	unknown_attempts = line.unknown_attempts - gone.unknown_attempts,
	input_tokens = line.input_tokens - gone.input_tokens,
	cached_input_tokens = line.cached_input_tokens - gone.cached_input_tokens,
	output_tokens = line.output_tokens - gone.output_tokens,
	list_nanousd = line.list_nanousd - gone.list_nanousd,
	charge_nanousd = line.charge_nanousd - gone.charge_nanousd,
	provider_cost_nanousd = line.provider_cost_nanousd - gone.provider_cost_nanousd,
	subsidy_nanousd = line.subsidy_nanousd - gone.subsidy_nanousd,
	surcharge_nanousd = line.surcharge_nanousd - gone.surcharge_nanousd
from (select line, ` + lineSums + ` from ledger_attempts where ` + unseenGroup + ` group by line) gone
where line.tenant = $1 and line.period = $2 and line.line = gone.line`

// sqlMove gives a group its new bill and adds it to a line there.
const sqlMove = `
with entered as (
	update ledger_attempts set period = $8, line = $9, of_period = $10, reason = $11
	where ` + unseenGroup + `
	returning *)` + sqlAddToLines
