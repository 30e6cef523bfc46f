package adminapi

import (
	"strings"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// resource is one address: an object of the catalog, or one part of it.
type resource struct {
	pattern string
	// id names the object from the values of the path.
	id func(p map[string]string) catalog.ObjectID
	// part is the field of the object that the address stands for; empty is the
	// object as a whole.
	part string
	// keep are the fields that have addresses of their own. A PUT that leaves one out
	// does not touch it: replacing an organization's tier must not drop its budgets.
	keep []string
	// shown are the fields that only reads have; a PUT of what was read may hold them.
	shown []string
}

func named(kind catalog.Kind) func(map[string]string) catalog.ObjectID {
	return func(p map[string]string) catalog.ObjectID {
		return catalog.ObjectID{Kind: kind, Tenant: p["tenant"], Name: p["id"]}
	}
}

var resources = []resource{
	{pattern: "/providers/{id}", id: named(catalog.KindProvider), shown: []string{"warnings"}},
	{pattern: "/deployments/{id}", id: named(catalog.KindDeployment), keep: []string{"prices"}},
	{pattern: "/deployments/{id}/prices", id: named(catalog.KindDeployment), part: "prices"},
	{pattern: "/models/{id}", id: named(catalog.KindModel), keep: []string{"chain", "policy"}},
	{pattern: "/models/{id}/chain", id: named(catalog.KindChain), shown: []string{"state", "rungs"}},
	{pattern: "/models/{id}/policy", id: named(catalog.KindModel), part: "policy", shown: []string{"effective"}},
	{pattern: "/classes/{id}/chain", id: named(catalog.KindClass)},
	{pattern: "/tiers/{id}", id: named(catalog.KindTier)},
	{
		pattern: "/tenants/{id}", id: func(p map[string]string) catalog.ObjectID {
			return catalog.ObjectID{Kind: catalog.KindTenant, Name: p["id"]}
		},
		keep: []string{"aliases", "routing_rules", "budgets", "connections", "chains", "promotions", "webhooks"},
	},
	{pattern: "/tenants/{tenant}/aliases/{id}", id: named(catalog.KindAlias)},
	{pattern: "/tenants/{tenant}/routing-rules/{id}", id: named(catalog.KindRoutingRule)},
	{pattern: "/tenants/{tenant}/connections/{id}", id: named(catalog.KindConnection)},
	{pattern: "/tenants/{tenant}/chains/{id}", id: named(catalog.KindTenantChain), shown: []string{"state", "rungs"}},
	{pattern: "/tenants/{tenant}/promotions/{id}", id: named(catalog.KindPromotion)},
	{pattern: "/tenants/{tenant}/webhooks/{id}", id: named(catalog.KindTenantWebhook)},
	{pattern: "/webhooks/{id}", id: named(catalog.KindWebhook)},
	{
		pattern: "/tenants/{tenant}/budgets/{scope}/{unit}/{per}",
		id: func(p map[string]string) catalog.ObjectID {
			return catalog.ObjectID{Kind: catalog.KindBudget, Tenant: p["tenant"], Name: p["scope"] + "/" + p["unit"] + "/" + p["per"]}
		},
	},
}

// decode reads a whole object; what the address says need not stand in the body.
func decode(id catalog.ObjectID, doc config.Document) (any, error) {
	switch id.Kind {
	case catalog.KindProvider:
		return as(doc, "id", id.Name, func(v *catalog.Provider) {})
	case catalog.KindDeployment:
		return as(doc, "id", id.Name, func(v *catalog.Deployment) {})
	case catalog.KindModel:
		return as(doc, "slug", id.Name, func(v *catalog.Model) {})
	case catalog.KindChain:
		return as(doc, "", "", func(v *catalog.ModelChain) { v.Model = id.Name })
	case catalog.KindClass:
		return as(doc, "name", id.Name, func(v *catalog.Class) {})
	case catalog.KindTier:
		return as(doc, "name", id.Name, func(v *catalog.Tier) {})
	case catalog.KindTenant:
		return as(doc, "id", id.Name, func(v *catalog.Tenant) {})
	case catalog.KindAlias:
		return as(doc, "name", id.Name, func(v *catalog.TenantAlias) { v.Tenant = id.Tenant })
	case catalog.KindRoutingRule:
		return as(doc, "match", id.Name, func(v *catalog.TenantRule) { v.Tenant = id.Tenant })
	case catalog.KindConnection:
		return as(doc, "id", id.Name, func(v *catalog.TenantConnection) { v.Tenant = id.Tenant })
	case catalog.KindTenantChain:
		return as(doc, "model", id.Name, func(v *catalog.ChainOverride) { v.Tenant = id.Tenant })
	case catalog.KindPromotion:
		return as(doc, "id", id.Name, func(v *catalog.TenantPromotion) { v.Tenant = id.Tenant })
	case catalog.KindWebhook:
		return as(doc, "id", id.Name, func(v *catalog.Webhook) {})
	case catalog.KindTenantWebhook:
		return as(doc, "id", id.Name, func(v *catalog.TenantWebhook) { v.Tenant = id.Tenant })
	default:
		return as(doc, "", "", func(v *catalog.TenantBudget) {
			v.Tenant = id.Tenant
			addressed(&v.Budget, id.Name)
		})
	}
}

// addressed gives a budget what its address says of it, SCOPE[:OF]/UNIT/PERIOD, where
// its body does not repeat that.
func addressed(b *catalog.Budget, name string) {
	period := strings.LastIndexByte(name, '/')
	unit := strings.LastIndexByte(name[:max(period, 0)], '/')
	if unit < 0 {
		return // sent to the list
	}
	if b.Per == "" {
		b.Per = catalog.Period(name[period+1:])
	}
	if b.Scope == "" && b.Of == "" {
		b.Scope, b.Of, _ = strings.Cut(name[:unit], ":")
	}
}

// as decodes one type. identity is the field that repeats the address.
func as[T any](doc config.Document, identity, name string, complete func(*T)) (any, error) {
	if identity != "" && name != "" && !doc.Has(identity) {
		doc = doc.Merge(config.NewDocument()) // a copy
		doc.SetText(identity, name)
	}
	v := new(T)
	if err := doc.Decode(v); err != nil {
		return nil, err
	}
	complete(v)
	return *v, nil
}

// edited is the whole object that a PUT asks for. sent was checked.
func (r resource) put(current any, exists bool, sent config.Document) config.Document {
	plain := config.NewDocument().Merge(sent) // null is as if it were left out
	if !exists {
		return r.wrap(plain)
	}
	have := config.DocumentOf(current)
	if r.part != "" {
		have.SetChild(r.part, plain)
		return have
	}
	for _, name := range r.keep {
		if !sent.Has(name) {
			plain.Set(name, have)
		}
	}
	return plain
}

// wrap puts a part into an otherwise empty object.
func (r resource) wrap(doc config.Document) config.Document {
	if r.part == "" {
		return doc
	}
	whole := config.NewDocument()
	whole.SetChild(r.part, doc)
	return whole
}
