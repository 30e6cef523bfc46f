package checks

import (
	"context"
	"slices"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// page is how many events are read at a time.
const page = 5000

// scan decodes the events of some types in a shard up to a position, in order. It stops
// at an event that this release cannot read, whatever its type: money is not added up
// around it (E8). progress hears of every page.
func (c *Checker) scan(ctx context.Context, shard int16, upTo int64, types []string,
	fold func(eventstore.Recorded, event.Event) error, progress func(done int64),
) error {
	known := event.Types()
	for after := int64(0); after < upTo; {
		if err := ctx.Err(); err != nil {
			return err
		}
		events, err := c.log.ReadAll(ctx, shard, after, int(min(page, upTo-after)))
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return &eventstore.GapError{Shard: shard, Want: after + 1}
		}
		for _, rec := range events {
			if newest, ok := known[rec.Type]; !ok || rec.Version > newest {
				return projections.At(rec, &event.UnknownTypeError{Type: rec.Type, Version: rec.Version})
			}
			if !slices.Contains(types, rec.Type) {
				continue
			}
			e, err := projections.Decode(rec)
			if err != nil {
				return err
			}
			if err := fold(rec, e); err != nil {
				return projections.At(rec, err)
			}
		}
		after = events[len(events)-1].Position
		progress(after)
	}
	return nil
}

// openHolds follows every attempt from its reservation to its settlement.
func (c *Checker) openHolds(ctx context.Context, progress Progress) (reconciliation.Finding, error) {
	var followed reconciliation.Holds
	ends := map[int16]int64{}
	for _, shard := range c.shards {
		head, err := c.log.Head(ctx, shard)
		if err != nil {
			return reconciliation.Finding{}, err
		}
		ends[shard] = head.Position
	}
	done, err := c.scanAll(ctx, ends, reconciliation.HoldTypes(), func(rec eventstore.Recorded, e event.Event) error {
		return followed.Apply(rec.Stream, e)
	}, progress)
	return followed.Finding(done), err
}

// scanAll scans every shard up to its end and returns how many events that were.
func (c *Checker) scanAll(ctx context.Context, ends map[int16]int64, types []string,
	fold func(eventstore.Recorded, event.Event) error, progress Progress,
) (done int64, err error) {
	var total int64
	for _, end := range ends {
		total += end
	}
	for _, shard := range c.shards {
		before := done
		err := c.scan(ctx, shard, ends[shard], types, fold, func(at int64) {
			done = before + at
			progress(done, total)
		})
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
