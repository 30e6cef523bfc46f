// Package dialect is the seam between a caller's bytes and a provider's bytes.
// An Inbound reads what callers send and writes what they get; an Outbound writes
// what providers get and reads what they send. Between the two is package neutral.
// Each dialect is a package of its own below this one.
package dialect
