package budget

import (
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Hold is what a reservation does to the counters that carry it.
func Hold(e request.AttemptReserved) []Delta {
	return append(each(e.Holds, e.Reserved, 0, len(e.Takes)), taken(e.Takes)...)
}

// Settle replaces a hold with what the attempt cost, on exactly the counters that
// were held: a budget that changed in between changes nothing for it (N14).
func Settle(e request.AttemptSettled) []Delta {
	return append(each(e.Holds, -e.Reserved, e.Charge, len(e.Takes)), taken(e.Takes)...)
}

func each(keys []string, held, settled money.NanoUSD, room int) []Delta {
	deltas := make([]Delta, len(keys), len(keys)+room)
	for i, k := range keys {
		deltas[i] = Delta{Key: Key(k), Held: int64(held), Settled: int64(settled)}
	}
	return deltas
}

func taken(takes []request.Take) []Delta {
	deltas := make([]Delta, len(takes))
	for i, t := range takes {
		deltas[i] = Delta{Key: Key(t.Key), Held: t.Held, Settled: t.Settled}
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
	case request.MeterHoldPlaced:
		return taken(e.Takes)
	case request.MeterHoldResolved:
		return taken(e.Takes)
	}
	return nil
}
