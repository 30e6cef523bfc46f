// Package reconciliation is the comparison of what is kept beside the log with the log
// itself, outside requests and with a time budget of its own (R7).
//
// A run makes its checks one after the other. Each says passed, drift or timed_out; one
// that did not come to its end is never taken for clean, and neither is a run that lacks
// one. What a run says are the events of one stream; its state is what they add up to,
// so that a run whose worker died is still there to be seen, as stalled.
package reconciliation
