package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

const (
	// sayPatience is how long a result waits for a log that is busy or away. What is
	// given up after it leaves the run without an end: stalled, and never clean.
	sayPatience = 30 * time.Second
	sayRetry    = time.Second
	// maxEvents is more than a run can have: a start, its checks, an end.
	maxEvents = 100
	// endedRuns is how far back a new run looks for ones that have no end. There is one
	// for each that died, and every new run ends them all.
	endedRuns = 20
)

// say writes the next event of a run. A result is worth waiting for; a start is not.
func (r *Reconciler) say(ctx context.Context, j *job, e event.Event) error {
	if j.run.Version == 0 {
		_, err := r.append(ctx, j.id, j.by, &j.run, e)
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayPatience)
	defer cancel()
	for {
		said, err := r.append(ctx, j.id, j.by, &j.run, e)
		switch {
		case err == nil && !said:
			return ErrLeadLost // the run was ended by who leads now
		case err == nil:
			return nil
		case !errors.Is(err, eventstore.ErrOverloaded) && !errors.Is(err, eventstore.ErrUnavailable) &&
			!errors.Is(err, eventstore.ErrOutcomeUnknown):
			return err
		}
		timer := time.NewTimer(sayRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// append writes an event behind what is known of a run. said is false when the run has
// gone on without us, and this event is not in it: then run is what it is now.
func (r *Reconciler) append(ctx context.Context, id uuid.UUID, by eventstore.Meta, run *reconciliation.Run, e event.Event) (said bool, err error) {
	at := r.Now().UTC().Truncate(time.Microsecond) // as it is stored
	encoded := event.Encode(e)
	_, err = r.Log.Append(ctx, eventstore.Append{
		Stream: reconciliation.Stream(id.String()), Expected: run.Version, Meta: by,
		Events: []eventstore.Event{{Type: encoded.Type, Version: encoded.Version, At: at, Data: encoded.Data}},
	})
	if _, overtaken := errors.AsType[*eventstore.ConflictError](err); !overtaken {
		if err == nil {
			err = run.Apply(e, at)
		}
		return err == nil, err
	}
	// Either an append whose outcome was unknown was written, or somebody else's was.
	events, err := r.Log.ReadStream(ctx, reconciliation.Stream(id.String()), 1, maxEvents)
	if err != nil {
		return false, err
	}
	now, err := foldRun(events)
	if err != nil {
		return false, err
	}
	before := *run
	*run = now.Run
	return before.Version < int64(len(events)) && events[before.Version].Meta == by && events[before.Version].Type == encoded.Type, nil
}

// abandon ends the runs that have no end: whoever has the lead knows that nobody else
// is at them.
func (r *Reconciler) abandon(ctx context.Context) error {
	runs, err := r.newest(ctx, "", endedRuns)
	if err != nil {
		return err
	}
	for _, s := range runs {
		for s.Finished == nil {
			end := s.Finish(reconciliation.Abandoned, nil)
			if _, err := r.append(ctx, s.id, eventstore.Meta{Worker: r.Worker}, &s.Run, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// stored is a run as the log has it.
type stored struct {
	id uuid.UUID
	// by is who asked for it, and on which worker it ran.
	by eventstore.Meta
	reconciliation.Run
}

// newest reads runs from the log, newest first, before a stream; empty means from the
// end.
func (r *Reconciler) newest(ctx context.Context, before string, limit int) ([]stored, error) {
	events, err := r.Log.ReadKind(ctx, reconciliation.StreamKind, before, limit)
	if err != nil {
		return nil, err
	}
	var runs []stored
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].Stream == events[0].Stream {
			n++
		}
		s, err := foldRun(events[:n])
		if err != nil {
			return nil, err
		}
		runs, events = append(runs, s), events[n:]
	}
	return runs, nil
}

// foldRun adds up the events of one run.
func foldRun(events []eventstore.Recorded) (stored, error) {
	var s stored
	for i, rec := range events {
		e, err := projections.Decode(rec)
		if err == nil {
			err = projections.At(rec, s.Apply(e, projections.ObservedAt(rec)))
		}
		if err != nil {
			return s, err
		}
		if i == 0 {
			s.by = rec.Meta
			if s.id, err = uuid.Parse(rec.Stream[len(reconciliation.StreamKind)+1:]); err != nil {
				return s, fmt.Errorf("%s: %w", rec.Stream, err)
			}
		}
	}
	return s, nil
}
