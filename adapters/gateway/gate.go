package gateway

import (
	"context"
	"slices"
	"sync"
)

// gate is one organization's slots. Who waits is let in by priority, realtime before
// background, and first come, first served within it (N12): a background request
// yields, and whether it waits too long is judged by its own clock.
type gate struct {
	// users keeps the gate alive; it is guarded by admission.mu.
	users int

	mu       sync.Mutex
	free     int
	realtime []*waiter
	yielding []*waiter
}

// waiter is one request in line; in is closed when it has a slot.
type waiter struct{ in chan struct{} }

// acquire takes a slot, or waits for one until ctx ends. yields is asked only when
// there is a line to stand in.
func (g *gate) acquire(ctx context.Context, yields func() bool) error {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	g.mu.Unlock()

	line := &g.realtime
	if yields() {
		line = &g.yielding
	}
	w := &waiter{in: make(chan struct{})}
	g.mu.Lock()
	*line = append(*line, w)
	g.letIn() // a slot may have come free meanwhile
	g.mu.Unlock()

	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(*line, w); i >= 0 {
		*line = slices.Delete(*line, i, i+1)
		return ctx.Err()
	}
	return nil // let in at the same moment
}

// release gives a slot back.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	g.letIn()
}

// letIn hands free slots to who waits. It is called with mu held.
func (g *gate) letIn() {
	for _, line := range []*[]*waiter{&g.realtime, &g.yielding} {
		for g.free > 0 && len(*line) > 0 {
			g.free--
			close((*line)[0].in)
			*line = slices.Delete(*line, 0, 1)
		}
	}
}
