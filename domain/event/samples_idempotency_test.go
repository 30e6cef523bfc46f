package event

import "github.com/sluice-gateway/sluice/domain/idempotency"

var idempotencySamples = []Event{
	idempotency.KeyClaimed{Request: "0193748e-9a4b-7c3d-8e2f-1a2b3c4d5e6f", Body: "9f86d081884c7d65"},
	idempotency.KeyCompleted{Request: "0193748e-9a4b-7c3d-8e2f-1a2b3c4d5e6f"},
	idempotency.KeyAbandoned{Request: "0193748e-9a4b-7c3d-8e2f-1a2b3c4d5e6f", Code: "upstream_exhausted"},
	idempotency.KeyReleased{Request: "0193748e-9a4b-7c3d-8e2f-1a2b3c4d5e6f"},
}
