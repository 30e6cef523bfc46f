// Package pgserver finds a PostgreSQL for those who have none: the tests and
// the command `sluice dev` (O8). Production never uses it; `sluice serve` is
// given an address.
//
// [Find] tries, in this order:
//
//  1. an address from the environment; a bad one fails, because a developer
//     who names a server and silently gets another one loses an afternoon;
//  2. the PostgreSQL programs on this machine, as a private cluster with its
//     own data directory and a unix socket only its owner can open;
//  3. Docker;
//  4. PostgreSQL programs downloaded into the user's cache directory.
//
// "Not there" moves on to the next choice; "there but broken" is an error.
// Treating the second as the first is how a failed image pull comes to be
// reported as "Docker is not installed". When nothing is there, the error is
// one message that says how to get a PostgreSQL.
//
// The package runs on Linux, macOS and the other unixes.
package pgserver
