package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/http/api"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// A limit of a masked deployment is shown, and the deployment is not: its name tells
// the provider.
//
// Rules: R8, X1.
func TestABudgetDoesNotNameAMaskedDeployment_R8_X1(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	hidden := b.Objects.Deployments[0].ID
	b.Objects.Deployments[0].Masked = true
	shown := b.Objects.Deployments[0]
	shown.ID, shown.Masked = "plain@elsewhere", false
	b.Objects.Deployments = append(b.Objects.Deployments, shown)
	b.Objects.Tenants[0].Budgets = []catalog.Budget{
		{Scope: catalog.ScopeDeployment, Of: hidden, Requests: 5, Per: catalog.PerDay},
		{Scope: catalog.ScopeDeployment, Tokens: 7, Per: catalog.PerDay},
	}
	address, key := serve(t, b, func(c *api.Config) {
		c.Counters, c.ShardOf = counted{}, func(string) int16 { return 0 }
	})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	reply, text := caller{t, address, key}.do("GET", "/v1/budgets", "")
	if reply.StatusCode != http.StatusOK || strings.Contains(text, hidden) {
		t.Errorf("%d %s names %s", reply.StatusCode, text, hidden)
	}
	for _, want := range []string{`"budget":"deployment/requests/day"`, `"limit":5`, `"of":"plain@elsewhere"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}
