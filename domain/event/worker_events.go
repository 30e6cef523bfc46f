package event

import "github.com/sluice-gateway/sluice/domain/worker"

// workerEvents are the events of stream worker/<id>.
var workerEvents = []definition{
	define[worker.WorkerStarted]("worker_started"),
	define[worker.WorkerDrained]("worker_drained"),
}
