package event

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
)

var billingSamples = []Event{
	catalog.PriceCorrected{
		Deployment: "fable-5@bedrock", From: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		To: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC), Prices: samplePrices,
		Reason: "the price list of November was read wrongly",
	},
	billing.BillOpened{Tenant: "acme", Period: "2026-11"},
	billing.BillAdjusted{
		Tenant: "acme", Period: "2026-11", OfPeriod: "2026-10", Reason: "late_settlement",
		Amounts: request.Amounts{List: -5, Charge: -4, ProviderCost: -3, Subsidy: -2, Surcharge: -1},
	},
	billing.BillClosed{
		Tenant: "acme", Period: "2026-11", Through: 123456, CorrectionsThrough: 1234,
		Amounts:         request.Amounts{List: 5, Charge: 4, ProviderCost: 3, Subsidy: 2, Surcharge: 1},
		UnknownAttempts: 1, Lines: 2, LinesDigest: "sha256:00ff",
	},
}
