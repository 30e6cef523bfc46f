package gateway_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
)

// answerOf runs an outcome to its end and says what the caller got.
func answerOf(t *testing.T, out *gateway.Outcome) string {
	t.Helper()
	switch {
	case out.Err != nil:
		return string(out.Err.Code)
	case out.Stream != nil:
		var c gatewaytest.Collector
		if err := out.Stream(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		return c.Sent.String()
	default:
		return string(out.Whole)
	}
}

// Rules: I1.
func TestAKeyedRequestRunsOnceAndIsReplayedExactly_I1(t *testing.T) {
	for name, body := range map[string]string{"whole": gatewaytest.Whole, "stream": gatewaytest.Stream} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, "fake-ok")
			first := b.Keyed(t.Context(), "k", body)
			want := answerOf(t, first)
			commits := b.Log.Commits
			second := b.Keyed(t.Context(), "k", body)
			if diff := cmp.Diff(want, answerOf(t, second)); diff != "" {
				t.Errorf("the replay differs:\n%s", diff)
			}
			if first.Replayed || !second.Replayed || second.RequestID != first.RequestID {
				t.Errorf("replayed %v then %v, ids %s and %s", first.Replayed, second.Replayed, first.RequestID, second.RequestID)
			}
			if n := b.Provider.Ledger().Total; n != 1 || b.Log.Commits != commits {
				t.Errorf("%d calls, %d commits more: a replay touches neither", n, b.Log.Commits-commits)
			}
			if commits != 2 {
				t.Errorf("%d commits: a key must cost none of its own", commits)
			}
		})
	}
}

// Rules: I1.
func TestTheSameKeyWithAnotherBodyConflicts_I1(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole))
	if got := answerOf(t, b.Keyed(t.Context(), "k", strings.Replace(gatewaytest.Whole, "hi", "ho", 1))); got != string(apierror.IdempotencyConflict) {
		t.Errorf("got %s", got)
	}
}

// TestWhatAKeyMayNotAskForIsNotReplayedToIt_I1_N13: the same bytes under another class,
// or from a key with other rights, are another request.
//
// Rules: I1, N13.
func TestWhatAKeyMayNotAskForIsNotReplayedToIt_I1_N13(t *testing.T) {
	for name, edit := range map[string]func(*gatewaytest.Bench){
		"a key confined to other models": func(b *gatewaytest.Bench) { b.Key.Models = []string{"another"} },
		"a key confined to a class":      func(b *gatewaytest.Bench) { b.Key.Class = "summarize" },
		"a class in the header":          func(b *gatewaytest.Bench) { b.Controls.Class = "summarize" },
	} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, "fake-ok")
			answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole))
			edit(b)
			out := b.Keyed(t.Context(), "k", gatewaytest.Whole)
			if got := answerOf(t, out); got != string(apierror.IdempotencyConflict) || out.Replayed {
				t.Errorf("got %s", got)
			}
			if n := b.Provider.Ledger().Total; n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// Rules: I2.
func TestConcurrentCallersShareOneRun_I2(t *testing.T) {
	b := gatewaytest.New(t, "fake-delay:50ms")
	var wg sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		wg.Go(func() { answers[i] = answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Stream)) })
	}
	wg.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.Contains(a, "[DONE]") {
			t.Errorf("answers differ: %q", a)
		}
	}
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Rules: I2.
func TestAFailedOwnerClosesItsKey_I2(t *testing.T) {
	b := gatewaytest.New(t, "fake-404,ok")
	if got := answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole)); got != string(apierror.UpstreamExhausted) {
		t.Fatalf("got %s", got)
	}
	if got := answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole)); got != string(apierror.IdempotencyReplayUnavailable) {
		t.Errorf("the key was used again: %s", got)
	}
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Rules: I2.
func TestATruncatedStreamIsNotReplayedAsAnAnswer_I2(t *testing.T) {
	b := gatewaytest.New(t, "fake-cut:3")
	answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Stream))
	if got := answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Stream)); got != string(apierror.IdempotencyReplayUnavailable) {
		t.Errorf("got %s", got)
	}
}

// Rules: I3.
func TestAnotherWorkerNeverRunsItAgain_I3(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole))
	other := gateway.New(b.Config)
	in := func(body string) gateway.Incoming {
		return gateway.Incoming{
			Dialect: b.Dialect(), Body: []byte(body), Key: b.Key, Snapshot: b.Snapshot(),
			Controls: gateway.Controls{IdempotencyKey: "k"}, At: b.Now(),
		}
	}
	if got := answerOf(t, other.Serve(t.Context(), in(gatewaytest.Whole))); got != string(apierror.IdempotencyReplayUnavailable) {
		t.Errorf("got %s", got)
	}
	if got := answerOf(t, other.Serve(t.Context(), in(strings.Replace(gatewaytest.Whole, "hi", "ho", 1)))); got != string(apierror.IdempotencyConflict) {
		t.Errorf("got %s", got)
	}
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Rules: I2, M13.
func TestARefusedRequestLeavesItsKeyFree_I2_M13(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	b.Log.Book.Counters[gatewaytest.MonthKey()] = gatewaytest.Spent(999_999_999)
	if got := answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole)); got != string(apierror.InsufficientQuota) {
		t.Fatalf("got %s", got)
	}
	b.Log.Book.Counters[gatewaytest.MonthKey()] = gatewaytest.Spent(0)
	if got := answerOf(t, b.Keyed(t.Context(), "k", gatewaytest.Whole)); !strings.Contains(got, `"choices"`) {
		t.Errorf("after the budget was raised: %s", got)
	}
}
