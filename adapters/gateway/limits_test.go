package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
)

// limited is a bench whose organization is under these budgets alone.
func limited(t *testing.T, upstream string, budgets ...catalog.Budget) *gatewaytest.Bench {
	t.Helper()
	b := gatewaytest.New(t, upstream)
	b.Objects.Tenants[0].Budgets = budgets
	return b
}

// Rules: R8.
func TestRepliesTellWhatIsLeft_R8(t *testing.T) {
	b := limited(t, "fake-ok",
		catalog.Budget{Scope: "organization", Requests: 9, Per: catalog.PerMinute},
		catalog.Budget{Scope: "key", Requests: 3, Per: catalog.PerMinute},
		catalog.Budget{Scope: "organization", Requests: 2, Per: catalog.PerMinute, Enforcement: catalog.Observe},
		catalog.Budget{Scope: "deployment", Requests: 1, Per: catalog.PerHour},
		catalog.Budget{Scope: "organization", Tokens: 5000, Per: catalog.PerDay},
		catalog.Budget{Scope: "organization", Tokens: 4, Per: catalog.Total, Enforcement: catalog.Observe},
	)
	begun := time.Now()
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	r, tokens := out.Facts.Limits.Requests, out.Facts.Limits.Tokens
	if r == nil || r.Limit != 3 || r.Remaining != 2 || r.Reset.Before(begun.Add(59*time.Second)) {
		t.Errorf("requests %+v: the key's limit is the narrowest that can refuse the caller", r)
	}
	if tokens == nil || tokens.Limit != 5000 || tokens.Remaining >= 5000 || tokens.Remaining < 4000 || tokens.Reset.Before(begun) {
		t.Errorf("tokens %+v", tokens)
	}
}

// A window that nothing was used of yet is told of from its first request on.
//
// Rules: R8.
func TestAnUntouchedWindowIsTold_R8(t *testing.T) {
	b := limited(t, "fake-ok", catalog.Budget{Scope: "organization", Tokens: 5000, Per: catalog.PerHour})
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	if tokens := out.Facts.Limits.Tokens; tokens == nil || tokens.Limit != 5000 || tokens.Remaining >= 5000 || tokens.Reset.IsZero() {
		t.Errorf("tokens %+v", tokens)
	}
}

// Rules: R1, A9, W20.
func TestAFullWindowSaysWhenItMoves_R1_A9_W20(t *testing.T) {
	b := limited(t, "fake-ok", catalog.Budget{Scope: "organization", Requests: 1, Per: catalog.PerMinute})
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Fatal(out.Err)
	}
	out := b.Chat(t.Context(), gatewaytest.Whole)
	e := out.Err
	if e == nil || e.Code != apierror.RateLimitExceeded || !e.Retryable || e.Scope != "organization" || e.Unit != "requests" || *e.Limit != 1 || *e.Used != 1 {
		t.Fatalf("got %+v", e)
	}
	if e.RetryAfter <= 50*time.Second || e.RetryAfter > time.Minute {
		t.Errorf("come back after %s", e.RetryAfter)
	}
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Rules: M13.
func TestADeploymentsLimitMovesOn_M13(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok", "fake-ok")
	b.Objects.Tenants[0].Budgets = []catalog.Budget{{Scope: "deployment", Of: "d0", Requests: 1, Per: catalog.PerMinute}}
	for _, want := range []string{"p0", "p1", "p1"} {
		if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil || out.Facts.Provider != want {
			t.Fatalf("served by %q, want %q: %v", out.Facts.Provider, want, out.Err)
		}
	}
	b.Objects.Tenants[0].Budgets = append(b.Objects.Tenants[0].Budgets, catalog.Budget{Scope: "deployment", Of: "d1", Requests: 2, Per: catalog.PerMinute})
	b.Chat(t.Context(), gatewaytest.Whole)
	b.Chat(t.Context(), gatewaytest.Whole)
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err == nil || out.Err.Code != apierror.RateLimitExceeded || out.Err.Scope != "deployment" {
		t.Fatalf("got %+v", out.Err)
	}
	b.Log.NothingHeld(t)
}

// The claim of a key is written under the reservation's own checks. It does not refuse
// what the reservation has just taken.
//
// Rules: R10, I2.
func TestTheLastRequestThatFitsMayCarryAKey_R10_I2(t *testing.T) {
	b := limited(t, "fake-ok", catalog.Budget{Scope: "organization", Requests: 1, Per: catalog.PerMinute})
	for range 2 {
		if got := answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole)); !strings.Contains(got, `"choices"`) {
			t.Fatalf("got %s", got)
		}
	}
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
	if got := answerOf(t, b.Keyed(t.Context(), "other", gatewaytest.Whole)); got != string(apierror.RateLimitExceeded) {
		t.Errorf("got %s", got)
	}
}

// Rules: R9.
func TestAThresholdIsToldOnceAWindow_R9(t *testing.T) {
	b := limited(t, "fake-ok",
		catalog.Budget{Scope: "organization", Requests: 5, Per: catalog.PerDay},
		catalog.Budget{Scope: "key", Requests: 5, Per: catalog.PerDay, SoftPercent: new(0)},
	)
	other := *b
	other.Gateway = gateway.New(b.Config)
	for range 3 {
		b.Chat(t.Context(), gatewaytest.Whole)
	}
	b.Gateway.Close()
	if told := b.Log.Streamed(t, "threshold/"); len(told) != 0 {
		t.Fatalf("told at 3 of 5: %+v", told)
	}
	b.Chat(t.Context(), gatewaytest.Whole)
	b.Gateway.Close() // it is told in the background, and the other would tell it with 5
	other.Chat(t.Context(), gatewaytest.Whole)
	other.Gateway.Close()
	day := time.Now().UTC().Format("2006-01-02")
	got := b.Log.Streamed(t, "threshold/")
	if len(got) != 1 {
		t.Fatalf("told %d times", len(got))
	}
	told := got[0].(request.BudgetThresholdReached)
	told.Request = ""
	want := request.BudgetThresholdReached{
		Tenant: "acme", Budget: "organization/requests/day", Scope: "organization", Unit: "requests", Window: day,
		Threshold: 4, Limit: 5, Used: 4, Resets: told.Resets,
	}
	if diff := cmp.Diff(want, told); diff != "" || told.Resets == "" {
		t.Error(diff)
	}
}

// Rules: R9.
func TestWhatObservationLetsPassIsOnRecord_R9(t *testing.T) {
	b := limited(t, "fake-ok", catalog.Budget{Scope: "organization", Tokens: 1, Per: catalog.PerMinute, Enforcement: catalog.Observe})
	b.Chat(t.Context(), gatewaytest.Whole)
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Fatal(out.Err)
	}
	var observed []request.LimitObserved
	for _, e := range b.Log.Streamed(t, "request/") {
		if o, ok := e.(request.LimitObserved); ok {
			observed = append(observed, o)
		}
	}
	if len(observed) != 1 || observed[0].Code != string(apierror.RateLimitExceeded) || observed[0].Used <= 1 || observed[0].Attempt != 1 {
		t.Errorf("%+v", observed)
	}
}
