package event

import "github.com/sluice-gateway/sluice/domain/idempotency"

// idempotencyEvents are the events of stream idempotency/<tenant>/<hash>.
var idempotencyEvents = []definition{
	define[idempotency.KeyClaimed]("key_claimed"),
	define[idempotency.KeyCompleted]("key_completed"),
	define[idempotency.KeyAbandoned]("key_abandoned"),
	define[idempotency.KeyReleased]("key_released"),
}
