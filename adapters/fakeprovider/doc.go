// Package fakeprovider is a model provider that does what it is told: it
// answers like a real one, or fails in one of the ways real ones fail (O9).
//
// What a call gets is its outcome, written in a small grammar (see [Help]):
//
//	outcome  = part { "+" part }       "ok", "429:2", "tool+cut:3:rst+crlf"
//	sequence = outcome { "," outcome } "500,500,ok": one outcome a call, the last one stays
//
// An outcome is chosen by the model name ("fake-" and a sequence) or by a
// [Script] that names models and keys. Every call that arrived is written to
// a bounded ledger, so that a drill can compare what the provider saw with
// what the gateway says it did (O10).
//
// The package is split along what varies. A fault is an entry of one table
// and changes a plan; the plan says what happens on the wire in words that no
// dialect owns; a dialect (one file each) spells answers, events and errors.
package fakeprovider
