package eventstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// Rules: E12.
func TestAppendedEventsAreReadAsWritten_E12(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	stream := newRequest()
	meta := Meta{Worker: "w1", Actor: "key/k1", Causation: "c", Correlation: "trace-1"}
	at := time.Date(2026, 11, 29, 12, 0, 0, 123_000, time.UTC)
	events := []Event{
		{Type: "request_admitted", Version: 1, At: at, Data: []byte(`{"model":"m"}`)},
		{Type: "attempt_reserved", Version: 2, Data: []byte("{\n \"attempt\": 1 }")},
	}
	result, err := s.Append(t.Context(), Append{Stream: stream, Events: events, Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Result{Position: 2, Version: 2}, result); diff != "" {
		t.Fatal(diff)
	}
	got, err := s.ReadStream(t.Context(), stream, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].RecordedAt.IsZero() {
		t.Fatalf("read %+v", got)
	}
	events[1].Data = []byte(`{"attempt":1}`) // a raw newline would break the line
	for i := range got {
		want := Recorded{
			Event: events[i], Position: int64(i + 1), Stream: stream,
			StreamVersion: int64(i + 1), RecordedAt: got[i].RecordedAt, Meta: meta,
		}
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Error(diff)
		}
	}
}

// Rules: E2.
func TestAppendOnWrongVersionConflicts_E2(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s, other := openStore(t, Config{URL: url}), openStore(t, Config{URL: url})
	stream := newRequest()
	mustAppend(t, s, stream, 0, 3)
	for _, c := range []struct {
		name     string
		by       *Store
		expected int64
		events   int
	}{
		{"created again", s, 0, 1},
		{"created again by another process", other, 0, 2},
		{"behind", s, 2, 1},
		{"behind, by another process", other, 2, 2},
		{"ahead", s, 4, 1},
		{"ahead, by another process", other, 7, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.by.Append(t.Context(), Append{Stream: stream, Expected: c.expected, Events: happened(c.events)})
			want := &ConflictError{Stream: stream, Expected: c.expected, Actual: 3}
			if got, ok := errors.AsType[*ConflictError](err); !ok || *got != *want {
				t.Fatalf("got %v, want %v", err, want)
			}
		})
	}
	// A stream this lane wrote last, continued behind its back.
	mustAppend(t, other, stream, 3, 2)
	_, err := s.Append(t.Context(), Append{Stream: stream, Expected: 3, Events: happened(1)})
	if got, ok := errors.AsType[*ConflictError](err); !ok || got.Actual != 5 {
		t.Fatalf("got %v, want a conflict at 5", err)
	}
	if r := mustAppend(t, s, stream, AnyVersion, 1); r.Version != 6 {
		t.Fatalf("version %d, want 6", r.Version)
	}
	if head, err := s.Head(t.Context(), 0); err != nil || head.Position != 6 {
		t.Fatalf("head %+v, %v: a conflict left a gap", head, err)
	}
}

// Rules: M16.
func TestRefusalWritesWhatTheCallerSays_M16(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	key := budget.Key("org/acme/usd/month/2026-11")
	reserve := func(refuse func(budget.Refusal) ([]Event, []budget.Delta)) Append {
		return Append{
			Stream: newRequest(), Events: happened(2), Refuse: refuse,
			Checks: []budget.Check{{Key: key, Limit: 100, Ask: 60, Scope: "organization"}},
			Deltas: []budget.Delta{{Key: key, Held: 60}},
		}
	}
	if r, err := s.Append(t.Context(), reserve(nil)); err != nil || r.Refusal != nil || r.Position != 2 {
		t.Fatalf("first: %+v, %v", r, err)
	}
	r, err := s.Append(t.Context(), reserve(nil))
	if err != nil || r.Refusal == nil || r.Refusal.Used != 60 || r.Position != 0 {
		t.Fatalf("refused without a word: %+v, %v", r, err)
	}
	r, err = s.Append(t.Context(), reserve(func(budget.Refusal) ([]Event, []budget.Delta) {
		return []Event{{Type: "request_refused", Version: 1, Data: []byte(`{}`)}}, nil
	}))
	if err != nil || r.Refusal == nil || r.Position != 3 || r.Version != 1 {
		t.Fatalf("refused with an event: %+v, %v", r, err)
	}
	counters, err := s.Counters(t.Context(), 0, []budget.Key{key, "org/none"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[budget.Key]budget.Counter{key: {Held: 60}, "org/none": {}}
	if diff := cmp.Diff(want, counters); diff != "" {
		t.Error(diff)
	}
}

func TestAppendAllIsAllOrNothing_C(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	mustAppend(t, s, "tenant/acme", 0, 1)
	group := func(second int64) []Append {
		return []Append{
			{Stream: "key/k1", Events: happened(1)},
			{Stream: "tenant/acme", Expected: second, Events: happened(1)},
			{Stream: "key/k1", Expected: 1, Events: happened(1)},
		}
	}
	_, err := s.AppendAll(t.Context(), group(5))
	if got, ok := errors.AsType[*ConflictError](err); !ok || got.Stream != "tenant/acme" {
		t.Fatalf("got %v, want a conflict on tenant/acme", err)
	}
	if got, err := s.ReadStream(t.Context(), "key/k1", 1, 10); err != nil || len(got) != 0 {
		t.Fatalf("half a group was written: %v, %v", got, err)
	}
	results, err := s.AppendAll(t.Context(), group(1))
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{{Position: 2, Version: 1}, {Position: 3, Version: 2}, {Position: 4, Version: 2}}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
	config, err := s.ReadConfig(t.Context(), 0, 1, 10)
	if err != nil || len(config) != 3 {
		t.Fatalf("configuration after 1: %v, %v", config, err)
	}
}
