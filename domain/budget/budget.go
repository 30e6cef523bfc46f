// Package budget decides whether a request may spend, from counters alone.
//
// A counter is a projection of the log (E5): the log's own transaction keeps it,
// and the same pure functions rebuild it. Nothing here reads a clock or a table:
// the caller names the keys, brings their values and applies the deltas.
package budget

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
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
	// Passed is the part of Settled that has left the window of a trailing key, and
	// Oldest when what is longest in the window came in (see Window). Both are zero for
	// other keys.
	Passed int64
	Oldest time.Time
}

// Used is what counts against a limit now.
func (c Counter) Used() int64 { return c.Held + c.Settled - c.Passed }

// Delta is what one event does to one counter.
type Delta struct {
	Key     Key
	Held    int64
	Settled int64
}

// Check asks whether an attempt may begin under a limit.
type Check struct {
	Key Key
	// HeldKey is a counter whose holds count as well; empty for none. Tokens that are
	// held belong to no day, so that they count across midnight (R2).
	HeldKey Key
	Unit    catalog.Unit
	// Whole says that tokens are counted whole and must fit, as money must: those that
	// are given away (M10).
	Whole bool
	// Limit is in whole units: nano-USD, requests, tokens.
	Limit int64
	// Ask is what would be taken: nano-USD or requests. Tokens ask for nothing: their
	// gate looks at what is there already (R4).
	Ask int64
	// Soft is the use, in whole units, that is told once; 0 is none (R9).
	Soft int64
	// Observe refuses nothing: what would have been refused is told (R9).
	Observe bool
	// Budget is the limit's id and Scope who refuses: organization, key, model,
	// deployment ..., and Of which of them (A9).
	Budget string
	Scope  string
	Of     string
	// Masked is set where Of would tell callers whose route it is (X1).
	Masked bool
	Per    catalog.Period
	// Resets is when a window of the calendar ends; zero for a total and for a trailing
	// window.
	Resets time.Time
}

// Refusal says which check failed and what it saw, for the event and the reply
// (A9).
type Refusal struct {
	Check Check
	// Used is what was held and settled when the check was made, without Ask, in whole
	// units.
	Used int64
	// Resets is when asking again may help; zero when no time will do.
	Resets time.Time
}

// Decide makes every check before any is taken (R10) and returns the first that
// fails, or nil. A counter that does not exist yet reads zero.
func Decide(counters map[Key]Counter, checks []Check) *Refusal {
	for i := range checks {
		c := &checks[i]
		if used := c.used(counters); !c.Observe && c.refuses(used) {
			return &Refusal{Check: *c, Used: used, Resets: c.resets(counters)}
		}
	}
	return nil
}

// used is what stands against the limit, in whole units. Tokens are counted in parts
// and rounded here, once (R4).
func (c *Check) used(counters map[Key]Counter) int64 {
	used := counters[c.Key].Used()
	if c.HeldKey != "" {
		used += counters[c.HeldKey].Held
	}
	if c.Unit == catalog.Tokens && !c.Whole {
		return wholeTokens(used)
	}
	return used
}

// refuses tells whether the limit stops the attempt: money and requests must fit,
// tokens must have been left before it (R1, R4, M16).
func (c *Check) refuses(used int64) bool {
	if c.Unit == catalog.Tokens && !c.Whole {
		return used >= c.Limit
	}
	// Written as a subtraction so that a limit near the top of int64 cannot overflow
	// into an admission.
	return c.Ask > c.Limit-used
}

// resets is when the window moves: the calendar's end, or when what is oldest in a
// trailing window leaves it.
func (c *Check) resets(counters map[Key]Counter) time.Time {
	if w, ok := WindowOf(c.Key); ok && !counters[c.Key].Oldest.IsZero() {
		return counters[c.Key].Oldest.Add(w.Reach())
	}
	return c.Resets
}

// Standing is where a limit stands after an attempt was admitted under it, in whole
// units.
type Standing struct {
	Check Check
	Used  int64
	// Resets as in Refusal.
	Resets time.Time
	// Exceeded is set when only Observe let the attempt pass.
	Exceeded bool
}

// Remaining is what is left; never below zero.
func (s Standing) Remaining() int64 { return max(0, s.Check.Limit-s.Used) }

// Reached reports whether the soft threshold is reached (R9).
func (s Standing) Reached() bool { return s.Check.Soft > 0 && s.Used >= s.Check.Soft }

// Standings tells where each limit stands. before are the counters that the checks
// were decided on, after those with the attempt in them.
func Standings(before, after map[Key]Counter, checks []Check) []Standing {
	if len(checks) == 0 {
		return nil
	}
	standings := make([]Standing, len(checks))
	for i := range checks {
		c := &checks[i]
		standings[i] = Standing{
			Check: *c, Used: c.used(after), Resets: c.resets(after),
			Exceeded: c.Observe && c.refuses(c.used(before)),
		}
	}
	return standings
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
