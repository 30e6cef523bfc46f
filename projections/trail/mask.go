package trail

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/sjson"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// mask hides from callers where masked routes went (X1). The decision is kept per
// attempt: a settlement repeats it, but what it repeats was decided before.
type mask struct {
	attempts map[int]bool
	// skipped is set by the first skip of a masked route: a refusal at the end may be
	// its limit's.
	skipped bool
}

var (
	// ours says nothing to a caller: the tenant stands at the head of the trail, and
	// the holds and takes are names of our counters.
	ours = []string{"tenant", "holds", "takes"}
	// destination is where an attempt went. The source of a price says whose price
	// page it was read from, the selection how its account stands.
	destination = []string{"provider", "deployment", "provider_key", "prices.source", "selection"}
	// safeDetail are the details of a skip that name no destination.
	safeDetail = []string{"circuit", "until", "limit", "used"}
)

var knownTypes = event.Types()

// caller is an event's fields as its request's caller may see them. Of a type that
// this release does not know, nobody can say what would have to be hidden: its
// fields stay away, the entry does not.
func (m *mask) caller(rec eventstore.Recorded) (json.RawMessage, error) {
	if newest, ok := knownTypes[rec.Type]; !ok || rec.Version > newest {
		return json.RawMessage(`{}`), nil
	}
	e, err := projections.Decode(rec)
	if err != nil {
		return nil, err
	}
	hide := ours
	switch said := e.(type) {
	case request.AttemptReserved:
		m.attempts[said.Attempt] = said.Masked
		if said.Masked {
			hide = slices.Concat(ours, destination)
		}
	case request.AttemptSettled:
		if said.Masked || m.attempts[said.Attempt] {
			hide = slices.Concat(ours, destination)
		}
	case request.LimitObserved:
		if m.attempts[said.Attempt] && said.Scope == catalog.ScopeDeployment {
			said.Of, said.Budget = "", catalog.ScopeDeployment
			e = said
		}
	case request.RouteSkipped:
		m.skipped = m.skipped || said.Masked
		e = skipped(said)
	case request.RequestFinalized:
		if r := said.Refusal; r != nil && m.skipped && r.Scope == catalog.ScopeDeployment {
			hidden := *r
			hidden.Of = ""
			said.Refusal = &hidden
			e = said
		}
	case request.RequestRefused:
		said.Skipped = slices.Clone(said.Skipped)
		for i, s := range said.Skipped {
			said.Skipped[i] = skipped(s)
			// A limit of a deployment names the one that was looked at.
			if s.Masked && said.Scope == catalog.ScopeDeployment {
				said.Of = ""
			}
		}
		e = said
	}
	// Encoded anew, so that an old version is shown as the newest.
	return without(event.Encode(e).Data, hide)
}

// skipped is a skip without its destination if that is masked.
func skipped(e request.RouteSkipped) request.RouteSkipped {
	if !e.Masked {
		return e
	}
	e.Provider = ""
	e.Detail = maps.Clone(e.Detail)
	maps.DeleteFunc(e.Detail, func(name, _ string) bool { return !slices.Contains(safeDetail, name) })
	return e
}

func without(fields json.RawMessage, hide []string) (json.RawMessage, error) {
	var err error
	for _, name := range hide {
		if fields, err = sjson.DeleteBytes(fields, name); err != nil {
			return nil, err
		}
	}
	return fields, nil
}
