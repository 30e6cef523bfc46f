package walk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// rung is a deployment "d<i>" at provider "p<i>" with one key and known prices.
func rung(i int, edit ...func(*walk.Rung)) walk.Rung {
	in, out := decimal.RequireFromString("3"), decimal.RequireFromString("15")
	r := walk.Rung{
		Index: i, Model: "fable", Root: true,
		Provider:   &catalog.Provider{ID: fmt.Sprintf("p%d", i), Keys: []catalog.ProviderKey{{ID: "k1"}}},
		Deployment: &catalog.Deployment{ID: fmt.Sprintf("d%d", i), Prices: money.Prices{Input: &in, Output: &out}},
		Policy:     catalog.Policy{}.WithDefaults(),
	}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func request1(edit ...func(*walk.Request)) walk.Request {
	r := walk.Request{
		Admitted: request.RequestAdmitted{
			Tenant: "acme", Key: "key1", RequestedModel: "fable", CanonicalModel: "fable", DeadlineMS: 600_000,
			Estimate: request.Estimate{InputTokens: 1000},
		},
		FloorTokens: 800, OutputTokens: 100, Fallback: walk.FallbackAny, Deadline: noon.Add(600 * time.Second),
	}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func fails(c failure.Class) sim.Ending {
	return sim.Ending{After: 10 * time.Millisecond, Failure: &failure.Failure{Class: c, PossiblyBilled: failure.Of(c).MaybeBilled}}
}

// rejectsSeal is a provider that cannot read the reasoning that the request carries.
func rejectsSeal() sim.Ending {
	end := fails(failure.InvalidRequest)
	end.Failure.SealRejected = true
	return end
}

func sealed(r *walk.Request) { r.Sealed = true }

func serves() sim.Ending {
	return sim.Ending{After: 300 * time.Millisecond, Report: walk.Report{
		FirstOutput: "text", TTFT: 200 * time.Millisecond,
		Usage: usage.Usage{Input: usage.Of(900), Output: usage.Of(50)},
	}}
}

// script plays the endings of each deployment in order; the last one repeats.
func script(endings map[string][]sim.Ending) sim.Providers {
	calls := map[string]int{}
	return func(c *walk.Call, _ time.Time) sim.Ending {
		list := endings[c.Rung.Deployment.ID]
		n := min(calls[c.Rung.Deployment.ID], len(list)-1)
		calls[c.Rung.Deployment.ID]++
		return list[n]
	}
}

// moves writes down what a walk did, one line a move: the exact list of W23.
func moves(run sim.Run) []string {
	var lines []string
	for _, e := range run.Events {
		switch e := e.(type) {
		case request.RouteSkipped:
			lines = append(lines, fmt.Sprintf("skip %d %s", e.Rung, e.Reason))
		case request.AttemptReserved:
			lines = append(lines, fmt.Sprintf("%s %s %s", e.Kind, e.Deployment, e.ProviderKey))
		case request.RequestRefused:
			lines = append(lines, "refused "+e.Code)
		case request.RequestFinalized:
			line := string(e.Outcome)
			for _, word := range []string{e.Code, e.Exhausted} {
				if word != "" {
					line += " " + word
				}
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// Rules: W2, W9, W23.
func TestMovesAreExact_W2_W9_W23(t *testing.T) {
	twoKeys := func(r *walk.Rung) { r.Provider.Keys = []catalog.ProviderKey{{ID: "k1"}, {ID: "k2"}} }
	for _, tc := range []struct {
		name    string
		rungs   []walk.Rung
		endings map[string][]sim.Ending
		req     []func(*walk.Request)
		want    string
	}{
		{
			"the first answer serves",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {serves()}},
			nil,
			"first d0 k1; completed",
		},
		{
			"a server error is retried once on its route, then the next serves",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.ServerError)}, "d1": {serves()}},
			nil,
			"first d0 k1; retry d0 k1; failover d1 k1; completed",
		},
		{
			"silence is not retried on its route (W11)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.TimeoutFirstByte)}, "d1": {serves()}},
			nil,
			"first d0 k1; failover d1 k1; completed",
		},
		{
			"a caller's fault costs exactly one call (W3)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.InvalidRequest)}},
			nil,
			"first d0 k1; failed invalid_request",
		},
		{
			"a throttle rotates the key before the rung fails (W17)",
			[]walk.Rung{rung(0, twoKeys), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.Throttled)}, "d1": {serves()}},
			nil,
			"first d0 k1; key_rotation d0 k2; failover d1 k1; completed",
		},
		{
			"a refused credential says nothing about its neighbours",
			[]walk.Rung{rung(0, twoKeys), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.ProviderAuth), serves()}},
			nil,
			"first d0 k1; key_rotation d0 k2; completed",
		},
		{
			"all fail: one envelope (W16)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.DeploymentGone)}, "d1": {fails(failure.ProviderQuota)}},
			nil,
			"first d0 k1; failover d1 k1; failed upstream_exhausted",
		},
		{
			"all throttled: the throttle is returned",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.Throttled)}, "d1": {fails(failure.Throttled)}},
			nil,
			"first d0 k1; failover d1 k1; failed provider_throttled",
		},
		{
			"an empty completion goes on, never on the same route, and is typed at the end (W8)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.EmptyCompletion)}, "d1": {fails(failure.EmptyCompletion)}},
			nil,
			"first d0 k1; failover d1 k1; failed empty_completion",
		},
		{
			"attempts run out before the rungs (W9)",
			[]walk.Rung{rung(0), rung(1), rung(2)},
			map[string][]sim.Ending{"d0": {fails(failure.ServerError)}, "d1": {fails(failure.ServerError)}},
			[]func(*walk.Request){func(r *walk.Request) { r.Admitted.MaxAttempts = 3 }},
			"first d0 k1; retry d0 k1; failover d1 k1; failed upstream_exhausted attempts_exhausted",
		},
		{
			"fallback none stays on the first route",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.ServerError)}},
			[]func(*walk.Request){func(r *walk.Request) { r.Fallback = walk.FallbackNone }},
			"first d0 k1; retry d0 k1; failed upstream_exhausted",
		},
		{
			"another model is a change of model, never silent (N22)",
			[]walk.Rung{rung(0), rung(1, func(r *walk.Rung) { r.Root, r.Model = false, "fable-old" })},
			map[string][]sim.Ending{"d0": {fails(failure.DeploymentGone)}, "d1": {serves()}},
			nil,
			"first d0 k1; model_change d1 k1; completed",
		},
		{
			"a caller may forbid another model (N22)",
			[]walk.Rung{rung(0), rung(1, func(r *walk.Rung) { r.Root, r.Model = false, "fable-old" })},
			map[string][]sim.Ending{"d0": {fails(failure.DeploymentGone)}},
			[]func(*walk.Request){func(r *walk.Request) { r.Fallback = walk.FallbackSameModel }},
			"first d0 k1; skip 1 not_same_model; failed upstream_exhausted",
		},
		{
			"a capability missing on one rung skips it (A4)",
			[]walk.Rung{rung(0, func(r *walk.Rung) { r.Deployment.Capabilities = []catalog.Capability{catalog.Chat} }), rung(1)},
			map[string][]sim.Ending{"d1": {serves()}},
			[]func(*walk.Request){func(r *walk.Request) { r.Needs = []catalog.Capability{catalog.Tools} }},
			"skip 0 capability_missing; first d1 k1; completed",
		},
		{
			"sealed reasoning that is rejected is left out, once (K5)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {rejectsSeal(), serves()}},
			[]func(*walk.Request){sealed},
			"first d0 k1; repair d0 k1; completed",
		},
		{
			"the route that sealed the reasoning goes first, within its stage (K4)",
			[]walk.Rung{rung(0), rung(1), rung(2)},
			map[string][]sim.Ending{"d2": {fails(failure.TimeoutFirstByte)}, "d0": {serves()}},
			[]func(*walk.Request){sealed, func(r *walk.Request) { r.Issuer = "d2" }},
			"first d2 k1; failover d0 k1; completed",
		},
		{
			"a route of another stage is not brought forward (K4, N19)",
			[]walk.Rung{rung(0), rung(1, func(r *walk.Rung) { r.Stage = 1 }), rung(2, func(r *walk.Rung) { r.Stage = 1 })},
			map[string][]sim.Ending{"d0": {fails(failure.TimeoutFirstByte)}, "d2": {serves()}},
			[]func(*walk.Request){sealed, func(r *walk.Request) { r.Issuer = "d2" }},
			"first d0 k1; failover d2 k1; completed",
		},
		{
			"a second rejection is the caller's to hear (K5)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {rejectsSeal()}},
			[]func(*walk.Request){sealed},
			"first d0 k1; repair d0 k1; failed invalid_request",
		},
		{
			"a request without sealed reasoning has nothing to repair (K5)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {rejectsSeal()}},
			nil,
			"first d0 k1; failed invalid_request",
		},
		{
			"a repair takes nothing from the retries of its route (K5, W9)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {rejectsSeal(), fails(failure.ServerError)}, "d1": {serves()}},
			[]func(*walk.Request){sealed},
			"first d0 k1; repair d0 k1; retry d0 k1; failover d1 k1; completed",
		},
		{
			"a repair is an attempt like any other (K5, W9)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {rejectsSeal()}},
			[]func(*walk.Request){sealed, func(r *walk.Request) { r.Admitted.MaxAttempts = 1 }},
			"first d0 k1; failed invalid_request",
		},
		{
			"what a protocol cannot say skips its rungs (P5)",
			[]walk.Rung{rung(0, func(r *walk.Rung) { r.Provider.Protocol = catalog.Anthropic }), rung(1, func(r *walk.Rung) { r.Provider.Protocol = catalog.OpenAI })},
			map[string][]sim.Ending{"d1": {serves()}},
			[]func(*walk.Request){func(r *walk.Request) {
				r.Unsayable = map[catalog.Protocol]string{catalog.Anthropic: "audio_input"}
			}},
			"skip 0 capability_missing; first d1 k1; completed",
		},
		{
			"what no protocol of the chain can say is refused before any attempt (A4, P5)",
			[]walk.Rung{rung(0, func(r *walk.Rung) { r.Provider.Protocol = catalog.Anthropic })},
			nil,
			[]func(*walk.Request){func(r *walk.Request) {
				r.Unsayable = map[catalog.Protocol]string{catalog.Anthropic: "audio_input"}
			}},
			"refused capability_unavailable",
		},
		{
			"an unpriced rung is skipped like a dead one (M3)",
			[]walk.Rung{rung(0, func(r *walk.Rung) { r.Deployment.Prices = money.Prices{} }), rung(1)},
			map[string][]sim.Ending{"d1": {serves()}},
			nil,
			"skip 0 price_unknown; first d1 k1; completed",
		},
		{
			"no rung has a price (M3)",
			[]walk.Rung{rung(0, func(r *walk.Rung) { r.Deployment.Prices = money.Prices{} })},
			nil, nil, "refused price_unknown",
		},
		{
			"no rung is long enough: nothing is held (A5)",
			[]walk.Rung{rung(0, func(r *walk.Rung) { r.Deployment.Context.MaxInput = 700 })},
			nil, nil, "refused context_length_exceeded",
		},
		{
			"a longer window may still answer (W2)",
			[]walk.Rung{
				rung(0, func(r *walk.Rung) { r.Deployment.Context.Total = 10_000 }),
				rung(1, func(r *walk.Rung) { r.Deployment.Context.Total = 5_000 }),
				rung(2, func(r *walk.Rung) { r.Deployment.Context.Total = 20_000 }),
			},
			map[string][]sim.Ending{
				"d0": {fails(failure.ContextLength)}, "d1": {fails(failure.ContextLength)}, "d2": {serves()},
			},
			nil,
			"first d0 k1; failover d1 k1; failover d2 k1; completed",
		},
		{
			"a lost answer goes on by default (W13, D3)",
			[]walk.Rung{rung(0), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.BadPayload)}, "d1": {serves()}},
			nil,
			"first d0 k1; failover d1 k1; completed",
		},
		{
			"a lost answer stops where the model says so (W13)",
			[]walk.Rung{rung(0, func(r *walk.Rung) { r.Policy.LostAnswer = catalog.StopLost }), rung(1)},
			map[string][]sim.Ending{"d0": {fails(failure.BadPayload)}},
			nil,
			"first d0 k1; failed answer_lost",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run := sim.Walk(walk.New(request1(tc.req...), tc.rungs, &sim.World{}), script(tc.endings), nil, noon)
			if diff := cmp.Diff(strings.Split(tc.want, "; "), moves(run)); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
			checkLife(t, run.Events)
		})
	}
}

// checkLife folds a walk's events; the fold refuses what may not be.
func checkLife(t interface{ Fatalf(string, ...any) }, events []event.Event) request.Life {
	var life request.Life
	for i, e := range events {
		if err := life.Apply(e); err != nil {
			t.Fatalf("event %d: %v", i+1, err)
		}
	}
	if life.Phase != request.Closed {
		t.Fatalf("the request was not closed")
	}
	return life
}

// Rules: S2, S3.
func TestNothingStartsAfterTheCommit_S2_S3(t *testing.T) {
	broken := sim.Ending{
		Failure: &failure.Failure{Class: failure.StreamTruncated}, Committed: true,
		Report: walk.Report{FirstOutput: "text", DeliveredTokens: 40},
	}
	run := sim.Walk(walk.New(request1(), []walk.Rung{rung(0), rung(1)}, &sim.World{}),
		script(map[string][]sim.Ending{"d0": {broken}, "d1": {serves()}}), nil, noon)
	if diff := cmp.Diff([]string{"first d0 k1", "truncated upstream_truncated"}, moves(run)); diff != "" {
		t.Error(diff)
	}
	settled := checkLife(t, run.Events).Attempts[0].Settled
	// S6: counted from what was delivered: 800 x 3 + 40 x 15 USD per million.
	if settled.Basis != usage.BasisEstimated || settled.Charge != 3_000_000 {
		t.Errorf("settled %s at %d", settled.Basis, settled.Charge)
	}
}

// Rules: M4.
func TestAnAnswerWithoutUsageIsUnknownNotFree_M4(t *testing.T) {
	for name, u := range map[string]usage.Usage{
		"absent": {}, "null": {Input: usage.Count{State: usage.Null}},
		"zeros": {Input: usage.Of(0), Output: usage.Of(0)},
	} {
		end := serves()
		end.Report.Usage = u
		run := sim.Walk(walk.New(request1(), []walk.Rung{rung(0)}, &sim.World{}),
			script(map[string][]sim.Ending{"d0": {end}}), nil, noon)
		if s := checkLife(t, run.Events).Attempts[0].Settled; s.Basis != usage.BasisUnknown || s.Charge != 0 {
			t.Errorf("%s: settled %s at %d", name, s.Basis, s.Charge)
		}
	}
}

// What nobody knows is charged nothing and keeps its tokens held, until somebody knows or
// a day has gone by; a customer's own key has no meter of ours.
//
// Rules: D2, R2.
func TestUnknownUsageHoldsTheMeter_R2(t *testing.T) {
	for owner, held := range map[request.Owner]bool{request.Operator: true, request.Workspace: false} {
		end := serves()
		end.Report.Usage, end.Report.DeliveredTokens = usage.Usage{}, 40
		r := rung(0)
		r.Owner = owner
		run := sim.Walk(walk.New(request1(), []walk.Rung{r}, &sim.World{}), script(map[string][]sim.Ending{"d0": {end}}), nil, noon)
		a := checkLife(t, run.Events).Attempts[0]
		if (a.MeterHold != nil) != held {
			t.Errorf("%s: %+v", owner, a.MeterHold)
		}
		if held && a.MeterHold.Tokens != a.Reserved.Estimate.InputTokens+40 {
			t.Errorf("%s holds %d of %+v", owner, a.MeterHold.Tokens, a.Reserved.Estimate)
		}
	}
}

// Whoever hangs up before the first output is charged nothing, and the input counts in
// the windows of tokens as it was planned: hanging up is no way around a limit. What a
// provider failed at counts nothing, whatever it may bill.
//
// Rules: R2, M5.
func TestHangingUpIsNoWayAroundALimit_R2_M5(t *testing.T) {
	for class, want := range map[failure.Class]int64{failure.ClientCancelled: 1000, failure.TimeoutFirstByte: 0} {
		end := fails(class)
		end.Failure.PossiblyBilled = true
		req := request1(func(r *walk.Request) {
			r.Budgets = []catalog.Budget{{Scope: catalog.ScopeOrganization, Tokens: 5000, Per: catalog.PerDay}}
		})
		book := budget.NewBook()
		run := sim.Walk(walk.New(req, []walk.Rung{rung(0)}, &sim.World{}), script(map[string][]sim.Ending{"d0": {end}}), book, noon)
		if s := checkLife(t, run.Events).Attempts[0].Settled; s.Basis != usage.BasisUnknown || s.Charge != 0 {
			t.Errorf("%s: settled %s at %d", class, s.Basis, s.Charge)
		}
		day := book.Counters["org/acme/tokens/day/2026-11-29"]
		if held := book.Counters["org/acme/tokens/held"].Held; day.Settled != want*money.PartsPerToken || held != 0 {
			t.Errorf("%s: %d counted, %d held", class, day.Settled, held)
		}
	}
}

// Rules: M13, M16.
func TestABudgetStopsTheWalkAndSaysWhich_M13_M16(t *testing.T) {
	budgets := []catalog.Budget{{Scope: catalog.ScopeOrganization, LimitUSD: "0.00001", Per: catalog.PerMonth}}
	req := request1(func(r *walk.Request) { r.Budgets = budgets })
	run := sim.Walk(walk.New(req, []walk.Rung{rung(0), rung(1)}, &sim.World{}), script(nil), budget.NewBook(), noon)
	if diff := cmp.Diff([]string{"refused insufficient_quota"}, moves(run)); diff != "" {
		t.Fatal(diff)
	}
	refused := run.Events[0].(request.RequestRefused)
	want := request.Refusal{Code: "insufficient_quota", Scope: "organization", Limit: 10_000, Unit: "nanousd", Per: "month", Resets: "2026-12-01T00:00:00Z"}
	if diff := cmp.Diff(want, refused.Refusal); diff != "" {
		t.Error(diff)
	}
}

// Rules: M5, M13.
func TestABudgetThatRunsOutOnTheWayStillSettlesWhatCameBefore_M5_M13(t *testing.T) {
	// One worst case is 1000 x 3 + 100 x 15 = 0.0045 USD; the second attempt costs
	// more than is left once the first has been charged nothing, so make the second
	// deployment dearer than the budget.
	dear := decimal.RequireFromString("300")
	budgets := []catalog.Budget{{Scope: catalog.ScopeOrganization, LimitUSD: "0.005", Per: catalog.Total}}
	rungs := []walk.Rung{rung(0), rung(1, func(r *walk.Rung) { r.Deployment.Prices.Input = &dear })}
	req := request1(func(r *walk.Request) { r.Budgets = budgets })
	counters := budget.NewBook()
	run := sim.Walk(walk.New(req, rungs, &sim.World{}), script(map[string][]sim.Ending{"d0": {fails(failure.DeploymentGone)}}), counters, noon)
	if diff := cmp.Diff([]string{"first d0 k1", "refused insufficient_quota"}, moves(run)); diff != "" {
		t.Fatal(diff)
	}
	checkLife(t, run.Events)
	for key, c := range counters.Counters {
		if c.Held != 0 {
			t.Errorf("%s still holds %d", key, c.Held)
		}
	}
}

// Rules: T1, T2, T4.
func TestThrottleRules_T1_T2_T4(t *testing.T) {
	half, zero := 0.5, 0.0
	for _, tc := range []struct {
		name      string
		mode      catalog.FailoverMode
		threshold *float64
		cache     float64
		want      request.ThrottleDecision
	}{
		{"maximize_cache returns", catalog.MaximizeCache, nil, 0, request.ThrottleReturned},
		{"maximize_availability moves on", catalog.MaximizeAvailability, nil, 1, request.ThrottleFailover},
		{"affinity moves on", catalog.MaximizeCacheAffinity, nil, 1, request.ThrottleFailover},
		{"at the threshold it returns, in all modes", catalog.MaximizeAvailability, &half, 0.5, request.ThrottleReturned},
		{"below it moves on, in all modes", catalog.MaximizeCache, &half, 0.49, request.ThrottleFailoverCold},
		{"a threshold of zero always returns", catalog.MaximizeAvailability, &zero, 0, request.ThrottleReturned},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rung(0, func(r *walk.Rung) {
				r.Policy.FailoverMode, r.Policy.ThrottleCacheThreshold = tc.mode, tc.threshold
			})
			world := &sim.World{Cache: map[string]float64{"d0": tc.cache}}
			next := rung(1, func(r *walk.Rung) { r.Stage = 1 }) // where affinity cannot put it first
			run := sim.Walk(walk.New(request1(), []walk.Rung{r, next}, world),
				script(map[string][]sim.Ending{"d0": {fails(failure.Throttled)}, "d1": {serves()}}), nil, noon)
			if got := decisions(run); !slices.Equal(got, []request.ThrottleDecision{tc.want}) {
				t.Errorf("decided %v, want %s", got, tc.want)
			}
		})
	}
}

func decisions(run sim.Run) []request.ThrottleDecision {
	var list []request.ThrottleDecision
	for _, e := range run.Events {
		if d, ok := e.(request.ThrottleDecided); ok {
			list = append(list, d.Decision)
		}
	}
	return list
}

// Rules: T5, T6, T7, T9.
func TestRedialsFollowTheSchedule_T5_T6_T7_T9(t *testing.T) {
	half := 0.5
	schedule := func(r *walk.Rung) {
		r.Policy.ThrottleRedial = &catalog.ThrottleRedial{MaxRetries: 3}
		r.Policy.ThrottleCacheThreshold = &half
	}
	for _, tc := range []struct {
		name  string
		cache float64
		rungs []walk.Rung
		asked time.Duration
		waits []time.Duration
	}{
		{"a fifth of the input cached earns one redial of three", 0.2, []walk.Rung{rung(0, schedule), rung(1)}, 0, []time.Duration{500 * time.Millisecond}},
		{"no evidence earns none", 0, []walk.Rung{rung(0, schedule), rung(1)}, 0, nil},
		{
			"the last usable route gets all", 0,
			[]walk.Rung{rung(0, schedule)},
			0,
			[]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second},
		},
		{
			"Retry-After raises a pause", 0.2,
			[]walk.Rung{rung(0, schedule), rung(1)},
			3 * time.Second,
			[]time.Duration{3 * time.Second},
		},
		{"a longer ask than the cap moves on at once", 0.5, []walk.Rung{rung(0, schedule), rung(1)}, 9 * time.Second, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			throttled := fails(failure.Throttled)
			throttled.Failure.Retry = failure.Retry{After: tc.asked, Told: tc.asked > 0}
			world := &sim.World{Cache: map[string]float64{"d0": tc.cache}, Jitter: 0.9999999999}
			run := sim.Walk(walk.New(request1(), tc.rungs, world),
				script(map[string][]sim.Ending{"d0": {throttled}, "d1": {serves()}}), nil, noon)
			var waits []time.Duration
			for _, w := range run.Waits {
				waits = append(waits, w.Round(time.Millisecond))
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryWalkIsALife drives machines with random faults and checks the
// invariants of the log after each (Q3, M16, I5).
func TestEveryWalkIsALife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "rungs")
		var rungs []walk.Rung
		for i := range n {
			rungs = append(rungs, rung(i, func(r *walk.Rung) {
				for k := range rapid.IntRange(0, 2).Draw(t, "more keys") {
					r.Provider.Keys = append(r.Provider.Keys, catalog.ProviderKey{ID: fmt.Sprintf("k%d", k+2)})
				}
				if rapid.Bool().Draw(t, "schedule") {
					r.Policy.ThrottleRedial = &catalog.ThrottleRedial{MaxRetries: rapid.IntRange(1, 6).Draw(t, "redials")}
				}
			}))
		}
		req := request1(func(r *walk.Request) {
			r.Admitted.MaxAttempts = rapid.IntRange(1, 8).Draw(t, "max attempts")
			r.Budgets = []catalog.Budget{{Scope: catalog.ScopeOrganization, LimitUSD: "0.02", Per: catalog.Total}}
		})
		counters := budget.NewBook()
		run := sim.Walk(walk.New(req, rungs, &sim.World{}), func(*walk.Call, time.Time) sim.Ending {
			if rapid.IntRange(0, 3).Draw(t, "serves") == 0 {
				return serves()
			}
			end := fails(rapid.SampledFrom(failure.Classes()).Draw(t, "class"))
			end.Committed = rapid.IntRange(0, 4).Draw(t, "committed") == 0
			return end
		}, counters, noon)
		life := checkLife(t, run.Events)
		if len(life.Attempts) > req.Admitted.MaxAttempts {
			t.Fatalf("%d attempts of %d", len(life.Attempts), req.Admitted.MaxAttempts)
		}
		var charged money.NanoUSD
		for _, a := range life.Attempts {
			charged += a.Settled.Charge
		}
		for key, c := range counters.Counters {
			if c.Held != 0 || c.Settled != int64(charged) {
				t.Fatalf("%s holds %d and has settled %d of %d", key, c.Held, c.Settled, charged)
			}
		}
	})
}

// From the repair on no route is sent what one could not read: it would cost each of
// them an attempt to say so again.
//
// Rules: K5.
func TestRepairedRequestsStayWithoutSeals_K5(t *testing.T) {
	run := sim.Walk(walk.New(request1(sealed), []walk.Rung{rung(0), rung(1)}, &sim.World{}), script(map[string][]sim.Ending{
		"d0": {rejectsSeal(), fails(failure.TimeoutFirstByte)}, "d1": {serves()},
	}), nil, noon)
	var without []bool
	for _, c := range run.Calls {
		without = append(without, c.WithoutSeals)
	}
	if diff := cmp.Diff([]bool{false, true, true}, without); diff != "" {
		t.Error(diff)
	}
}

// Sealed reasoning goes to its issuer's provider, and to all while it is nobody's.
//
// Rules: K4.
func TestSealsGoToTheirIssuer_K4(t *testing.T) {
	sibling := rung(2, func(r *walk.Rung) { r.Provider = rung(1).Provider })
	for issuer, want := range map[string]map[string]bool{
		"":     {"d0": false, "d1": false, "d2": false},
		"d1":   {"d0": true, "d1": false, "d2": false},
		"gone": {"d0": true, "d1": true, "d2": true},
	} {
		req := request1(sealed, func(r *walk.Request) { r.Issuer = issuer })
		run := sim.Walk(walk.New(req, []walk.Rung{rung(0), rung(1), sibling}, &sim.World{}), func(*walk.Call, time.Time) sim.Ending {
			return fails(failure.TimeoutFirstByte)
		}, nil, noon)
		got := map[string]bool{}
		for _, c := range run.Calls {
			got[c.Rung.Deployment.ID] = c.WithoutSeals
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("issuer %q: %s", issuer, diff)
		}
	}
}
