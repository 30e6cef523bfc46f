package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLog holds configuration events with gaps between their positions, as the
// log of a busy gateway has.
type fakeLog struct {
	mu       sync.Mutex
	events   []eventstore.Recorded
	versions map[string]int64
	err      error
	reads    int
}

func (l *fakeLog) ReadConfig(_ context.Context, _ int16, after int64, limit int) ([]eventstore.Recorded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.err != nil {
		return nil, l.err
	}
	var page []eventstore.Recorded
	for _, e := range l.events {
		if e.Position > after && len(page) < limit {
			page = append(page, e)
		}
	}
	return page, nil
}

func (l *fakeLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *fakeLog) add(stream string, events ...any) {
	for _, e := range events {
		encoded := event.Encode(e)
		l.addRaw(stream, encoded.Type, encoded.Version, encoded.Data)
	}
}

func (l *fakeLog) addRaw(stream, typ string, version int, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.versions == nil {
		l.versions = map[string]int64{}
	}
	l.versions[stream]++
	l.events = append(l.events, eventstore.Recorded{
		Event:    eventstore.Event{Type: typ, Version: version, Data: data},
		Position: int64(len(l.events)+1) * 7, Stream: stream, StreamVersion: l.versions[stream],
	})
}

func tenant(id string) catalog.TenantDefined {
	return catalog.TenantDefined{Tenant: catalog.Tenant{ID: id}}
}

func has(s *catalog.Snapshot, id string) bool {
	if s == nil {
		return false
	}
	_, ok := s.Tenant(id)
	return ok
}

// Before the first snapshot there is none, and not an empty one in which every
// key is unknown: the caller is told 503 and not 401 (A2).
func TestNothingIsKnownBeforeTheFirstSnapshot_A2(t *testing.T) {
	log := &fakeLog{}
	log.fail(errors.New("no database"))
	l := live.New(log)
	if l.Current() != nil {
		t.Error("a snapshot of nothing")
	}
	if err := l.Refresh(t.Context()); err == nil || l.Current() != nil || l.Status().Err == nil {
		t.Errorf("refresh of an unreachable log: %v, %v", err, l.Current())
	}
	log.fail(nil)
	if err := l.Refresh(t.Context()); err != nil || l.Current() == nil {
		t.Errorf("an empty log is a catalog too: %v", err)
	}
}

// A change is served within the poll (C11).
func TestChangeIsServedWithinThePoll_C11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		log.add("tenant/a", tenant("a"))
		l, stop := run(t, log, nil)
		defer stop()
		if !has(l.Current(), "a") {
			t.Fatal("the first snapshot is not there at once")
		}
		log.add("tenant/b", tenant("b"))
		time.Sleep(live.Poll - time.Millisecond) // virtual time
		synctest.Wait()
		if has(l.Current(), "b") {
			t.Fatal("read before the poll: this test would not see a slower one")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if !has(l.Current(), "b") {
			t.Error("not served after the poll")
		}
	})
}

// With a notification it is served at once (C11), and a closed channel is no
// busy loop.
func TestChangeIsServedAtOnceWhenWoken_C11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, wake := &fakeLog{}, make(chan struct{}, 1)
		l, stop := run(t, log, wake)
		defer stop()
		log.add("tenant/b", tenant("b"))
		wake <- struct{}{}
		synctest.Wait()
		if !has(l.Current(), "b") {
			t.Error("a wake was not followed")
		}
		close(wake)
		synctest.Wait()
		reads := log.reads
		time.Sleep(live.Poll / 2)
		synctest.Wait()
		if log.reads != reads {
			t.Errorf("%d reads in half a poll", log.reads-reads)
		}
	})
}

// run starts a Live and returns once it waits; stop ends it and waits for that.
func run(t *testing.T, log live.Log, wake chan struct{}) (*live.Live, func()) {
	t.Helper()
	l := live.New(log)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, wake) }()
	synctest.Wait()
	return l, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// A failed refresh keeps the last good snapshot, says so, and is tried again soon
// (C11).
func TestFailedRefreshKeepsTheLastGood_C11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		log.add("tenant/a", tenant("a"))
		l, stop := run(t, log, nil)
		defer stop()
		good := l.Current()

		broken := errors.New("the database is away")
		log.fail(broken)
		log.add("tenant/b", tenant("b"))
		time.Sleep(live.Poll)
		synctest.Wait()
		if l.Current() != good {
			t.Error("the last good snapshot is gone")
		}
		if s := l.Status(); !errors.Is(s.Err, broken) || s.SnapshotID != good.ID || s.Position != good.Position || s.Age != live.Poll {
			t.Errorf("status %+v", s)
		}

		log.fail(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := l.Status(); !has(l.Current(), "b") || s.Err != nil || s.Age != 0 || s.SnapshotID != l.Current().ID {
			t.Errorf("not recovered: %+v", s)
		}
	})
}

// Nothing new is nothing to build.
func TestUnchangedLogKeepsTheSnapshot(t *testing.T) {
	log := &fakeLog{}
	log.add("tenant/a", tenant("a"))
	l := live.New(log)
	for range 2 {
		if err := l.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := l.Current()
	if err := l.Refresh(t.Context()); err != nil || l.Current() != first {
		t.Errorf("built again: %v", err)
	}
}

// Events of another release are passed over, visibly (C15).
func TestUnknownEventsAreCounted_C15(t *testing.T) {
	log := &fakeLog{}
	log.add("tenant/a", tenant("a"))
	log.addRaw("tenant/a", "moon_phase_set", 1, []byte(`{}`))
	log.addRaw("tenant/a", "tenant_defined", 99, []byte(`{}`))
	log.add("tenant/b", tenant("b"))
	l := live.New(log)
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !has(l.Current(), "a") || !has(l.Current(), "b") {
		t.Error("what is known was not folded")
	}
	passed := l.Status().PassedOver
	if len(passed) != 2 || passed[catalog.Unknown{Type: "tenant_defined", Version: 99}] != 1 {
		t.Errorf("passed over %v", passed)
	}
}

// An event that cannot be read is no reason to serve half a catalog: the snapshot
// before it stays, and the error says where it stands.
func TestUnreadableEventStopsTheCatalog(t *testing.T) {
	log := &fakeLog{}
	log.add("tenant/a", tenant("a"))
	l := live.New(log)
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := l.Current()
	log.add("tenant/b", tenant("b"))
	log.addRaw("tenant/c", "tenant_defined", 1, []byte(`{"tenant":7}`))
	for range 2 {
		err := l.Refresh(t.Context())
		var at *projections.EventError
		if !errors.As(err, &at) || at.Position != 21 || l.Current() != good {
			t.Errorf("error %v", err)
		}
	}
}

// A log that repeats itself must not be read for ever.
func TestRepeatedEventsAreAnError(t *testing.T) {
	if err := live.New(stuckLog{}).Refresh(t.Context()); err == nil {
		t.Error("no error")
	}
}

type stuckLog struct{}

func (stuckLog) ReadConfig(context.Context, int16, int64, int) ([]eventstore.Recorded, error) {
	return []eventstore.Recorded{{Event: eventstore.Event{Type: "moon_phase_set", Version: 1}, Position: 5}}, nil
}

// A catalog is read page by page and whole.
func TestManyPagesAreReadWhole(t *testing.T) {
	log := large(12_001, 0, 0)
	l := live.New(log)
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.Current().Position; got != log.events[len(log.events)-1].Position {
		t.Errorf("position %d", got)
	}
	if !has(l.Current(), "tenant-0") || !has(l.Current(), "tenant-12000") {
		t.Error("not all tenants are there")
	}
}

// large is a log of so many tenants, deployments with prices, and keys.
func large(tenants, deployments, keys int) *fakeLog {
	log := &fakeLog{}
	log.add("provider/p", catalog.ProviderDefined{Provider: catalog.Provider{ID: "p", Protocol: catalog.OpenAI, BaseURL: "https://p.example.test/v1"}})
	for i := range tenants {
		id := fmt.Sprintf("tenant-%d", i)
		log.add("tenant/"+id, tenant(id))
	}
	for i := range deployments {
		id := fmt.Sprintf("model-%d", i)
		d := catalog.Deployment{ID: id, Provider: "p", UpstreamModel: id, Capabilities: []catalog.Capability{catalog.Chat, catalog.Tools}}
		log.add("deployment/"+id, catalog.DeploymentDefined{Deployment: d}, catalog.PriceSet{Deployment: id, Prices: prices})
		log.add("model/"+id, catalog.ModelDefined{Model: id, ExactModel: id})
		log.add("chain/operator/"+id, catalog.ChainReplaced{Owner: catalog.OperatorChain, Model: id, Chain: []catalog.Rung{{Deployment: id}}})
	}
	for i := range keys {
		id := fmt.Sprintf("key-%d", i)
		log.add(catalog.KeyStream(id), catalog.KeyCreated{Key: catalog.Key{
			ID: id, Tenant: fmt.Sprintf("tenant-%d", i%max(tenants, 1)), Hash: catalog.HashKey(id), Scopes: []catalog.Scope{catalog.ScopeInference},
		}})
	}
	return log
}
