package event

import "github.com/sluice-gateway/sluice/domain/reconciliation"

var reconciliationSamples = []Event{
	reconciliation.ReconciliationStarted{
		Checks: []reconciliation.Check{reconciliation.Counters, reconciliation.Bills}, TimeBudgetMS: 300_000,
	},
	// A real one has what its check compares.
	reconciliation.CheckCompleted{
		Check: reconciliation.Counters, Result: reconciliation.Differs,
		Finding: reconciliation.Finding{
			Position: 123456, Compared: 12, LogDigest: "00ff", LiveDigest: "01ff", Open: 3, OpenHeld: 17_952_000, Drifted: 1,
			Drifts: []reconciliation.Drift{reconciliation.Amounts("0/org/acme/usd/month/2026-11 settled", 304_850, 304_851)},
		},
		DurationMS: 1234,
	},
	reconciliation.ReconciliationFinished{
		Result: reconciliation.Differs, Passed: 1, Drift: 1, TimedOut: 1,
		Undone: []reconciliation.Undone{{Check: reconciliation.Bills, Reason: reconciliation.Interrupted}},
	},
}
