package reconciliation

import (
	"fmt"
	"slices"
)

// Check is one comparison with the log.
type Check string

// The checks.
const (
	// Counters compares the budget counters with a fold of the log.
	Counters Check = "counters"
	// OpenHolds looks for attempts that were reserved and never settled although their
	// request has ended, and counts those whose request is still open.
	OpenHolds Check = "open_holds"
	// Money compares sums: what was charged in the log, what stands on each bill and in
	// the usage, and what the counter of that month says.
	Money Check = "money"
	// MeterHolds, Requests and Bills compare tables with what the log makes of them.
	MeterHolds Check = "meter_holds"
	Requests   Check = "requests"
	Bills      Check = "bills"
)

// Checks lists all in the order in which they are made: those that take least first,
// because what they leave of their time goes to the others.
func Checks() []Check {
	return []Check{Counters, OpenHolds, Money, MeterHolds, Requests, Bills}
}

// Result is how a check ended (R7).
type Result string

// The results.
const (
	// Passed: everything was compared and agrees.
	Passed Result = "passed"
	// Differs: everything was compared and something is not what the log says.
	Differs Result = "drift"
	// TimedOut: not everything was compared. That is never a pass.
	TimedOut Result = "timed_out"
	// Incomplete is a run's alone: a check of it has no result.
	Incomplete Result = "incomplete"
)

// Results are what a check may say.
func Results() []Result { return []Result{Passed, Differs, TimedOut} }

// Kind is how something differs from the log.
type Kind string

// The kinds of drift.
const (
	// Amount: two numbers that must be equal are not.
	Amount Kind = "amount"
	// Missing: the log makes it and it is not there.
	Missing Kind = "missing"
	// Surplus: it is there and the log does not make it.
	Surplus Kind = "surplus"
	// Row: a row that is there holds something else.
	Row Kind = "row"
	// Unsettled: an attempt that still holds money after its request has ended.
	Unsettled Kind = "unsettled"
	// Changed: a closed bill that is not what was said when it was closed (M14).
	Changed Kind = "changed"
)

// Drift is one thing that is not what the log says. It names, and holds no content.
type Drift struct {
	// Key names it: a counter, a table and the key of its row, an organization and its
	// month, or a request and its attempt.
	Key string `json:"key"`
	// Is says how it differs: amount, missing, surplus, row, unsettled or changed.
	Is Kind `json:"is"`
	// Log and Live are the two amounts, in the unit of the key, where amounts differ.
	Log  *int64 `json:"log,omitempty"`
	Live *int64 `json:"live,omitempty"`
}

// Amounts is a drift of two amounts.
func Amounts(key string, log, live int64) Drift {
	return Drift{Key: key, Is: Amount, Log: &log, Live: &live}
}

// MaxDrifts bounds how many drifts a check names: an event is no report of millions, and
// whoever has a hundred of them rebuilds the table.
const MaxDrifts = 100

// Finding is what a check saw.
type Finding struct {
	// Position is how far into the log the comparison reaches; with several shards, their
	// sum.
	Position int64 `json:"position"`
	// Compared is how many counters, rows, attempts or sums that were.
	Compared int64 `json:"compared"`
	// LogDigest and LiveDigest are of the two sides, where they are compared by digest.
	LogDigest  string `json:"log_digest,omitempty"`
	LiveDigest string `json:"live_digest,omitempty"`
	// Open is how many attempts hold money for a request that has not ended, and
	// OpenHeld how much, in nano-USD.
	Open     int64 `json:"open,omitempty"`
	OpenHeld int64 `json:"open_nanousd,omitempty"`
	// Drifted is how many things differ, as far as they were counted; Drifts names the
	// first hundred.
	Drifted int64   `json:"drifted"`
	Drifts  []Drift `json:"drifts,omitempty"`
}

// Add notes drifts: all are counted, the first MaxDrifts are named.
func (f *Finding) Add(drifts ...Drift) {
	f.Drifted += int64(len(drifts))
	room := max(MaxDrifts-len(f.Drifts), 0)
	f.Drifts = append(f.Drifts, drifts[:min(room, len(drifts))]...)
}

// agrees reports whether nothing differs.
func (f Finding) agrees() bool { return f.Drifted == 0 && f.LogDigest == f.LiveDigest }

// UnknownCheckError is a name that is no check's.
type UnknownCheckError struct{ Name Check }

func (e *UnknownCheckError) Error() string {
	return fmt.Sprintf("there is no check %q; there are %v", e.Name, Checks())
}

// choose puts the wanted checks in their order, each once; none means all.
func choose(wanted []Check) ([]Check, error) {
	all := Checks()
	if len(wanted) == 0 {
		return all, nil
	}
	for _, c := range wanted {
		if !slices.Contains(all, c) {
			return nil, &UnknownCheckError{Name: c}
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return !slices.Contains(wanted, c) }), nil
}
