package main

import (
	"context"
	"os"
	"time"

	"github.com/sluice-gateway/sluice/adapters/bus"
	"github.com/sluice-gateway/sluice/projections"
)

// catalogPause is the least time between two looks at the configuration that news
// bring about. The news say that something was committed, not what: without the
// pause every request would make every worker ask for configuration.
const catalogPause = 250 * time.Millisecond

// openBus is the bus that SLUICE_BUS names.
func openBus() (*bus.Bus, error) { return bus.Open(os.Getenv("SLUICE_BUS")) }

// news lets commits wake what follows the log. Nothing depends on it but latency:
// the catalog and the projections look by themselves as well (O4).
type news struct {
	runner *projections.Runner
	// heard holds one commit that the catalog has not been told of; catalog is what
	// live.Live waits on.
	heard, catalog chan struct{}
}

func newNews(runner *projections.Runner) *news {
	return &news{runner: runner, heard: make(chan struct{}, 1), catalog: make(chan struct{}, 1)}
}

// hear takes a nudge from the bus. It never blocks.
func (n *news) hear(nudge bus.Nudge) {
	n.runner.Nudge(nudge.Shard, nudge.Position)
	wake(n.heard)
}

// run passes the news on to the catalog, the last one always, until ctx ends.
func (n *news) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.heard:
		}
		wake(n.catalog)
		select {
		case <-ctx.Done():
			return
		case <-time.After(catalogPause):
		}
	}
}

// wake wakes whoever waits; a signal that waits already says the same.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
