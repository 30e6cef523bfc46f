package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
)

var served = []string{"request_admitted", "attempt_reserved first", "attempt_committed", "attempt_settled reported", "request_finalized completed"}

func TestAWholeAnswerIsTwoCommits(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err != nil || !strings.Contains(string(out.Whole), `"model":"m"`) {
		t.Fatalf("error %v, body %s", out.Err, out.Whole)
	}
	if diff := cmp.Diff(served, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
	if b.Log.Commits != 2 {
		t.Errorf("%d commits, want 2: one before the provider, one after", b.Log.Commits)
	}
	b.Log.NothingHeld(t)
}

// Rules: M2.
func TestTheProviderIsCalledAfterTheReservationIsDurable_M2(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	b.Log.Entered = func(a eventstore.Append) {
		if a.Expected == 0 && b.Provider.Ledger().Total != 0 {
			t.Error("the provider was called before the reservation was written")
		}
	}
	b.Chat(t.Context(), gatewaytest.Whole)
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Rules: O5.
func TestNobodyIsCalledWhenTheReservationCannotBeWritten_O5(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	b.Log.Fail = func(eventstore.Append) error { return eventstore.ErrUnavailable }
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err == nil || out.Err.Code != apierror.GatewayUnavailable || out.Err.RetryAfter == 0 {
		t.Fatalf("got %+v", out.Err)
	}
	if n := b.Provider.Ledger().Total; n != 0 {
		t.Errorf("%d calls to the provider", n)
	}
}

// Rules: S5, W2.
func TestFailoverBeforeTheCommitIsInvisible_S5_W2(t *testing.T) {
	for name, fault := range map[string]string{
		"a status": "fake-503", "an error event inside a 200": "fake-error:first", "a page": "fake-html",
		"nothing": "fake-empty-body", "a reset": "fake-reset",
	} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, fault, "fake-ok")
			out := b.Chat(t.Context(), gatewaytest.Stream)
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			var c gatewaytest.Collector
			if err := out.Stream(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			got := c.Sent.String()
			if strings.Count(got, `"role":"assistant"`) != 1 || strings.Count(got, "[DONE]") != 1 || strings.Contains(got, `"error"`) {
				t.Errorf("the client saw more than one stream:\n%s", got)
			}
			if out.Facts.FallbackDepth != 1 || out.Facts.FallbackKind != "same_model" || out.Facts.Provider != "p1" {
				t.Errorf("facts %+v", out.Facts)
			}
			b.Log.NothingHeld(t)
		})
	}
}

// Rules: M17.
func TestTheEndWaitsForTheSettlement_M17(t *testing.T) {
	b := gatewaytest.New(t, "fake-words:20")
	out := b.Chat(t.Context(), gatewaytest.Stream)
	var c gatewaytest.Collector
	var settled atomic.Bool
	b.Log.Entered = func(a eventstore.Append) { settled.Store(true) }
	c.Before = func(event string) error {
		end := strings.Contains(event, "[DONE]") || strings.Contains(event, `"finish_reason":"stop"`)
		if end && !settled.Load() {
			t.Error("the client was told the end before the settlement was written")
		}
		if !end && settled.Load() {
			t.Error("output waited for the settlement")
		}
		return nil
	}
	if err := out.Stream(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(served, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
}

// Rules: M17.
func TestACompleteAnswerIsNeverSentWithoutItsSettlement_M17(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	out := b.Chat(t.Context(), gatewaytest.Stream)
	b.Log.Fail = func(eventstore.Append) error { return eventstore.ErrClosed }
	var c gatewaytest.Collector
	_ = out.Stream(t.Context(), &c)
	got := c.Sent.String()
	if strings.Contains(got, "[DONE]") || strings.Contains(got, `"finish_reason":"stop"`) || !strings.Contains(got, `"error"`) {
		t.Errorf("the stream looks finished:\n%s", got)
	}
	if !strings.Contains(got, `"retryable":false`) {
		t.Errorf("the caller is told to buy the answer again:\n%s", got)
	}
}

// Rules: S2, S3, S6.
func TestABreakAfterTheCommitIsTold_S2_S3_S6(t *testing.T) {
	for name, fault := range map[string]string{"cut": "fake-cut:3", "reset": "fake-cut:3:rst", "malformed": "fake-malformed:3"} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, fault, "fake-ok")
			out := b.Chat(t.Context(), gatewaytest.Stream)
			if out.Stream == nil {
				t.Fatalf("not a stream: %+v", out)
			}
			var c gatewaytest.Collector
			_ = out.Stream(t.Context(), &c)
			got := c.Sent.String()
			if strings.Contains(got, "[DONE]") || !strings.Contains(got, `"code":"upstream_truncated"`) {
				t.Errorf("the stream does not end truthfully:\n%s", got)
			}
			want := []string{"request_admitted", "attempt_reserved first", "attempt_committed", "attempt_settled estimated", "request_finalized truncated"}
			if diff := cmp.Diff(want, b.Log.Moves(t)); diff != "" {
				t.Error(diff)
			}
			if n := b.Provider.Ledger().Total; n != 1 {
				t.Errorf("%d calls: another answer was started", n)
			}
			b.Log.NothingHeld(t)
		})
	}
}

// Rules: S3, S13.
func TestNobodyGetsHalfAWholeAnswer_S3_S13(t *testing.T) {
	b := gatewaytest.New(t, "fake-cut:3", "fake-ok")
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err != nil || out.Facts.Attempts < 2 {
		t.Fatalf("error %v, facts %+v", out.Err, out.Facts)
	}
	b.Log.NothingHeld(t)
}

// Rules: W3.
func TestACallersFaultReachesTheCaller_W3(t *testing.T) {
	b := gatewaytest.New(t, "fake-400", "fake-ok")
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err == nil || out.Err.Code != apierror.InvalidRequest || out.Err.Relay == nil || out.Err.Relay.Message == "" {
		t.Fatalf("got %+v", out.Err)
	}
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls, want exactly one", n)
	}
	for _, e := range b.Log.Streams {
		for _, stored := range e {
			if strings.Contains(string(stored.Data), out.Err.Relay.Message) {
				t.Errorf("the provider's text is in the log: %s", stored.Data)
			}
		}
	}
}

// Rules: S7.
func TestAClientThatLeavesMidStreamIsSettled_S7(t *testing.T) {
	b := gatewaytest.New(t, "fake-words:300")
	out := b.Chat(t.Context(), gatewaytest.LongStream)
	var c gatewaytest.Collector
	writes := 0
	gone := errors.New("gone")
	c.Before = func(string) error {
		if writes++; writes > 1 {
			return gone
		}
		return nil
	}
	if err := out.Stream(t.Context(), &c); !errors.Is(err, gone) {
		t.Errorf("ended with %v", err)
	}
	want := []string{"request_admitted", "attempt_reserved first", "attempt_committed", "attempt_settled estimated", "request_finalized client_cancelled"}
	if diff := cmp.Diff(want, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
	b.Log.NothingHeld(t)
}

// Rules: S7.
func TestAClientThatLeavesAfterTheEndChangesNothing_S7(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	out := b.Chat(t.Context(), gatewaytest.Stream)
	var c gatewaytest.Collector
	c.Before = func(event string) error {
		if strings.Contains(event, "[DONE]") {
			return errors.New("gone")
		}
		return nil
	}
	_ = out.Stream(t.Context(), &c)
	if diff := cmp.Diff(served, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
}

// Rules: S7.
func TestAClientThatLeavesBeforeTheFirstByteEndsTheCall_S7(t *testing.T) {
	b := gatewaytest.New(t, "fake-silence")
	ctx, leave := context.WithCancel(t.Context())
	b.Log.Entered = func(a eventstore.Append) {
		if a.Expected == 0 {
			// The reservation is being written; the client leaves during the call.
			go func() {
				_ = b.Provider.Await(context.Background(), func(c []fakeprovider.Call) bool { return len(c) == 1 })
				leave()
			}()
		}
	}
	out := b.Chat(ctx, gatewaytest.Whole)
	if !out.Gone {
		t.Errorf("something is sent to nobody: %+v", out)
	}
	want := []string{"request_admitted", "attempt_reserved first", "attempt_failed client_cancelled", "attempt_settled unknown", "reservation_released", "request_finalized client_cancelled"}
	if diff := cmp.Diff(want, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
}

// Rules: S8.
func TestUsageIsObtainedAndHidden_S8(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	out := b.Chat(t.Context(), gatewaytest.Stream)
	var c gatewaytest.Collector
	if err := out.Stream(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(c.Sent.String(), `"usage":{`) {
		t.Error("a caller who did not ask got a usage chunk")
	}
	for _, e := range b.Log.Events(t) {
		if s, ok := e.(request.AttemptSettled); ok && (s.Basis != usage.BasisReported || s.Usage.Output.N == 0 || s.Charge == 0) {
			t.Errorf("settled %+v", s)
		}
	}
}

// Rules: M13, A9.
func TestABudgetRefusesWithoutACall_M13_A9(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	b.Log.Book.Counters[gatewaytest.MonthKey()] = gatewaytest.Spent(999_999_999)
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err == nil || out.Err.Code != apierror.InsufficientQuota || out.Err.Scope != "organization" || *out.Err.Limit != 1_000_000_000 {
		t.Fatalf("got %+v", out.Err)
	}
	if diff := cmp.Diff([]string{"request_refused"}, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
	if n := b.Provider.Ledger().Total; n != 0 {
		t.Errorf("%d calls", n)
	}
}

// Rules: N1, A9.
func TestBadRequestsAreRefusedInOneEvent_N1_A9(t *testing.T) {
	for body, code := range map[string]apierror.Code{
		`{"model":"nobody","messages":[{"role":"user","content":"hi"}]}`: apierror.ModelNotFound,
		`{"model":"m","messages":"hi"}`:                                  apierror.InvalidRequest,
		`{`:                                                              apierror.InvalidRequest,
	} {
		b := gatewaytest.New(t, "fake-ok")
		out := b.Chat(t.Context(), body)
		if out.Err == nil || out.Err.Code != code {
			t.Errorf("%s: %+v", body, out.Err)
		}
		if diff := cmp.Diff([]string{"request_refused"}, b.Log.Moves(t)); diff != "" {
			t.Error(diff)
		}
	}
}

// Rules: S13.
func TestHeldAnswersFailOverInTheMiddle_S13(t *testing.T) {
	b := gatewaytest.New(t, "fake-cut:3", "fake-words:8")
	out := b.With(func(c *gateway.Controls) { c.Hold = true }).Chat(t.Context(), gatewaytest.Stream)
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	var c gatewaytest.Collector
	if err := out.Stream(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if got := c.Sent.String(); strings.Count(got, "[DONE]") != 1 || strings.Contains(got, `"error"`) || out.Facts.Provider != "p1" {
		t.Errorf("served by %s:\n%s", out.Facts.Provider, got)
	}
	b.Log.NothingHeld(t)
}

// Rules: W7.
func TestARefusalIsAnsweredElsewhereWhereTheModelOptsIn_W7(t *testing.T) {
	for name, body := range map[string]string{"stream": gatewaytest.Stream, "whole": gatewaytest.Whole} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, "fake-refusal", "fake-ok")
			b.Policy(func(p *catalog.Policy) { p.FailoverOnRefusal = true })
			got := answerOf(t, b.Chat(t.Context(), body))
			if strings.Contains(got, `"refusal":"`) || !strings.Contains(got, "model") {
				t.Errorf("the refused output reached the client:\n%s", got)
			}
			moves := b.Log.Moves(t)
			if !slices.Contains(moves, "attempt_failed refusal") || !slices.Contains(moves, "attempt_reserved failover") {
				t.Errorf("moves %v", moves)
			}
		})
	}
	b := gatewaytest.New(t, "fake-refusal", "fake-ok")
	if got := answerOf(t, b.Chat(t.Context(), gatewaytest.Stream)); !strings.Contains(got, `"refusal":"`) {
		t.Errorf("without the policy a refusal is the model's answer:\n%s", got)
	}
}

// Rules: W7.
func TestARefusalLongerThanTheBufferCommits_W7(t *testing.T) {
	b := gatewaytest.New(t, "fake-refusal:300", "fake-ok")
	b.Policy(func(p *catalog.Policy) { p.FailoverOnRefusal = true })
	if got := answerOf(t, b.Chat(t.Context(), gatewaytest.LongStream)); !strings.Contains(got, `"refusal":"`) {
		t.Errorf("got\n%s", got)
	}
	if n := b.Provider.Ledger().Total; n != 1 {
		t.Errorf("%d calls", n)
	}
}

// Rules: S7.
func TestADrainedAnswerIsSettledOnItsUsage_S7(t *testing.T) {
	b := gatewaytest.New(t, "fake-words:300")
	b.Objects.Providers[0].OnClientCancel = catalog.Drain
	ctx, leave := context.WithCancel(t.Context())
	out := b.Chat(ctx, gatewaytest.LongStream)
	var c gatewaytest.Collector
	c.Before = func(string) error { leave(); return errors.New("gone") }
	_ = out.Stream(ctx, &c)
	want := []string{"request_admitted", "attempt_reserved first", "attempt_committed", "attempt_settled reported", "request_finalized client_cancelled"}
	if diff := cmp.Diff(want, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
	for _, e := range b.Log.Events(t) {
		if r, ok := e.(request.AttemptReserved); ok && r.OnClientCancel != "drain" {
			t.Errorf("the choice is not on the attempt: %q", r.OnClientCancel)
		}
	}
}

// Rules: W11.
func TestSilenceFailsOverOnceWithoutASecondCall_W11(t *testing.T) {
	for name, fault := range map[string]string{
		"accepts and stays silent": "fake-silence", "sends headers and stays silent": "fake-headers",
		"trickles comments": "fake-trickle:20ms",
	} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, fault, "fake-ok")
			b.Objects.Deployments[0].Timeouts = catalog.Timeouts{
				FirstByte: catalog.Duration(150 * time.Millisecond), StreamIdle: catalog.Duration(150 * time.Millisecond),
			}
			if got := answerOf(t, b.Chat(t.Context(), gatewaytest.Stream)); !strings.Contains(got, "[DONE]") {
				t.Fatalf("got %s", got)
			}
			calls := map[string]int{}
			for _, c := range b.Provider.Ledger().Calls {
				calls[c.Model]++
			}
			if calls[fault] != 1 || calls["fake-ok"] != 1 {
				t.Errorf("calls %v", calls)
			}
			b.Log.NothingHeld(t)
		})
	}
}

// TestTheClientSeesOneStream_W22_S5: over a swap of providers in the middle of a
// preamble there is one id, one role and one model, those of the answer that
// committed.
//
// Rules: W22, S5.
func TestTheClientSeesOneStream_W22_S5(t *testing.T) {
	b := gatewaytest.New(t, "fake-cut:0", "fake-tools:2")
	body := strings.Replace(gatewaytest.Stream, `"max_tokens"`, `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],"max_tokens"`, 1)
	got := answerOf(t, b.Chat(t.Context(), body))
	ids, indexes := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(got) {
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		ids[gjson.Get("{"+data, "id").String()] = true
		if gjson.Get("{"+data, "model").String() != "m" {
			t.Errorf("another model in %s", line)
		}
		for _, call := range gjson.Get("{"+data, "choices.0.delta.tool_calls").Array() {
			indexes[call.Get("index").Raw] = true
		}
	}
	if len(ids) != 1 || len(indexes) != 2 || !indexes["0"] || !indexes["1"] {
		t.Errorf("ids %v, tool indexes %v in\n%s", ids, indexes, got)
	}
}

// TestAllAttemptsShareOneDeadlineAndOneId_A8_W10: whatever the number of attempts,
// the request has one id, which every upstream call carries, and one deadline.
//
// Rules: A8, I4.
func TestAllAttemptsShareOneDeadlineAndOneId_A8_I4(t *testing.T) {
	b := gatewaytest.New(t, "fake-503", "fake-ok")
	out := b.Chat(t.Context(), gatewaytest.Whole)
	var keys []string
	for _, c := range b.Provider.Ledger().Calls {
		keys = append(keys, c.IdempotencyKey)
	}
	want := []string{out.RequestID + "-d0", out.RequestID + "-d0", out.RequestID + "-d1"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
}

// TestWhatNobodyGotIsNotCharged_M7: a refusal that was answered elsewhere costs the
// provider's price and charges nothing.
//
// Rules: M7.
func TestWhatNobodyGotIsNotCharged_M7(t *testing.T) {
	b := gatewaytest.New(t, "fake-refusal", "fake-ok")
	b.Policy(func(p *catalog.Policy) { p.FailoverOnRefusal = true })
	answerOf(t, b.Chat(t.Context(), gatewaytest.Stream))
	for _, e := range b.Log.Events(t) {
		if s, ok := e.(request.AttemptSettled); ok && s.Attempt == 1 && (s.Charge != 0 || s.ProviderCost == 0) {
			t.Errorf("the refused attempt charged %d and cost %d", s.Charge, s.ProviderCost)
		}
	}
	b.Log.NothingHeld(t)
}

// Rules: A9.
func TestARequestThatTheEdgeRefusedIsOnRecord_A9(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	e := apierror.New(apierror.InvalidRequest)
	e.Param = "x-sluice-max-attempts"
	out := b.Refuse(t.Context(), gateway.Incoming{Dialect: b.Dialect(), Key: b.Key, Snapshot: b.Snapshot()}, e)
	if out.Err == nil || out.Err.RequestID == "" || out.Err.Param != "x-sluice-max-attempts" {
		t.Errorf("got %+v", out.Err)
	}
	if diff := cmp.Diff([]string{"request_refused"}, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
}

// TestAnAnswerCutOffBeforeItsFirstTokenIsAnAnswer_W8: a length or a filter that left
// no output is what the model said, and is not asked for again.
//
// Rules: W8.
func TestAnAnswerCutOffBeforeItsFirstTokenIsAnAnswer_W8(t *testing.T) {
	for name, body := range map[string]string{"stream": gatewaytest.Stream, "whole": gatewaytest.Whole} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, "fake-empty+finish:content_filter", "fake-ok")
			if got := answerOf(t, b.Chat(t.Context(), body)); !strings.Contains(got, "content_filter") {
				t.Errorf("got %s", got)
			}
			if n := b.Provider.Ledger().Total; n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// A keyed request that failed has closed its key: an SDK that came back under it
// would only turn the failure into a conflict.
//
// Rules: I2.
func TestAClosedKeyIsNotWorthComingBackUnder_I2(t *testing.T) {
	b := gatewaytest.New(t, "fake-404")
	if out := b.Keyed(t.Context(), "k", gatewaytest.Whole); out.Err == nil || out.Err.Retryable {
		t.Errorf("got %+v", out.Err)
	}
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err == nil || !out.Err.Retryable {
		t.Errorf("without a key: %+v", out.Err)
	}
}

// Rules: X1, W3.
func TestAMaskedRouteKeepsItsVendorsWords_X1(t *testing.T) {
	b := gatewaytest.New(t, "fake-400")
	b.Objects.Deployments[0].Masked = true
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err == nil || out.Err.HTTPStatus() != 400 || out.Err.Relay == nil || out.Err.Relay.Message != "" || out.Err.Relay.Type != "" {
		t.Errorf("got %+v", out.Err)
	}
}

// Rules: A4, A9.
func TestARefusalNamesWhatIsLacking_A4(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	b.Objects.Deployments[0].Capabilities = []catalog.Capability{catalog.Chat}
	body := strings.Replace(gatewaytest.Whole, `"max_tokens"`, `"tools":[{"type":"function","function":{"name":"look"}}],"max_tokens"`, 1)
	if out := b.Chat(t.Context(), body); out.Err == nil || !strings.Contains(out.Err.Text(), `"tools"`) {
		t.Errorf("got %+v", out.Err)
	}
}
