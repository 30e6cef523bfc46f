package failure

import "time"

// Failure is what one attempt failed of.
type Failure struct {
	Class Class
	// Status is the provider's HTTP status, 0 when there was none.
	Status int
	// Retry is the provider's own word on when to come back.
	Retry Retry
	// Code is our own word for the sub-case, safe to record: a row of a
	// classifier's table, never provider text (E10).
	Code string
	// PossiblyBilled says that the provider may have done and billed the work
	// although its answer was lost (W13).
	PossiblyBilled bool
	// SealRejected says that the provider could not read reasoning that the request
	// brought along, and that the request may go without it (K5).
	SealRejected bool
	// Relay is the provider's own status and message for the caller who sent the
	// request, set on caller faults only (W3, D7). It is passed on, never stored.
	Relay *Relay
}

// Error is the class and our own sub-case: a Failure travels as an error inside,
// and neither word is the provider's.
func (f *Failure) Error() string {
	if f.Code == "" {
		return string(f.Class)
	}
	return string(f.Class) + ": " + f.Code
}

// The sub-cases of CustomerCredential (W6).
const (
	OwnKeyRejected = "own_key_rejected"
	OwnKeyQuota    = "own_key_quota"
)

// Retry is one provider's "not before": which of the many headers and body
// fields said it (W20).
type Retry struct {
	After  time.Duration
	Source string
	// Told is false when the provider said nothing.
	Told bool
}

// Relay is what a provider told the caller about the caller's own request.
type Relay struct {
	Status  int
	Message string
	Type    string
	Param   string
	Code    string
}
