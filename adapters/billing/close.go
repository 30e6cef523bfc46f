// Package billing closes bills: it says in the log what the bills projection has
// added up (M14).
package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/bills"
)

const (
	// viewPatience is how long a closing waits for the bills to be as far as the log:
	// what they do not hold yet would be late, although it is not.
	viewPatience = 30 * time.Second
	viewPoll     = 100 * time.Millisecond
)

// Log is what is needed of the event store.
type Log interface {
	AppendAll(ctx context.Context, appends []eventstore.Append) ([]eventstore.Result, error)
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
	Head(ctx context.Context, shard int16) (eventstore.Head, error)
}

// BehindError is a view of the bills that does not come as far as the log.
type BehindError struct{ Position, Head int64 }

func (e *BehindError) Error() string {
	return fmt.Sprintf("the bills are at %d and the log at %d: a worker has to run, or `sluice rebuild bills`", e.Position, e.Head)
}

// Closer closes bills.
type Closer struct {
	Log   Log
	Pool  *pgxpool.Pool
	Shard int16
	// By is written beside every event.
	By eventstore.Meta
}

// CaughtUp waits until the bills hold everything that stands in the log now. The error
// is a *BehindError after half a minute.
func (c Closer) CaughtUp(ctx context.Context) error {
	head, err := c.Log.Head(ctx, c.Shard)
	if err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	poll := time.NewTicker(viewPoll)
	defer poll.Stop()
	for {
		var at int64
		err := c.Pool.QueryRow(ctx, `
			select position from projection_checkpoints where name = $1 and target = 'live' and shard = $2`,
			bills.Projection{}.Name(), c.Shard).Scan(&at)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		case at >= head.Position:
			return nil
		}
		select {
		case <-patience.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &BehindError{Position: at, Head: head.Position}
		case <-poll.C:
		}
	}
}

// Close closes one organization's bill, and opens the next. It is for good. The error is
// one of bills.PlanClosing's.
func (c Closer) Close(ctx context.Context, tenant, period string, now time.Time) (bills.Closing, error) {
	plan, err := bills.PlanClosing(ctx, c.Pool, c.Shard, tenant, period, now)
	if err != nil {
		return plan, err
	}
	opened, err := c.opened(ctx, tenant, period)
	if err != nil {
		return plan, err
	}
	var events []event.Event
	if opened == 0 {
		events = append(events, billing.BillOpened{Tenant: tenant, Period: period})
	}
	for _, a := range plan.Adjusted {
		events = append(events, a)
	}
	appends := []eventstore.Append{c.say(billing.Stream(tenant, period), opened, now, append(events, plan.Closed)...)}
	next := billing.Next(period)
	if began, err := c.opened(ctx, tenant, next); err != nil {
		return plan, err
	} else if began == 0 {
		appends = append(appends, c.say(billing.Stream(tenant, next), 0, now, billing.BillOpened{Tenant: tenant, Period: next}))
	}
	_, err = c.Log.AppendAll(ctx, appends)
	if _, overtaken := errors.AsType[*eventstore.ConflictError](err); overtaken {
		return plan, bills.ErrClosed // by somebody else, in this moment
	}
	return plan, err
}

// opened is 1 for a bill that was opened and 0 for one that nobody spoke of. ErrClosed
// is one that was closed, also where the view does not know it yet.
func (c Closer) opened(ctx context.Context, tenant, period string) (version int64, err error) {
	events, err := c.Log.ReadStream(ctx, billing.Stream(tenant, period), 1, 2)
	if err == nil && len(events) > 1 {
		return 0, bills.ErrClosed
	}
	return int64(len(events)), err
}

func (c Closer) say(stream string, expected int64, now time.Time, events ...event.Event) eventstore.Append {
	a := eventstore.Append{Shard: c.Shard, Stream: stream, Expected: expected, Meta: c.By}
	for _, e := range events {
		encoded := event.Encode(e)
		a.Events = append(a.Events, eventstore.Event{
			Type: encoded.Type, Version: encoded.Version, At: now.UTC(), Data: encoded.Data,
		})
	}
	return a
}
