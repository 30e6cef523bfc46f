package trail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// View is for whom a trail is shown.
type View uint8

const (
	// Caller sees everything but where masked routes went and how we count.
	Caller View = iota
	// Operator sees everything.
	Operator
)

// Trail is one request, as api.md shows it. Outcome is nil while it runs.
type Trail struct {
	RequestID      uuid.UUID        `json:"request_id"`
	Tenant         string           `json:"tenant"`
	RequestedModel string           `json:"requested_model"`
	CanonicalModel string           `json:"canonical_model"`
	Outcome        *request.Outcome `json:"outcome"`
	Attempts       int64            `json:"attempts"`
	FallbackDepth  int64            `json:"fallback_depth"`
	Snapshot       string           `json:"snapshot"`
	Entries        []Entry          `json:"entries"`
}

// Entry is one event of the stream.
type Entry struct {
	// Seq counts from 1 without gaps, whatever the view: nothing is left out.
	Seq int64
	// At is when the event was observed.
	At time.Time
	// Event is its literal name.
	Event string
	// Fields are the event's own, as one JSON object.
	Fields json.RawMessage
}

// timeFormat has the microseconds always, so that times line up and sort as text.
const timeFormat = "2006-01-02T15:04:05.000000Z07:00"

// MarshalJSON puts the event's own fields behind the three that all have.
func (e Entry) MarshalJSON() ([]byte, error) {
	name, err := json.Marshal(e.Event)
	if err != nil {
		return nil, err
	}
	b := append([]byte(`{"seq":`), strconv.FormatInt(e.Seq, 10)...)
	b = append(b, `,"at":"`...)
	b = e.At.UTC().AppendFormat(b, timeFormat)
	b = append(b, `","event":`...)
	b = append(b, name...)
	own := bytes.TrimSpace(e.Fields)
	if len(own) < 2 || own[0] != '{' {
		return nil, fmt.Errorf("trail: the fields of entry %d are no object", e.Seq)
	}
	if rest := bytes.TrimSpace(own[1:]); rest[0] != '}' {
		b = append(b, ',')
	}
	return append(b, own[1:]...), nil
}

// Build shows a whole stream, or as much of it as there is. The events are one
// request's, from its first on.
func Build(stream []eventstore.Recorded, view View) (Trail, error) {
	b := NewBuilder(view)
	t := Trail{Entries: make([]Entry, 0, len(stream))}
	for _, rec := range stream {
		entry, err := b.Add(rec)
		if err != nil {
			return Trail{}, err
		}
		t.Entries = append(t.Entries, entry)
	}
	b.head(&t)
	return t, nil
}

// Builder shows events as they come, for a trail that is followed live (X3).
type Builder struct {
	view View
	row  requests.Row
	mask mask
}

// NewBuilder begins a trail.
func NewBuilder(view View) *Builder {
	return &Builder{view: view, mask: mask{attempts: map[int]bool{}}}
}

// Add shows the next event of the stream. An event of a type that this release
// does not know is shown with its fields; a caller, for whom nobody can say what
// among them is masked, sees its name.
func (b *Builder) Add(rec eventstore.Recorded) (Entry, error) {
	row, err := requests.Fold(b.row, rec)
	if err != nil {
		return Entry{}, err
	}
	b.row = row
	entry := Entry{Seq: rec.StreamVersion, At: projections.ObservedAt(rec), Event: rec.Type, Fields: rec.Data}
	if b.view == Operator {
		return entry, nil
	}
	entry.Fields, err = b.mask.caller(rec)
	return entry, err
}

// Final reports whether the request has ended.
func (b *Builder) Final() bool { return b.row.State == requests.Final }

// Head is the trail so far, without entries.
func (b *Builder) Head() Trail {
	var t Trail
	b.head(&t)
	return t
}

func (b *Builder) head(t *Trail) {
	t.RequestID, t.Tenant = b.row.ID, b.row.Tenant
	t.RequestedModel, t.CanonicalModel = b.row.RequestedModel, b.row.CanonicalModel
	t.Attempts, t.FallbackDepth, t.Snapshot = b.row.Attempts, b.row.FallbackDepth, b.row.Snapshot
	if b.row.Outcome != "" {
		t.Outcome = &b.row.Outcome
	}
}
