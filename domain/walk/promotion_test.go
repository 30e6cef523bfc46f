package walk_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// promoted gives the model away, up to totals of input and output.
func promoted(r *walk.Request) {
	total := func(n int64) *catalog.Allowances {
		return &catalog.Allowances{Overall: &catalog.AllowanceLimits{Total: n}}
	}
	r.Promotions = []catalog.Promotion{{
		ID: "launch", Models: []string{"fable"}, FreeInputTokens: total(5000), FreeOutputTokens: total(500),
	}}
}

// An attempt that served nobody gives nothing away: not where its provider may have done
// the work, nor where it has and bills it, nor where nobody was called.
//
// Rules: M10, M5.
func TestWhatServedNobodyGivesNothingAway_M10_M5(t *testing.T) {
	refused := fails(failure.Refusal)
	refused.Report.Usage = usage.Usage{Input: usage.Of(900), Output: usage.Of(40)}
	for name, end := range map[string]sim.Ending{
		"lost":    fails(failure.TimeoutFirstByte),
		"refused": refused,
		"broken":  fails(failure.ServerError),
	} {
		t.Run(name, func(t *testing.T) {
			moveOn := func(r *walk.Rung) { r.Policy.FailoverOnRefusal = true }
			book := budget.NewBook()
			run := sim.Walk(walk.New(request1(promoted), []walk.Rung{rung(0, moveOn)}, &sim.World{}),
				func(*walk.Call, time.Time) sim.Ending { return end }, book, noon)
			for _, e := range run.Events {
				if s, ok := e.(request.AttemptSettled); ok && (s.Charge != 0 || s.Subsidy != 0) {
					t.Errorf("%+v", s.Amounts)
				}
			}
			for key, c := range book.Counters {
				if c.Held != 0 || c.Settled != 0 {
					t.Errorf("%s holds %d and has given %d", key, c.Held, c.Settled)
				}
			}
		})
	}
	m := walk.New(request1(promoted), []walk.Rung{rung(0)}, &sim.World{})
	move := m.Start(noon)
	counters := map[budget.Key]budget.Counter{}
	for _, e := range append(move.Say, m.Abandon(move.Call.Reserved, noon)...) {
		budget.Apply(counters, budget.Effects(e))
	}
	for key, c := range counters {
		if c.Held != 0 || c.Settled != 0 {
			t.Errorf("never sent, but %s holds %d and has given %d", key, c.Held, c.Settled)
		}
	}
}

// A reservation that is made again without what an allowance refused leaves nothing of
// the first in what is said: one reservation an attempt, one change of model a move.
//
// Rules: M10, M13.
func TestReservingAgainIsOneReservation_M10_M13(t *testing.T) {
	for name, start := range map[string]walk.Rung{
		"the model itself": rung(0),
		"another model":    rung(0, func(r *walk.Rung) { r.Model, r.Root = "mini", false }),
	} {
		t.Run(name, func(t *testing.T) {
			req := request1(promoted, func(r *walk.Request) { r.Promotions[0].Models = []string{start.Model} })
			m := walk.New(req, []walk.Rung{start}, &sim.World{})
			first := m.Start(noon)
			says := len(first.Say)
			move := first
			for i, side := range []string{"output", "input"} {
				var c budget.Check
				for _, asked := range move.Call.Checks {
					if asked.Scope == budget.ScopePromotion && string(asked.Key[:len("promo/acme/launch/"+side)]) == "promo/acme/launch/"+side {
						c = asked
					}
				}
				if c.Key == "" {
					t.Fatalf("try %d asks nothing of the %s: %+v", i, side, move.Call.Checks)
				}
				move = m.Refused(budget.Refusal{Check: c, Used: c.Limit}, move.Say, noon)
				if move.Call == nil || len(move.Say) != says {
					t.Fatalf("%d events instead of %d: %+v", len(move.Say), says, move.Say)
				}
			}
			c := move.Call
			if c.Attempt != 1 || c.Reserved.Promotion != nil || c.Reserved.Reserved != 4_500_000 || c.Key != first.Call.Key {
				t.Errorf("%+v", c.Reserved)
			}
			if kinds := names(move.Say); kinds[len(kinds)-1] != "attempt_reserved" {
				t.Errorf("%v", kinds)
			}
		})
	}
}

func names(say []event.Event) []string {
	list := make([]string, len(say))
	for i, e := range say {
		list[i] = event.Name(e)
	}
	return list
}
