package adminapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/projections/webhooks"
)

// webhookRoutes are what can be seen of a webhook's messages, and done about them, for
// the operator's and for the organizations'.
func (a *API) webhookRoutes() []route {
	var list []route
	for _, at := range []string{"/webhooks/{id}", "/tenants/{tenant}/webhooks/{id}"} {
		list = append(list,
			route{http.MethodPut, at + "/secret", a.putCredential(webhooksSecret)},
			route{http.MethodDelete, at + "/secret", a.deleteCredential(webhooksSecret)},
			route{http.MethodGet, at + "/deliveries", a.listDeliveries},
			route{http.MethodGet, at + "/deliveries/{delivery}", a.getDelivery},
			route{http.MethodPost, at + "/deliveries/{delivery}/redeliver", a.redeliver},
			route{http.MethodPost, at + "/ping", a.pingWebhook},
		)
	}
	return list
}

// hook is the webhook of the path, as it is configured.
func (a *API) hook(ctx context.Context, c *call) (hook catalog.Webhook, err error) {
	id := catalog.ObjectID{Kind: catalog.KindWebhook, Tenant: c.Params["tenant"], Name: c.Params["id"]}
	if id.Tenant != "" {
		id.Kind = catalog.KindTenantWebhook
	}
	err = a.Catalog.Read(ctx, func(state *catalog.State) error {
		found, ok := state.Objects().Find(id)
		if !ok {
			return notFound(id.String(), state.RevisionOf(id))
		}
		if owned, ok := found.(catalog.TenantWebhook); ok {
			found = owned.Webhook
		}
		hook, _ = found.(catalog.Webhook)
		return nil
	})
	return hook, err
}

// listDeliveries is a page of a webhook's messages, newest first: ?state, ?cursor,
// ?limit.
func (a *API) listDeliveries(ctx context.Context, c *call) *edge.Reply {
	if _, err := a.hook(ctx, c); err != nil {
		return a.refuse(err)
	}
	state := webhooks.State(c.Query.Get("state"))
	if state != "" && !slices.Contains(webhooks.States(), state) {
		words := make([]string, 0, len(webhooks.States()))
		for _, s := range webhooks.States() {
			words = append(words, string(s))
		}
		return badField("state", "must be one of "+strings.Join(words, ", ")).reply()
	}
	limit, bad := number(c, "limit", webhooks.DefaultLimit)
	if bad != nil {
		return bad.reply()
	}
	found, err := webhooks.List(ctx, a.Deliveries, c.Params["tenant"], c.Params["id"], state, c.Query.Get("cursor"), limit)
	switch {
	case errors.Is(err, webhooks.ErrCursor):
		return badField("cursor", "must be one that a former page returned").reply()
	case err != nil:
		return a.refuse(err)
	}
	p := page[webhooks.Delivery]{Data: found.Deliveries}
	if p.Data == nil {
		p.Data = []webhooks.Delivery{}
	}
	if found.Next != "" {
		p.NextCursor = &found.Next
	}
	return document(http.StatusOK, p)
}

// getDelivery is one message, with what is posted.
func (a *API) getDelivery(ctx context.Context, c *call) *edge.Reply {
	id, absent := deliveryID(c)
	if absent != nil {
		return absent.reply()
	}
	return a.showDelivery(ctx, c, id, http.StatusOK)
}

func (a *API) showDelivery(ctx context.Context, c *call, id uuid.UUID, status int) *edge.Reply {
	d, err := webhooks.One(ctx, a.Deliveries, c.Params["tenant"], c.Params["id"], id)
	if err != nil {
		return a.refuseDelivery(err)
	}
	return document(status, d)
}

// redeliver sends a message once more, under the same id, whatever became of it.
func (a *API) redeliver(ctx context.Context, c *call) *edge.Reply {
	id, absent := deliveryID(c)
	if absent != nil {
		return absent.reply()
	}
	if err := webhooks.Again(ctx, a.Deliveries, c.Params["tenant"], c.Params["id"], id, a.Now()); err != nil {
		return a.refuseDelivery(err)
	}
	a.Logger.Info("a webhook's message is sent again", "webhook", c.Params["id"], "tenant", c.Params["tenant"], "id", id, "actor", c.by.Actor)
	return a.showDelivery(ctx, c, id, http.StatusAccepted)
}

// pingWebhook queues a message that says nothing.
func (a *API) pingWebhook(ctx context.Context, c *call) *edge.Reply {
	hook, err := a.hook(ctx, c)
	if err != nil {
		return a.refuse(err)
	}
	if hook.Disabled {
		return badField("", "the webhook is disabled: nothing is sent to it").reply()
	}
	id, err := uuid.NewV7()
	if err != nil {
		return a.refuse(err)
	}
	if err := webhooks.SendPing(ctx, a.Deliveries, c.Params["tenant"], hook.ID, id, a.Now()); err != nil {
		return a.refuse(err)
	}
	a.Logger.Info("a webhook is pinged", "webhook", hook.ID, "tenant", c.Params["tenant"], "id", id, "actor", c.by.Actor)
	return a.showDelivery(ctx, c, id, http.StatusAccepted)
}

var noDelivery = fail(http.StatusNotFound, codeNotFound, "There is no such delivery.")

func deliveryID(c *call) (uuid.UUID, *failure) {
	id, err := uuid.Parse(c.Params["delivery"])
	if err != nil {
		return id, noDelivery
	}
	return id, nil
}

func (a *API) refuseDelivery(err error) *edge.Reply {
	if errors.Is(err, webhooks.ErrNotFound) {
		return noDelivery.reply()
	}
	return a.refuse(err)
}
