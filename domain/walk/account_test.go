package walk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// Routes whose accounts have no funds are called last in their own stage, in their
// order, and nowhere else; the issuer of the request's reasoning goes first all the
// same, and a rung at a surcharge never before what it stands behind.
//
// Rules: H12, N19, K4, M12.
func TestRungsWithoutFundsAreLastOfTheirStage_H12(t *testing.T) {
	ten := decimal.NewFromInt(10)
	stage := func(n int) func(*walk.Rung) { return func(r *walk.Rung) { r.Stage = n } }
	own := func(r *walk.Rung) { r.Owner = request.Workspace }
	surcharged := func(r *walk.Rung) { r.Surcharge = &ten }
	gone := func(r *walk.Rung) {
		r.Unresolved, r.Deployment, r.Provider = request.SkipUnresolved, nil, nil
	}
	for name, tc := range map[string]struct {
		rungs  []walk.Rung
		broke  string // the deployments without funds
		issuer string
		want   string // the calls in order, a label behind
	}{
		"all have funds":        {[]walk.Rung{rung(0), rung(1), rung(2)}, "", "", "d0 d1 d2"},
		"the first":             {[]walk.Rung{rung(0), rung(1), rung(2)}, "d0", "", "d1 d2 d0!"},
		"several keep an order": {[]walk.Rung{rung(0), rung(1), rung(2), rung(3)}, "d0 d2", "", "d1 d3 d0! d2!"},
		"nobody has funds":      {[]walk.Rung{rung(0), rung(1)}, "d0 d1", "", "d0! d1!"},
		"a stage is not left": {
			[]walk.Rung{rung(0, stage(0)), rung(1, stage(0)), rung(2, stage(1)), rung(3, stage(1))}, "d0 d2", "", "d1 d0! d3 d2!",
		},
		"alone in its stage":         {[]walk.Rung{rung(0, stage(0)), rung(1, stage(1))}, "d0", "", "d0! d1"},
		"the issuer goes first":      {[]walk.Rung{rung(0), rung(1), rung(2)}, "d0 d1", "d1", "d1! d2 d0!"},
		"an own account stays":       {[]walk.Rung{rung(0, own), rung(1)}, "d0", "", "d0 d1"},
		"what leads nowhere is none": {[]walk.Rung{rung(0, gone), rung(1), rung(2)}, "d1", "", "d2 d1!"},
		"a surcharge is behind its own rungs": {
			[]walk.Rung{rung(0, own, stage(0)), rung(1, surcharged, stage(1)), rung(2, surcharged, stage(1))}, "d1", "", "d0 d2 d1!",
		},
	} {
		world := &sim.World{Broke: map[string]bool{}}
		for _, d := range strings.Fields(tc.broke) {
			world.Broke[d] = true
		}
		req := request1()
		req.Issuer = tc.issuer
		was := append([]walk.Rung(nil), tc.rungs...)
		run := sim.Walk(walk.New(req, tc.rungs, world), func(*walk.Call, time.Time) sim.Ending { return fails(failure.TimeoutFirstByte) }, nil, noon)
		var got []string
		for _, e := range run.Events {
			if r, ok := e.(request.AttemptReserved); ok {
				label := map[request.Selection]string{request.HouseAccountExhausted: "!", "": ""}[r.Selection]
				got = append(got, r.Deployment+label)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
		for i := range was {
			if was[i].Index != tc.rungs[i].Index || tc.rungs[i].Exhausted {
				t.Errorf("%s: the plan itself was changed", name)
			}
		}
	}
}

// A conversation's own order gives way to funds, and only to them.
//
// Rules: H12, T3.
func TestFundsComeBeforeAffinity_H12_T3(t *testing.T) {
	var rungs []walk.Rung
	for i := range 4 {
		rungs = append(rungs, rung(i, func(r *walk.Rung) { r.Policy.FailoverMode = catalog.MaximizeCacheAffinity }))
	}
	order := func(world *sim.World) (ids []string) {
		run := sim.Walk(walk.New(request1(), rungs, world), func(*walk.Call, time.Time) sim.Ending { return fails(failure.TimeoutFirstByte) }, nil, noon)
		for _, c := range run.Calls {
			ids = append(ids, c.Rung.Deployment.ID)
		}
		return ids
	}
	usual := order(&sim.World{})
	got := order(&sim.World{Broke: map[string]bool{usual[0]: true}})
	if want := append(usual[1:len(usual):len(usual)], usual[0]); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v", got, want)
	}
}
