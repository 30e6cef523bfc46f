// Package clients_test drives sluice serve with official clients, unmodified (P7):
// what their users would see is the proof that the dialect is spoken.
package clients_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// models are what clients of one dialect over its own provider ask for. In half of
// them the first route is faulty, which no client may notice.
var models = map[string][]string{
	"plain":      {"a/fake-words:8"},
	"fails-over": {"a/fake-503", "b/fake-words:8"},
	"tool":       {"a/fake-429:30", "b/fake-tool"},
	"tools":      {"a/fake-reset", "b/fake-tools:2"},
	"obeys":      {"a/fake-html", "b/fake-ok"},
	"busy":       {"a/fake-429:30"},
	"breaks":     {"a/fake-cut:3:rst"},
	"stalls":     {"a/fake-stall:3"},
	"codex":      {"openai-responses/fake-cut:0", "openai-responses/fake-words:8"},
	// The first answer breaks after it has begun, the others are whole.
	"breaks-once": {"openai/fake-words:8+cut:2:rst,words:8"},
}

// destinations are the protocols that providers speak. Each has every behaviour as
// the model "destination/behaviour".
var destinations = []string{"openai", "openai-responses", "anthropic", "bedrock", "gemini"}

// behaviour is what the destination's provider does, behind one of another protocol
// that is faulty: an answer must not show that it came from the second.
type behaviour struct{ fault, then string }

var behaviours = map[string]behaviour{
	"plain":      {"", "fake-words:8"},
	"fails-over": {"fake-503", "fake-words:8+cached:3"},
	"tool":       {"fake-429:30", "fake-tool"},
	"tools":      {"fake-reset", "fake-text-tool+tools:2"},
	"marked":     {"fake-cut:0", "fake-words:8"},
	"obeys":      {"fake-html", "fake-ok"},
	"thinks":     {"fake-529", "fake-reasoning:4+words:8+cached:3"},
	"long":       {"", "fake-words:40"},
	"refuses":    {"", "fake-refusal"},
	"filtered":   {"", "fake-words:8+finish:content_filter"},
	"busy":       {"", "fake-429:30"},
	"overloaded": {"", "fake-529"},
	"breaks":     {"", "fake-words:8+cut:3:rst"},
	"stalls":     {"", stalling},
}

// stalling is the upstream model whose callers leave.
const stalling = "fake-stall:3"

func (b behaviour) routes(destination string) (routes []string) {
	if b.fault != "" {
		faulty := "anthropic"
		if destination == faulty {
			faulty = "openai"
		}
		routes = append(routes, faulty+"/"+b.fault)
	}
	return append(routes, destination+"/"+b.then)
}

// policy lets each test meet its fault itself, not a circuit that an earlier one
// opened.
const policy = "{failover_mode: maximize_availability, circuit: {failures_to_open: 1000, open_for: 1s}}"

// quickToShut opens a route's circuit on its first failure, for longer than a test
// takes.
const quickToShut = "{circuit: {failures_to_open: 1, open_for: 60s}}"

// gateway is a worker with keys of an organization, of one without money, and of one
// that lets answers be kept.
type gateway struct {
	fake                *fakeprovider.Server
	url                 string
	key, poorKey, keeps string
}

func startGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{fake: fakeprovider.Start(t, fakeprovider.Options{})}
	config := harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: g.fake.URL()}, {ID: "b", URL: g.fake.URL()}},
		Tenants:   []harness.Tenant{{ID: "acme"}, {ID: "poor", MonthlyUSD: "0.000001"}, {ID: "keeper", KeepsResponses: true}},
	}
	for slug, routes := range models {
		config.Models = append(config.Models, harness.Model{Slug: slug, Routes: routes, Policy: policy})
	}
	config.Models = append(config.Models,
		harness.Model{Slug: "shut", Routes: []string{"a/fake-529"}, Policy: quickToShut},
		harness.Model{Slug: "embeds", Routes: []string{"a/fake-503", "b/fake-ok"}, Capabilities: "[embeddings]"})
	for _, to := range destinations {
		config.Providers = append(config.Providers, harness.Provider{ID: to, URL: g.fake.URL(), Protocol: to})
		for name, b := range behaviours {
			config.Models = append(config.Models, harness.Model{Slug: to + "/" + name, Routes: b.routes(to), Policy: policy})
		}
	}
	in := harness.Install(t, config)
	g.key, g.poorKey, g.keeps = in.Key(t, "acme"), in.Key(t, "poor"), in.Key(t, "keeper")
	g.url = in.Serve(t).URL
	return g
}

// awaitClientsGone waits until the providers have seen callers of the model that
// stalls leave.
func (g *gateway) awaitClientsGone(t *testing.T, want int) {
	t.Helper()
	harness.Eventually(t, "the providers see that the clients have left", func() bool {
		gone := 0
		for _, call := range g.fake.Ledger().Calls {
			if call.Model == stalling && call.ClientGone {
				gone++
			}
		}
		return gone >= want
	})
}
