package api

import (
	"context"
	"strconv"

	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// countTokens is POST /v1/messages/count_tokens. The answer is our own estimate for
// every model: the same number that admission plans and holds with, known without
// calling anybody (P11).
func (a *API) countTokens(_ context.Context, c *call) *edge.Reply {
	req, err := messages.Inbound{}.Parse(c.Body)
	if err != nil {
		return a.fail(c.Request, gateway.Invalid(err))
	}
	ask := catalog.Ask{Tenant: c.key.Tenant, Name: req.Model, Class: c.Header.Get("X-Sluice-Class"), Key: c.key}
	if _, err := c.snapshot.Resolve(ask); err != nil {
		return a.fail(c.Request, gateway.Unresolved(err))
	}
	body := []byte(`{"input_tokens":`)
	body = strconv.AppendInt(body, a.Tokens.Estimate(req).InputTokens, 10)
	return a.document(append(body, '}'))
}
