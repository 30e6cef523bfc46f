package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SubscribeOptions tune a subscription; the zero value is good.
type SubscribeOptions struct {
	// Poll is how often the log is looked at without being woken, 1 s by default: it
	// finds what a lost notification missed.
	Poll time.Duration
	// Limit is how many events the handler gets at most, 1,000 by default.
	Limit int
}

// maxReadFailures bounds how often in a row a subscription reads in vain, once a
// Poll, before it gives up: five minutes by default.
const maxReadFailures = 300

// Subscribe gives handler every event of a shard after a position, exactly once and
// in order (E3), as they become durable. It returns when ctx ends, when handler
// fails, with *GapError if a position is missing, or when the log could not be read
// for long. The handler keeps the position; Subscribe holds nothing between calls.
func (s *Store) Subscribe(ctx context.Context, shard int16, after int64, handler func(context.Context, []Recorded) error, opts SubscribeOptions) error {
	if opts.Poll <= 0 {
		opts.Poll = time.Second
	}
	if opts.Limit <= 0 {
		opts.Limit = 1_000
	}
	timer := time.NewTimer(opts.Poll)
	defer timer.Stop()
	failures := 0
	for {
		// Taken before the read: what is committed after it closes this channel.
		_, wake := s.durable.known(shard)
		events, err := s.readDurable(ctx, shard, after, opts.Limit)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isFatalToReader(err):
			return err
		case err != nil:
			failures++
			s.log.Warn("subscription cannot read", "shard", shard, "after", after, "failures", failures, "cause", err)
			if failures >= maxReadFailures {
				return fmt.Errorf("eventstore: subscription of shard %d: %w", shard, err)
			}
			wake = nil // wait the full time
		case len(events) > 0:
			failures = 0
			if err := handler(ctx, events); err != nil {
				return err
			}
			after = events[len(events)-1].Position
			continue
		default:
			failures = 0
		}
		timer.Reset(opts.Poll)
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isFatalToReader(err error) bool {
	_, gap := errors.AsType[*GapError](err)
	return gap || errors.Is(err, ErrCorrupt)
}

// readDurable is ReadAll, but gives what is durable now rather than wait for the
// rest: the barrier of a batch just read is usually on its way.
func (s *Store) readDurable(ctx context.Context, shard int16, after int64, limit int) ([]Recorded, error) {
	events, err := s.page(ctx, sqlAll, shard, after, limit)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	if err := assertGapless(shard, after, events); err != nil {
		return nil, err
	}
	known, _ := s.durable.known(shard)
	if known <= after {
		if err := s.durable.ensure(ctx, shard, events[len(events)-1].Position); err != nil {
			return nil, err
		}
		return events, nil
	}
	return events[:min(int64(len(events)), known-after)], nil
}

func assertGapless(shard int16, after int64, events []Recorded) error {
	for i, e := range events {
		if want := after + 1 + int64(i); e.Position != want {
			return &GapError{Shard: shard, Want: want, Have: e.Position}
		}
	}
	return nil
}
