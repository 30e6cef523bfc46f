package projections

import (
	"errors"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
)

// selector picks the events a projection is given, by name and version alone.
type selector struct {
	wanted map[string]bool
	// known is the newest version of each type this release can read.
	known map[string]int
	money bool
}

func newSelector(p Projection) selector {
	s := selector{wanted: map[string]bool{}, known: event.Types(), money: p.Money()}
	for _, typ := range p.Types() {
		s.wanted[typ] = true
	}
	return s
}

// choose returns the wanted events of a page and the position up to which the page
// may be passed. The error is the event at which the projection has to stop, just
// behind that position.
func (s selector) choose(page []eventstore.Recorded) (batch []eventstore.Recorded, upTo int64, err error) {
	// Nearly all events of a busy log are requests', which all projections want.
	batch = make([]eventstore.Recorded, 0, len(page))
	for _, rec := range page {
		if newest, ok := s.known[rec.Type]; !ok || rec.Version > newest {
			if s.money {
				return batch, rec.Position - 1, At(rec, &event.UnknownTypeError{Type: rec.Type, Version: rec.Version})
			}
		} else if s.wanted[rec.Type] {
			batch = append(batch, rec)
		}
		upTo = rec.Position
	}
	return batch, upTo, nil
}

// before cuts a batch in front of the event that an error is about. ok is false
// when the error is about no event of the batch.
func before(batch []eventstore.Recorded, err error) (head []eventstore.Recorded, stop *EventError, ok bool) {
	stop, is := errors.AsType[*EventError](err)
	if !is {
		return nil, nil, false
	}
	for i, rec := range batch {
		if rec.Position == stop.Position && rec.Shard == stop.Shard {
			return batch[:i], stop, true
		}
	}
	return nil, nil, false
}
