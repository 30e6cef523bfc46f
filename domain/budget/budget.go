// Package budget decides whether a request may spend, from counters alone.
//
// A counter is a projection of the log (E5): the log's own transaction keeps it,
// and the same pure functions rebuild it. Nothing here reads a clock or a table:
// the caller names the keys, brings their values and applies the deltas.
package budget

import (
	"cmp"
	"slices"
)

// Key names one counter: what is counted, for whom, in which window, for
// example "org/acme/usd/month/2026-11". Keys sort organization first, so that
// every writer takes them in the same order (R6).
type Key string

// Counter is what one key holds. The unit (nano-USD, tokens, requests) is the
// key's.
type Counter struct {
	// Held is reserved and not yet settled; never negative (invariant 5).
	Held int64
	// Settled is spent for good.
	Settled int64
}

// Delta is what one event does to one counter.
type Delta struct {
	Key     Key
	Held    int64
	Settled int64
}

// Check asks whether Ask more may be held under a limit (M16). The unit of Limit
// and Ask is the key's.
type Check struct {
	Key   Key
	Limit int64
	Ask   int64
	// Scope names who refuses: organization, key, model, deployment ... (A9).
	Scope string
}

// Refusal says which check failed and what it saw, for the event and the reply
// (A9).
type Refusal struct {
	Check Check
	// Used is what was held and settled when the check was made, without Ask.
	Used int64
}

// Decide makes every check before any is taken (R10) and returns the first that
// fails, or nil. A counter that does not exist yet reads zero.
func Decide(counters map[Key]Counter, checks []Check) *Refusal {
	for _, c := range checks {
		now := counters[c.Key]
		used := now.Held + now.Settled
		// Written as a subtraction so that a limit near the top of int64 cannot
		// overflow into an admission.
		if c.Ask > c.Limit-used {
			return &Refusal{Check: c, Used: used}
		}
	}
	return nil
}

// Apply adds deltas to counters in place. Live appends and rebuilds both go
// through it, which is what makes them agree (E4).
func Apply(counters map[Key]Counter, deltas []Delta) {
	for _, d := range deltas {
		c := counters[d.Key]
		c.Held += d.Held
		c.Settled += d.Settled
		counters[d.Key] = c
	}
}

// Merge folds deltas so that each key appears once, in key order: one UPDATE per
// counter and batch, and no two writers take rows in different orders (R6).
func Merge(deltas []Delta) []Delta {
	sums := make(map[Key]Delta, len(deltas))
	for _, d := range deltas {
		s := sums[d.Key]
		sums[d.Key] = Delta{Key: d.Key, Held: s.Held + d.Held, Settled: s.Settled + d.Settled}
	}
	merged := make([]Delta, 0, len(sums))
	for _, d := range sums {
		merged = append(merged, d)
	}
	slices.SortFunc(merged, func(a, b Delta) int { return cmp.Compare(a.Key, b.Key) })
	return merged
}
