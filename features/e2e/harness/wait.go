package harness

import (
	"testing"
	"time"
)

// patience bounds every wait for something that has to happen, so that a test
// that waits in vain says for what.
var patience = 45 * time.Second

// BePatient makes every wait of a test, and every command, as many times as long: for
// one whose size somebody chose. It is not for tests that run beside others.
func BePatient(t testing.TB, times int) {
	t.Helper()
	wait, command := patience, commandPatience
	t.Cleanup(func() { patience, commandPatience = wait, command })
	patience *= time.Duration(times)
	commandPatience *= time.Duration(times)
}

const (
	// askEvery is how often another process is asked whether it has happened.
	askEvery = 10 * time.Millisecond
)

// Eventually asks until it holds: for what another process brings about without
// telling.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !within(patience, holds) {
		t.Fatalf("never: %s", what)
	}
}

// within says whether it came to hold in time.
func within(limit time.Duration, holds func() bool) bool {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	deadline := time.After(limit)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			return false
		}
	}
	return true
}
