package sim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// seeds that failed once stay here for good.
var seeds = []uint64{1}

// millionRequests is how many requests each seed drives.
var millionRequests = 1_000_000

// TestAMillionRequests_Q3 drives the walk with seeded faults and checks the
// invariants of the log after every request: its life is possible, nothing stays
// held, no attempt is made past a bound, and the counters are the sum of the
// charges.
//
// Rules: Q3.
func TestAMillionRequests_Q3(t *testing.T) {
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			w := newWeather(seed)
			for i := range millionRequests {
				if err := w.request(); err != nil {
					t.Fatalf("request %d: %v", i, err)
				}
			}
			if w.paid == 0 {
				t.Error("no promotion paid anything")
			}
			// A simulation that only ever meets one side of a rule proves nothing about
			// the other.
			for _, code := range []request.Code{
				"", request.CodeInsufficientQuota, request.CodeRateLimitExceeded, request.CodeUpstreamExhausted, request.CodeUpstreamTruncated,
				request.CodeProviderThrottled, request.CodeAnswerLost, request.CodeDeadlineExceeded, request.CodeEmptyCompletion,
			} {
				if w.outcomes[code] == 0 {
					t.Errorf("no request ended with %q: %v", code, w.outcomes)
				}
			}
		})
	}
}

// weather is a seeded world of faults.
type weather struct {
	*rand.Rand
	counters *budget.Book
	charged  money.NanoUSD
	// unknownTokens are those of meter holds.
	unknownTokens int64
	outcomes      map[request.Code]int
	now           time.Time
	budgets       []catalog.Budget
	promotions    []catalog.Promotion
	// paid are the attempts that a promotion paid something of.
	paid   int
	chains [][]walk.Rung
}

func newWeather(seed uint64) *weather {
	w := &weather{
		Rand:     rand.New(rand.NewPCG(seed, seed)),
		counters: budget.NewBook(),
		outcomes: map[request.Code]int{},
		now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		// Enough for the larger part of every simulated minute: both sides of the limit
		// are walked in each.
		budgets: []catalog.Budget{
			{Scope: catalog.ScopeOrganization, LimitUSD: "1500", Per: catalog.PerMinute},
			{Scope: catalog.ScopeOrganization, Tokens: 150_000_000, Per: catalog.PerMinute},
			{Scope: catalog.ScopeOrganization, Tokens: 1_000_000_000_000, Per: catalog.PerDay},
			{Scope: catalog.ScopeOrganization, Requests: 90_000, Per: catalog.PerMinute},
			{Scope: catalog.ScopeModel, Of: "other", Requests: 1_000, Per: catalog.PerMinute},
			{Scope: catalog.ScopeDeployment, LimitUSD: "400", Per: catalog.PerMinute},
			{Scope: catalog.ScopeDeployment, Of: "d1", Requests: 5_000, Per: catalog.PerMinute, Enforcement: catalog.Observe},
		},
		// Used up about half way.
		promotions: []catalog.Promotion{
			{
				ID: "launch", Models: []string{"m"},
				FreeInputTokens:  &catalog.Allowances{PerModel: &catalog.AllowanceLimits{PerHour: 150_000_000}, Overall: &catalog.AllowanceLimits{TotalUSD: "2000"}},
				FreeOutputTokens: &catalog.Allowances{Overall: &catalog.AllowanceLimits{PerDay: 200_000_000}},
			},
			{ID: "rest", Models: []string{"other"}, FreeInputTokens: &catalog.Allowances{Overall: &catalog.AllowanceLimits{Total: 10_000_000}}},
		},
	}
	for range 32 {
		w.chains = append(w.chains, w.chain())
	}
	return w
}

func (w *weather) chain() []walk.Rung {
	price := func() *decimal.Decimal {
		d := decimal.New(w.Int64N(2000), -2)
		return &d
	}
	var rungs []walk.Rung
	for i := range 1 + w.IntN(6) {
		r := walk.Rung{
			Index: i, Model: "m", Root: true, Policy: catalog.Policy{}.WithDefaults(),
			Provider:   &catalog.Provider{ID: fmt.Sprint("p", i)},
			Deployment: &catalog.Deployment{ID: fmt.Sprint("d", i), Prices: money.Prices{Input: price(), Output: price()}},
		}
		for k := range w.IntN(4) {
			r.Provider.Keys = append(r.Provider.Keys, catalog.ProviderKey{ID: fmt.Sprint("k", k)})
		}
		if w.IntN(3) == 0 {
			r.Policy.ThrottleRedial = &catalog.ThrottleRedial{MaxRetries: 1 + w.IntN(6)}
		}
		if w.IntN(5) == 0 {
			r.Policy.LostAnswer = catalog.StopLost
		}
		if w.IntN(4) == 0 {
			r.Root, r.Model = false, "other"
		}
		if w.IntN(4) == 0 {
			r.Deployment.Context.Total = 500 + w.Int64N(4000)
		}
		if w.IntN(8) == 0 {
			r.Deployment.Prices = money.Prices{}
		}
		rungs = append(rungs, r)
	}
	return rungs
}

var fallbacks = []walk.Fallback{walk.FallbackAny, walk.FallbackAny, walk.FallbackSameModel, walk.FallbackNone}

func (w *weather) request() error {
	limit := 1 + w.IntN(8)
	req := walk.Request{
		Admitted: request.RequestAdmitted{
			Tenant: "acme", CanonicalModel: "m", MaxAttempts: limit, DeadlineMS: 60_000,
			Estimate: request.Estimate{InputTokens: w.Int64N(3000)}, FreeOnly: w.IntN(8) == 0,
		},
		FloorTokens: w.Int64N(2500), OutputTokens: w.Int64N(500), Fallback: fallbacks[w.IntN(len(fallbacks))],
		Stream: w.IntN(2) == 0, Deadline: w.now.Add(time.Minute), Budgets: w.budgets, Promotions: w.promotions,
	}
	world := &sim.World{First: w.IntN(3), Jitter: w.Float64(), Cache: map[string]float64{"d0": w.Float64()}}
	run := sim.Walk(walk.New(req, w.chains[w.IntN(len(w.chains))], world), w.ending, w.counters, w.now)
	w.now = w.now.Add(time.Millisecond)
	if err := w.checkGifts(run, req.Admitted.FreeOnly); err != nil {
		return err
	}
	return w.check(run, limit)
}

// ending is how one call ends: mostly well.
func (w *weather) ending(c *walk.Call, _ time.Time) sim.Ending {
	end := sim.Ending{
		After: time.Duration(w.Int64N(int64(20 * time.Second))),
		Report: walk.Report{
			FirstOutput: "text", DeliveredTokens: w.Int64N(600),
			Usage: usage.Usage{Input: usage.Of(w.Int64N(5000)), CachedInput: usage.Of(w.Int64N(5000)), Output: usage.Of(w.Int64N(900))},
		},
	}
	if w.IntN(6) == 0 {
		end.Report.Usage = usage.Usage{}
	}
	if w.IntN(2) == 0 {
		classes := failure.Classes()
		class := classes[w.IntN(len(classes))]
		end.Failure = &failure.Failure{Class: class, PossiblyBilled: failure.Of(class).MaybeBilled}
		end.Failure.Retry = failure.Retry{After: time.Duration(w.Int64N(int64(10 * time.Second))), Told: w.IntN(2) == 0}
		end.Committed = w.IntN(4) == 0
	}
	return end
}

// checkGifts: list cost is what the customer and the promotion pay, and a request that may
// only be free is (M10).
func (w *weather) checkGifts(run sim.Run, freeOnly bool) error {
	for _, e := range run.Events {
		s, ok := e.(request.AttemptSettled)
		switch {
		case !ok:
			continue
		case freeOnly && (s.Charge != 0 || s.Reserved != 0 || s.Promotion == nil):
			return fmt.Errorf("a free attempt was charged %d of %d, paid by %v", s.Charge, s.Reserved, s.Promotion)
		case !s.Waived && s.Charge+s.Subsidy != s.List, s.Promotion == nil && s.Subsidy != 0:
			return fmt.Errorf("%+v is paid by %v", s.Amounts, s.Promotion)
		case s.Subsidy > 0:
			w.paid++
		}
	}
	return nil
}

func (w *weather) check(run sim.Run, limit int) error {
	var life request.Life
	for i, e := range run.Events {
		if err := life.Apply(e); err != nil {
			return fmt.Errorf("event %d of %d: %w", i+1, len(run.Events), err)
		}
	}
	switch {
	case life.Phase != request.Closed:
		return fmt.Errorf("not closed")
	case len(life.Attempts) > limit:
		return fmt.Errorf("%d attempts of %d", len(life.Attempts), limit)
	case len(life.Attempts) != len(run.Calls):
		return fmt.Errorf("%d attempts in the log, %d calls made", len(life.Attempts), len(run.Calls))
	}
	w.charged += life.Amounts.Charge
	w.outcomes[run.Answer.Code]++
	for _, a := range life.Attempts {
		if a.MeterHold != nil {
			w.unknownTokens += a.MeterHold.Tokens
		}
	}
	var settled int64
	for key, c := range w.counters.Counters {
		// Nobody resolves meter holds here: their tokens stay held, and nothing else (D2).
		held := int64(0)
		if strings.HasPrefix(string(key), "org/acme/tokens/") && (budget.Trails(key) || strings.HasSuffix(string(key), "/held")) {
			held = w.unknownTokens * money.PartsPerToken
		}
		if c.Held != held {
			return fmt.Errorf("%s holds %d, not %d", key, c.Held, held)
		}
		if strings.HasPrefix(string(key), "org/acme/usd/") {
			settled += c.Settled
		}
	}
	if settled != int64(w.charged) {
		return fmt.Errorf("counters settled %d of %d", settled, w.charged)
	}
	return nil
}
