package eventstore

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// Pages may begin and end inside a row of several events; every cut gives the same
// events.
//
// Rules: D17.
func TestReadsCutRowsAnywhere_D17(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	const stream = "tenant/acme"
	var version int64
	for _, n := range []int{3, 1, 4, 2} {
		version = mustAppend(t, s, stream, version, n).Version
	}
	for from := int64(0); from <= version; from++ {
		for limit := 1; limit <= 5; limit++ {
			all, err := s.ReadAll(t.Context(), 0, from, limit)
			if err != nil {
				t.Fatal(err)
			}
			config, err := s.ReadConfig(t.Context(), 0, from, limit)
			if err != nil {
				t.Fatal(err)
			}
			ofStream, err := s.ReadStream(t.Context(), stream, from+1, limit)
			if err != nil {
				t.Fatal(err)
			}
			want := int(min(int64(limit), version-from))
			for what, got := range map[string][]Recorded{"all": all, "config": config, "stream": ofStream} {
				if len(got) != want {
					t.Fatalf("%s after %d, %d at most: %d events", what, from, limit, len(got))
				}
				for i, e := range got {
					if at := from + int64(i) + 1; e.Position != at || e.StreamVersion != at {
						t.Fatalf("%s after %d: event %d at %d, version %d", what, from, i, e.Position, e.StreamVersion)
					}
				}
			}
		}
		for upTo := from; upTo <= version; upTo++ {
			next := from
			err := s.ReadRange(t.Context(), 0, from, upTo, func(r *Row) error {
				for raw, err := range r.All() {
					if err != nil {
						return err
					}
					if next++; raw.Position != next {
						t.Fatalf("range %d-%d: %d follows %d", from, upTo, raw.Position, next-1)
					}
				}
				return nil
			})
			if err != nil || next != upTo {
				t.Fatalf("range %d-%d ended at %d, %v", from, upTo, next, err)
			}
		}
	}
	if err := s.ReadRange(t.Context(), 0, 0, version+1, nil); err == nil {
		t.Error("a range beyond the head was read")
	}
}

// A subscriber that polls rarely is woken by another process's append.
func TestSubscriberIsWokenByAnotherProcess(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s, other := openStore(t, Config{URL: url}), openStore(t, Config{URL: url})
	mustAppend(t, other, newRequest(), 0, 1)
	enough := errors.New("enough")
	err := s.Subscribe(t.Context(), 0, 0, func(_ context.Context, events []Recorded) error {
		if events[0].Position == 3 {
			return enough
		}
		mustAppend(t, other, newRequest(), 0, 1)
		return nil
	}, SubscribeOptions{Poll: time.Hour})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// Notifications only shorten the wait: without any, polling finds the events.
//
// Rules: E3.
func TestSubscriberPollsWhatNobodyNotified_E3(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s, silent := openStore(t, Config{URL: url}), openStore(t, Config{URL: url})
	silent.nudge.mu.Lock()
	silent.nudge.told[0] = math.MaxInt64
	silent.nudge.mu.Unlock()
	mustAppend(t, silent, newRequest(), 0, 1)
	enough := errors.New("enough")
	err := s.Subscribe(t.Context(), 0, 0, func(_ context.Context, events []Recorded) error {
		if events[0].Position == 3 {
			return enough
		}
		mustAppend(t, silent, newRequest(), 0, 1)
		return nil
	}, SubscribeOptions{Poll: time.Millisecond})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// A position that is not there stops a subscriber; it never goes on behind it.
//
// Rules: E3.
func TestSubscriberStopsAtAGap_E3(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	for range 3 {
		mustAppend(t, s, newRequest(), 0, 1)
	}
	conn := connect(t, url)
	mustExec(t, conn, `set session_replication_role = replica`)
	mustExec(t, conn, `delete from log_events where position = 2`)
	err := s.Subscribe(t.Context(), 0, 0, func(_ context.Context, events []Recorded) error {
		t.Errorf("delivered %d events of a page with a gap", len(events))
		return nil
	}, SubscribeOptions{})
	if gap, ok := errors.AsType[*GapError](err); !ok || gap.Want != 2 || gap.Have != 3 {
		t.Errorf("got %v", err)
	}
}

// Shards are logs of their own: positions, order and chain.
func TestShardsAreSeparateLogs(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t), Shards: 2})
	for shard := range int16(2) {
		for i := range int64(3) {
			r, err := s.Append(t.Context(), Append{Shard: shard, Stream: newRequest(), Events: happened(1)})
			if err != nil || r.Position != i+1 {
				t.Fatalf("shard %d: %+v, %v", shard, r, err)
			}
		}
		if report, err := s.VerifyChain(t.Context(), shard, Head{}, nil); err != nil || report.Rows != 3 {
			t.Fatalf("shard %d: %+v, %v", shard, report, err)
		}
	}
	if _, err := s.Append(t.Context(), Append{Shard: 2, Stream: newRequest(), Events: happened(1)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a shard that is not there: %v", err)
	}
}

// What circuits said lately comes in the order of the log, the newest where there is
// more, and nothing else does.
//
// Rules: H11.
func TestRecentCircuits_H11(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	for i, stream := range []string{"circuit/route/a", "idempotency/acme/1", "circuit/credential/b", newRequest(), "circuit/route/a", "circuits/of/others"} {
		if _, err := s.Append(t.Context(), Append{Stream: stream, Expected: AnyVersion, Events: happened(i%2 + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(within time.Duration, limit int) (streams []string) {
		found, err := s.RecentCircuits(t.Context(), within, limit)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range found {
			if i > 0 && r.Position <= found[i-1].Position {
				t.Errorf("position %d behind %d", r.Position, found[i-1].Position)
			}
			streams = append(streams, r.Stream)
		}
		return streams
	}
	if got := read(time.Hour, 10); !slices.Equal(got, []string{"circuit/route/a", "circuit/credential/b", "circuit/route/a"}) {
		t.Errorf("%v", got)
	}
	if got := read(time.Hour, 2); !slices.Equal(got, []string{"circuit/credential/b", "circuit/route/a"}) {
		t.Errorf("the newest two are %v", got)
	}
	if got := read(-time.Hour, 10); len(got) != 0 {
		t.Errorf("older ones: %v", got)
	}
}
