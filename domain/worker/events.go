// Package worker says what a worker writes about itself: the events of stream
// worker/<id>. Together with the worker id in every event's envelope they prove
// what ran when a decision was made (O11).
package worker

// WorkerStarted is a worker that is about to serve. Stream worker/<id>.
type WorkerStarted struct {
	// Commit and Build identify the binary.
	Commit string `json:"commit"`
	Build  string `json:"build"`
	// SchemaVersion and MigrationsDigest are what the database had when the worker
	// checked it against its own.
	SchemaVersion    int64  `json:"schema_version"`
	MigrationsDigest string `json:"migrations_digest"`
}

// WorkerDrained is a worker that ended well: every request it had admitted is
// settled. A worker without it was killed (E11).
type WorkerDrained struct{}

// Stream is the stream of one worker.
func Stream(id string) string { return "worker/" + id }
