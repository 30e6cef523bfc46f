// Package e2e_test holds the real binary to the outer contract: processes, sockets
// and a database, and nothing of Sluice's own code between the test and them.
package e2e_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// scene is one worker with two scripted providers behind it, which is what most
// tests need. Models are "slug: routes" of providers a and b.
type scene struct {
	*harness.Installation
	a, b   *fakeprovider.Server
	config harness.Config
	worker *harness.Worker
	// client has a key of acme, which may do inference and read.
	client harness.Client
}

func newScene(t *testing.T, models map[string][]string) *scene {
	t.Helper()
	s := &scene{a: fakeprovider.Start(t, fakeprovider.Options{}), b: fakeprovider.Start(t, fakeprovider.Options{})}
	s.config = harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: s.a.URL()}, {ID: "b", URL: s.b.URL()}},
		Tenants:   []harness.Tenant{{ID: "acme"}, {ID: "umbrella"}},
	}
	for slug, routes := range models {
		s.config.Models = append(s.config.Models, harness.Model{Slug: slug, Routes: routes})
	}
	s.Installation = harness.Install(t, s.config)
	// The key comes first: a worker that already runs needs a moment to hear of one.
	key := s.Key(t, "acme")
	s.worker = s.Serve(t)
	s.client = s.worker.Client(key)
	return s
}

// calls are how many calls both providers have seen.
func (s *scene) calls() int64 { return s.a.Ledger().Total + s.b.Ledger().Total }
