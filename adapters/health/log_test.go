package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/eventstore"
)

// memoryLog keeps what is appended; fail says how often it is away first.
type memoryLog struct {
	mu       sync.Mutex
	fail     int
	err      error
	recorded []eventstore.Recorded
}

func (l *memoryLog) Append(_ context.Context, a eventstore.Append) (eventstore.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail > 0 {
		l.fail--
		return eventstore.Result{}, l.err
	}
	for _, e := range a.Events {
		l.recorded = append(l.recorded, eventstore.Recorded{Event: e, Stream: a.Stream, Meta: a.Meta})
	}
	return eventstore.Result{}, nil
}

func (l *memoryLog) types() (types []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.recorded {
		types = append(types, e.Type)
	}
	return types
}

// TestTransitionsAreWritten_H9: every transition, once, in order, in the circuit's
// stream, with its cause, also when the log is away for a while.
//
// Rules: H9.
func TestTransitionsAreWritten_H9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{fail: 3, err: eventstore.ErrUnavailable} // for three seconds
		r := New(Config{Secrets: held{}, Log: log, Worker: "w1"})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()

		a := rung("d", "p", "https://a")
		r.Observe(a, "k1", "acme/1", down, at(0))
		r.Observe(a, "k1", "acme/1", down, at(1))
		r.Claim(a, "k1", walk.Ordinary, at(31))
		r.Observe(a, "k1", "acme/1", nil, at(32))
		time.Sleep(2 * retryAfter)
		r.Observe(a, "k1", "acme/1", throttled(9*time.Second), at(33))
		stop()
		<-done

		want := []string{"circuit_opened", "circuit_half_opened", "circuit_closed", "throttle_window_opened", "throttle_window_opened"}
		if got := log.types(); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("%v, want %v", got, want)
		}
		first := log.recorded[0]
		if !strings.HasPrefix(first.Stream, "circuit/route/") || first.Meta.Worker != "w1" || !first.At.Equal(at(1)) {
			t.Errorf("%+v", first)
		}
		e, err := event.Decode(first.Type, first.Version, first.Data)
		if err != nil {
			t.Fatal(err)
		}
		if o := e.(circuit.CircuitOpened); o.Cause != (circuit.Cause{Class: failure.ServerError, Status: 503}) || !o.Until.Equal(at(31)) || o.Provider != "p" {
			t.Errorf("%+v", o)
		}
	})
}

// TestFullQueueKeepsTheState: a log that is away never keeps a route from opening.
func TestFullQueueKeepsTheState(t *testing.T) {
	r := newRegistry()
	for i := range maxTransitions + 10 {
		r.Observe(rung(fmt.Sprint("d", i), "p", "https://a"), "k1", "acme/1", gone, at(0))
	}
	if got := r.Unwritten(); got != 10 {
		t.Errorf("%d counted as unwritten, want 10", got)
	}
	says(t, r.Claim(rung(fmt.Sprint("d", maxTransitions+9), "p", "https://a"), "k1", walk.Ordinary, at(1)), request.SkipBreakerOpen, circuit.Route)
}

// TestRefusedByTheLog: what can never be written is counted and does not hold up
// what is behind it.
func TestRefusedByTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{fail: 1, err: fmt.Errorf("no: %w", eventstore.ErrInvalid)}
		r := New(Config{Secrets: held{}, Log: log})
		ctx, stop := context.WithCancel(t.Context())
		r.Observe(rung("d1", "p", "https://a"), "k1", "acme/1", gone, at(0))
		r.Observe(rung("d2", "p", "https://a"), "k1", "acme/1", gone, at(0))
		stop()
		r.Run(ctx)
		if got := log.types(); len(got) != 1 || r.Unwritten() != 1 {
			t.Errorf("wrote %v, %d unwritten", got, r.Unwritten())
		}
		log.fail, log.err = 1000, errors.New("away")
		r.Observe(rung("d3", "p", "https://a"), "k1", "acme/1", gone, at(0))
		r.Run(ctx)
		if got := r.Unwritten(); got != 2 {
			t.Errorf("%d unwritten after a flush against a log that is away", got)
		}
	})
}

// TestRestore_H11: a restart forgets no open window and remembers none that has
// ended.
//
// Rules: H11.
func TestRestore_H11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		before := New(Config{Secrets: held{}, Log: log, Worker: "w1"})
		a, b := rung("a", "p", "https://a"), rung("b", "p", "https://a")
		before.Observe(a, "k1", "acme/1", gone, at(0))
		before.Observe(b, "k1", "acme/1", gone, at(20))
		before.Observe(b, "k2", "acme/1", throttled(90*time.Second), at(20))
		ctx, stop := context.WithCancel(t.Context())
		stop()
		before.Run(ctx)

		after := newRegistry()
		after.Restore(append(log.recorded, eventstore.Recorded{Event: eventstore.Event{Type: "of_a_later_release", Version: 1, Data: []byte("{}")}}), at(40))
		if v := after.Claim(a, "k1", walk.Ordinary, at(40)); v.Skip != "" {
			t.Errorf("a window that had ended: %+v", v)
		}
		v := after.Claim(b, "k3", walk.Ordinary, at(40))
		says(t, v, request.SkipBreakerOpen, circuit.Route)
		if !v.Until.Equal(at(50)) {
			t.Errorf("until %v", v.Until)
		}
		if v := after.Claim(b, "k3", walk.Ordinary, at(50)); !v.Probe {
			t.Errorf("no probe after the window: %+v", v)
		}
		after.Observe(b, "k3", "acme/1", nil, at(51))
		says(t, after.Claim(b, "k2", walk.Ordinary, at(52)), request.SkipThrottleWindow, circuit.Route)
		if got := after.Credentials(b.Provider)[1].ParkedUntil; !got.Equal(at(110)) {
			t.Errorf("parked until %v", got)
		}
	})
}
