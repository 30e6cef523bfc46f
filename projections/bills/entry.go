package bills

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// PeriodFormat is a period as it is written: the month, UTC.
const PeriodFormat = "2006-01"

// Entry is one row of the ledger: a settled attempt.
type Entry struct {
	RequestID uuid.UUID
	At        time.Time // observed time of the settlement
	request.AttemptSettled
}

// Period is the month the entry belongs to: that of the settlement, whenever the
// request began.
func (e Entry) Period() string { return e.At.UTC().Format(PeriodFormat) }

// Unknown reports whether nobody knows what the attempt consumed (D2).
func (e Entry) Unknown() bool { return e.Basis == usage.BasisUnknown }

// Line names the line that the entry is summed in. It is made from what the line
// is about, so a rebuild gives the same names, and from nothing that can be read
// back, so that a masked deployment stays masked in an address.
func (e Entry) Line() string {
	h := sha256.New()
	for _, part := range []string{
		e.Tenant, e.Period(), e.Model, e.Deployment, string(e.CredentialOwner), string(e.FallbackKind),
	} {
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
	return Entry{RequestID: id, At: projections.ObservedAt(rec), AttemptSettled: settled}, nil
}
