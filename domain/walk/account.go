package walk

import (
	"slices"

	"github.com/sluice-gateway/sluice/domain/request"
)

// fundedFirst moves the operator's rungs whose accounts are known to be out of funds
// behind the others of their stage, where they stay as the last resort (H12). Nothing
// crosses a stage (N19). The issuer of the request's reasoning goes in front again all
// the same: nobody else can read it (K4).
func fundedFirst(rungs []Rung, exhausted func(*Rung) bool) []Rung {
	broke := func(r *Rung) bool { return r.Provider != nil && r.owner() == request.Operator && exhausted(r) }
	first := 0
	for first < len(rungs) && !broke(&rungs[first]) {
		first++
	}
	if first == len(rungs) {
		return rungs // nearly every request
	}
	ordered := slices.Clone(rungs) // the plan is not the machine's to change
	for i := first; i < len(ordered); i++ {
		ordered[i].Exhausted = broke(&ordered[i])
	}
	// Stages follow each other, so only what is inside one changes places.
	slices.SortStableFunc(ordered[first:], func(a, b Rung) int {
		switch {
		case a.Stage != b.Stage:
			return a.Stage - b.Stage
		case a.Exhausted == b.Exhausted:
			return 0
		case a.Exhausted:
			return 1
		}
		return -1
	})
	return ordered
}

// selection is the label of an attempt whose rung was chosen, or left for last, for
// something else than its place in the chain.
func (r *Rung) selection() request.Selection {
	if r.Exhausted {
		return request.HouseAccountExhausted
	}
	return ""
}
