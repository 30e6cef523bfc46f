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
	// PromptCaching is ours: clients pass over members that they do not know (K7).
	PromptCaching *catalog.CacheAnswers `json:"prompt_caching,omitempty"`
}

// anthropicModel is a model as the Messages dialect lists it.
type anthropicModel struct {
	Type        string    `json:"type"`
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
	// PromptCaching is ours, as for openAIModel.
	PromptCaching *catalog.CacheAnswers `json:"prompt_caching,omitempty"`
}

// wantsAnthropic: the list has the shape of the client that asks.
func wantsAnthropic(h http.Header) bool { return h.Get("Anthropic-Version") != "" }

// listModels is GET /v1/models: what the key may use, by name.
func (a *API) listModels(_ context.Context, c *call) *edge.Reply {
	models := c.snapshot.Visible(c.key)
	if wantsAnthropic(c.Header) {
		list := make([]anthropicModel, len(models))
		for i, m := range models {
			list[i] = anthropicOf(c.snapshot, m)
		}
		page := map[string]any{"data": list, "has_more": false, "first_id": nil, "last_id": nil}
		if n := len(list); n > 0 {
			page["first_id"], page["last_id"] = list[0].ID, list[n-1].ID
		}
		return writeJSON(page)
	}
	list := make([]openAIModel, len(models))
	for i, m := range models {
		list[i] = openAIOf(c.snapshot, m)
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
			return writeJSON(anthropicOf(c.snapshot, m))
		}
		return writeJSON(openAIOf(c.snapshot, m))
	}
	return a.fail(c.Request, apierror.New(apierror.ModelNotFound))
}

func openAIOf(s *catalog.Snapshot, m catalog.ModelInfo) openAIModel {
	return openAIModel{ID: m.Slug, Object: "model", Created: m.Since.Unix(), OwnedBy: "sluice", PromptCaching: cachingOf(s, m)}
}

func anthropicOf(s *catalog.Snapshot, m catalog.ModelInfo) anthropicModel {
	return anthropicModel{Type: "model", ID: m.Slug, DisplayName: m.Slug, CreatedAt: m.Since.UTC(), PromptCaching: cachingOf(s, m)}
}

// cachingOf is nil for a name that may stand for any of several models.
func cachingOf(s *catalog.Snapshot, m catalog.ModelInfo) *catalog.CacheAnswers {
	answers, ok := s.CacheAnswers(m.Slug)
	if !ok {
		return nil
	}
	return &answers
}
