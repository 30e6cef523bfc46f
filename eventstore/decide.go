package eventstore

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/budget"
)

// What a batch becomes is decided here, in memory, from what the first trip read:
// versions, budgets, positions. Nothing here talks to the database, so it can run
// again from the same facts.

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

// decide works through a batch in order. The lane has read the versions of all
// streams but those whose expected version it trusts (see lane.trusted).
func decide(f facts, batch []*entry) verdict {
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
		d.verdict.outcomes = append(d.verdict.outcomes, d.entry(e))
	}
	d.verdict.deltas = budget.Merge(d.verdict.deltas)
	return d.verdict
}

// entry decides all appends of one call, and takes them back if one fails.
func (d *decider) entry(e *entry) outcome {
	rows, deltas, last := len(d.verdict.rows), len(d.verdict.deltas), d.verdict.last
	results := make([]Result, len(e.appends))
	// All checks of the call come before anything of it is taken (R10): what its first
	// append takes must not refuse its second.
	refusals := make([]*budget.Refusal, len(e.appends))
	for i := range e.appends {
		refusals[i] = budget.Decide(d.counters, e.appends[i].checks)
	}
	for i := range e.appends {
		a := &e.appends[i]
		result, stop, err := d.append(a, refusals[i])
		results[i] = result
		if err == nil && !stop {
			continue
		}
		d.undo(rows, deltas, last)
		if err != nil {
			return outcome{err: err}
		}
		// All or none: those before it were not written either.
		for j := range i {
			results[j] = Result{}
		}
		return outcome{results: results}
	}
	return outcome{results: results}
}

// append decides one append. stop says that a refusal leaves nothing to write.
func (d *decider) append(a *pending, refusal *budget.Refusal) (result Result, stop bool, err error) {
	version, err := d.version(a)
	if err != nil {
		return Result{}, false, err
	}
	events, body, deltas := a.events, a.body, a.deltas
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
	before := d.asked(a.checks)
	budget.Apply(d.counters, deltas)
	budget.Open(d.counters, deltas, d.facts.recordedAt)
	d.verdict.deltas = append(d.verdict.deltas, deltas...)
	if refusal == nil {
		result.Standings = budget.Standings(before, d.counters, a.checks)
	}
	return result, false, nil
}

// asked are the counters that checks ask about, as they are before the append takes
// anything.
func (d *decider) asked(checks []budget.Check) map[budget.Key]budget.Counter {
	if len(checks) == 0 {
		return nil
	}
	asked := make(map[budget.Key]budget.Counter, len(checks))
	for _, c := range checks {
		asked[c.Key] = d.counters[c.Key]
		if c.HeldKey != "" {
			asked[c.HeldKey] = d.counters[c.HeldKey]
		}
	}
	return asked
}

// version is the stream's version before a, or *ConflictError. A version that was
// neither read nor written in this batch is assumed to be the expected one. Later
// entries are decided on the assumption, too: if it is wrong, the index refuses the
// row that was written on it and with it the whole batch.
func (d *decider) version(a *pending) (int64, error) {
	now, written := d.versions[a.stream]
	if !written {
		read, known := d.facts.versions[a.stream]
		if !known {
			return a.expected, nil
		}
		now = read
	}
	if a.expected != AnyVersion && a.expected != now {
		return 0, &ConflictError{Stream: a.stream, Expected: a.expected, Actual: now}
	}
	return now, nil
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
