package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/eventstore"
)

// busy is a bench of which one slot is all there is, held by a request whose
// reservation waits until released.
func busy(t *testing.T, wait time.Duration) (b *gatewaytest.Bench, release func()) {
	t.Helper()
	b = gatewaytest.New(t, "fake-ok")
	c := b.Config
	c.AdmissionSlots, c.AdmissionWait = 1, wait
	b.Gateway = gateway.New(c)
	held, holding := make(chan struct{}), make(chan struct{}, 1)
	first := true
	b.Log.Entered = func(a eventstore.Append) {
		if first {
			first = false
			holding <- struct{}{}
			<-held
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); b.Chat(context.Background(), gatewaytest.Whole) }()
	<-holding
	return b, func() { close(held); <-done }
}

// TestAWaitForASlotEnds_A7 shares one organization's slots across its keys, tells a
// caller who waited too long that it may come back, and holds no slot for an answer
// that is under way.
//
// Rules: A7.
func TestAWaitForASlotEnds_A7(t *testing.T) {
	b, release := busy(t, time.Millisecond)
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err == nil || out.Err.Code != apierror.AdmissionTimeout || !out.Err.Retryable || out.Err.RetryAfter == 0 {
		t.Errorf("got %+v", out.Err)
	}
	if n := b.Provider.Ledger().Total; n != 0 {
		t.Errorf("%d calls", n)
	}
	release()
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Errorf("after the slot was free: %v", out.Err)
	}
}

// Rules: A7, S7.
func TestAClientThatLeavesWhileItWaitsIsLetGo_A7_S7(t *testing.T) {
	b, release := busy(t, time.Hour)
	defer release()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if out := b.Chat(ctx, gatewaytest.Whole); !out.Gone {
		t.Errorf("got %+v", out)
	}
}

// Rules: A7.
func TestAnotherOrganizationHasItsOwnSlots_A7(t *testing.T) {
	b, release := busy(t, time.Hour)
	defer release()
	b.Objects.Tenants = append(b.Objects.Tenants, b.Objects.Tenants[0])
	b.Objects.Tenants[1].ID = "globex"
	other := *b.Key
	other.Tenant = "globex"
	b.Key = &other
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Errorf("got %v", out.Err)
	}
}

// TestAStreamHoldsNoSlot_A7: a second request is admitted while the first one's
// answer streams.
//
// Rules: A7.
func TestAStreamHoldsNoSlot_A7(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	c := b.Config
	c.AdmissionSlots, c.AdmissionWait = 1, time.Millisecond
	b.Gateway = gateway.New(c)
	streaming := b.Chat(t.Context(), gatewaytest.Stream)
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err != nil {
		t.Errorf("got %v", out.Err)
	}
	var sent gatewaytest.Collector
	if err := streaming.Stream(t.Context(), &sent); err != nil {
		t.Error(err)
	}
}
