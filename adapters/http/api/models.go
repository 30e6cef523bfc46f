package api

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// openAIModel is a model as the Chat dialect lists it.
type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// anthropicModel is a model as the Messages dialect lists it.
type anthropicModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// wantsAnthropic: the list has the shape of the client that asks.
func wantsAnthropic(h http.Header) bool { return h.Get("Anthropic-Version") != "" }

// listModels is GET /v1/models: what the key may use, by name.
func (a *API) listModels(_ context.Context, c *call) *edge.Reply {
	models := c.snapshot.Visible(c.key)
	if wantsAnthropic(c.Header) {
		list := make([]anthropicModel, len(models))
		for i, m := range models {
			list[i] = anthropicOf(m)
		}
		page := map[string]any{"data": list, "has_more": false, "first_id": nil, "last_id": nil}
		if n := len(list); n > 0 {
			page["first_id"], page["last_id"] = list[0].ID, list[n-1].ID
		}
		return writeJSON(page)
	}
	list := make([]openAIModel, len(models))
	for i, m := range models {
		list[i] = openAIOf(m)
	}
	return writeJSON(map[string]any{"object": "list", "data": list})
}

// getModel is GET /v1/models/{id}. A model that the key may not see and one that
// does not exist are the same answer.
func (a *API) getModel(_ context.Context, c *call) *edge.Reply {
	id := c.Params["id"]
	for _, m := range c.snapshot.Visible(c.key) {
		if m.Slug != id {
			continue
		}
		if wantsAnthropic(c.Header) {
			return writeJSON(anthropicOf(m))
		}
		return writeJSON(openAIOf(m))
	}
	return a.fail(c.Request, apierror.New(apierror.ModelNotFound))
}

func openAIOf(m catalog.ModelInfo) openAIModel {
	return openAIModel{ID: m.Slug, Object: "model", Created: m.Since.Unix(), OwnedBy: "sluice"}
}

func anthropicOf(m catalog.ModelInfo) anthropicModel {
	return anthropicModel{Type: "model", ID: m.Slug, DisplayName: m.Slug, CreatedAt: m.Since.UTC()}
}
