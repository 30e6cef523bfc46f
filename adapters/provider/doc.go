// Package provider calls providers over HTTP. One Do is one attempt: it sends one
// request, never follows a redirect, never retries, and ends in exactly one class
// of failure or in an answer.
package provider
