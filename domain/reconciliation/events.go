package reconciliation

// Stream is the stream of one run, whose id is a UUIDv7: the newest run has the greatest
// name.
func Stream(id string) string { return StreamKind + "/" + id }

// StreamKind is the kind of a run's stream.
const StreamKind = "reconciliation"

// ReconciliationStarted begins a run, with all the checks that it will make and the time
// that it may take. A run that has no end yet and whose worker is gone is stalled.
type ReconciliationStarted struct {
	Checks []Check `json:"checks"`
	// TimeBudgetMS is for the whole run. Each check has an equal share of what is left
	// when it begins.
	TimeBudgetMS int64 `json:"time_budget_ms"`
}

// CheckCompleted is what one check has to say (R7).
type CheckCompleted struct {
	Check Check `json:"check"`
	// Result is passed, drift or timed_out. A check that timed out has not compared
	// everything: it says nothing about what it did not see.
	Result Result `json:"result"`
	Finding
	DurationMS int64 `json:"duration_ms"`
}

// ReconciliationFinished ends a run, once.
type ReconciliationFinished struct {
	// Result is passed only if every check passed. Otherwise it is drift if one found any,
	// timed_out if one did not come to its end, and incomplete if one has no result.
	Result   Result `json:"result"`
	Passed   int    `json:"passed"`
	Drift    int    `json:"drift"`
	TimedOut int    `json:"timed_out"`
	// Undone are the checks without a result.
	Undone []Undone `json:"undone,omitempty"`
}

// Undone is a check that has no result, and why.
type Undone struct {
	Check Check `json:"check"`
	// Reason is interrupted (its worker stopped), abandoned (its worker was gone when the
	// next run began), busy (another rebuild or verification of the same table was under
	// way), outdated (the table was made by another release), unreadable (the log holds an
	// event that this release does not know) or failed (the worker's log says how).
	Reason Reason `json:"reason"`
}

// Reason is why a check has no result.
type Reason string

// The reasons.
const (
	Interrupted Reason = "interrupted"
	Abandoned   Reason = "abandoned"
	Busy        Reason = "busy"
	Outdated    Reason = "outdated"
	Unreadable  Reason = "unreadable"
	Failed      Reason = "failed"
)
