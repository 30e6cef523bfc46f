package eventstore

import (
	"errors"
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// What a batch becomes is decided here, in memory, from what the first trip read:
// versions, budgets, positions. Nothing here talks to the database, so it can run
// again from the same facts.

// errNeedVersions asks for the batch's versions to be read: a version that was
// only assumed would have decided about another call.
var errNeedVersions = errors.New("eventstore: versions must be read")

// facts are what the first trip read under the shard's lock.
type facts struct {
	shard      int16
	head       Head
	recordedAt time.Time
	// counters holds the keys that checks ask about.
	counters map[budget.Key]budget.Counter
	// versions holds the streams that were read; 0 for one that does not exist.
	versions map[string]int64
}

// row is one row of log_events.
type row struct {
	position int64
	events   int16
	stream   string
	version  int64
	born     time.Time
	meta     string
	body     string
}

// verdict is what to write and what to tell each entry once it is durable.
type verdict struct {
	rows   []row
	deltas []budget.Delta
	// last is the position of the batch's last event.
	last int64
	// outcomes has one for each entry, in order.
	outcomes []outcome
}

// decider works through a batch entry by entry.
type decider struct {
	facts facts
	// counters and versions as they are after the entries decided so far.
	counters map[budget.Key]budget.Counter
	versions map[string]int64
	verdict  verdict
}

func decide(f facts, batch []*entry) (verdict, error) {
	d := &decider{
		facts:    f,
		counters: make(map[budget.Key]budget.Counter, len(f.counters)),
		versions: make(map[string]int64, len(batch)),
		verdict:  verdict{last: f.head.Position, outcomes: make([]outcome, 0, len(batch))},
	}
	for k, c := range f.counters {
		d.counters[k] = c
	}
	for _, e := range batch {
		o, err := d.entry(e)
		if err != nil {
			return verdict{}, err
		}
		d.verdict.outcomes = append(d.verdict.outcomes, o)
	}
	d.verdict.deltas = budget.Merge(d.verdict.deltas)
	return d.verdict, nil
}

// entry decides all appends of one call, and takes them back if one fails.
func (d *decider) entry(e *entry) (outcome, error) {
	rows, deltas, last := len(d.verdict.rows), len(d.verdict.deltas), d.verdict.last
	results := make([]Result, len(e.appends))
	for i := range e.appends {
		a := &e.appends[i]
		result, stop, err := d.append(a)
		if errors.Is(err, errNeedVersions) {
			return outcome{}, err
		}
		results[i] = result
		if err == nil && !stop {
			continue
		}
		d.undo(rows, deltas, last)
		if err != nil {
			return outcome{err: err}, nil
		}
		// All or none: those before it were not written either.
		for j := range i {
			results[j] = Result{}
		}
		return outcome{results: results}, nil
	}
	return outcome{results: results}, nil
}

// append decides one append. stop says that a refusal leaves nothing to write.
func (d *decider) append(a *pending) (result Result, stop bool, err error) {
	version, err := d.version(a)
	if err != nil {
		return Result{}, false, err
	}
	events, body, deltas := a.events, a.body, a.deltas
	refusal := budget.Decide(d.counters, a.checks)
	if refusal != nil {
		result.Refusal = refusal
		if a.refuse == nil {
			return result, true, nil
		}
		var instead []Event
		instead, deltas = a.refuse(*refusal)
		if len(instead) == 0 {
			return result, true, nil
		}
		if body, err = encodeBody(instead); err != nil {
			return Result{}, false, err
		}
		events = int16(len(instead))
	}
	d.verdict.last += int64(events)
	result.Position = d.verdict.last
	result.Version = version + int64(events)
	d.versions[a.stream] = result.Version
	d.verdict.rows = append(d.verdict.rows, row{
		position: result.Position, events: events, stream: a.stream,
		version: result.Version, born: a.born, meta: a.meta, body: body,
	})
	budget.Apply(d.counters, deltas)
	d.verdict.deltas = append(d.verdict.deltas, deltas...)
	return result, false, nil
}

// version is the stream's version before a, or *ConflictError. A version that was
// neither read nor written in this batch is assumed to be the expected one: the
// lane has seen that it was once reached, and the index refuses the batch if the
// stream has gone on since.
func (d *decider) version(a *pending) (int64, error) {
	now, written := d.versions[a.stream]
	read, known := d.facts.versions[a.stream]
	if !written {
		now = read
	}
	switch {
	case a.expected == AnyVersion && (written || known):
		return now, nil
	case a.expected == AnyVersion:
		return 0, errNeedVersions
	case !written && !known:
		return a.expected, nil
	case now == a.expected:
		return now, nil
	case !known:
		// now rests on an assumption; only a version that was read may refuse.
		return 0, errNeedVersions
	default:
		return 0, &ConflictError{Stream: a.stream, Expected: a.expected, Actual: now}
	}
}

// undo takes the last rows and deltas back, as if they had never been decided.
func (d *decider) undo(rows, deltas int, last int64) {
	undone := d.verdict.rows[rows:]
	d.verdict.rows = d.verdict.rows[:rows]
	for _, r := range undone {
		delete(d.versions, r.stream)
		for _, kept := range d.verdict.rows {
			if kept.stream == r.stream {
				d.versions[r.stream] = kept.version
			}
		}
	}
	for _, x := range d.verdict.deltas[deltas:] {
		budget.Apply(d.counters, []budget.Delta{{Key: x.Key, Held: -x.Held, Settled: -x.Settled}})
	}
	d.verdict.deltas = d.verdict.deltas[:deltas]
	d.verdict.last = last
}
