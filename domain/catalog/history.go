package catalog

import (
	"fmt"
	"slices"
	"time"
)

// Version is an object as one event of its stream left it.
type Version struct {
	Revision int64
	Position int64
	At       time.Time
	// Object is the value that Identify knows, nil where the object was not there.
	// A model comes without its chain and a tenant without what it owns: those have
	// histories of their own.
	Object any
}

// Versions folds the events of one object's stream, oldest first, into what the
// object was after each of them.
func Versions(id ObjectID, events []Recorded) []Version {
	state := NewState()
	list := make([]Version, len(events))
	for i, e := range events {
		state.Fold(e)
		list[i] = Version{Revision: e.Version, Position: e.Position, At: e.At, Object: state.object(id)}
	}
	return list
}

// object is one object of the state, whether or not its owner is there.
func (s *State) object(id ObjectID) any {
	switch id.Kind {
	case KindProvider:
		return value(s.providers, id.Name)
	case KindDeployment:
		return value(s.deployments, id.Name)
	case KindModel:
		return value(s.models, id.Name)
	case KindClass:
		return value(s.classes, id.Name)
	case KindTier:
		return value(s.tiers, id.Name)
	case KindTenant:
		return value(s.tenants, id.Name)
	case KindKey:
		return value(s.keys, id.Name)
	case KindChain:
		if chain := s.chains[id.Name]; len(chain) > 0 {
			return ModelChain{Model: id.Name, Chain: chain}
		}
	case KindAlias:
		if a, ok := s.aliases[id.Stream()]; ok {
			return TenantAlias{a.tenant, a.value}
		}
	case KindRoutingRule:
		if r, ok := s.rules[id.Stream()]; ok {
			return TenantRule{r.tenant, r.value}
		}
	case KindBudget:
		if b, ok := s.budgets[id.Stream()]; ok {
			return TenantBudget{b.tenant, b.value}
		}
	case KindConnection:
		if c, ok := s.connections[id.Stream()]; ok {
			return TenantConnection{c.tenant, c.value}
		}
	case KindTenantChain:
		if c, ok := s.overrides[id.Stream()]; ok {
			return ChainOverride{c.tenant, c.value}
		}
	case KindPromotion:
		if p, ok := s.promotions[id.Stream()]; ok {
			return TenantPromotion{p.tenant, p.value}
		}
	case KindWebhook:
		if w, ok := s.webhooks[id.Stream()]; ok {
			return w.value
		}
	case KindTenantWebhook:
		if w, ok := s.webhooks[id.Stream()]; ok {
			return TenantWebhook{w.tenant, w.value}
		}
	}
	return nil
}

func value[T any](objects map[string]T, id string) any {
	if v, ok := objects[id]; ok {
		return v
	}
	return nil
}

// wholeWith reports whether the next event was written at once with this one, so that
// nobody has ever seen the object between them: a deployment without its prices, a model
// without its certification (C2).
func (v Version) wholeWith(next Version) bool {
	return !v.At.IsZero() && v.At.Equal(next.At) && v.Position+1 == next.Position
}

// RevertError is a revert that cannot be done, in words.
type RevertError struct{ Reason string }

func (e *RevertError) Error() string { return e.Reason }

// Revert is the catalog with one object as it was at a revision of its history. It
// is wanted, not written: it is validated and written as any other change, so that
// a revert is a new event and history only ever grows.
//
// Of events that were written at once any means the last: there was no object between
// them.
//
// A model that has been removed since comes back with the last chain it had, which
// chain is the history of; without one it could not be called. Keys cannot be
// reverted: a revoked key stays revoked (Z3).
func Revert(now Objects, id ObjectID, history, chain []Version, to int64) (Objects, error) {
	if id.Kind == KindKey {
		return now, &RevertError{Reason: "a key cannot be reverted: once revoked it stays revoked"}
	}
	i := slices.IndexFunc(history, func(v Version) bool { return v.Revision == to })
	if i < 0 {
		return now, &RevertError{Reason: fmt.Sprintf("%s has no revision %d", id, to)}
	}
	for i+1 < len(history) && history[i].wholeWith(history[i+1]) {
		i++
	}
	switch object := history[i].Object.(type) {
	case nil:
		return now.Without(id)
	case Model:
		if m, ok := find(now.Models, id); ok {
			object.Chain = m.Chain
		} else {
			object.Chain = lastChain(chain)
		}
		return now.With(object)
	case Tenant:
		t, _ := find(now.Tenants, id)
		object.Aliases, object.RoutingRules, object.Budgets = t.Aliases, t.RoutingRules, t.Budgets
		object.Connections, object.Chains, object.Promotions, object.Webhooks = t.Connections, t.Chains, t.Promotions, t.Webhooks
		return now.With(object)
	default:
		return now.With(object)
	}
}

func lastChain(history []Version) []Rung {
	for _, v := range slices.Backward(history) {
		if chain, ok := v.Object.(ModelChain); ok {
			return chain.Chain
		}
	}
	return nil
}
