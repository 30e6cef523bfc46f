package features_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cucumber/godog"

	"github.com/sluice-gateway/sluice/adapters/bus"
	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// workersScene is two workers on one database. The second reads its configuration only
// when it is told of a commit.
type workersScene struct {
	t      *testing.T
	first  *eventstore.Store
	second *live.Live
	// read gets a message after each time the second has read.
	read chan struct{}
	key  catalog.Key
	end  []func() error
}

func registerWorkersSteps(sc *godog.ScenarioContext, t *testing.T) {
	s := &workersScene{}
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		*s = workersScene{t: t, read: make(chan struct{}, 1)}
		return ctx, nil
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		for i := len(s.end) - 1; i >= 0; i-- {
			err = errors.Join(err, s.end[i]())
		}
		return ctx, err
	})
	sc.Step(`^two workers on one database, of which the second never looks by itself$`, s.start)
	sc.Step(`^the first is given the organization "([^"]*)" and a key of it$`, s.give)
	sc.Step(`^the first revokes the key$`, func(ctx context.Context) error {
		return config.RevokeKey(ctx, s.first, s.key.ID, eventstore.Meta{Worker: "first"}, time.Now())
	})
	sc.Step(`^the second comes to know the key$`, func(ctx context.Context) error {
		return s.comesTo(ctx, func(k *catalog.Key) bool { return k != nil && k.Usable(time.Now()) })
	})
	sc.Step(`^the second comes to refuse the key$`, func(ctx context.Context) error {
		return s.comesTo(ctx, func(k *catalog.Key) bool { return k != nil && !k.Usable(time.Now()) })
	})
}

func (s *workersScene) open(url string) (*eventstore.Store, error) {
	store, err := eventstore.Open(context.Background(), eventstore.Config{URL: url})
	if err == nil {
		s.end = append(s.end, func() error { return store.Close(context.Background()) })
	}
	return store, err
}

func (s *workersScene) start(ctx context.Context) (err error) {
	url := pgtest.NewDatabase(s.t)
	if s.first, err = s.open(url); err != nil {
		return err
	}
	store, err := s.open(url)
	if err != nil {
		return err
	}
	s.second = live.New(store)
	if err := s.second.Refresh(ctx); err != nil {
		return err
	}
	b, err := bus.Open("memory")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	told := make(chan struct{}, 1)
	if err := b.Subscribe(ctx, func(bus.Nudge) { signal(told) }); err != nil {
		stop()
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { bus.Feed(ctx, store, b, slog.New(slog.DiscardHandler)) })
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-told:
			}
			_ = s.second.Refresh(ctx)
			signal(s.read)
		}
	})
	s.end = append(s.end, func() error { stop(); running.Wait(); return b.Close() })
	return nil
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *workersScene) give(ctx context.Context, tenant string) error {
	state, err := live.Read(ctx, s.first)
	if err != nil {
		return err
	}
	by := eventstore.Meta{Worker: "first"}
	plan := config.Diff(state, catalog.Objects{Tenants: []catalog.Tenant{{ID: tenant}}})
	if err := config.Apply(ctx, s.first, plan, by, time.Now()); err != nil {
		return err
	}
	s.key, _, err = config.CreateKey(ctx, s.first, config.KeyRequest{Tenant: tenant}, rand.Reader, by, time.Now())
	return err
}

// comesTo waits until the second worker, told of commits, has what is looked for.
func (s *workersScene) comesTo(ctx context.Context, want func(*catalog.Key) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		key, _ := s.second.Current().KeyByHash(s.key.Hash)
		if want(key) {
			return nil
		}
		select {
		case <-s.read:
		case <-ctx.Done():
			return fmt.Errorf("it was not told: %+v", key)
		}
	}
}
