package walk_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// BenchmarkStep is the cost of one decision: a request that fails over once takes
// three steps (start, failed, completed).
func BenchmarkStep(b *testing.B) {
	rungs := []walk.Rung{rung(0), rung(1)}
	world := &sim.World{}
	req := request1()
	down := failure.Failure{Class: failure.DeploymentGone}
	report := serves().Report
	b.ReportAllocs()
	for b.Loop() {
		m := walk.New(req, rungs, world)
		m.Start(noon)
		m.Failed(down, walk.Report{}, noon.Add(time.Second))
		m.Completed(report, noon.Add(2*time.Second))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/3, "ns/step")
}
