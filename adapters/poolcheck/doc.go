// Package poolcheck asks every deployment of a pool the same few synthetic requests and
// writes down how their answers are built (N24). It calls providers as the gateway does,
// through the same client and dialects, and never with anything of a customer's. Nothing
// starts it but an operator's command; what the answers have in common is judged by
// domain/equivalence.
package poolcheck
