package event

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/failure"
)

var (
	circuitName = circuit.Name{
		Kind: circuit.Route, Key: "0123456789abcdef01234567", Provider: "anthropic-main", Model: "fable-5",
		Deployment: "fable-5@anthropic", Credential: "k1", Masked: true,
	}
	accountName = circuit.Name{
		Kind: circuit.Credential, Key: "0123456789abcdef01234567", Provider: "anthropic-main", Model: "fable-5",
		Deployment: "fable-5@anthropic", Credential: "k1", Masked: true,
	}
	circuitCause = circuit.Cause{Class: failure.ServerError, Status: 503}
	circuitUntil = time.Date(2026, 11, 29, 10, 0, 30, 123_000, time.UTC)
)

var circuitSamples = []Event{
	circuit.CircuitOpened{Name: circuitName, Cause: circuitCause, Until: circuitUntil, Trips: 2},
	circuit.CircuitHalfOpened{Name: circuitName, Cause: circuitCause, Until: circuitUntil},
	circuit.CircuitClosed{Name: circuitName, Cause: circuitCause},
	circuit.ThrottleWindowOpened{Name: circuitName, Cause: circuit.Cause{Class: failure.Throttled, Status: 429}, Until: circuitUntil},
	circuit.AccountExhausted{
		Name: accountName, Cause: circuit.Cause{Class: failure.ProviderQuota, Status: 402},
		SecretID: "0193e8f0-0000-7000-8000-000000000002", Until: circuitUntil,
	},
	circuit.AccountFunded{Name: accountName},
}
