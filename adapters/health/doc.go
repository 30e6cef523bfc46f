// Package health keeps a worker's circuits in memory and answers the walk's
// question whether a route may be called (section H). The rules are
// domain/circuit's; this package finds the circuits of a route, guards them, and
// hands their transitions to the log.
//
// # How a claim is answered
//
// A route by one key is a lane: four circuits (the route by this key, the route by
// any, its endpoint, its key), found with one look into a sharded map. While all
// four are free that is four atomic loads and no lock. Otherwise they are locked
// in a fixed order, all are asked, and only when all agree is a probe taken.
//
// # What survives a new catalog
//
// Lanes are found by circuit.Identity, so a new snapshot needs no work here: a
// route that is the same has its circuits, another begins closed, and what nobody
// asks for any more is evicted.
package health
