package adminapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

const (
	defaultLimit = 100
	// maxLimit bounds a page; more is another page.
	maxLimit = 1000
)

// listing is the address of all objects of a kind, or of a tenant's.
type listing struct {
	pattern string
	kind    catalog.Kind
	// owned lists belong to a tenant, have a revision of their own, and take a PUT of
	// one of their objects.
	owned bool
	items func(o catalog.Objects, tenant catalog.Tenant) []any
}

var lists = []*listing{
	{"/providers", catalog.KindProvider, false, func(o catalog.Objects, _ catalog.Tenant) []any { return anys(o.Providers) }},
	{"/deployments", catalog.KindDeployment, false, func(o catalog.Objects, _ catalog.Tenant) []any { return anys(o.Deployments) }},
	{"/models", catalog.KindModel, false, func(o catalog.Objects, _ catalog.Tenant) []any { return anys(o.Models) }},
	{"/classes", catalog.KindClass, false, func(o catalog.Objects, _ catalog.Tenant) []any { return anys(o.Classes) }},
	{"/tiers", catalog.KindTier, false, func(o catalog.Objects, _ catalog.Tenant) []any { return anys(o.Tiers) }},
	{"/tenants", catalog.KindTenant, false, func(o catalog.Objects, _ catalog.Tenant) []any { return anys(o.Tenants) }},
	{"/tenants/{tenant}/aliases", catalog.KindAlias, true, func(_ catalog.Objects, t catalog.Tenant) []any { return anys(t.Aliases) }},
	{"/tenants/{tenant}/routing-rules", catalog.KindRoutingRule, true, func(_ catalog.Objects, t catalog.Tenant) []any { return anys(t.RoutingRules) }},
	{"/tenants/{tenant}/connections", catalog.KindConnection, true, func(_ catalog.Objects, t catalog.Tenant) []any { return anys(t.Connections) }},
	{"/tenants/{tenant}/chains", catalog.KindTenantChain, true, func(_ catalog.Objects, t catalog.Tenant) []any { return anys(t.Chains) }},
	{"/tenants/{tenant}/promotions", catalog.KindPromotion, true, func(_ catalog.Objects, t catalog.Tenant) []any { return anys(t.Promotions) }},
	{"/tenants/{tenant}/webhooks", catalog.KindTenantWebhook, true, func(_ catalog.Objects, t catalog.Tenant) []any { return anys(t.Webhooks) }},
	{"/webhooks", catalog.KindWebhook, false, func(o catalog.Objects, _ catalog.Tenant) []any { return anys(o.Webhooks) }},
	{"/tenants/{tenant}/budgets", catalog.KindBudget, true, func(_ catalog.Objects, t catalog.Tenant) []any { return anys(t.Budgets) }},
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// list is one page of a list. The cursor is a place in the list's order.
func (a *API) list(ctx context.Context, c *call, l *listing) *edge.Reply {
	from, limit, err := paging(c)
	if err != nil {
		return err.reply()
	}
	var all []any
	var revision int64
	readErr := a.Catalog.Read(ctx, func(state *catalog.State) error {
		objects := state.Objects()
		var tenant catalog.Tenant
		if l.owned {
			owner := catalog.ObjectID{Kind: catalog.KindTenant, Name: c.Params["tenant"]}
			found, ok := objects.Find(owner)
			if !ok {
				return notFound(owner.String(), state.RevisionOf(owner))
			}
			tenant, _ = found.(catalog.Tenant)
			revision = state.RevisionOfAll(l.kind, owner.Name)
		}
		all = l.items(objects, tenant)
		return nil
	})
	if readErr != nil {
		return a.refuse(readErr)
	}
	reply := document(http.StatusOK, pageOf(all, from, limit))
	if l.owned {
		reply.Header.Set("ETag", etag(revision))
	}
	return reply
}

func pageOf[T any](all []T, from, limit int) page[T] {
	from = min(from, len(all))
	p := page[T]{Data: all[from:min(from+limit, len(all))]}
	if end := from + limit; end < len(all) {
		next := strconv.Itoa(end)
		p.NextCursor = &next
	}
	return p
}

// paging reads cursor and limit.
func paging(c *call) (from, limit int, refused *failure) {
	from, refused = number(c, "cursor", 0)
	if refused != nil {
		return 0, 0, refused
	}
	limit, refused = number(c, "limit", defaultLimit)
	return from, min(max(limit, 1), maxLimit), refused
}

func number(c *call, name string, standard int) (int, *failure) {
	v := c.Query.Get(name)
	if v == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, badField(name, "must be a whole number, 0 or above")
	}
	return n, nil
}

// putInto is a PUT of one object to the list it stands in: the body says which.
func (a *API) putInto(ctx context.Context, c *call, l *listing) *edge.Reply {
	anonymous := target{list: l, id: catalog.ObjectID{Kind: l.kind, Tenant: c.Params["tenant"]}}
	sent, expected, err := anonymous.read(c)
	if err != nil {
		return a.refuse(err)
	}
	value, err := decode(anonymous.id, sent)
	if err != nil {
		return a.refuse(err)
	}
	t := target{list: l, id: catalog.Identify(value)}
	if t.id.Name == "" {
		return badField("", "the body does not say which object it is").reply()
	}
	return a.write(ctx, c, t, expected, func(current any, exists bool) (config.Document, error) {
		return t.put(current, exists, sent), nil
	})
}
