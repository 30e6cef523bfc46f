package api

import (
	"context"

	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
)

// getHealth is GET /v1/health: every circuit of this worker that is not closed
// (H9). A masked route's provider stays hidden.
func (a *API) getHealth(context.Context, *call) *edge.Reply {
	circuits := a.Health.Open(a.Now())
	for i := range circuits {
		if circuits[i].Masked {
			circuits[i].Provider = ""
		}
	}
	return writeJSON(struct {
		Circuits []health.Circuit `json:"circuits"`
	}{circuits})
}
