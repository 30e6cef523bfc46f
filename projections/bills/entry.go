package bills

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// PeriodFormat is a period as it is written: the month, UTC.
const PeriodFormat = billing.PeriodFormat

// Why an entry stands in another bill than that of its month (M14).
const (
	lateSettlement  = "late_settlement"
	priceCorrection = "price_correction"
)

// Entry is one row of the ledger: a settled attempt, or by how much a correction of its
// price changed it.
type Entry struct {
	RequestID uuid.UUID
	At        time.Time // observed time of the settlement
	Position  int64     // of the settlement in the log
	// AttemptSettled is what the attempt was; the amounts are this entry's.
	request.AttemptSettled
	// Correction is the position of the price correction; 0 is the settlement.
	Correction int64
	// Bill is the period of the bill that the entry stands in, and Reason why, where
	// that is not the month of the settlement.
	Bill, Reason string
}

// Month is that of the settlement, whenever the request began.
func (e Entry) Month() string { return billing.Period(e.At) }

// Unknown reports whether nobody knows what the attempt consumed (D2).
func (e Entry) Unknown() bool { return e.Basis == usage.BasisUnknown }

// Line names the line that the entry is summed in. It is made from what the line
// is about, so a rebuild gives the same names, and from nothing that can be read
// back, so that a masked deployment stays masked in an address.
func (e Entry) Line() string {
	if e.Reason != "" {
		return adjustmentLine(e.Tenant, e.Bill, e.Month(), e.Reason, e.Correction)
	}
	return lineOf(e.Tenant, e.Bill, e.Model, e.Deployment, string(e.CredentialOwner), string(e.FallbackKind))
}

// adjustmentLine is a line about another bill: one for all that came late, and one for
// each correction.
func adjustmentLine(tenant, bill, ofPeriod, reason string, correction int64) string {
	if reason == lateSettlement {
		correction = 0
	}
	return lineOf(tenant, bill, ofPeriod, reason, strconv.FormatInt(correction, 10))
}

func lineOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:lineBytes])
}

// lineBytes of the hash tell the lines of one bill apart.
const lineBytes = 8

// entryOf reads a settlement from the log.
func entryOf(rec eventstore.Recorded) (Entry, error) {
	e, err := projections.Decode(rec)
	if err != nil {
		return Entry{}, err
	}
	settled, ok := e.(request.AttemptSettled)
	id, isRequest := requests.ID(rec.Stream)
	if !ok || !isRequest {
		return Entry{}, projections.At(rec, errStray)
	}
	at := projections.ObservedAt(rec)
	return Entry{RequestID: id, At: at, Position: rec.Position, AttemptSettled: settled, Bill: billing.Period(at)}, nil
}
