package projections

import (
	"context"
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

// skimmer is a log that can be read without decoding what nobody wants.
type skimmer interface {
	// ReadRange gives fn the rows of a shard with events after one position up to
	// another, in order and without gaps.
	ReadRange(ctx context.Context, shard int16, after, upTo int64, fn func(*eventstore.Row) error) error
}

// errStopped ends a reading at an event that a projection cannot pass.
var errStopped = errors.New("projections: stopped")

// skim is choose on a range of the log. Of what is not wanted, which is most of a log
// for most projections, nothing is made.
func (s selector) skim(ctx context.Context, log skimmer, shard int16, after, to int64) (batch []eventstore.Recorded, upTo int64, stop, err error) {
	upTo = after
	err = log.ReadRange(ctx, shard, after, to, func(row *eventstore.Row) error {
		for raw, err := range row.All() {
			if err != nil {
				return err
			}
			newest, known := s.known[string(raw.Type)]
			switch {
			case known && raw.TypeVersion <= newest && !s.wanted[string(raw.Type)]:
			case known && raw.TypeVersion <= newest:
				rec, err := row.Recorded(raw)
				if err != nil {
					return err
				}
				// While the page before is written; what cannot be decoded is found again.
				rec.Decoded, _ = Decode(rec)
				batch = append(batch, rec)
			case s.money:
				rec := eventstore.Recorded{Event: eventstore.Event{Type: string(raw.Type)}, Shard: shard, Position: raw.Position}
				stop = At(rec, &event.UnknownTypeError{Type: rec.Type, Version: raw.TypeVersion})
				return errStopped
			}
			upTo = raw.Position
		}
		return nil
	})
	if errors.Is(err, errStopped) {
		err = nil
	}
	return batch, upTo, stop, err
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
