package api

import (
	"context"
	"slices"

	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
)

// getHealth is GET /v1/health: every circuit of this worker that is not closed
// (H9). A masked route's provider stays hidden, and how another organization's own
// credential fares is nobody else's business.
func (a *API) getHealth(_ context.Context, c *call) *edge.Reply {
	circuits := slices.DeleteFunc(a.Health.Open(a.Now()), func(open health.Circuit) bool {
		return open.Tenant != "" && open.Tenant != c.key.Tenant
	})
	for i := range circuits {
		if circuits[i].Masked {
			circuits[i].Provider = ""
		}
	}
	return writeJSON(struct {
		Circuits []health.Circuit `json:"circuits"`
	}{circuits})
}
