package audit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

const (
	page = 5000
	// maxViolations bounds a report; the count goes on.
	maxViolations = 100
	// maxOpen bounds memory: more requests than this open at one place of the log is
	// no log of ours.
	maxOpen = 1 << 20
	// maxStream is more events than a request can have.
	maxStream = 10_000
)

// errTooManyOpen is a log in which requests do not end.
var errTooManyOpen = errors.New("audit: too many open requests to follow")

// Log is what an audit reads.
type Log interface {
	projections.Log
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
}

// Report is what an audit found.
type Report struct {
	Events   int64 `json:"events"`
	Requests int64 `json:"requests"`
	// Open requests have not ended, and need not have.
	Open int64 `json:"open"`
	// Found counts all violations; the first hundred are listed.
	Found      int64       `json:"found"`
	Violations []Violation `json:"violations"`
}

// OK reports whether nothing was found.
func (r Report) OK() bool { return r.Found == 0 }

func (r *Report) add(found ...Violation) {
	r.Found += int64(len(found))
	room := maxViolations - len(r.Violations)
	r.Violations = append(r.Violations, found[:min(room, len(found))]...)
}

// Run checks a shard's log up to its present head. now decides which open requests
// are overdue. progress may be nil.
func Run(ctx context.Context, log Log, shard int16, now time.Time, progress func(done, total int64)) (Report, error) {
	a := auditor{log: log, open: map[string]*life{}, report: Report{Violations: []Violation{}}}
	head, err := log.Head(ctx, shard)
	if err != nil {
		return a.report, err
	}
	for after := int64(0); after < head.Position; {
		events, err := log.ReadAll(ctx, shard, after, int(min(page, head.Position-after)))
		if err != nil {
			return a.report, err
		}
		if len(events) == 0 {
			break
		}
		for _, rec := range events {
			if err := a.observe(ctx, rec); err != nil {
				return a.report, err
			}
		}
		after = events[len(events)-1].Position
		if progress != nil {
			progress(after, head.Position)
		}
	}
	a.finish(now)
	return a.report, nil
}

// auditor follows the requests that are open at a place of the log. What has ended
// is forgotten, or a log of any size would have to be held.
type auditor struct {
	log    Log
	open   map[string]*life
	report Report
}

func (a *auditor) observe(ctx context.Context, rec eventstore.Recorded) error {
	a.report.Events++
	if !isRequest(rec.Stream) {
		return nil
	}
	l, following := a.open[rec.Stream]
	switch {
	case !following && rec.StreamVersion > 1:
		return a.late(ctx, rec)
	case !following:
		l = newLife()
		a.report.Requests++
		a.open[rec.Stream] = l
	}
	a.report.add(l.observe(rec)...)
	if l.closed() {
		delete(a.open, rec.Stream)
	}
	if len(a.open) > maxOpen {
		return errTooManyOpen
	}
	return nil
}

// late judges an event behind its request's end, which is forgotten: the stream up
// to it is read again.
func (a *auditor) late(ctx context.Context, rec eventstore.Recorded) error {
	events, err := a.log.ReadStream(ctx, rec.Stream, 1, maxStream)
	if err != nil {
		return err
	}
	l := newLife()
	for _, e := range events {
		if e.StreamVersion < rec.StreamVersion {
			l.observe(e)
		}
	}
	a.report.add(l.observe(rec)...)
	return nil
}

func (a *auditor) finish(now time.Time) {
	for _, stream := range slices.Sorted(maps.Keys(a.open)) {
		a.report.Open++
		if v, is := a.open[stream].overdue(now); is {
			a.report.add(v)
		}
	}
}
