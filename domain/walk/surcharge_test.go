package walk_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// surchargeWorld draws a walk of an organization with two routes of its own in front of
// the operator's two: what each call ends with, and which routes are shut and by what.
type surchargeWorld struct {
	sim.World
	endings map[string]sim.Ending
	offered bool
	agreed  bool
}

func drawSurchargeWorld(t *rapid.T) surchargeWorld {
	w := surchargeWorld{
		World: sim.World{Closed: map[string]walk.Verdict{}}, endings: map[string]sim.Ending{},
		offered: rapid.Bool().Draw(t, "offered"), agreed: rapid.Bool().Draw(t, "agreed"),
	}
	for _, route := range []string{"own1", "own2", "house1", "house2"} {
		class := rapid.SampledFrom(append(failure.Classes(), "")).Draw(t, route+" ends with")
		w.endings[route] = serves()
		if class != "" {
			w.endings[route] = fails(class)
		}
		cause := rapid.SampledFrom([]failure.Class{
			"", "", failure.ServerError, failure.ProviderAuth, failure.ProviderQuota, failure.Throttled,
		}).Draw(t, route+" is shut by")
		if cause != "" {
			w.Closed[route] = walk.Verdict{Skip: request.SkipBreakerOpen, Cause: cause}
		}
	}
	return w
}

// rungs are the plan of that organization, resolved from a catalog.
func (w surchargeWorld) rungs(t *rapid.T, percent decimal.Decimal) []walk.Rung {
	price := decimal.RequireFromString("3")
	o := catalog.Objects{Models: []catalog.Model{{Slug: "fable", ExactModel: "fable"}}}
	tenant := catalog.Tenant{ID: "acme", SurchargeFallback: w.agreed}
	chain := catalog.TenantChain{Model: "fable"}
	for _, id := range []string{"own1", "own2", "house1", "house2"} {
		o.Providers = append(o.Providers, catalog.Provider{ID: id, Keys: []catalog.ProviderKey{{ID: "k1"}}})
		o.Deployments = append(o.Deployments, catalog.Deployment{ID: id, Provider: id, Prices: money.Prices{Input: &price, Output: &price}})
		o.Models[0].Chain = append(o.Models[0].Chain, catalog.Rung{Deployment: id})
	}
	for _, id := range []string{"own1", "own2"} {
		tenant.Connections = append(tenant.Connections, catalog.Connection{ID: id, Provider: id})
		chain.Chain = append(chain.Chain, catalog.Rung{Connection: id})
	}
	if w.offered {
		o.Models[0].Surcharge = &percent
	}
	tenant.Chains = []catalog.TenantChain{chain}
	o.Tenants = []catalog.Tenant{tenant}
	plan, err := catalog.NewSnapshot(o).Resolve(catalog.Ask{Tenant: "acme", Name: "fable"})
	if err != nil {
		t.Fatal(err)
	}
	rungs := walk.Rungs(plan)
	if w.offered && w.agreed {
		// The operator's deployments that the connections use are its own rungs too.
		rungs = slices.DeleteFunc(rungs, func(r walk.Rung) bool {
			return r.Surcharge != nil && (r.Deployment.ID == "own1" || r.Deployment.ID == "own2")
		})
	}
	return rungs
}

// Nobody pays a surcharge that was not offered and agreed to, nor before an own route
// failed for a reason that is its provider's; every call at one says so, holds it, and
// is charged the list price and it.
//
// Rules: M12, W6, M2, M7.
func TestSurchargeNeedsBothWordsAndAFailure_M12(t *testing.T) {
	engaged := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawSurchargeWorld(t)
		percent := decimal.New(rapid.Int64Range(0, 50_000).Draw(t, "percent"), -3)
		run := sim.Walk(walk.New(request1(), w.rungs(t, percent), &w.World), func(c *walk.Call, _ time.Time) sim.Ending {
			return w.endings[c.Rung.Deployment.ID]
		}, nil, noon)

		blamed := map[bool]bool{} // by whether the failure was the credential's
		attempts := map[int]request.AttemptReserved{}
		for _, e := range run.Events {
			switch e := e.(type) {
			case request.RouteSkipped:
				if v, ok := w.Closed[e.Provider]; ok && e.Reason == v.Skip && (e.Provider == "own1" || e.Provider == "own2") {
					blamed[v.Cause == failure.ProviderAuth || v.Cause == failure.ProviderQuota] = true
				}
			case request.AttemptThrottled:
				blamed[attempts[e.Attempt].CredentialOwner == request.Operator] = true
			case request.AttemptFailed:
				if failure.Of(e.Failure).Health != failure.NoHealth && attempts[e.Attempt].CredentialOwner == request.Workspace {
					blamed[false] = true
				}
			case request.AttemptReserved:
				attempts[e.Attempt] = e
				house := e.CredentialOwner == request.Operator
				if house != (e.SurchargePercent != nil) || house != (e.FallbackKind == request.Surcharge) {
					t.Fatalf("%+v", e)
				}
				if !house {
					continue
				}
				engaged++
				if !w.offered || !w.agreed || !blamed[false] {
					t.Fatalf("offered %v, agreed %v, blamed %v: %+v", w.offered, w.agreed, blamed, e)
				}
				if first := attempts[e.Attempt-1].Rung != e.Rung; first != (e.Kind == request.KindSurcharge) {
					t.Fatalf("the first call of its route: %v; %+v", first, e)
				}
				if worst := int64(1100 * 3000); e.Reserved < money.NanoUSD(worst) || len(e.Holds) != 0 && e.Reserved == 0 {
					t.Fatalf("held %d", e.Reserved)
				}
			case request.AttemptSettled:
				res := attempts[e.Attempt]
				if e.Charge > res.Reserved || (res.SurchargePercent == nil) != (e.SurchargePercent == nil) {
					t.Fatalf("%+v of %+v", e, res)
				}
				if e.Surcharge != 0 && e.Charge != e.List+e.Surcharge || e.Surcharge == 0 && e.Charge != 0 && e.Charge != e.List {
					t.Fatalf("%+v", e.Amounts)
				}
			}
		}
	})
	if engaged == 0 {
		t.Error("no walk came to a surcharge")
	}
}

// An answer that nobody got costs its provider, and the customer nothing: neither its
// price nor its surcharge.
//
// Rules: M12, M7.
func TestASurchargeOnNothingIsNothing_M12(t *testing.T) {
	ten := decimal.NewFromInt(10)
	own := rung(0, func(r *walk.Rung) { r.Owner = request.Workspace })
	refusing := rung(1, func(r *walk.Rung) { r.Surcharge, r.Policy.FailoverOnRefusal = &ten, true })
	refused := fails(failure.Refusal)
	refused.Report = serves().Report
	run := sim.Walk(walk.New(request1(), []walk.Rung{own, refusing, rung(2, func(r *walk.Rung) { r.Surcharge = &ten })}, &sim.World{}),
		script(map[string][]sim.Ending{"d0": {fails(failure.TimeoutFirstByte)}, "d1": {refused}, "d2": {serves()}}), nil, noon)
	var settled []request.AttemptSettled
	for _, e := range run.Events {
		if s, ok := e.(request.AttemptSettled); ok {
			settled = append(settled, s)
		}
	}
	if len(settled) != 3 || settled[1].List == 0 || settled[1].Charge != 0 || settled[1].Surcharge != 0 || !settled[1].Waived {
		t.Fatalf("%+v", settled)
	}
	if last := settled[2].Amounts; last.Surcharge != last.List/10 || last.Charge != last.List+last.Surcharge || last.ProviderCost != last.List {
		t.Errorf("%+v", last)
	}
}
