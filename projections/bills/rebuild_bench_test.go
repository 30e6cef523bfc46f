package bills_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// BenchmarkRebuild makes bills of requests that were each served at once: four events,
// one of them a settlement.
func BenchmarkRebuild(b *testing.B) {
	const requests = 50_000
	price := request.AttemptSettled{
		Attempt: 1, Tenant: "acme", Key: "k1", Provider: "p1", Model: "fable-5", Deployment: "fable-5@p1",
		CredentialOwner: request.Operator, FallbackKind: request.NoFallback, Basis: usage.BasisReported,
		Usage:   usage.Usage{Input: usage.Of(805), CachedInput: usage.Of(512), Output: usage.Of(96)},
		Amounts: request.Amounts{List: 50, Charge: 40, ProviderCost: 30},
	}
	log := projectiontest.NewLog()
	for n := range requests {
		log.Append(projectiontest.Stream(n, projectiontest.Admitted("acme"), request.AttemptReserved{Attempt: 1}, price,
			request.RequestFinalized{Outcome: request.Completed, Attempts: 1})...)
	}
	head, _ := log.Head(b.Context(), 0)
	rebuilder := projections.NewRebuilder(projectiontest.NewPool(b), log)
	for b.Loop() {
		began := time.Now()
		if err := rebuilder.Rebuild(b.Context(), bills.Projection{}, nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(head.Position)/time.Since(began).Seconds(), "events/s")
	}
}
