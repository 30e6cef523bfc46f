// Package requests is the searchable list of requests: one row each, there from
// admission on (X2).
//
// fold.go is what a request's events add up to, pure; project.go writes it,
// search.go reads it. A single request can also be folded from its own stream,
// which is ahead of the table by what the projection lags.
package requests
