// Package trail shows one request as the list of everything that happened to it
// (X1), from the events of its stream alone: pure, no table. It works on a request
// that is still running, event by event.
//
// trail.go builds the entries, mask.go hides what a caller must not see,
// waterfall.go draws them in a terminal.
package trail
