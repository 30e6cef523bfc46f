package event

import "github.com/sluice-gateway/sluice/domain/reconciliation"

// reconciliationEvents are the events of stream reconciliation/<id>.
var reconciliationEvents = []definition{
	define[reconciliation.ReconciliationStarted]("reconciliation_started"),
	define[reconciliation.CheckCompleted]("check_completed"),
	define[reconciliation.ReconciliationFinished]("reconciliation_finished"),
}
