package walk_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// shutting is a world in which the circuit of a deployment opens after so many calls.
type shutting struct {
	sim.World
	after map[string]int
}

func (w *shutting) Claim(r *walk.Rung, _ string, pass walk.Pass, _ time.Time) walk.Verdict {
	left, bounded := w.after[r.Deployment.ID]
	if pass == walk.LastResort || !bounded || left > 0 {
		w.after[r.Deployment.ID] = left - 1
		return walk.Verdict{}
	}
	return walk.Verdict{Skip: request.SkipBreakerOpen}
}

// TestACandidateCountsOnceInTheDepth_M11_X4: the fallback depth is how many candidates
// stand before the one that was called, however often each of them was looked at, and
// a route that nothing stands before is no fallback on the bill.
//
// Rules: M11, X4.
func TestACandidateCountsOnceInTheDepth_M11_X4(t *testing.T) {
	broken := fails(failure.ServerError)
	for _, tc := range []struct {
		name    string
		rungs   []walk.Rung
		after   map[string]int
		endings map[string][]sim.Ending
		want    []string
	}{
		{
			"the only route, as its own last resort",
			[]walk.Rung{rung(0)},
			map[string]int{"d0": 0},
			map[string][]sim.Ending{"d0": {serves()}},
			[]string{"last_resort d0 0 none", "completed 0"},
		},
		{
			"the first of two, both as a last resort",
			[]walk.Rung{rung(0), rung(1)},
			map[string]int{"d0": 0, "d1": 0},
			map[string][]sim.Ending{"d0": {serves()}, "d1": {serves()}},
			[]string{"last_resort d0 0 none", "completed 0"},
		},
		{
			"skipped, and failed as a last resort",
			[]walk.Rung{rung(0), rung(1)},
			map[string]int{"d0": 0, "d1": 0},
			map[string][]sim.Ending{"d0": {broken}, "d1": {serves()}},
			[]string{"last_resort d0 0 none", "last_resort d1 1 same_model", "completed 1"},
		},
		{
			"failed, and its retry refused by the circuit",
			[]walk.Rung{rung(0), rung(1)},
			map[string]int{"d0": 1},
			map[string][]sim.Ending{"d0": {broken}, "d1": {serves()}},
			[]string{"first d0 0 none", "failover d1 1 same_model", "completed 1"},
		},
		{
			"nobody served: the depth of the last that was called, as the reply says it",
			[]walk.Rung{rung(0), rung(1)},
			map[string]int{"d0": 1, "d1": 1},
			map[string][]sim.Ending{"d0": {broken}, "d1": {broken}},
			[]string{"first d0 0 none", "failover d1 1 same_model", "failed 1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run := sim.Walk(walk.New(request1(), tc.rungs, &shutting{after: tc.after}), script(tc.endings), nil, noon)
			var got []string
			for _, e := range run.Events {
				switch e := e.(type) {
				case request.AttemptReserved:
					got = append(got, fmt.Sprintf("%s %s %d %s", e.Kind, e.Deployment, e.FallbackDepth, e.FallbackKind))
				case request.RequestFinalized:
					got = append(got, fmt.Sprintf("%s %d", e.Outcome, e.FallbackDepth))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			checkLife(t, run.Events)
		})
	}
}
