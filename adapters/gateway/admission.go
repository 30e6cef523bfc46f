package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
)

// Defaults of A7.
const (
	// DefaultAdmissionSlots is how many requests of one organization may be on their
	// way to a first reservation at once, on one worker.
	DefaultAdmissionSlots = 64
	// DefaultAdmissionWait is how long one waits for a slot.
	DefaultAdmissionWait = 20 * time.Second
)

// admission shares a worker's way to the first reservation among organizations:
// however many keys one of them has, it cannot fill the way for all others (A7). An
// answer that streams holds no slot.
type admission struct {
	slots int
	wait  time.Duration

	mu    sync.Mutex
	gates map[string]*gate
}

func newAdmission(slots int, wait time.Duration) *admission {
	return &admission{slots: slots, wait: wait, gates: map[string]*gate{}}
}

// enter waits for a slot. yields tells whether the request gives way to others when
// there is none free. The error is a refusal to tell the caller, or ctx's when the
// client left.
func (a *admission) enter(ctx context.Context, tenant string, yields func() bool) (leave func(), refused *apierror.Error, gone error) {
	g := a.gate(tenant)
	waiting, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	if err := g.acquire(waiting, yields); err != nil {
		a.leaveGate(tenant, g)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		e := apierror.New(apierror.AdmissionTimeout)
		e.RetryAfter = time.Second
		slots := int64(a.slots)
		e.Scope, e.Limit, e.Used, e.Unit = "organization", &slots, &slots, "requests"
		return nil, e, nil
	}
	return sync.OnceFunc(func() {
		g.release()
		a.leaveGate(tenant, g)
	}), nil, nil
}

func (a *admission) gate(tenant string) *gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gates[tenant]
	if g == nil {
		g = &gate{free: a.slots}
		a.gates[tenant] = g
	}
	g.users++
	return g
}

func (a *admission) leaveGate(tenant string, g *gate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(a.gates, tenant)
	}
}
