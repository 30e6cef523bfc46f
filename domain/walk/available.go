package walk

import (
	"slices"

	"github.com/sluice-gateway/sluice/domain/request"
)

// closeUnavailable takes out of the walk what a chain must not fall back to (C6). A
// credential may be deleted under any chain. What is left of it is called, but not a
// reference to another model in the place of the model's own rungs; and a chain of
// the organization's own of which nothing is left is unavailable, which is another
// answer than that of a route that is not allowed.
func (m *Machine) closeUnavailable() {
	if !slices.ContainsFunc(m.rungs, func(r Rung) bool { return r.Referred || r.Override }) {
		return // nearly every request
	}
	for from := 0; from < len(m.rungs); {
		to := from + 1
		for to < len(m.rungs) && m.rungs[to].Position == m.rungs[from].Position {
			to++
		}
		m.closePosition(from, to)
		from = to
	}
}

// closePosition looks at one place of a chain of names: at its first rung that leads
// somewhere. Rungs at a surcharge never serve in the place of others (M12).
func (m *Machine) closePosition(from, to int) {
	first := from
	for first < to && (m.rungs[first].Surcharge != nil || !m.callable(&m.rungs[first])) {
		first++
	}
	// A route that is there and was turned down is not a chain in need of repair: that
	// has an answer of its own (N11). Nothing else takes its place all the same.
	refused := slices.ContainsFunc(m.rungs[from:first], func(r Rung) bool { return r.BaseURLRefused && r.Surcharge == nil })
	switch {
	case first == to:
		m.unavailable = m.unavailable || m.rungs[from].Override && !refused
	case m.rungs[first].Referred:
		m.unavailable = m.unavailable || !refused
		m.rungs = slices.Clone(m.rungs) // the plan is not the machine's to change
		for i := first; i < to; i++ {
			m.rungs[i].Unresolved = request.SkipUnresolved
		}
	}
}

// callable reports whether a rung names a route that may be called, with a credential.
// Whether the route is well or fits the request makes no difference here: both are the
// walk's.
func (m *Machine) callable(r *Rung) bool {
	return r.Unresolved == "" && !r.BaseURLRefused && len(m.world.Credentials(r.Provider)) > 0
}
