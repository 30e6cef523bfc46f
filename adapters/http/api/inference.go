package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
)

// anthropicPrefix is the base path of clients that take one for Anthropic.
const anthropicPrefix = "/anthropic"

// inference answers a request in one dialect.
func (a *API) inference(in dialect.Inbound) handler {
	return func(ctx context.Context, c *call) *edge.Reply { return a.serve(ctx, c, in) }
}

// serve hands a request to the gateway.
func (a *API) serve(ctx context.Context, c *call, in dialect.Inbound) *edge.Reply {
	controls, bad := controlsOf(c.Header)
	request := gateway.Incoming{
		Dialect: in, Body: c.Body, Key: c.key, Snapshot: c.snapshot, Controls: controls, Flags: flagsOf(c.Header), At: a.Now(),
	}
	if bad != nil {
		return a.reply(c.Request, a.Gateway.Refuse(ctx, request, bad))
	}
	return a.reply(c.Request, a.Gateway.Serve(ctx, request))
}

// voice is the dialect in which a path's errors are said, also where there is no
// such path, no such key or no readable request.
func voice(r *edge.Request) dialect.Inbound {
	path := r.Path
	if rest, ok := strings.CutPrefix(path, "/openai"); ok {
		path = rest
	} else if strings.HasPrefix(path, anthropicPrefix+"/") {
		return messages.Inbound{}
	}
	switch {
	case path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/"):
		return messages.Inbound{}
	case path == "/v1/responses" || strings.HasPrefix(path, "/v1/responses/"):
		return responses.Inbound{}
	case strings.HasPrefix(path, "/v1/models") && wantsAnthropic(r.Header):
		return messages.Inbound{}
	default:
		return chat.Inbound{}
	}
}

// responsesOf is the Responses dialect for one caller: what is stored is its owner's,
// and is stored only where the organization lets answers be kept (K6).
func (a *API) responsesOf(c *call) responses.Inbound {
	in := responses.Inbound{Owner: responses.Owner{Tenant: c.key.Tenant, Key: c.key.ID}}
	if tenant, ok := c.snapshot.Tenant(c.key.Tenant); ok && tenant.Retention.Responses {
		in.Store = a.Stored
	}
	return in
}

// createResponse is POST /v1/responses.
func (a *API) createResponse(ctx context.Context, c *call) *edge.Reply {
	return a.serve(ctx, c, a.responsesOf(c))
}

// getResponse is GET /v1/responses/{id}. It calls nobody and costs nothing.
func (a *API) getResponse(_ context.Context, c *call) *edge.Reply {
	in := a.responsesOf(c)
	body, err := in.Store.Get(in.Owner, c.Params["id"])
	if err != nil {
		return a.fail(c.Request, err)
	}
	return a.document(body)
}

// deleteResponse is DELETE /v1/responses/{id}.
func (a *API) deleteResponse(_ context.Context, c *call) *edge.Reply {
	in := a.responsesOf(c)
	body, err := in.Store.Delete(in.Owner, c.Params["id"])
	if err != nil {
		return a.fail(c.Request, err)
	}
	return a.document(body)
}

// document is a body that is JSON already.
func (a *API) document(body []byte) *edge.Reply {
	reply := &edge.Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
	setID(reply.Header, newID())
	return reply
}
