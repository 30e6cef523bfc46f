package webhooks

import (
	"testing"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// Main also fails the run if a goroutine is left behind.
func TestMain(m *testing.M) { pgtest.Main(m) }
