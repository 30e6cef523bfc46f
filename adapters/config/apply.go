package config

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	catalogevents "github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/catalog"
)

// Log is what is needed of the event store.
type Log interface {
	catalog.Log
	// AppendAll writes all appends or none.
	AppendAll(ctx context.Context, appends []eventstore.Append) ([]eventstore.Result, error)
}

// StaleError says that an object was changed by someone else after the plan was
// made (C3). Nothing was written; a new plan shows both.
type StaleError struct{ Stream string }

func (e *StaleError) Error() string {
	what := e.Stream
	if what == catalogevents.ConfigurationStream {
		what = "the configuration"
	}
	return what + " was changed by someone else in the meantime; nothing was applied: look at the plan again"
}

// Apply writes a plan as events, all or none, each object at the revision that
// the plan was made on. An empty plan writes nothing. The error is a *StaleError
// or the log's own; after eventstore.ErrOutcomeUnknown, making the plan again
// tells what happened.
func Apply(ctx context.Context, log Log, plan Plan, by eventstore.Meta, now time.Time) error {
	if plan.Empty() {
		return nil
	}
	degraded := map[string]any{}
	for _, d := range plan.Degraded {
		degraded[catalogevents.AliasStream(d.Tenant, d.Name)] = d
	}
	var appends []eventstore.Append
	for _, c := range plan.Changes {
		events := c.Events
		if d, ok := degraded[c.Stream]; ok {
			events = append(slices.Clone(events), d)
			delete(degraded, c.Stream)
		}
		appends = append(appends, write(c.Stream, c.Revision, by, now, events...))
	}
	for _, stream := range slices.Sorted(maps.Keys(degraded)) {
		// Whatever the alias's own revision is: it is told something, not changed.
		appends = append(appends, write(stream, eventstore.AnyVersion, by, now, degraded[stream]))
	}
	// Last, so that an object that was overtaken is named before the whole is.
	appends = append(appends, write(catalogevents.ConfigurationStream, plan.Revision, by, now,
		catalogevents.ConfigurationChanged{Objects: len(plan.Changes)}))
	_, err := log.AppendAll(ctx, appends)
	return stale(err)
}

func write(stream string, expected int64, by eventstore.Meta, now time.Time, events ...any) eventstore.Append {
	a := eventstore.Append{Shard: catalog.Shard, Stream: stream, Expected: expected, Meta: by}
	for _, e := range events {
		encoded := event.Encode(e)
		a.Events = append(a.Events, eventstore.Event{
			Type: encoded.Type, Version: encoded.Version, At: now.UTC(), Data: encoded.Data,
		})
	}
	return a
}

func stale(err error) error {
	if conflict, ok := errors.AsType[*eventstore.ConflictError](err); ok {
		return &StaleError{Stream: conflict.Stream}
	}
	return err
}
