package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

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
	slots int64
	wait  time.Duration

	mu    sync.Mutex
	gates map[string]*gate
}

// gate is one organization's slots. It lives as long as somebody uses it.
type gate struct {
	slots *semaphore.Weighted
	users int
}

func newAdmission(slots int, wait time.Duration) *admission {
	return &admission{slots: int64(slots), wait: wait, gates: map[string]*gate{}}
}

// enter waits for a slot, first come, first served. The error is a refusal to tell
// the caller, or ctx's when the client left.
func (a *admission) enter(ctx context.Context, tenant string) (leave func(), refused *apierror.Error, gone error) {
	g := a.gate(tenant)
	waiting, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	if err := g.slots.Acquire(waiting, 1); err != nil {
		a.leaveGate(tenant, g)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		e := apierror.New(apierror.AdmissionTimeout)
		e.RetryAfter = time.Second
		e.Scope = "organization"
		return nil, e, nil
	}
	return sync.OnceFunc(func() {
		g.slots.Release(1)
		a.leaveGate(tenant, g)
	}), nil, nil
}

func (a *admission) gate(tenant string) *gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gates[tenant]
	if g == nil {
		g = &gate{slots: semaphore.NewWeighted(a.slots)}
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
