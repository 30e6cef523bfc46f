package gateway_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore"
)

// fickle is a log in whose way something comes, as it does in a real one.
type fickle struct {
	gateway.Log
	// before is asked ahead of each append with checks, numbered from 1; false ends it
	// with the error.
	before func(n int, group []eventstore.Append) (goOn bool, err error)
	n      int
}

func (l *fickle) AppendAll(ctx context.Context, group []eventstore.Append) ([]eventstore.Result, error) {
	if len(group[0].Checks) > 0 {
		l.n++
		if goOn, err := l.before(l.n, group); !goOn {
			return nil, err
		}
	}
	return l.Log.AppendAll(ctx, group)
}

// refusal is what a limit of the organization says.
func refusal(group []eventstore.Append) budget.Refusal {
	return budget.Refusal{Check: group[0].Checks[0], Used: group[0].Checks[0].Limit}
}

// A batch that is decided twice may be refused at first and admitted then: another
// worker has settled in between. What was written counts.
//
// Rules: M16, I5.
func TestWhatIsRefusedAtFirstMayBeAdmitted_M16_I5(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	b.Gateway.Log = &fickle{Log: b.Log, before: func(_ int, group []eventstore.Append) (goOn bool, err error) {
		group[0].Refuse(refusal(group))
		return true, nil
	}}
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Fatal(out.Err)
	}
	if diff := cmp.Diff(served, b.Log.Moves(t)); diff != "" {
		t.Error(diff)
	}
	b.Log.NothingHeld(t)
}

// A caller may be gone when its reservation is decided.
//
// Rules: I5.
func TestARefusalMayComeAfterItsCallerHasLeft_I5(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	var late []eventstore.Append
	b.Gateway.Log = &fickle{Log: b.Log, before: func(_ int, group []eventstore.Append) (goOn bool, err error) {
		late = group
		return false, eventstore.ErrOutcomeUnknown
	}}
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err == nil || out.Err.Code != apierror.GatewayUnavailable {
		t.Fatalf("got %+v", out.Err)
	}
	if said, deltas := late[0].Refuse(refusal(late)); len(said) != 1 || said[0].Type != "request_refused" || len(deltas) != 0 {
		t.Errorf("said %+v, %+v", said, deltas)
	}
}

// Of an append whose outcome is unknown a refusal may have been written, as long as the
// reservation would have been. Nothing is given back then.
//
// Rules: M16, I5.
func TestNothingIsGivenBackForARefusal_M16_I5(t *testing.T) {
	for name, refuses := range map[string]bool{"refused": true, "reserved": false} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.New(t, "fake-500", "fake-ok")
			b.Gateway.Log = &fickle{Log: b.Log, before: func(n int, group []eventstore.Append) (goOn bool, err error) {
				if n == 1 {
					return true, nil
				}
				if refuses {
					spent := b.Log.Book.Counters[gatewaytest.MonthKey()]
					spent.Settled = 1_000_000_000
					b.Log.Book.Counters[gatewaytest.MonthKey()] = spent
				}
				if _, err := b.Log.AppendAll(t.Context(), group); err != nil {
					t.Error(err)
				}
				return false, eventstore.ErrOutcomeUnknown
			}}
			b.Chat(t.Context(), gatewaytest.Whole)
			b.Gateway.Close() // which waits for what is written in the background
			moves := b.Log.Moves(t)
			want := "request_finalized refused"
			if !refuses {
				want = "request_finalized failed"
			}
			if moves[len(moves)-1] != want || slices.Contains(moves, "attempt_reserved retry") == refuses {
				t.Errorf("%q", moves)
			}
			b.Log.NothingHeld(t)
		})
	}
}
