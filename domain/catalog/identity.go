package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of object that has a stream of its own, in the word that plans,
// histories and errors use for it.
type Kind string

// The kinds.
const (
	KindProvider      Kind = "provider"
	KindDeployment    Kind = "deployment"
	KindModel         Kind = "model"
	KindChain         Kind = "chain"
	KindClass         Kind = "class"
	KindTier          Kind = "tier"
	KindTenant        Kind = "tenant"
	KindAlias         Kind = "alias"
	KindRoutingRule   Kind = "routing_rule"
	KindBudget        Kind = "budget"
	KindConnection    Kind = "connection"
	KindTenantChain   Kind = "tenant_chain"
	KindPromotion     Kind = "promotion"
	KindWebhook       Kind = "webhook"
	KindTenantWebhook Kind = "tenant_webhook"
	KindKey           Kind = "key"
)

// Kinds lists them in the order in which objects refer to each other.
func Kinds() []Kind {
	return []Kind{
		KindProvider, KindDeployment, KindModel, KindChain, KindClass, KindTier,
		KindTenant, KindAlias, KindRoutingRule, KindBudget, KindConnection, KindTenantChain, KindPromotion, KindTenantWebhook, KindWebhook, KindKey,
	}
}

// owned reports whether objects of the kind belong to a tenant.
func (k Kind) owned() bool { return slices.Contains(ownedKinds, k) }

var ownedKinds = []Kind{KindAlias, KindRoutingRule, KindBudget, KindConnection, KindTenantChain, KindPromotion, KindTenantWebhook}

// ObjectID names one object by its canonical id, within its kind: a model and an
// alias of the same name are never taken for each other (C8).
type ObjectID struct {
	Kind Kind
	// Tenant is the owner of an alias, a rule, a budget, a connection, a chain or webhook
	// of its own, or a promotion; empty for other kinds.
	Tenant string
	// Name is the id, slug, name or match; a budget's is Budget.ID.
	Name string
}

// String is the form that ParseObjectID reads: "model/fable-5", "alias/acme/fast".
func (id ObjectID) String() string {
	if id.Kind.owned() {
		return string(id.Kind) + "/" + id.Tenant + "/" + id.Name
	}
	return string(id.Kind) + "/" + id.Name
}

// Stream is where the object's events are.
func (id ObjectID) Stream() string {
	switch id.Kind {
	case KindProvider:
		return providerStream(id.Name)
	case KindDeployment:
		return deploymentStream(id.Name)
	case KindModel:
		return modelStream(id.Name)
	case KindChain:
		return chainStream(OperatorChain, id.Name)
	case KindClass:
		return classStream(id.Name)
	case KindTier:
		return tierStream(id.Name)
	case KindTenant:
		return tenantStream(id.Name)
	case KindAlias:
		return AliasStream(id.Tenant, id.Name)
	case KindRoutingRule:
		return ruleStream(id.Tenant, id.Name)
	case KindBudget:
		return budgetStream(id.Tenant, id.Name)
	case KindConnection:
		return connectionStream(id.Tenant, id.Name)
	case KindTenantChain:
		return chainStream(id.Tenant, id.Name)
	case KindPromotion:
		return promotionStream(id.Tenant, id.Name)
	case KindWebhook, KindTenantWebhook:
		return webhookStream(id.Tenant, id.Name)
	case KindKey:
		return KeyStream(id.Name)
	}
	panic(fmt.Sprintf("catalog: objects of kind %q have no stream", id.Kind))
}

// IdentityError is a text that names no object.
type IdentityError struct{ Text string }

func (e *IdentityError) Error() string {
	kinds := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		if k.owned() {
			kinds = append(kinds, string(k)+"/TENANT/NAME")
		} else {
			kinds = append(kinds, string(k)+"/NAME")
		}
	}
	return fmt.Sprintf("%s names no object; an object is one of %s", shown(e.Text), strings.Join(kinds, ", "))
}

// ParseObjectID reads what ObjectID.String writes. The error is an *IdentityError.
func ParseObjectID(text string) (ObjectID, error) {
	kind, name, ok := strings.Cut(text, "/")
	id := ObjectID{Kind: Kind(kind), Name: name}
	if ok && id.Kind.owned() {
		id.Tenant, id.Name, ok = strings.Cut(name, "/")
		ok = ok && id.Tenant != ""
	}
	if !ok || id.Name == "" || !slices.Contains(Kinds(), id.Kind) {
		return ObjectID{}, &IdentityError{Text: text}
	}
	return id, nil
}

// Identify names a value: a Provider, Deployment, Model, ModelChain, Class, Tier, Tenant,
// TenantAlias, TenantRule, TenantBudget, TenantConnection, ChainOverride,
// TenantPromotion, Webhook or TenantWebhook.
func Identify(value any) ObjectID {
	switch v := value.(type) {
	case Provider:
		return ObjectID{Kind: KindProvider, Name: v.ID}
	case Deployment:
		return ObjectID{Kind: KindDeployment, Name: v.ID}
	case Model:
		return ObjectID{Kind: KindModel, Name: v.Slug}
	case ModelChain:
		return ObjectID{Kind: KindChain, Name: v.Model}
	case Class:
		return ObjectID{Kind: KindClass, Name: v.Name}
	case Tier:
		return ObjectID{Kind: KindTier, Name: v.Name}
	case Tenant:
		return ObjectID{Kind: KindTenant, Name: v.ID}
	case TenantAlias:
		return ObjectID{Kind: KindAlias, Tenant: v.Tenant, Name: v.Name}
	case TenantRule:
		return ObjectID{Kind: KindRoutingRule, Tenant: v.Tenant, Name: v.Match}
	case TenantBudget:
		return ObjectID{Kind: KindBudget, Tenant: v.Tenant, Name: v.ID()}
	case TenantConnection:
		return ObjectID{Kind: KindConnection, Tenant: v.Tenant, Name: v.ID}
	case ChainOverride:
		return ObjectID{Kind: KindTenantChain, Tenant: v.Tenant, Name: v.Model}
	case TenantPromotion:
		return ObjectID{Kind: KindPromotion, Tenant: v.Tenant, Name: v.ID}
	case Webhook:
		return ObjectID{Kind: KindWebhook, Name: v.ID}
	case TenantWebhook:
		return ObjectID{Kind: KindTenantWebhook, Tenant: v.Tenant, Name: v.ID}
	}
	panic(fmt.Sprintf("catalog: %T is no object", value))
}
