package catalog_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

var prices = money.Prices{
	Input: new(decimal.RequireFromString("3")), Output: new(decimal.RequireFromString("15")),
	CacheRead: new(decimal.RequireFromString("0.3")),
}

// BenchmarkFold60k reads 60,000 events of many kinds and builds the snapshot:
// what a starting worker does.
func BenchmarkFold60k(b *testing.B) {
	log := preloaded{large(2_000, 7_000, 30_000).events}
	b.ReportAllocs()
	for b.Loop() {
		if err := live.New(log).Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(log.events)*b.N)/b.Elapsed().Seconds(), "events/s")
}

// written is large with what organizations write themselves: two aliases that nobody
// else has, a rule, and for every tenth a connection and a chain of its own. The models
// refer to each other in rows of sixteen.
func written(tenants, deployments, keys int) *fakeLog {
	log := large(tenants, deployments, keys)
	for i := range tenants {
		id := fmt.Sprintf("tenant-%d", i)
		for _, a := range []catalog.Alias{
			{Name: "cheap", Capabilities: []catalog.Capability{catalog.Chat}, ProviderPreference: []string{"q", fmt.Sprint("p", i)}},
			{Name: "long", Capabilities: []catalog.Capability{catalog.Chat}, MinContextWindow: int64(i + 1), CostTier: catalog.Best},
		} {
			log.add(catalog.AliasStream(id, a.Name), catalog.AliasDefined{Tenant: id, Alias: a})
		}
		log.add("tenant/"+id+"/routing_rule/mine", catalog.RoutingRuleDefined{Tenant: id, Rule: catalog.RoutingRule{
			Match: "mine", Chain: []string{"model-0", "cheap", "nobody"},
		}})
		if i%10 == 0 {
			log.add("connection/"+id+"/own", catalog.ConnectionDefined{Tenant: id, Connection: catalog.Connection{ID: "own", Provider: "p", Stored: true}})
			log.add("chain/"+id+"/model-1", catalog.ChainReplaced{Owner: id, Model: "model-1", Chain: []catalog.Rung{{Connection: "own"}, {Deployment: "model-1"}}})
		}
	}
	for i := range deployments - 1 {
		if id := fmt.Sprintf("model-%d", i); i%catalog.MaxModels != catalog.MaxModels-1 {
			log.add("chain/operator/"+id, catalog.ChainReplaced{Owner: catalog.OperatorChain, Model: id, Chain: []catalog.Rung{
				{Deployment: id}, {Model: fmt.Sprintf("model-%d", i+1)},
			}})
		}
	}
	log.add("class/assistant", catalog.ClassDefined{Class: catalog.Class{Name: "assistant", Chain: []string{"model-0", "nobody"}}})
	return log
}

// BenchmarkSnapshot builds the snapshot of 10,000 deployments, 2,000 organizations
// and 50,000 keys: what a worker does for every change. Beside the time it tells how much
// of a processor that takes, which a busy machine does not blur, and what stays in memory
// for as long as a worker runs: the state, and the snapshot that requests are served
// from. While one is built there are two.
func BenchmarkSnapshot(b *testing.B) {
	log := preloaded{written(2_000, 10_000, 50_000).events}
	before := heapMB()
	state, err := live.Read(b.Context(), log)
	if err != nil {
		b.Fatal(err)
	}
	stateMB := heapMB() - before
	b.ReportAllocs()
	var snap *catalog.Snapshot
	cpu := cpuTime(b)
	for b.Loop() {
		snap = state.Snapshot()
	}
	b.ReportMetric(float64((cpuTime(b)-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
	b.ReportMetric(stateMB, "state-MB")
	b.ReportMetric(heapMB()-before-stateMB, "snapshot-MB")
	if len(snap.Models("tenant-0")) != 10_000 {
		b.Fatal("not all models are there")
	}
	runtime.KeepAlive(state)
	runtime.KeepAlive(log)
}

// BenchmarkResolve turns names into plans in that snapshot, from all processors at once:
// it takes no lock.
func BenchmarkResolve(b *testing.B) {
	state, err := live.Read(b.Context(), preloaded{written(2_000, 10_000, 50_000).events})
	if err != nil {
		b.Fatal(err)
	}
	snap := state.Snapshot()
	for _, name := range []string{"model-15", "model-0", "cheap", "mine", "class/assistant", "fast"} {
		b.Run(strings.ReplaceAll(name, "/", "-"), func(b *testing.B) {
			b.ReportAllocs()
			cpu := cpuTime(b)
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := snap.Resolve(catalog.Ask{Tenant: fmt.Sprintf("tenant-%d", i%2_000), Name: name}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// heapMB is what is in use after a collection.
func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// cpuTime is what this process has used of all processors, its collector included.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// preloaded is a log that answers from a slice: positions are 7, 14, 21 ...
type preloaded struct{ events []eventstore.Recorded }

func (l preloaded) ReadConfig(_ context.Context, _ int16, after int64, limit int) ([]eventstore.Recorded, error) {
	rest := l.events[after/7:]
	return rest[:min(limit, len(rest))], nil
}
