package health

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// TestOneProbeAmongMany_H1: of any number of claims at the same moment exactly one
// is the probe.
//
// Rules: H1.
func TestOneProbeAmongMany_H1(t *testing.T) {
	r := newRegistry()
	for round := range 50 {
		a := rung(fmt.Sprint("d", round), "p", "https://a")
		r.Observe(a, "k1", "acme/1", gone, at(0))
		verdicts := make(chan walk.Verdict, 24)
		var all sync.WaitGroup
		for i := range cap(verdicts) {
			all.Go(func() {
				key := []string{"k1", "k2", "k3"}[i%3]
				verdicts <- r.Claim(a, key, walk.Ordinary, at(31))
			})
		}
		all.Wait()
		close(verdicts)
		passed := 0
		for v := range verdicts {
			if v.Skip == "" {
				passed++
			}
		}
		if passed != 1 {
			t.Fatalf("round %d: %d claims passed", round, passed)
		}
	}
}

// TestConcurrentUse is for the race detector: everything at once, on shared and
// separate circuits, with the log running.
func TestConcurrentUse(t *testing.T) {
	r := New(Config{Secrets: held{}, Log: &memoryLog{}})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	var users sync.WaitGroup
	for u := range 8 {
		users.Go(func() {
			outcomes := []*failure.Failure{nil, down, refused, badKey, gone, throttled(time.Second), malformed}
			for i := range 300 {
				a := rung(fmt.Sprint("d", i%5), fmt.Sprint("p", i%3), "https://a")
				now := at(float64(i))
				r.Credentials(a.Provider)
				if v := r.Claim(a, "k1", walk.Pass(i%3), now); v.Skip == "" {
					r.Observe(a, "k1", fmt.Sprint("acme/", u), outcomes[(i+u)%len(outcomes)], now)
				}
				r.Open(now)
			}
		})
	}
	users.Wait()
	stop()
	all.Wait()
}

func BenchmarkClaim(b *testing.B) {
	r := newRegistry()
	rungs := make([]*walk.Rung, 512)
	for i := range rungs {
		rungs[i] = rung(fmt.Sprintf("deployment-%d@provider", i), fmt.Sprint("provider-", i%16), "https://api.provider.example/v1")
		r.Claim(rungs[i], "key-1", walk.Ordinary, start)
	}
	b.Run("closed", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Claim(rungs[i%len(rungs)], "key-1", walk.Ordinary, start)
			i++
		}
	})
	b.Run("closed, parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				r.Claim(rungs[i%len(rungs)], "key-1", walk.Ordinary, start)
			}
		})
	})
	b.Run("success", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			r.Observe(rungs[i%len(rungs)], "key-1", "acme/1", nil, start)
			i++
		}
	})
	r.Observe(rungs[0], "key-1", "acme/1", gone, start)
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Claim(rungs[0], "key-1", walk.Ordinary, start)
		}
	})
}
