package request

import (
	"errors"
	"fmt"

	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// Life is what the events of one request add up to. It is also their judge: an
// event that cannot follow the ones before it is refused with an error, which is
// how the invariants of the log are checked on every stream (events.md, 1 to 5).
type Life struct {
	Phase    Phase
	Admitted *RequestAdmitted
	Refused  *RequestRefused
	Final    *RequestFinalized
	Attempts []AttemptLife
	// Committed is the attempt whose output the caller got; 0 before any.
	Committed int
	Amounts   Amounts
}

// Phase is where a request is in its life.
type Phase uint8

// The phases, in order.
const (
	Unborn Phase = iota
	Open
	Closed
)

// AttemptLife is one attempt of a Life.
type AttemptLife struct {
	Reserved AttemptReserved
	Settled  *AttemptSettled
	// Held is what is still held for it.
	Held money.NanoUSD
	// MeterHold is set while tokens are held because nobody knows its usage (D2).
	MeterHold *MeterHoldPlaced
}

// ErrImpossible is an event that cannot stand where it stands.
var ErrImpossible = errors.New("impossible in the life of a request")

func impossible(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrImpossible, fmt.Sprintf(format, args...))
}

// Apply folds one event.
func (l *Life) Apply(e any) error {
	if err := l.mayFollow(e); err != nil {
		return err
	}
	switch e := e.(type) {
	case RequestAdmitted:
		l.Phase, l.Admitted = Open, &e
	case RequestRefused:
		l.Phase, l.Refused = Closed, &e
	case AttemptReserved:
		return l.reserve(e)
	case AttemptCommitted:
		return l.commit(e)
	case AttemptSettled:
		return l.settle(e)
	case MeterHoldPlaced:
		return l.holdMeter(e)
	case MeterHoldResolved:
		l.Attempts[e.Attempt-1].MeterHold = nil
	case RequestFinalized:
		return l.finalize(e)
	}
	return nil
}

// mayFollow checks what holds for every event: an opening comes first and once,
// and after the end only a meter hold may still be resolved.
func (l *Life) mayFollow(e any) error {
	switch e := e.(type) {
	case RequestAdmitted, RequestRefused:
		if l.Phase != Unborn {
			return impossible("%T is not the first event", e)
		}
		return nil
	case MeterHoldResolved:
		if e.Attempt < 1 || e.Attempt > len(l.Attempts) || l.Attempts[e.Attempt-1].MeterHold == nil {
			return impossible("a meter hold of attempt %d resolved, but there is none", e.Attempt)
		}
		return nil
	}
	switch l.Phase {
	case Unborn:
		return impossible("%T before the request was admitted", e)
	case Closed:
		return impossible("%T after the request was closed", e)
	}
	return nil
}

func (l *Life) reserve(e AttemptReserved) error {
	switch {
	case l.Committed != 0:
		return impossible("attempt %d reserved after attempt %d had committed", e.Attempt, l.Committed)
	case e.Attempt != len(l.Attempts)+1:
		return impossible("attempt %d follows attempt %d", e.Attempt, len(l.Attempts))
	case l.Admitted.MaxAttempts > 0 && e.Attempt > l.Admitted.MaxAttempts:
		return impossible("attempt %d of at most %d", e.Attempt, l.Admitted.MaxAttempts)
	case e.Reserved < 0:
		return impossible("attempt %d holds %d", e.Attempt, e.Reserved)
	}
	l.Attempts = append(l.Attempts, AttemptLife{Reserved: e, Held: e.Reserved})
	return nil
}

func (l *Life) commit(e AttemptCommitted) error {
	if l.Committed != 0 {
		return impossible("attempt %d committed after attempt %d", e.Attempt, l.Committed)
	}
	if e.Attempt != len(l.Attempts) {
		return impossible("attempt %d committed, but the running one is %d", e.Attempt, len(l.Attempts))
	}
	l.Committed = e.Attempt
	return nil
}

func (l *Life) settle(e AttemptSettled) error {
	if e.Attempt < 1 || e.Attempt > len(l.Attempts) {
		return impossible("attempt %d settled, but nobody reserved it", e.Attempt)
	}
	a := &l.Attempts[e.Attempt-1]
	if a.Settled != nil {
		return impossible("attempt %d settled twice", e.Attempt)
	}
	if e.Reserved != a.Reserved.Reserved {
		return impossible("attempt %d releases %d of the %d it held", e.Attempt, e.Reserved, a.Reserved.Reserved)
	}
	a.Settled, a.Held = &e, 0
	l.Amounts = l.Amounts.Add(e.Amounts)
	return nil
}

func (l *Life) holdMeter(e MeterHoldPlaced) error {
	if e.Attempt < 1 || e.Attempt > len(l.Attempts) || l.Attempts[e.Attempt-1].MeterHold != nil {
		return impossible("a meter hold for attempt %d", e.Attempt)
	}
	if s := l.Attempts[e.Attempt-1].Settled; s == nil || s.Basis != usage.BasisUnknown {
		return impossible("a meter hold for attempt %d, whose usage is not unknown", e.Attempt)
	}
	l.Attempts[e.Attempt-1].MeterHold = &e
	return nil
}

func (l *Life) finalize(e RequestFinalized) error {
	for i := range l.Attempts {
		if l.Attempts[i].Settled == nil {
			return impossible("finalized while attempt %d still holds %d", i+1, l.Attempts[i].Held)
		}
	}
	if e.Attempts != len(l.Attempts) {
		return impossible("finalized with %d attempts of %d", e.Attempts, len(l.Attempts))
	}
	l.Phase, l.Final = Closed, &e
	return nil
}
