package config

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

const (
	historyPage = 1000
	// maxHistory bounds what one history holds: an object that is changed every
	// minute reaches it in a week.
	maxHistory = 10_000
)

// StreamLog reads the events of one stream.
type StreamLog interface {
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
}

// Entry is one change of an object: who did what, and what the object was before
// and after.
type Entry struct {
	Revision int64
	At       time.Time
	Actor    string
	// Type is the event's.
	Type string
	// Before and After are nil where the object was not there.
	Before, After any
	// Evidence is the hash that a check of the model was stored under; empty for all other
	// events.
	Evidence string
}

// ErrHistoryTooLong is an object with more events than one history holds.
var ErrHistoryTooLong = errors.New("the object has more than 10,000 events")

// History is everything that happened to one object, oldest first; nothing for one
// that never was.
func History(ctx context.Context, log StreamLog, id catalog.ObjectID) ([]Entry, error) {
	recorded, err := readStream(ctx, log, id.Stream())
	if err != nil {
		return nil, err
	}
	versions, err := versionsOf(id, recorded)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(versions))
	var before any
	for i, v := range versions {
		entries[i] = Entry{
			Revision: v.Revision, At: v.At, Actor: recorded[i].Meta.Actor, Type: recorded[i].Type,
			Before: before, After: v.Object,
		}
		if check, ok := checkOf(recorded[i]); ok {
			entries[i].Evidence = check.Hash
		}
		before = v.Object
	}
	return entries, nil
}

// Revert writes that an object is again what it was at a revision. It is a new
// event, validated as any other change; reverting to what is already there writes
// nothing. The error is Change's, or a *catalog.RevertError. expected is the
// revision that the caller loaded, nil for whatever is there.
func Revert(ctx context.Context, log interface {
	Log
	StreamLog
}, worker *live.Live, id catalog.ObjectID, to int64, expected *int64, by eventstore.Meta, now time.Time,
) (Plan, error) {
	history, err := readVersions(ctx, log, id)
	if err != nil {
		return Plan{}, err
	}
	var chain []catalog.Version
	if id.Kind == catalog.KindModel {
		if chain, err = readVersions(ctx, log, catalog.ObjectID{Kind: catalog.KindChain, Name: id.Name}); err != nil {
			return Plan{}, err
		}
	}
	return Change(ctx, log, worker, by, now, func(state *catalog.State) (catalog.Objects, error) {
		if have := state.RevisionOf(id); expected != nil && *expected != have {
			return catalog.Objects{}, &RevisionError{ID: id, Have: have}
		}
		return catalog.Revert(state.Objects(), id, history, chain, to)
	})
}

// RevisionError is an edit of an object that has changed since its editor loaded it
// (C3), or that named no revision at all. Nothing was written.
type RevisionError struct {
	ID catalog.ObjectID
	// Have is the current revision.
	Have int64
	// Missing: the edit named none.
	Missing bool
}

func (e *RevisionError) Error() string {
	if e.Missing {
		return e.ID.String() + " exists: name the revision that is to be changed"
	}
	return e.ID.String() + " was changed by someone else: load it again"
}

func readVersions(ctx context.Context, log StreamLog, id catalog.ObjectID) ([]catalog.Version, error) {
	recorded, err := readStream(ctx, log, id.Stream())
	if err != nil {
		return nil, err
	}
	return versionsOf(id, recorded)
}

func versionsOf(id catalog.ObjectID, recorded []eventstore.Recorded) ([]catalog.Version, error) {
	events := make([]catalog.Recorded, len(recorded))
	for i, rec := range recorded {
		e, err := event.Decode(rec.Type, rec.Version, rec.Data)
		if unknown, ok := errors.AsType[*event.UnknownTypeError](err); ok {
			e, err = catalog.Unknown{Type: unknown.Type, Version: unknown.Version}, nil
		}
		if err != nil {
			return nil, err
		}
		events[i] = catalog.Recorded{
			Stream: rec.Stream, Version: rec.StreamVersion, Position: rec.Position, At: rec.RecordedAt, Event: e,
		}
	}
	return catalog.Versions(id, events), nil
}

func readStream(ctx context.Context, log StreamLog, stream string) ([]eventstore.Recorded, error) {
	var all []eventstore.Recorded
	for {
		page, err := log.ReadStream(ctx, stream, int64(len(all)+1), historyPage)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		switch {
		case len(page) < historyPage:
			return all, nil
		case len(all) >= maxHistory:
			return nil, ErrHistoryTooLong
		}
	}
}
