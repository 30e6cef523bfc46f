package event

import "github.com/sluice-gateway/sluice/domain/worker"

var workerSamples = []Event{
	worker.WorkerStarted{Commit: "acc5b5c", Build: "v1.0.0", SchemaVersion: 10, MigrationsDigest: "sha256:00ff"},
	worker.WorkerDrained{},
}
