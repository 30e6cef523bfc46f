package event

import "github.com/sluice-gateway/sluice/domain/billing"

// billEvents are the events of stream bill/<org>/<period>.
var billEvents = []definition{
	define[billing.BillOpened]("bill_opened"),
	define[billing.BillAdjusted]("bill_adjusted"),
	define[billing.BillClosed]("bill_closed"),
}
