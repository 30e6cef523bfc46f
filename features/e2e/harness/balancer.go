package harness

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Balance is a plain TCP balancer in front of workers, one after the other, and
// returns its URL. It knows nothing of HTTP, readiness or keys.
func Balance(t testing.TB, workers ...*Worker) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var next atomic.Int64
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			worker := workers[next.Add(1)%int64(len(workers))]
			running.Go(func() { relay(client, strings.TrimPrefix(worker.URL, "http://")) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return "http://" + listener.Addr().String()
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
