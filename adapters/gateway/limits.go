package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
)

// RateLimits are the caller's narrowest windows of requests and tokens; nil where there
// is no such limit.
type RateLimits struct {
	Requests *RateLimit
	Tokens   *RateLimit
}

// RateLimit is one window as the reply headers tell it.
type RateLimit struct {
	Limit     int64
	Remaining int64
	// Reset is when the window moves next.
	Reset time.Time
}

// noteStandings keeps what an admitted reservation left of the limits: for the headers,
// for what observation let pass, and for soft thresholds that were reached (R8, R9).
func (w *walker) noteStandings(standings []budget.Standing) {
	if len(standings) == 0 {
		return
	}
	w.machine.Admitted(standings)
	w.facts.Limits = RateLimits{}
	for i := range standings {
		s := &standings[i]
		if s.Reached() {
			w.tellThreshold(s)
		}
		reset := s.Resets
		if reset.IsZero() && budget.Trails(s.Check.Key) {
			reset = w.g.Now() // nothing is in it yet that could leave it
		}
		if s.Check.Observe || reset.IsZero() || budget.MovesOn(s.Check.Scope) {
			continue
		}
		switch s.Check.Unit {
		case catalog.Requests:
			w.facts.Limits.Requests = narrower(w.facts.Limits.Requests, s, reset)
		case catalog.Tokens:
			w.facts.Limits.Tokens = narrower(w.facts.Limits.Tokens, s, reset)
		}
	}
}

// narrower keeps the window with less left.
func narrower(l *RateLimit, s *budget.Standing, reset time.Time) *RateLimit {
	if l != nil && l.Remaining <= s.Remaining() {
		return l
	}
	return &RateLimit{Limit: s.Check.Limit, Remaining: s.Remaining(), Reset: reset}
}

// tellThreshold says once a window, whichever worker saw it, that a soft threshold is
// reached. The stream of the window lets only one of them say it; who is late finds it
// said. A worker that is killed in between leaves it to the next request of the window.
func (w *walker) tellThreshold(s *budget.Standing) {
	now := w.g.Now()
	window := s.Check.Window(now)
	stream := "threshold/" + string(s.Check.Key)
	if budget.Trails(s.Check.Key) {
		stream += "/" + window
	}
	if !w.g.told.first(stream) {
		return
	}
	reached := request.BudgetThresholdReached{
		Tenant: w.in.Key.Tenant, Budget: s.Check.Budget, Scope: s.Check.Scope, Masked: s.Check.Masked, Unit: s.Check.UnitName(),
		Window: window, Threshold: s.Check.Soft, Limit: s.Check.Limit, Used: s.Used, Request: w.id,
	}
	if !s.Resets.IsZero() {
		reached.Resets = s.Resets.UTC().Format(time.RFC3339)
	}
	group := []eventstore.Append{{
		Shard: w.shard, Stream: stream, Expected: 0, Meta: w.meta(), Events: w.encode([]event.Event{reached}),
	}}
	w.g.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), settlePatience)
		defer cancel()
		err := w.g.write(ctx, group)
		if _, said := errors.AsType[*eventstore.ConflictError](err); err != nil && !said {
			w.g.told.forget(stream)
			w.g.Logger.Warn("a soft threshold was not told", "budget", s.Check.Budget, "error", err)
		}
	})
}

// maxTold bounds what is remembered of thresholds that were told. Forgetting one costs
// an append that finds it said.
const maxTold = 10_000

// told remembers which thresholds this worker need not tell again.
type told struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newTold() *told { return &told{seen: map[string]bool{}} }

// first reports whether nobody here has told it, and notes that somebody does now.
func (t *told) first(stream string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[stream] {
		return false
	}
	if len(t.seen) >= maxTold {
		clear(t.seen)
	}
	t.seen[stream] = true
	return true
}

func (t *told) forget(stream string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, stream)
}
