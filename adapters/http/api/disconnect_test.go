package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/http/api"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// fixed is a catalog that does not change.
type fixed struct{ snapshot *catalog.Snapshot }

func (f fixed) Current() *catalog.Snapshot { return f.snapshot }

// serve puts a bench's gateway behind a real socket and returns its address and a
// key.
func serve(t *testing.T, b *gatewaytest.Bench, edits ...func(*api.Config)) (address, key string) {
	t.Helper()
	snapshot, key := b.SnapshotWithKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := api.Config{
		Catalog: fixed{snapshot}, Gateway: b, Tokens: b.Estimator, Stored: responses.NewStore(time.Now), Log: b.Log, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	for _, edit := range edits {
		edit(&config)
	}
	outer := api.New(config)
	server := edge.New(edge.Config{Listener: listener, OnError: outer.EdgeError})
	outer.Register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-done
	})
	return listener.Addr().String(), key
}

// TestNothingStaysAfterAThousandDisconnects_S7_S9 lets clients leave at random
// moments, in every phase: while they send, before the first byte, during a
// failover, mid-stream, at the end. Goroutines, upstream connections and budget
// holds return to where they were.
//
// Rules: S7, S9.
func TestNothingStaysAfterAThousandDisconnects_S7_S9(t *testing.T) {
	b := gatewaytest.New(t, "fake-503,delay:5ms+words:200+gap:1ms", "fake-delay:3ms+words:60+gap:1ms")
	b.Objects.Tenants[0].Budgets[0].LimitUSD = "1000000"
	address, key := serve(t, b)
	leave(t, address, key, 20, rand.New(rand.NewPCG(1, 1))) // whatever is made once is made now
	settled(t, b)
	before := runtime.NumGoroutine()

	const clients, each = 20, 50
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() { leave(t, address, key, each, rand.New(rand.NewPCG(uint64(c), 7))) })
	}
	wg.Wait()
	settled(t, b)
	eventually(t, func() error {
		// The edge's idle workers and the client pool's connections come and go; twenty
		// clients at once may leave a few of each behind for a while.
		if now := runtime.NumGoroutine(); now > before+2*clients {
			return fmt.Errorf("%d goroutines, %d before", now, before)
		}
		return nil
	})
	b.Log.NothingHeld(t)
	if open := b.Log.Open(t); open != 0 {
		t.Errorf("%d requests were never closed", open)
	}
}

// leave makes n requests and goes away from each after a random number of bytes or
// moment.
func leave(t *testing.T, address, key string, n int, r *rand.Rand) {
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		body := gatewaytest.Stream
		if r.IntN(4) == 0 {
			body = gatewaytest.Whole
		}
		request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: sluice\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
		cut := len(request)
		if r.IntN(5) == 0 {
			cut = r.IntN(len(request))
		}
		_, _ = io.WriteString(conn, request[:cut])
		// Reading so many bytes is the moment of leaving: nothing waits for a clock.
		_ = conn.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(80)) * time.Millisecond))
		_, _ = io.CopyN(io.Discard, conn, int64(r.IntN(20_000)))
		_ = conn.Close()
	}
}

// settled waits until the provider serves nobody any more and every request in the
// log is closed.
func settled(t *testing.T, b *gatewaytest.Bench) {
	t.Helper()
	eventually(t, func() error {
		if n := b.Provider.Stats().OpenCalls; n != 0 {
			return fmt.Errorf("the provider still serves %d calls", n)
		}
		if n := b.Log.Open(t); n != 0 {
			return fmt.Errorf("%d requests are open", n)
		}
		return nil
	})
}

// eventually polls for a state that other goroutines bring about.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-ticker.C
	}
}
