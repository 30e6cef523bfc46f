package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// promoted gives the bench's model away, up to totals of input and output.
func promoted(b *gatewaytest.Bench, input, output int64) {
	total := func(n int64) *catalog.Allowances {
		return &catalog.Allowances{Overall: &catalog.AllowanceLimits{Total: n}}
	}
	b.Objects.Tenants[0].Promotions = []catalog.Promotion{{
		ID: "launch", Models: []string{"m"}, FreeInputTokens: total(input), FreeOutputTokens: total(output),
	}}
}

var free = strings.Replace(gatewaytest.Whole, `"m"`, `"m:free"`, 1)

// A free request costs nothing, two commits like any other, and its reply keeps the
// name that was asked for.
//
// Rules: M10, N23.
func TestAFreeRequestIsTwoCommits_M10_N23(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	promoted(b, 1000, 1000)
	out := b.Chat(t.Context(), free)
	if out.Err != nil || !strings.Contains(string(out.Whole), `"model":"m:free"`) {
		t.Fatalf("%v, %s", out.Err, out.Whole)
	}
	if out.Facts.CostNanoUSD == nil || *out.Facts.CostNanoUSD != 0 || out.Facts.CanonicalModel != "m" {
		t.Errorf("facts %+v", out.Facts)
	}
	if diff := cmp.Diff(served, b.Log.Moves(t)); diff != "" || b.Log.Commits != 2 {
		t.Errorf("%d commits, %s", b.Log.Commits, diff)
	}
	b.Log.NothingHeld(t)
	if c := b.Log.Book.Counters["promo/acme/launch/output/overall/tokens/total/total"]; c.Settled == 0 {
		t.Error("nothing was taken of the allowance")
	}
}

// A request under the plain name goes on without the allowance that does not cover it;
// one that may only be free stops, and nobody is called.
//
// Rules: M10, A9.
func TestAnAllowanceThatIsUsedUp_M10_A9(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	promoted(b, 1000, 49)
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err != nil || *out.Facts.CostNanoUSD == 0 {
		t.Fatalf("%v, %+v", out.Err, out.Facts)
	}
	if diff := cmp.Diff(served, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
	b.Log.NothingHeld(t)

	b = gatewaytest.New(t, "fake-ok")
	promoted(b, 1000, 49)
	out = b.Chat(t.Context(), free)
	e := out.Err
	if e == nil || e.Code != apierror.InsufficientQuota || e.Scope != "promotion" || *e.Limit != 49 || *e.Used != 0 || e.Unit != "tokens" || e.Retryable {
		t.Fatalf("got %+v", e)
	}
	if !strings.Contains(e.Message, "free allowance") || b.Provider.Ledger().Total != 0 {
		t.Errorf("%d calls, %q", b.Provider.Ledger().Total, e.Message)
	}
	if diff := cmp.Diff([]string{"request_refused"}, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
	b.Log.NothingHeld(t)
}

// A key whose free request was refused is free: the same key may be used when the
// allowance is renewed (I1).
func TestARefusedFreeRequestLeavesItsKey_M10_I1(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	promoted(b, 1000, 49)
	if out := b.Keyed(t.Context(), "k", free); out.Err == nil || out.Err.Code != apierror.InsufficientQuota {
		t.Fatalf("got %+v", out.Err)
	}
	promoted(b, 1000, 50)
	if out := b.Keyed(t.Context(), "k", free); out.Err != nil {
		t.Fatalf("got %+v", out.Err)
	}
	b.Log.NothingHeld(t)
	// A reservation that is made twice claims the key once.
	if out := b.Keyed(t.Context(), "other", gatewaytest.Whole); out.Err != nil {
		t.Fatalf("got %+v", out.Err)
	}
}

// The probe that was taken for a call is still its own when the call is reserved again
// without the promotion (H1).
func TestReservingAgainKeepsTheProbe_M10_H1(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	promoted(b, 1, 1)
	circuits := health.New(health.Config{Secrets: gatewaytest.AnySecret{}})
	b.Health = circuits
	rung := &walk.Rung{Model: "m", Deployment: &b.Objects.Deployments[0], Provider: &b.Objects.Providers[0]}
	now := time.Now()
	circuits.Observe(rung, "k1", "acme/key1", &failure.Failure{Class: failure.DeploymentGone, Status: 404}, now.Add(-time.Minute))
	other := make(chan walk.Verdict, 8)
	b.Log.Admitted = func() { other <- circuits.Claim(rung, "k1", walk.Ordinary, time.Now()) }
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Fatalf("got %+v", out.Err)
	}
	if v := <-other; v.Skip == "" {
		t.Errorf("another request probes at the same time: %+v", v)
	}
	if v := circuits.Claim(rung, "k1", walk.Ordinary, time.Now()); v.Skip != "" || v.Probe {
		t.Errorf("the circuit did not close: %+v", v)
	}
}

// Promotions and budgets refuse on their own: what a promotion pays is not asked of the
// organization's money, and what it does not is.
//
// Rules: M10, M16.
func TestTheRestIsHeldOnTheBudget_M10_M16(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	promoted(b, 1000, 1000)
	b.Objects.Tenants[0].Promotions[0].FreeOutputTokens = nil
	// The output's 50 tokens at 15,000 and the cached input's worst case need more.
	b.Log.Book.Counters[gatewaytest.MonthKey()] = budget.Counter{Settled: 1_000_000_000 - 750_000}
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err == nil || out.Err.Scope != "organization" {
		t.Fatalf("got %+v", out.Err)
	}
	b.Log.Book.Counters[gatewaytest.MonthKey()] = budget.Counter{Settled: 1_000_000_000 - 800_000}
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Fatalf("got %+v", out.Err)
	}
}
