//go:build race

package sim_test

func init() {
	// The race detector makes a walk some ten times slower and has little to find in
	// a machine without goroutines: the whole million runs without it.
	millionRequests = 50_000
}
