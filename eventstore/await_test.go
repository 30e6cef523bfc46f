package eventstore

import (
	"context"
	"errors"
	"testing"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// A caller that leaves while its append is being written can still learn what became of
// it.
//
// Rules: E11, I5.
func TestWhatIsUnderWayCanBeAwaited_E11_I5(t *testing.T) {
	proxy := newProxy(t, pgtest.NewDatabase(t))
	s := openStore(t, Config{URL: proxy.url})
	mustAppend(t, s, newRequest(), 0, 1)
	release := proxy.holdAt("sluice_commit")
	left, leave := context.WithCancel(t.Context())
	stream := newRequest()
	unknown := make(chan error, 1)
	go func() {
		_, err := s.Append(left, Append{Stream: stream, Events: happened(2)})
		unknown <- err
	}()
	proxy.awaitHeld(t)
	leave()
	err := <-unknown
	if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	release()
	results, err := Await(t.Context(), err)
	if err != nil || len(results) != 1 || results[0].Version != 2 {
		t.Fatalf("%+v, %v", results, err)
	}
	if _, err := Await(t.Context(), ErrOutcomeUnknown); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("what nobody can know: %v", err)
	}
}

// A settlement that is written again, by whoever does not know that it was, changes
// nothing: not the log, not a counter, not a window.
//
// Rules: I5, E2, M16.
func TestASettlementThatIsRepeatedChangesNothing_I5_E2(t *testing.T) {
	database := pgtest.NewDatabase(t)
	s, other := openStore(t, Config{URL: database}), openStore(t, Config{URL: database})
	stream := newRequest()
	keys := []budget.Key{"org/acme/usd/month/2026-11", "org/acme/tokens/minute/trailing", "org/acme/tokens/held"}
	reserve := Append{Stream: stream, Events: happened(1), Deltas: []budget.Delta{
		{Key: keys[0], Held: 100}, {Key: keys[1], Held: 7000}, {Key: keys[2], Held: 7000},
	}}
	settle := Append{Stream: stream, Expected: 1, Events: happened(2), Priority: Settlement, Deltas: []budget.Delta{
		{Key: keys[0], Held: -100, Settled: 60}, {Key: keys[1], Held: -7000, Settled: 5000}, {Key: keys[2], Held: -7000},
	}}
	for _, a := range []Append{reserve, settle} {
		if _, err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	before, err := s.Counters(t.Context(), 0, keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []*Store{s, other, s} {
		conflict, is := errors.AsType[*ConflictError](errOf(again.Append(t.Context(), settle)))
		if !is || conflict.Actual != 3 {
			t.Fatalf("%+v", conflict)
		}
	}
	after, err := s.Counters(t.Context(), 0, keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if before[k] != after[k] || after[k].Held != 0 {
			t.Errorf("%s was %+v and is %+v", k, before[k], after[k])
		}
	}
	if head, err := s.Head(t.Context(), 0); err != nil || head.Position != 3 {
		t.Errorf("head %+v, %v", head, err)
	}
}

func errOf(_ Result, err error) error { return err }
