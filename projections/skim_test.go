package projections_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// store is the real log with these appends, in their order.
func store(t *testing.T, url string, streams ...[]eventstore.Recorded) *eventstore.Store {
	t.Helper()
	s, err := eventstore.Open(t.Context(), eventstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	for _, stream := range streams {
		a := eventstore.Append{Stream: stream[0].Stream, Meta: eventstore.Meta{Worker: "w1"}}
		for _, rec := range stream {
			a.Events = append(a.Events, rec.Event)
		}
		if _, err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A rebuild passes over what its projection does not want without decoding it, and is
// given the rest as a page of the log has it.
//
// Rules: E4.
func TestARebuildIsGivenWhatThePagesHold_E4(t *testing.T) {
	url, pool := database(t, "tally")
	log := store(t, url, life(0), life(1), life(2))
	var given []eventstore.Recorded
	counting := &tally{name: "tally", after: func(batch []eventstore.Recorded) { given = append(given, batch...) }}
	if err := projections.NewRebuilder(pool, log).Rebuild(t.Context(), counting, nil); err != nil {
		t.Fatal(err)
	}
	want, err := log.ReadAll(t.Context(), 0, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(rec eventstore.Recorded) bool { return rec.Type == "route_skipped" })
	for i := range given {
		ahead := given[i].Decoded
		given[i].Decoded = nil
		if e, err := projections.Decode(given[i]); err != nil || !reflect.DeepEqual(e, ahead) {
			t.Errorf("decoded ahead: %+v, not %+v, %v", ahead, e, err)
		}
	}
	if len(given) != 6 || !reflect.DeepEqual(given, want) {
		t.Errorf("given %+v\nwant %+v", given, want)
	}
}

// A rebuild of money stops in front of an event that nobody can read, with everything
// before it folded; the others pass over it.
//
// Rules: E8, C15.
func TestARebuildOfMoneyStopsAtTheUnknown_E8_C15(t *testing.T) {
	unknown := life(1)
	unknown[1].Type = "promotion_spent_twice"
	for _, money := range []bool{true, false} {
		url, pool := database(t, "tally")
		log := store(t, url, life(0), unknown, life(2))
		err := projections.NewRebuilder(pool, log).Rebuild(t.Context(), &tally{name: "tally", money: money}, nil)
		stop, stopped := errors.AsType[*projections.EventError](err)
		_, isUnknown := errors.AsType[*event.UnknownTypeError](err)
		if !money {
			if err != nil || len(positions(t, pool, "tally")) != 6 {
				t.Errorf("others: %v", err)
			}
			continue
		}
		if !stopped || !isUnknown || stop.Position != 5 || stop.Type != "promotion_spent_twice" {
			t.Errorf("money: %v", err)
		}
		if got := positions(t, projectiontest.OpenPool(t, url), "tally_rebuild.tally"); !slices.Equal(got, []int64{1, 3, 4}) {
			t.Errorf("before it: %v", got)
		}
	}
}
