package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MissingError is an edit of something that belongs to an object that is not there.
type MissingError struct{ ID ObjectID }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %s does not exist", e.ID.Kind, shown(e.ID.Name))
}

// Find is an object of the catalog as a value that Identify knows. A model comes
// with its chain, a tenant with everything that it owns.
func (o Objects) Find(id ObjectID) (any, bool) {
	switch id.Kind {
	case KindProvider:
		return found(o.Providers, id)
	case KindDeployment:
		return found(o.Deployments, id)
	case KindModel:
		return found(o.Models, id)
	case KindClass:
		return found(o.Classes, id)
	case KindTier:
		return found(o.Tiers, id)
	case KindTenant:
		return found(o.Tenants, id)
	case KindWebhook:
		return found(o.Webhooks, id)
	case KindChain:
		m, ok := find(o.Models, ObjectID{Kind: KindModel, Name: id.Name})
		return ModelChain{Model: m.Slug, Chain: m.Chain}, ok
	}
	t, ok := find(o.Tenants, ObjectID{Kind: KindTenant, Name: id.Tenant})
	if !ok {
		return nil, false
	}
	for _, owned := range ownedBy(t) {
		if Identify(owned) == id {
			return owned, true
		}
	}
	return nil, false
}

func find[T any](list []T, id ObjectID) (v T, ok bool) {
	if i := indexOf(list, id); i >= 0 {
		return list[i], true
	}
	return v, false
}

func found[T any](list []T, id ObjectID) (any, bool) {
	v, ok := find(list, id)
	return v, ok
}

func indexOf[T any](list []T, id ObjectID) int {
	return slices.IndexFunc(list, func(v T) bool { return Identify(v) == id })
}

func ownedBy(t Tenant) []any {
	var list []any
	for _, a := range t.Aliases {
		list = append(list, TenantAlias{t.ID, a})
	}
	for _, r := range t.RoutingRules {
		list = append(list, TenantRule{t.ID, r})
	}
	for _, b := range t.Budgets {
		list = append(list, TenantBudget{t.ID, b})
	}
	for _, c := range t.Connections {
		list = append(list, TenantConnection{t.ID, c})
	}
	for _, c := range t.Chains {
		list = append(list, ChainOverride{t.ID, c})
	}
	for _, p := range t.Promotions {
		list = append(list, TenantPromotion{t.ID, p})
	}
	for _, w := range t.Webhooks {
		list = append(list, TenantWebhook{t.ID, w})
	}
	return list
}

// With is the catalog with a value in the place of the object of the same identity,
// or beside the others if there is none. It changes nothing that o shares. The
// error is a *MissingError.
func (o Objects) With(value any) (Objects, error) {
	id := Identify(value)
	switch v := value.(type) {
	case Provider:
		o.Providers = with(o.Providers, id, v)
	case Deployment:
		o.Deployments = with(o.Deployments, id, v)
	case Model:
		o.Models = with(o.Models, id, v)
	case Class:
		o.Classes = with(o.Classes, id, v)
	case Tier:
		o.Tiers = with(o.Tiers, id, v)
	case Tenant:
		o.Tenants = with(o.Tenants, id, v)
	case Webhook:
		o.Webhooks = with(o.Webhooks, id, v)
	case ModelChain:
		m, ok := find(o.Models, ObjectID{Kind: KindModel, Name: v.Model})
		if !ok {
			return o, &MissingError{ID: ObjectID{Kind: KindModel, Name: v.Model}}
		}
		m.Chain = v.Chain
		return o.With(m)
	default:
		return o.ofTenant(id, func(t *Tenant) {
			switch v := value.(type) {
			case TenantAlias:
				t.Aliases = replaced(t.Aliases, v.Alias, func(a Alias) bool { return a.Name == v.Name })
			case TenantRule:
				t.RoutingRules = replaced(t.RoutingRules, v.RoutingRule, func(r RoutingRule) bool { return r.Match == v.Match })
			case TenantBudget:
				t.Budgets = replaced(t.Budgets, v.Budget, func(b Budget) bool { return b.ID() == v.ID() })
			case TenantConnection:
				t.Connections = replaced(t.Connections, v.Connection, func(c Connection) bool { return c.ID == v.ID })
			case ChainOverride:
				t.Chains = replaced(t.Chains, v.TenantChain, func(c TenantChain) bool { return c.Model == v.Model })
			case TenantPromotion:
				t.Promotions = replaced(t.Promotions, v.Promotion, func(p Promotion) bool { return p.ID == v.ID })
			case TenantWebhook:
				t.Webhooks = replaced(t.Webhooks, v.Webhook, func(w Webhook) bool { return w.ID == v.ID })
			}
		})
	}
	return o, nil
}

// Without is the catalog without an object. A model's chain cannot be taken away
// from the model: it is emptied.
func (o Objects) Without(id ObjectID) (Objects, error) {
	switch id.Kind {
	case KindProvider:
		o.Providers = without(o.Providers, id)
	case KindDeployment:
		o.Deployments = without(o.Deployments, id)
	case KindModel:
		o.Models = without(o.Models, id)
	case KindClass:
		o.Classes = without(o.Classes, id)
	case KindTier:
		o.Tiers = without(o.Tiers, id)
	case KindTenant:
		o.Tenants = without(o.Tenants, id)
	case KindWebhook:
		o.Webhooks = without(o.Webhooks, id)
	case KindChain:
		return o.With(ModelChain{Model: id.Name})
	default:
		return o.ofTenant(id, func(t *Tenant) {
			t.Aliases = removed(t.Aliases, func(a Alias) bool { return Identify(TenantAlias{t.ID, a}) == id })
			t.RoutingRules = removed(t.RoutingRules, func(r RoutingRule) bool { return Identify(TenantRule{t.ID, r}) == id })
			t.Connections = removed(t.Connections, func(c Connection) bool { return Identify(TenantConnection{t.ID, c}) == id })
			t.Chains = removed(t.Chains, func(c TenantChain) bool { return Identify(ChainOverride{t.ID, c}) == id })
			t.Promotions = removed(t.Promotions, func(p Promotion) bool { return Identify(TenantPromotion{t.ID, p}) == id })
			t.Budgets = removed(t.Budgets, func(b Budget) bool { return Identify(TenantBudget{t.ID, b}) == id })
			t.Webhooks = removed(t.Webhooks, func(w Webhook) bool { return Identify(TenantWebhook{t.ID, w}) == id })
		})
	}
	return o, nil
}

func (o Objects) ofTenant(id ObjectID, change func(*Tenant)) (Objects, error) {
	owner := ObjectID{Kind: KindTenant, Name: id.Tenant}
	t, ok := find(o.Tenants, owner)
	if !ok {
		return o, &MissingError{ID: owner}
	}
	change(&t)
	return o.With(t)
}

func with[T any](list []T, id ObjectID, v T) []T {
	return replaced(list, v, func(have T) bool { return Identify(have) == id })
}

func without[T any](list []T, id ObjectID) []T {
	return removed(list, func(have T) bool { return Identify(have) == id })
}

func replaced[T any](list []T, v T, same func(T) bool) []T {
	list = slices.Clone(list)
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = v
		return list
	}
	return append(list, v)
}

func removed[T any](list []T, gone func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), gone)
}

// Masked reports whether a rung goes to a deployment whose provider callers may not
// know (X1).
func (o Objects) Masked(r Rung) bool {
	d, ok := find(o.Deployments, ObjectID{Kind: KindDeployment, Name: r.Deployment})
	return ok && d.Masked
}

// RevisionOf is the revision that an editor of an object loads (C3): how often its
// stream has been written. A model is read with its chain and a tenant with what it
// owns; their revision is the sum over the streams, each of which only ever grows,
// so that it is the same only if none of them has changed.
func (s *State) RevisionOf(id ObjectID) int64 {
	sum := s.revisions[id.Stream()]
	switch id.Kind {
	case KindModel:
		sum += s.revisions[chainStream(OperatorChain, id.Name)]
	case KindTenant:
		for _, kind := range ownedKinds {
			sum += s.RevisionOfAll(kind, id.Name)
		}
	}
	return sum
}

// RevisionOfAll is the revision of a tenant's whole list of aliases, rules,
// budgets, connections, chains, promotions or webhooks, those that were removed included.
func (s *State) RevisionOfAll(kind Kind, tenant string) int64 {
	prefix := ObjectID{Kind: kind, Tenant: tenant}.Stream()
	var sum int64
	for stream, revision := range maps.All(s.revisions) {
		if strings.HasPrefix(stream, prefix) {
			sum += revision
		}
	}
	return sum
}
