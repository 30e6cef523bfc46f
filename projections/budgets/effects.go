package budgets

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
)

const (
	reserved     = "attempt_reserved"
	settled      = "attempt_settled"
	holdPlaced   = "meter_hold_placed"
	holdResolved = "meter_hold_resolved"
)

// moves reports whether an event of the type does anything to a counter.
func moves(typ string) bool {
	switch typ {
	case reserved, settled, holdPlaced, holdResolved:
		return true
	}
	return false
}

// errField is a field of a stored event that is not what the type says. The value
// is not repeated.
var errField = errors.New("is not what its type says")

// known is the newest version of each registered type.
var known = event.Types()

// Effects is what one stored event does to the budget counters: nothing, for most.
// A type or version this release cannot read is an *event.UnknownTypeError: money
// is never added up around it (E8).
//
// It is an eventstore.Effects; nothing of raw is kept.
func Effects(raw eventstore.Raw) ([]budget.Delta, error) {
	switch newest := known[string(raw.Type)]; {
	case newest == 0 || raw.TypeVersion < 1 || raw.TypeVersion > newest:
		return nil, &event.UnknownTypeError{Type: string(raw.Type), Version: raw.TypeVersion}
	case !moves(string(raw.Type)):
		return nil, nil
	case raw.TypeVersion < newest:
		return lifted(string(raw.Type), raw.TypeVersion, raw.Data)
	}
	return read(string(raw.Type) == settled, raw.Data)
}

var _ eventstore.Effects = Effects

// lifted goes the long way of an old version, through its upcasters.
func lifted(typ string, version int, data []byte) ([]budget.Delta, error) {
	e, err := event.Decode(typ, version, data)
	if err != nil {
		return nil, err
	}
	return budget.Effects(e), nil
}

// read picks the fields out of the text. gjson does not judge what it reads, but
// the log holds only valid JSON; the kinds and ranges are checked here.
func read(isSettled bool, data []byte) ([]budget.Delta, error) {
	var holds, takes gjson.Result
	var hold, charge int64
	var err error
	gjson.ParseBytes(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "holds":
			holds = value
		case "takes":
			takes = value
		case "reserved_nanousd":
			hold, err = amount(key.Str, value)
		case "charge_nanousd":
			charge, err = amount(key.Str, value)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	if isSettled {
		hold = -hold
	} else {
		charge = 0
	}
	deltas, err := each(holds, hold, charge)
	if err != nil {
		return nil, err
	}
	return taken(deltas, takes)
}

// taken adds what an event does to counters of other units.
func taken(deltas []budget.Delta, takes gjson.Result) ([]budget.Delta, error) {
	if !takes.Exists() || takes.Type == gjson.Null {
		return deltas, nil
	}
	if !takes.IsArray() {
		return nil, fmt.Errorf("takes %w", errField)
	}
	var err error
	takes.ForEach(func(_, take gjson.Result) bool {
		var d budget.Delta
		if d, err = deltaOf(take); err == nil {
			deltas = append(deltas, d)
		}
		return err == nil
	})
	return deltas, err
}

func deltaOf(take gjson.Result) (d budget.Delta, err error) {
	if !take.IsObject() {
		return d, fmt.Errorf("takes %w", errField)
	}
	take.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "key":
			if value.Type != gjson.String {
				err = fmt.Errorf("takes %w", errField)
			}
			d.Key = budget.Key(value.Str)
		case "held":
			d.Held, err = amount("takes", value)
		case "settled":
			d.Settled, err = amount("takes", value)
		}
		return err == nil
	})
	return d, err
}

func amount(name string, value gjson.Result) (int64, error) {
	// gjson would round what is not an integer and read a text as a number.
	n, err := strconv.ParseInt(value.Raw, 10, 64)
	if err != nil || value.Type != gjson.Number || n == math.MinInt64 {
		return 0, fmt.Errorf("%s %w", name, errField)
	}
	return n, nil
}

func each(holds gjson.Result, held, settled int64) ([]budget.Delta, error) {
	if !holds.Exists() || holds.Type == gjson.Null {
		return nil, nil
	}
	if !holds.IsArray() {
		return nil, fmt.Errorf("holds %w", errField)
	}
	// Most attempts hold one to three counters.
	deltas := make([]budget.Delta, 0, 4)
	var err error
	holds.ForEach(func(_, key gjson.Result) bool {
		if key.Type != gjson.String {
			err = fmt.Errorf("holds %w", errField)
			return false
		}
		deltas = append(deltas, budget.Delta{Key: budget.Key(key.Str), Held: held, Settled: settled})
		return true
	})
	return deltas, err
}
