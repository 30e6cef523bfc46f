package circuit

import (
	"cmp"
	"slices"
	"time"
)

// View is a circuit as GET /v1/health shows it.
type View struct {
	Name
	// Worker is whose circuit it is; empty in a worker's own list.
	Worker string
	State  State
	Until  time.Time
	Cause  Cause
}

// History is the state of every circuit as the log tells it (H11). Circuits are a
// worker's own, so it keeps them apart by worker. Feed it events in log order and
// stop where the question is: what it says then is what the workers knew.
type History struct {
	circuits map[place]*past
	// accounts are what the last worker to say something knew of a credential's funds, by
	// the credential's key: an account is the same for all of them.
	accounts map[string]funds
}

type funds struct {
	name    Name
	account account
}

type place struct {
	worker string
	kind   Kind
	key    string
}

type past struct {
	name    Name
	circuit Circuit
}

// Apply takes one event of a worker. Events that are no circuit's are passed over.
func (h *History) Apply(worker string, e any) {
	switch e := e.(type) {
	case CircuitOpened:
		c := h.at(worker, e.Name)
		c.open, c.until, c.cause, c.trips, c.trial = true, e.Until, e.Cause, e.Trips, time.Time{}
	case CircuitHalfOpened:
		c := h.at(worker, e.Name)
		c.trial = e.Until.Add(-ProbeLease)
	case CircuitClosed:
		c := h.at(worker, e.Name)
		c.reset()
		delete(h.accounts, e.Key)
	case ThrottleWindowOpened:
		c := h.at(worker, e.Name)
		c.throttledUntil, c.throttleCause = e.Until, e.Cause
	case AccountExhausted:
		if h.accounts == nil {
			h.accounts = map[string]funds{}
		}
		h.accounts[e.Key] = funds{e.Name, account{until: e.Until, secretID: e.SecretID, cause: e.Cause}}
	case AccountFunded:
		delete(h.accounts, e.Key)
	}
}

func (h *History) at(worker string, n Name) *Circuit {
	if h.circuits == nil {
		h.circuits = map[place]*past{}
	}
	p := place{worker, n.Kind, n.Key}
	if h.circuits[p] == nil {
		h.circuits[p] = &past{}
	}
	h.circuits[p].name = n
	return &h.circuits[p].circuit
}

// NotClosed lists the circuits that were not closed at a time, in a fixed order.
func (h *History) NotClosed(now time.Time) []View {
	var views []View
	for p, c := range h.circuits {
		if v, ok := ViewOf(c.name, &c.circuit, now); ok {
			v.Worker = p.worker
			views = append(views, v)
		}
	}
	SortViews(views)
	return views
}

// Memory is a circuit that was closed to calls when a worker ended.
type Memory struct {
	Name    Name
	Circuit Circuit
}

// Remembered lists each circuit that some worker keeps closed to calls beyond now,
// by an open window or a throttle: the longest where workers differ; and each
// credential whose account is known to be out of funds beyond now. A worker that
// starts begins with it instead of paying again for what others have learned. What
// has ended is left out: the next call finds out for itself.
func (h *History) Remembered(now time.Time) []Memory {
	all := map[place]*Memory{}
	for p, past := range h.circuits {
		open, throttled := past.circuit.State(now) == Open, past.circuit.Throttled(now)
		if !open && !throttled {
			continue
		}
		p.worker = ""
		if all[p] == nil {
			all[p] = &Memory{Name: past.name}
		}
		c := &all[p].Circuit
		if open && past.circuit.until.After(c.until) {
			c.open, c.until, c.cause, c.trips = true, past.circuit.until, past.circuit.cause, past.circuit.trips
		}
		if throttled && past.circuit.throttledUntil.After(c.throttledUntil) {
			c.throttledUntil, c.throttleCause = past.circuit.throttledUntil, past.circuit.throttleCause
		}
	}
	for key, f := range h.accounts {
		if !now.Before(f.account.until) {
			continue
		}
		p := place{kind: f.name.Kind, key: key}
		if all[p] == nil {
			all[p] = &Memory{Name: f.name}
		}
		all[p].Circuit.account = f.account
	}
	memories := make([]Memory, 0, len(all))
	for _, m := range all {
		memories = append(memories, *m)
	}
	return memories
}

// ViewOf is what is shown of a circuit, and false for one that is closed.
func ViewOf(n Name, c *Circuit, now time.Time) (View, bool) {
	state := c.State(now)
	return View{Name: n, State: state, Until: c.until, Cause: c.cause}, state != Closed
}

// SortViews puts views in a fixed order.
func SortViews(views []View) {
	slices.SortFunc(views, func(a, b View) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Worker, b.Worker),
		)
	})
}
