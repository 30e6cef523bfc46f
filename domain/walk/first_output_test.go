package walk_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// Rules: W11, D10.
func TestFirstOutputIsBoundedInTimeForTheNextRoute_W11(t *testing.T) {
	streams := request1(func(r *walk.Request) { r.Stream = true })
	for _, tc := range []struct {
		name  string
		own   catalog.Timeouts
		rungs int
		want  time.Duration
	}{
		{"half of the 300 s while another route could use the rest", catalog.Timeouts{}, 2, 150 * time.Second},
		{"all of it for the last route", catalog.Timeouts{}, 1, 300 * time.Second},
		{"what the deployment says outright", catalog.Timeouts{FirstOutput: catalog.Duration(40 * time.Second)}, 2, 40 * time.Second},
		{
			"its own silence after its first byte",
			catalog.Timeouts{FirstByte: catalog.Duration(10 * time.Second), StreamIdle: catalog.Duration(30 * time.Second)},
			2, 40*time.Second + 240*time.Millisecond,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rungs []walk.Rung
			for i := range tc.rungs {
				rungs = append(rungs, rung(i, func(r *walk.Rung) { r.Deployment.Timeouts = tc.own }))
			}
			run := sim.Walk(walk.New(streams, rungs, &sim.World{}), script(map[string][]sim.Ending{"d0": {serves()}}), nil, noon)
			if got := run.Calls[0].Timeouts.FirstOutput; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
