package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Append writes one decision and returns when it is durable.
//
// Errors: *ConflictError, ErrOverloaded, ErrUnavailable, ErrInvalid (as which a
// *TooLargeError counts), ErrClosed and
// the context's own error mean that nothing was written; ErrOutcomeUnknown means
// that it may have been. A failed check is no error: see Result.Refusal.
func (s *Store) Append(ctx context.Context, a Append) (Result, error) {
	results, err := s.AppendAll(ctx, []Append{a})
	if len(results) == 1 {
		return results[0], err
	}
	return Result{}, err
}

// AppendAll writes several decisions of one shard in one batch, all or none. If a
// check fails in an append that does not say what to write instead, nothing at
// all is written and that append's result carries the refusal.
func (s *Store) AppendAll(ctx context.Context, appends []Append) ([]Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, shard, err := newEntry(appends)
	if err != nil {
		return nil, err
	}
	if int(shard) >= len(s.lanes) || shard < 0 {
		return nil, invalid("shard %d of %d", shard, len(s.lanes))
	}
	q := s.lanes[shard].queue
	if err := q.put(e); err != nil {
		return nil, err
	}
	select {
	case o := <-e.done:
		return o.results, o.err
	case <-ctx.Done():
	}
	if e.withdraw() {
		q.drop(e)
		return nil, ctx.Err()
	}
	// It is being written. Waiting on would be against the caller's wish.
	select {
	case o := <-e.done:
		return o.results, o.err
	default:
		return nil, &underWay{cause: ctx.Err(), done: e.done}
	}
}

// underWay is an append whose caller left while it was being written. It is an
// ErrOutcomeUnknown that will be known.
type underWay struct {
	cause error
	done  <-chan outcome
}

func (u *underWay) Error() string { return ErrOutcomeUnknown.Error() + ": " + u.cause.Error() }

func (u *underWay) Unwrap() []error { return []error{ErrOutcomeUnknown, u.cause} }

// Await waits for what became of an append of which its caller was told that the outcome
// is unknown, and returns what AppendAll would have. It may be called once for each such
// error. What cannot be awaited, because the log itself could not find out, is returned
// as it came.
func Await(ctx context.Context, unknown error) ([]Result, error) {
	u, ok := errors.AsType[*underWay](unknown)
	if !ok {
		return nil, unknown
	}
	select {
	case o := <-u.done:
		return o.results, o.err
	case <-ctx.Done():
		return nil, unknown
	}
}

func newEntry(appends []Append) (*entry, int16, error) {
	if len(appends) == 0 {
		return nil, 0, invalid("nothing to append")
	}
	e := &entry{appends: make([]pending, len(appends)), done: make(chan outcome, 1)}
	e.priority = appends[0].Priority
	for i, a := range appends {
		if a.Shard != appends[0].Shard {
			return nil, 0, invalid("appends of shards %d and %d together", appends[0].Shard, a.Shard)
		}
		// The group is as urgent as its most urgent part.
		e.priority = max(e.priority, a.Priority)
		p, err := newPending(a)
		if err != nil {
			return nil, 0, err
		}
		e.appends[i] = p
		e.events += int(p.events)
		e.bytes += len(p.body) + len(p.meta) + len(p.stream) + rowOverheadBytes
	}
	if e.priority != Admission && e.priority != Settlement {
		return nil, 0, invalid("priority %d", e.priority)
	}
	return e, appends[0].Shard, nil
}

// rowOverheadBytes is what a row takes beside its texts: fixed columns, array
// headers, the entry in memory, its checks and deltas.
const rowOverheadBytes = 512

func newPending(a Append) (pending, error) {
	born, err := Born(a.Stream)
	if err != nil {
		return pending{}, err
	}
	if a.Expected < AnyVersion {
		return pending{}, invalid("%s: expected version %d", a.Stream, a.Expected)
	}
	body, err := encodeBody(a.Events)
	if err != nil {
		return pending{}, fmt.Errorf("%s: %w", a.Stream, err)
	}
	meta, err := encodeMeta(a.Meta)
	if err != nil {
		return pending{}, err
	}
	for _, c := range a.Checks {
		if !validText(string(c.Key)) {
			return pending{}, invalid("counter key %.40q", c.Key)
		}
	}
	for _, d := range a.Deltas {
		if !validText(string(d.Key)) {
			return pending{}, invalid("counter key %.40q", d.Key)
		}
	}
	return pending{
		stream: a.Stream, born: born, expected: a.Expected,
		events: int16(len(a.Events)), body: body, meta: meta,
		checks: a.Checks, deltas: a.Deltas, refuse: a.Refuse,
	}, nil
}

func encodeMeta(m Meta) (string, error) {
	for _, s := range []string{m.Worker, m.Actor, m.Causation, m.Correlation} {
		if s != "" && !validText(s) {
			return "", invalid("meta %.40q", s)
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", invalid("meta: %v", err)
	}
	return string(text), nil
}
