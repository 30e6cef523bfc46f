package eventstore

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// Two processes, 200 callers, one limit that lets 37 of them in.
//
// Rules: M16.
func TestConcurrentReservationsNeverOverspend_M16(t *testing.T) {
	url := pgtest.NewDatabase(t)
	stores := []*Store{openStore(t, Config{URL: url}), openStore(t, Config{URL: url})}
	const callers, ask, limit = 200, 27, 1000
	key, wide := budget.Key("org/acme/usd"), budget.Key("org/acme/requests")
	var admitted, refused atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			r, err := stores[c%2].Append(t.Context(), Append{
				Stream: newRequest(), Events: happened(1),
				// The second check passes always: nothing of it may be taken when the
				// first fails (R10).
				Checks: []budget.Check{{Key: wide, Limit: callers, Ask: 1}, {Key: key, Limit: limit, Ask: ask}},
				Deltas: []budget.Delta{{Key: wide, Held: 1}, {Key: key, Held: ask}},
			})
			switch {
			case err != nil:
				t.Errorf("append: %v", err)
			case r.Refusal == nil:
				admitted.Add(1)
			case r.Refusal.Check.Key == key && r.Refusal.Used+ask > limit:
				refused.Add(1)
			default:
				t.Errorf("refused by %+v", r.Refusal)
			}
		})
	}
	wg.Wait()
	if admitted.Load() != limit/ask || refused.Load() != callers-limit/ask {
		t.Errorf("%d admitted, %d refused; the limit lets %d in", admitted.Load(), refused.Load(), limit/ask)
	}
	counters, err := stores[0].Counters(t.Context(), 0, []budget.Key{key, wide})
	if err != nil || counters[key].Held != limit/ask*ask || counters[wide].Held != limit/ask {
		t.Errorf("counters %+v, %v", counters, err)
	}
}
