package gateway_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
)

// answerOf runs an outcome to its end and says what the caller got.
func answerOf(t *testing.T, out *gateway.Outcome) string {
	t.Helper()
	switch {
	case out.Err != nil:
		return string(out.Err.Code)
	case out.Stream != nil:
		var c collector
		if err := out.Stream(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		return c.sent.String()
	default:
		return string(out.Whole)
	}
}

func TestAKeyedRequestRunsOnceAndIsReplayedExactly_I1(t *testing.T) {
	for name, body := range map[string]string{"whole": whole, "stream": stream} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "fake-ok")
			first := b.keyed(t.Context(), "k", body)
			want := answerOf(t, first)
			commits := b.log.commits
			second := b.keyed(t.Context(), "k", body)
			if diff := cmp.Diff(want, answerOf(t, second)); diff != "" {
				t.Errorf("the replay differs:\n%s", diff)
			}
			if first.Replayed || !second.Replayed || second.RequestID != first.RequestID {
				t.Errorf("replayed %v then %v, ids %s and %s", first.Replayed, second.Replayed, first.RequestID, second.RequestID)
			}
			if n := b.provider.Ledger().Total; n != 1 || b.log.commits != commits {
				t.Errorf("%d calls, %d commits more: a replay touches neither", n, b.log.commits-commits)
			}
			if commits != 2 {
				t.Errorf("%d commits: a key must cost none of its own", commits)
			}
		})
	}
}

func TestTheSameKeyWithAnotherBodyConflicts_I1(t *testing.T) {
	b := newBench(t, "fake-ok")
	answerOf(t, b.keyed(t.Context(), "k", whole))
	if got := answerOf(t, b.keyed(t.Context(), "k", strings.Replace(whole, "hi", "ho", 1))); got != string(apierror.IdempotencyConflict) {
		t.Errorf("got %s", got)
	}
}

func TestConcurrentCallersShareOneRun_I2(t *testing.T) {
	b := newBench(t, "fake-delay:50ms")
	var wg sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		wg.Go(func() { answers[i] = answerOf(t, b.keyed(t.Context(), "k", stream)) })
	}
	wg.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.Contains(a, "[DONE]") {
			t.Errorf("answers differ: %q", a)
		}
	}
	if n := b.provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestAFailedOwnerClosesItsKey_I2(t *testing.T) {
	b := newBench(t, "fake-404,ok")
	if got := answerOf(t, b.keyed(t.Context(), "k", whole)); got != string(apierror.UpstreamExhausted) {
		t.Fatalf("got %s", got)
	}
	if got := answerOf(t, b.keyed(t.Context(), "k", whole)); got != string(apierror.IdempotencyReplayUnavailable) {
		t.Errorf("the key was used again: %s", got)
	}
	if n := b.provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestATruncatedStreamIsNotReplayedAsAnAnswer_I2(t *testing.T) {
	b := newBench(t, "fake-cut:3")
	answerOf(t, b.keyed(t.Context(), "k", stream))
	if got := answerOf(t, b.keyed(t.Context(), "k", stream)); got != string(apierror.IdempotencyReplayUnavailable) {
		t.Errorf("got %s", got)
	}
}

func TestAnotherWorkerNeverRunsItAgain_I3(t *testing.T) {
	b := newBench(t, "fake-ok")
	answerOf(t, b.keyed(t.Context(), "k", whole))
	other := gateway.New(b.Config)
	in := func(body string) gateway.Incoming {
		return gateway.Incoming{
			Dialect: b.dialect(), Body: []byte(body), Key: b.key, Snapshot: b.snapshot(),
			Controls: gateway.Controls{IdempotencyKey: "k"}, At: b.Now(),
		}
	}
	if got := answerOf(t, other.Serve(t.Context(), in(whole))); got != string(apierror.IdempotencyReplayUnavailable) {
		t.Errorf("got %s", got)
	}
	if got := answerOf(t, other.Serve(t.Context(), in(strings.Replace(whole, "hi", "ho", 1)))); got != string(apierror.IdempotencyConflict) {
		t.Errorf("got %s", got)
	}
	if n := b.provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestARefusedRequestLeavesItsKeyFree_I2_M13(t *testing.T) {
	b := newBench(t, "fake-ok")
	b.log.counters[monthKey()] = counterOf(999_999_999)
	if got := answerOf(t, b.keyed(t.Context(), "k", whole)); got != string(apierror.InsufficientQuota) {
		t.Fatalf("got %s", got)
	}
	b.log.counters[monthKey()] = counterOf(0)
	if got := answerOf(t, b.keyed(t.Context(), "k", whole)); !strings.Contains(got, `"choices"`) {
		t.Errorf("after the budget was raised: %s", got)
	}
}
