package billing

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/request"
)

// PeriodFormat is how a bill's period is written: the month, UTC.
const PeriodFormat = "2006-01"

// Period is the month that a moment belongs to.
func Period(at time.Time) string { return at.UTC().Format(PeriodFormat) }

// Next is the period that follows. period must be one.
func Next(period string) string {
	start, _ := time.Parse(PeriodFormat, period)
	return start.AddDate(0, 1, 0).Format(PeriodFormat)
}

// End is when a period is over; ok is false for what is no period.
func End(period string) (end time.Time, ok bool) {
	start, err := time.Parse(PeriodFormat, period)
	return start.AddDate(0, 1, 0), err == nil
}

// Stream is the stream of one bill: bill/<org>/<period>.
func Stream(tenant, period string) string { return "bill/" + tenant + "/" + period }

// BillOpened begins an organization's bill: when the one before it is closed, or, for
// the first, together with its own closing.
type BillOpened struct {
	Tenant string `json:"tenant"`
	Period string `json:"period"`
}

// BillAdjusted is a line of a bill about an earlier one that was closed already: a
// settlement that came late, or a price that was corrected (M14). It is written when
// its bill is closed; until then the adjustment is a sum that may still grow.
type BillAdjusted struct {
	Tenant string `json:"tenant"`
	Period string `json:"period"`
	// OfPeriod is the bill that cannot change any more.
	OfPeriod string `json:"of_period"`
	// Reason is late_settlement or the correction's own.
	Reason string `json:"reason"`
	// Amounts may be negative: a credit.
	request.Amounts
}

// BillClosed ends a bill: it never changes again (M14). What it held is fixed by two
// places in the log, so that a rebuild makes the same bill from the same entries, and
// by its totals and a digest of its lines, so that anybody can tell that it did.
type BillClosed struct {
	Tenant string `json:"tenant"`
	Period string `json:"period"`
	// Through is the last position that was looked at: a settlement behind it is late.
	Through int64 `json:"through"`
	// CorrectionsThrough is the position of the newest price correction in the bill; 0
	// before any. A later one adjusts the next bill.
	CorrectionsThrough int64 `json:"corrections_through"`
	// Amounts are the bill's totals, adjustments included.
	request.Amounts
	UnknownAttempts int64 `json:"unknown_attempts"`
	Lines           int   `json:"lines"`
	// LinesDigest is a SHA-256 over the bill's lines and adjustments.
	LinesDigest string `json:"lines_digest"`
}
