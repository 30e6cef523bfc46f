// Package clients_test drives sluice serve with official clients, unmodified (P7):
// what their users would see is the proof that the dialect is spoken.
package clients_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// models are what clients ask for. In half of them the first route is faulty, which
// no client may notice.
var models = map[string][]string{
	"plain":      {"a/fake-words:8"},
	"fails-over": {"a/fake-503", "b/fake-words:8"},
	"tool":       {"a/fake-429:30", "b/fake-tool"},
	"tools":      {"a/fake-reset", "b/fake-tools:2"},
	"obeys":      {"a/fake-html", "b/fake-ok"},
	"busy":       {"a/fake-429:30"},
	"breaks":     {"a/fake-cut:3:rst"},
	"stalls":     {"a/fake-stall:3"},
}

// gateway is a worker with keys of an organization and of one without money.
type gateway struct {
	fake         *fakeprovider.Server
	url          string
	key, poorKey string
}

func startGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{fake: fakeprovider.Start(t, fakeprovider.Options{})}
	config := harness.Config{
		Providers: []harness.Provider{{ID: "a", URL: g.fake.URL()}, {ID: "b", URL: g.fake.URL()}},
		Tenants:   []harness.Tenant{{ID: "acme"}, {ID: "poor", MonthlyUSD: "0.000001"}},
	}
	for slug, routes := range models {
		config.Models = append(config.Models, harness.Model{
			Slug: slug, Routes: routes,
			// Each test meets its fault itself, not a circuit that an earlier one opened.
			Policy: "{failover_mode: maximize_availability, circuit: {failures_to_open: 1000, open_for: 1s}}",
		})
	}
	in := harness.Install(t, config)
	g.key, g.poorKey = in.Key(t, "acme"), in.Key(t, "poor")
	g.url = in.Serve(t).URL
	return g
}

// awaitClientGone waits until the provider has seen the caller of a model leave.
func (g *gateway) awaitClientGone(t *testing.T, model string) {
	t.Helper()
	harness.Eventually(t, "the provider sees that the client has left", func() bool {
		for _, call := range g.fake.Ledger().Calls {
			if call.Model == model && call.ClientGone {
				return true
			}
		}
		return false
	})
}

// TestOpenAINode_P7 runs the scripts of node/ with the client of its lock file.
//
// Rules: P7.
func TestOpenAINode_P7(t *testing.T) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed, so the openai client for Node cannot be driven", program)
		}
	}
	install := exec.Command("npm", "ci", "--no-progress", "--prefer-offline", "--ignore-scripts")
	install.Dir = "node"
	if output, err := install.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the openai client for Node cannot be installed (no package registry?): %v\n%s", err, output)
	}
	g := startGateway(t)
	scripts := exec.Command("node", "--test", "--test-reporter=spec", "chat.test.mjs")
	scripts.Dir = "node"
	scripts.Env = append(os.Environ(), "SLUICE_URL="+g.url, "SLUICE_KEY="+g.key, "SLUICE_POOR_KEY="+g.poorKey)
	output, err := scripts.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
	g.awaitClientGone(t, "fake-stall:3")
}
