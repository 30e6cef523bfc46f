package budget

import (
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Hold is what a reservation does to the counters that carry it.
func Hold(e request.AttemptReserved) []Delta {
	return each(e.Holds, e.Reserved, 0)
}

// Settle replaces a hold with what the attempt cost, on exactly the counters that
// were held: a budget that changed in between changes nothing for it (N14).
func Settle(e request.AttemptSettled) []Delta {
	return each(e.Holds, -e.Reserved, e.Charge)
}

func each(keys []string, held, settled money.NanoUSD) []Delta {
	deltas := make([]Delta, len(keys))
	for i, k := range keys {
		deltas[i] = Delta{Key: Key(k), Held: int64(held), Settled: int64(settled)}
	}
	return deltas
}

// Effects is what one event does to the budget counters; nothing, for most.
func Effects(e any) []Delta {
	switch e := e.(type) {
	case request.AttemptReserved:
		return Hold(e)
	case request.AttemptSettled:
		return Settle(e)
	}
	return nil
}
