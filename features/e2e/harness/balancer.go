package harness

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Balancer is a plain TCP balancer in front of workers, one after the other. It
// knows nothing of HTTP, readiness or keys.
type Balancer struct {
	// URL is where it listens.
	URL string

	workers atomic.Pointer[[]*Worker]
	next    atomic.Int64
	running sync.WaitGroup
}

// Balance starts a balancer in front of workers; it ends with the test.
func Balance(t testing.TB, workers ...*Worker) *Balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &Balancer{URL: "http://" + listener.Addr().String()}
	b.Use(workers...)
	b.running.Go(func() { b.accept(listener) })
	t.Cleanup(func() { _ = listener.Close(); b.running.Wait() })
	return b
}

// Use sends what comes from now on to these workers.
func (b *Balancer) Use(workers ...*Worker) {
	workers = slices.Clone(workers) // the caller's own may change
	b.workers.Store(&workers)
}

func (b *Balancer) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed
		}
		workers := *b.workers.Load()
		worker := workers[b.next.Add(1)%int64(len(workers))]
		b.running.Go(func() { relay(client, strings.TrimPrefix(worker.URL, "http://")) })
	}
}

// relay copies both ways until either side ends.
func relay(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	worker, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(worker, client)
		_ = worker.Close()
	})
	_, _ = io.Copy(client, worker)
	_ = client.Close()
	up.Wait()
}
