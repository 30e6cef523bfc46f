package event

import "github.com/sluice-gateway/sluice/domain/circuit"

// circuitEvents are the events of stream circuit/<kind>/<key>.
var circuitEvents = []definition{
	define[circuit.CircuitOpened]("circuit_opened"),
	define[circuit.CircuitHalfOpened]("circuit_half_opened"),
	define[circuit.CircuitClosed]("circuit_closed"),
	define[circuit.ThrottleWindowOpened]("throttle_window_opened"),
	define[circuit.AccountExhausted]("account_exhausted"),
	define[circuit.AccountFunded]("account_funded"),
}
