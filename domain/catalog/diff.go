package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Action is what happens to an object.
type Action string

// The actions of a plan.
const (
	Create Action = "create"
	Change Action = "change"
	Remove Action = "remove"
)

// ObjectChange is what one object needs to become what is wanted.
type ObjectChange struct {
	Action Action
	// Kind and ID name the object for people: "deployment", "fable-5@bedrock".
	Kind   Kind
	ID     string
	Stream string
	// Revision is the object's revision that the change was decided on: the
	// expected version of its stream (C3).
	Revision int64
	// Before and After are the object; nil where there is none.
	Before, After any
	Events        []any
}

// Diff is what has to be written so that the catalog becomes want: creations and
// changes in the order in which objects refer to each other, then removals in the
// reverse order. It is empty when there is nothing to do. want must be valid.
//
// Callers' keys are no part of Objects: no file ever removes one.
func Diff(s *State, want Objects) []ObjectChange {
	have := entities(s.Objects())
	var changes []ObjectChange
	wanted := map[string]bool{}
	before := make(map[string]entity, len(have))
	for _, e := range have {
		before[e.stream] = e
	}
	for _, after := range entities(want.Canonical()) {
		wanted[after.stream] = true
		change := ObjectChange{
			Action: Create, Kind: after.kind, ID: after.id, Stream: after.stream,
			Revision: s.Revision(after.stream), After: after.value,
		}
		if e, ok := before[after.stream]; ok {
			if same(e.value, after.value) {
				continue
			}
			change.Action, change.Before = Change, e.value
		}
		change.Events = eventsFor(change.Before, change.After)
		changes = append(changes, change)
	}
	for i := len(have) - 1; i >= 0; i-- {
		if e := have[i]; !wanted[e.stream] {
			changes = append(changes, ObjectChange{
				Action: Remove, Kind: e.kind, ID: e.id, Stream: e.stream,
				Revision: s.Revision(e.stream), Before: e.value, Events: eventsFor(e.value, nil),
			})
		}
	}
	return changes
}

// entity is one object with a stream of its own.
type entity struct {
	stream string
	kind   Kind
	id     string
	value  any
}

// ModelChain is a model's chain as an object of its own.
type ModelChain struct {
	Model string `json:"-"`
	Chain []Rung `json:"chain"`
}

// TenantAlias, TenantRule, TenantBudget, TenantConnection and ChainOverride are a
// tenant's objects with their owner.
type (
	TenantAlias struct {
		Tenant string `json:"-"`
		Alias
	}
	TenantRule struct {
		Tenant string `json:"-"`
		RoutingRule
	}
	TenantBudget struct {
		Tenant string `json:"-"`
		Budget
	}
	TenantConnection struct {
		Tenant string `json:"-"`
		Connection
	}
	ChainOverride struct {
		Tenant string `json:"-"`
		TenantChain
	}
)

// entities takes a canonical catalog apart into the objects that have streams.
func entities(o Objects) []entity {
	var list []entity
	add := func(stream string, kind Kind, id string, value any) {
		list = append(list, entity{stream, kind, id, value})
	}
	for _, p := range o.Providers {
		add(providerStream(p.ID), KindProvider, p.ID, p)
	}
	for _, d := range o.Deployments {
		add(deploymentStream(d.ID), KindDeployment, d.ID, d)
	}
	for _, m := range o.Models {
		chain := ModelChain{Model: m.Slug, Chain: m.Chain}
		m.Chain = nil
		add(modelStream(m.Slug), KindModel, m.Slug, m)
		add(chainStream(OperatorChain, m.Slug), KindChain, m.Slug, chain)
	}
	for _, c := range o.Classes {
		add(classStream(c.Name), KindClass, c.Name, c)
	}
	for _, t := range o.Tiers {
		add(tierStream(t.Name), KindTier, t.Name, t)
	}
	for _, t := range o.Tenants {
		id := t.ID
		owned := ownedBy(t)
		t.Aliases, t.RoutingRules, t.Budgets, t.Connections, t.Chains, t.Promotions, t.Webhooks = nil, nil, nil, nil, nil, nil, nil
		add(tenantStream(id), KindTenant, id, t)
		for _, v := range owned {
			of := Identify(v)
			add(of.Stream(), of.Kind, id+"/"+of.Name, v)
		}
	}
	for _, w := range o.Webhooks {
		add(webhookStream("", w.ID), KindWebhook, w.ID, w)
	}
	return list
}

// same compares what would be written: two values with one encoding are one.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if errX != nil || errY != nil {
		panic(fmt.Sprintf("catalog: %T cannot be encoded", a)) // plain structs: a programming error
	}
	return bytes.Equal(x, y)
}

// eventsFor are the events that turn before into after; either may be nil, not
// both.
func eventsFor(before, after any) []any {
	if after == nil {
		return removal(before)
	}
	switch after := after.(type) {
	case Provider:
		return []any{ProviderDefined{Provider: after}}
	case Deployment:
		old, _ := before.(Deployment)
		return deploymentEvents(old, after, before == nil)
	case Model:
		old, _ := before.(Model)
		return modelEvents(old, after, before == nil)
	case ModelChain:
		return []any{ChainReplaced{Owner: OperatorChain, Model: after.Model, Chain: after.Chain}}
	case Class:
		return []any{ClassDefined{Class: after}}
	case Tier:
		return []any{TierDefined{Tier: after}}
	case Tenant:
		return []any{TenantDefined{Tenant: after}}
	case TenantAlias:
		return []any{AliasDefined{Tenant: after.Tenant, Alias: after.Alias}}
	case TenantRule:
		return []any{RoutingRuleDefined{Tenant: after.Tenant, Rule: after.RoutingRule}}
	case TenantBudget:
		return []any{BudgetSet{Tenant: after.Tenant, Budget: after.Budget}}
	case TenantConnection:
		return []any{ConnectionDefined{Tenant: after.Tenant, Connection: after.Connection}}
	case ChainOverride:
		return []any{ChainReplaced{Owner: after.Tenant, Model: after.Model, Chain: after.Chain}}
	case TenantPromotion:
		return []any{PromotionDefined{Tenant: after.Tenant, Promotion: after.Promotion}}
	case Webhook:
		return []any{WebhookDefined{Webhook: after}}
	case TenantWebhook:
		return []any{WebhookDefined{Tenant: after.Tenant, Webhook: after.Webhook}}
	}
	panic(fmt.Sprintf("catalog: %T has no events", after))
}

func deploymentEvents(before, after Deployment, created bool) []any {
	var events []any
	oldPrices, prices := before.Prices, after.Prices
	before.Prices, after.Prices = Deployment{}.Prices, Deployment{}.Prices
	if created || !same(before, after) {
		events = append(events, DeploymentDefined{Deployment: after})
	}
	if !same(oldPrices, prices) {
		events = append(events, PriceSet{Deployment: after.ID, Prices: prices})
	}
	return events
}

func modelEvents(before, after Model, created bool) []any {
	var events []any
	if created || before.ExactModel != after.ExactModel || !same(before.Surcharge, after.Surcharge) {
		events = append(events, ModelDefined{Model: after.Slug, ExactModel: after.ExactModel, Surcharge: after.Surcharge})
	}
	switch {
	case same(before.Equivalence, after.Equivalence):
	case after.Equivalence == nil:
		events = append(events, EquivalenceWithdrawn{Model: after.Slug})
	default:
		events = append(events, EquivalenceCertified{Model: after.Slug, Equivalence: *after.Equivalence})
	}
	if !same(before.Policy, after.Policy) {
		events = append(events, PolicyChanged{Model: after.Slug, Policy: after.Policy})
	}
	return events
}

func removal(before any) []any {
	switch before := before.(type) {
	case Provider:
		return []any{ProviderRemoved{Provider: before.ID}}
	case Deployment:
		return []any{DeploymentRemoved{Deployment: before.ID}}
	case Model:
		return []any{ModelRemoved{Model: before.Slug}}
	case ModelChain:
		return []any{ChainReplaced{Owner: OperatorChain, Model: before.Model, Chain: []Rung{}}}
	case Class:
		return []any{ClassRemoved{Class: before.Name}}
	case Tier:
		return []any{TierRemoved{Tier: before.Name}}
	case Tenant:
		return []any{TenantRemoved{Tenant: before.ID}}
	case TenantAlias:
		return []any{AliasRemoved{Tenant: before.Tenant, Alias: before.Name}}
	case TenantRule:
		return []any{RoutingRuleRemoved{Tenant: before.Tenant, Match: before.Match}}
	case TenantBudget:
		return []any{BudgetRemoved{Tenant: before.Tenant, Scope: before.Scope, Of: before.Of, Unit: before.Unit(), Per: before.Per}}
	case TenantConnection:
		return []any{ConnectionRemoved{Tenant: before.Tenant, Connection: before.ID}}
	case ChainOverride:
		return []any{ChainReplaced{Owner: before.Tenant, Model: before.Model, Chain: []Rung{}}}
	case TenantPromotion:
		return []any{PromotionRemoved{Tenant: before.Tenant, Promotion: before.ID}}
	case Webhook:
		return []any{WebhookRemoved{Webhook: before.ID}}
	case TenantWebhook:
		return []any{WebhookRemoved{Tenant: before.Tenant, Webhook: before.ID}}
	}
	panic(fmt.Sprintf("catalog: %T has no events", before))
}
