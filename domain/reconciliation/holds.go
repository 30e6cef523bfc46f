package reconciliation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-gateway/sluice/domain/request"
)

// maxHolds bounds what a fold remembers: more attempts than this holding money at one
// place of the log is no log of ours.
const maxHolds = 1 << 20

// ErrTooManyHolds is a log in which attempts are not settled.
var ErrTooManyHolds = errors.New("reconciliation: too many unsettled attempts to follow")

// Holds follows the attempts that hold money. Its zero value has seen nothing.
type Holds struct {
	// open are the attempts of requests that have not ended, leaked those of requests
	// that have.
	open, leaked map[attempt]int64
	// of lists a request's open attempts.
	of map[string][]int
	// settled is how many attempts were settled.
	settled int64
}

type attempt struct {
	stream string
	number int
}

// HoldTypes are the events that Apply wants.
func HoldTypes() []string {
	return []string{"attempt_reserved", "attempt_settled", "request_finalized", "request_refused"}
}

// Apply folds one event of a request's stream.
func (h *Holds) Apply(stream string, e any) error {
	switch e := e.(type) {
	case request.AttemptReserved:
		if h.open == nil {
			h.open, h.leaked, h.of = map[attempt]int64{}, map[attempt]int64{}, map[string][]int{}
		}
		if len(h.open)+len(h.leaked) >= maxHolds {
			return ErrTooManyHolds
		}
		h.open[attempt{stream, e.Attempt}] = int64(e.Reserved)
		h.of[stream] = append(h.of[stream], e.Attempt)
	case request.AttemptSettled:
		h.settle(attempt{stream, e.Attempt})
	case request.RequestFinalized, request.RequestRefused:
		for _, number := range h.of[stream] {
			a := attempt{stream, number}
			h.leaked[a] = h.open[a]
			delete(h.open, a)
		}
		delete(h.of, stream)
	}
	return nil
}

func (h *Holds) settle(a attempt) {
	h.settled++
	delete(h.leaked, a)
	if _, held := h.open[a]; !held {
		return
	}
	delete(h.open, a)
	h.of[a.stream] = slices.DeleteFunc(h.of[a.stream], func(n int) bool { return n == a.number })
	if len(h.of[a.stream]) == 0 {
		delete(h.of, a.stream)
	}
}

// Finding is what was seen: an attempt that holds money after its request's end is drift,
// one whose request is open is counted.
func (h *Holds) Finding(position int64) Finding {
	f := Finding{Position: position, Compared: h.settled + int64(len(h.open)+len(h.leaked)), Open: int64(len(h.open))}
	for _, held := range h.open {
		f.OpenHeld += held
	}
	var drifts []Drift
	for a, held := range h.leaked {
		d := Amounts(fmt.Sprintf("%s attempt %d", a.stream, a.number), 0, held)
		d.Is = Unsettled
		drifts = append(drifts, d)
	}
	slices.SortFunc(drifts, func(a, b Drift) int { return cmp.Compare(a.Key, b.Key) })
	f.Add(drifts...)
	return f
}
