// Package domain is the root of the rules. Everything below it is pure: no clock,
// no socket, no SQL, no goroutine. Time, randomness and ids are arguments.
//
// Read walk for how a request is decided, request for what is said about it,
// failure for the table of failures, catalog for what may be served, budget and
// money for what it costs.
package domain
