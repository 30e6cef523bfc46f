package bus

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *Bus {
	t.Helper()
	b, err := Open("memory")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every subscriber gets every nudge, in order.
//
// Rules: O4.
func TestNudgesArrive_O4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		var got [2][]Nudge
		for i := range got {
			if err := b.Subscribe(t.Context(), func(n Nudge) { got[i] = append(got[i], n) }); err != nil {
				t.Fatal(err)
			}
		}
		sent := []Nudge{{0, 1}, {3, 1 << 40}, {0, 2}}
		for _, n := range sent {
			if err := b.Publish(n); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if len(got[i]) != 3 || got[i][0] != sent[0] || got[i][1] != sent[1] || got[i][2] != sent[2] {
				t.Errorf("subscriber %d got %v", i, got[i])
			}
		}
	})
}

// A subscription ends with its context and takes nothing with it.
func TestSubscriptionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		var got atomic.Int64
		if err := b.Subscribe(ctx, func(Nudge) { got.Add(1) }); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if err := b.Publish(Nudge{0, 1}); err != nil {
			t.Errorf("publishing to nobody: %v", err)
		}
		synctest.Wait()
		if got.Load() != 0 {
			t.Error("a subscription that had ended was nudged")
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Publish(Nudge{0, 2}); err == nil {
			t.Error("a closed bus took a nudge")
		}
	})
}

// What is no nudge is dropped, and the next one arrives.
func TestGarbageIsDropped(t *testing.T) {
	for _, payload := range []string{"", ":", "1", "1:", ":1", "a:1", "1:a", "-1:1", "1:-1", "70000:1", "0:9223372036854775808"} {
		if n, ok := parse([]byte(payload)); ok {
			t.Errorf("%q is %v", payload, n)
		}
	}
}

// The address of another bus is refused without repeating what may be a secret.
func TestUnknownAddressIsRefused(t *testing.T) {
	_, err := Open("nats://user:secret@host:4222")
	if _, ok := errors.AsType[*AddressError](err); !ok || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// source is a log that grows when the test says so.
type source struct{ positions chan int64 }

func (s source) Wait(ctx context.Context, _ int16, _ int64) (int64, error) {
	select {
	case p := <-s.positions:
		if p < 0 {
			return 0, errors.New("out of order")
		}
		return p, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// The feed announces what the source tells, goes on after a failure, and ends with
// its context.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		nudges := make(chan Nudge, 10)
		if err := b.Subscribe(t.Context(), func(n Nudge) { nudges <- n }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := source{make(chan int64)}
		ended := make(chan struct{})
		go func() {
			Feed(ctx, s, b, slog.New(slog.DiscardHandler))
			close(ended)
		}()
		s.positions <- 7
		s.positions <- -1
		s.positions <- 9
		if first, second := <-nudges, <-nudges; first != (Nudge{0, 7}) || second != (Nudge{0, 9}) {
			t.Errorf("got %v and %v", first, second)
		}
		cancel()
		<-ended
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
