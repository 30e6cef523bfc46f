package explain

import (
	"fmt"
	"time"

	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// Circuit says what the log knows of a circuit at a past moment: what had opened
// it, and when (H11). Events after the moment are not looked at.
func Circuit(history []eventstore.Recorded, at time.Time) string {
	text := ""
	for _, rec := range history {
		observed := projections.ObservedAt(rec)
		if observed.After(at) {
			break
		}
		e, err := event.Decode(rec.Type, rec.Version, rec.Data)
		if err != nil {
			continue // a transition that this release cannot read explains nothing
		}
		when := observed.UTC().Format(time.TimeOnly)
		switch e := e.(type) {
		case circuit.CircuitOpened:
			text = fmt.Sprintf("It had opened at %s after %s.", when, cause(e.Cause))
			if e.Trips > 1 {
				text = fmt.Sprintf("It had opened at %s, for the %d. time in a row, after %s.", when, e.Trips, cause(e.Cause))
			}
		case circuit.ThrottleWindowOpened:
			text = fmt.Sprintf("It had been throttled at %s (%s).", when, cause(e.Cause))
		case circuit.CircuitHalfOpened:
			text = fmt.Sprintf("Its one probe was under way since %s.", when)
		case circuit.CircuitClosed:
			text = ""
		}
	}
	return text
}

func cause(c circuit.Cause) string {
	if c.Answered() {
		return fmt.Sprintf("%s, status %d", c.Class, c.Status)
	}
	return string(c.Class)
}
