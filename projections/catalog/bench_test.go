package catalog_test

import (
	"context"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

var prices = money.Prices{
	Input: new(decimal.RequireFromString("3")), Output: new(decimal.RequireFromString("15")),
	CacheRead: new(decimal.RequireFromString("0.3")),
}

// BenchmarkFold60k reads 60,000 events of many kinds and builds the snapshot:
// what a starting worker does.
func BenchmarkFold60k(b *testing.B) {
	log := preloaded{large(2_000, 7_000, 30_000).events}
	b.ReportAllocs()
	for b.Loop() {
		if err := live.New(log).Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(log.events)*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkSnapshot builds the snapshot of 10,000 deployments, 2,000 organizations
// and 50,000 keys: what a worker does for every change.
func BenchmarkSnapshot(b *testing.B) {
	state, err := live.Read(b.Context(), preloaded{large(2_000, 10_000, 50_000).events})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var snap *catalog.Snapshot
	for b.Loop() {
		snap = state.Snapshot()
	}
	if len(snap.Models("tenant-0")) != 10_000 {
		b.Fatal("not all models are there")
	}
}

// preloaded is a log that answers from a slice: positions are 7, 14, 21 ...
type preloaded struct{ events []eventstore.Recorded }

func (l preloaded) ReadConfig(_ context.Context, _ int16, after int64, limit int) ([]eventstore.Recorded, error) {
	rest := l.events[after/7:]
	return rest[:min(limit, len(rest))], nil
}
