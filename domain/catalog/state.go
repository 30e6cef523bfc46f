package catalog

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Recorded is one configuration event as the log holds it.
type Recorded struct {
	Stream string
	// Version is the event's place in its stream, from 1: the object's revision.
	Version int64
	// Position is its place in the log's shard.
	Position int64
	At       time.Time
	// Event is one of the structs of this package, or Unknown.
	Event any
}

// State is what the configuration events add up to: the decision state of every
// configuration command, and what a Snapshot is built from. It is not safe for
// concurrent use; a Snapshot is.
//
// What belongs to two streams is kept apart here (a model and its chain, a tenant
// and its budgets), so that the order between independent streams makes no
// difference.
type State struct {
	position    int64
	revisions   map[string]int64
	providers   map[string]Provider
	deployments map[string]Deployment
	models      map[string]Model
	modelsSince map[string]time.Time
	chains      map[string][]Rung
	classes     map[string]Class
	tiers       map[string]Tier
	tenants     map[string]Tenant
	aliases     map[string]owned[Alias]
	rules       map[string]owned[RoutingRule]
	budgets     map[string]owned[Budget]
	connections map[string]owned[Connection]
	overrides   map[string]owned[TenantChain]
	promotions  map[string]owned[Promotion]
	webhooks    map[string]owned[Webhook]
	keys        map[string]Key
	credentials map[CredentialOf]StoredCredential
	// checks are by the hash of their evidence (N24).
	checks     map[string]Checked
	passedOver map[Unknown]int64
}

// owned is a tenant's object that has its own stream.
type owned[T any] struct {
	tenant string
	value  T
}

// NewState is the catalog of an empty log.
func NewState() *State {
	return &State{
		revisions:   map[string]int64{},
		providers:   map[string]Provider{},
		deployments: map[string]Deployment{},
		models:      map[string]Model{},
		modelsSince: map[string]time.Time{},
		chains:      map[string][]Rung{},
		classes:     map[string]Class{},
		tiers:       map[string]Tier{},
		tenants:     map[string]Tenant{},
		aliases:     map[string]owned[Alias]{},
		rules:       map[string]owned[RoutingRule]{},
		budgets:     map[string]owned[Budget]{},
		connections: map[string]owned[Connection]{},
		overrides:   map[string]owned[TenantChain]{},
		promotions:  map[string]owned[Promotion]{},
		webhooks:    map[string]owned[Webhook]{},
		keys:        map[string]Key{},
		credentials: map[CredentialOf]StoredCredential{},
		checks:      map[string]Checked{},
		passedOver:  map[Unknown]int64{},
	}
}

// Fold takes one event in. It has no clock and no error: what the log says has
// happened. An event about an object that is not there (a price for a removed
// deployment) counts for the revision and changes nothing else.
func (s *State) Fold(r Recorded) {
	s.position = max(s.position, r.Position)
	s.revisions[r.Stream] = r.Version

	switch e := r.Event.(type) {
	case ProviderDefined:
		s.providers[e.Provider.ID] = e.Provider
	case ProviderRemoved:
		delete(s.providers, e.Provider)
		s.forgetCredentials(r.Stream)
	case DeploymentDefined:
		d := e.Deployment
		d.Prices = s.deployments[d.ID].Prices
		s.deployments[d.ID] = d
	case DeploymentRemoved:
		delete(s.deployments, e.Deployment)
	case PriceSet:
		edit(s.deployments, e.Deployment, func(d *Deployment) { d.Prices = e.Prices })
	case ModelDefined, ModelRemoved, PolicyChanged, EquivalenceCertified, EquivalenceWithdrawn:
		s.foldModel(e, r.At)
	case ChainReplaced:
		s.foldChain(r.Stream, e)
	case ClassDefined:
		s.classes[e.Class.Name] = e.Class
	case ClassRemoved:
		delete(s.classes, e.Class)
	case TierDefined:
		s.tiers[e.Tier.Name] = e.Tier
	case TierRemoved:
		delete(s.tiers, e.Tier)
	case TenantDefined:
		s.tenants[e.Tenant.ID] = e.Tenant
	case TenantRemoved:
		delete(s.tenants, e.Tenant)
	case AliasDefined:
		s.aliases[r.Stream] = owned[Alias]{e.Tenant, e.Alias}
	case AliasRemoved:
		delete(s.aliases, r.Stream)
	case RoutingRuleDefined:
		s.rules[r.Stream] = owned[RoutingRule]{e.Tenant, e.Rule}
	case RoutingRuleRemoved:
		delete(s.rules, r.Stream)
	case BudgetSet:
		s.budgets[r.Stream] = owned[Budget]{e.Tenant, e.Budget}
	case BudgetRemoved:
		delete(s.budgets, r.Stream)
	case ConnectionDefined:
		s.connections[r.Stream] = owned[Connection]{e.Tenant, e.Connection}
	case ConnectionRemoved:
		delete(s.connections, r.Stream)
		s.forgetCredentials(r.Stream)
	case PromotionDefined:
		s.promotions[r.Stream] = owned[Promotion]{e.Tenant, e.Promotion}
	case PromotionRemoved:
		delete(s.promotions, r.Stream)
	case WebhookDefined:
		s.webhooks[r.Stream] = owned[Webhook]{e.Tenant, e.Webhook}
	case WebhookRemoved:
		delete(s.webhooks, r.Stream)
		s.forgetCredentials(r.Stream)
	case KeyCreated:
		s.keys[e.Key.ID] = e.Key
	case KeyRevoked:
		edit(s.keys, e.Key, func(k *Key) { k.RevokedAt = e.RevokedAt })
	case CredentialStored:
		s.credentials[e.CredentialOf] = e.StoredCredential
	case CredentialDeleted:
		delete(s.credentials, e.CredentialOf)
	case EquivalenceChecked:
		s.checks[e.Hash] = Checked{Model: e.Model, Result: e.Evidence.Result, Pool: e.Evidence.Pool}
	case Unknown:
		s.passedOver[e]++
	}
}

// foldChain takes in a whole chain. An organization's empty one is a reset: it has
// no override any more (C4).
func (s *State) foldChain(stream string, e ChainReplaced) {
	switch {
	case e.Owner == OperatorChain:
		s.chains[e.Model] = e.Chain
	case len(e.Chain) == 0:
		delete(s.overrides, stream)
	default:
		s.overrides[stream] = owned[TenantChain]{e.Owner, TenantChain{Model: e.Model, Chain: e.Chain}}
	}
}

func (s *State) foldModel(event any, at time.Time) {
	switch e := event.(type) {
	case ModelDefined:
		m, known := s.models[e.Model]
		if !known {
			s.modelsSince[e.Model] = at
		}
		m.Slug, m.ExactModel, m.Surcharge = e.Model, e.ExactModel, e.Surcharge
		s.models[e.Model] = m
	case ModelRemoved:
		delete(s.models, e.Model)
	case PolicyChanged:
		edit(s.models, e.Model, func(m *Model) { m.Policy = e.Policy })
	case EquivalenceCertified:
		edit(s.models, e.Model, func(m *Model) { m.Equivalence = &e.Equivalence })
	case EquivalenceWithdrawn:
		edit(s.models, e.Model, func(m *Model) { m.Equivalence = nil })
	}
}

// edit changes an object that is there.
func edit[T any](objects map[string]T, id string, change func(*T)) {
	if object, ok := objects[id]; ok {
		change(&object)
		objects[id] = object
	}
}

// Position is the log position of the newest event that was folded.
func (s *State) Position() int64 { return s.position }

// Revision is how often the object behind a stream has been written. It survives
// a removal, so that an editor with an old revision never becomes valid again
// (C4). Zero is an object that never was.
func (s *State) Revision(stream string) int64 { return s.revisions[stream] }

// Tenant is an organization by its id, without the objects it owns.
func (s *State) Tenant(id string) (Tenant, bool) {
	t, ok := s.tenants[id]
	return t, ok
}

// Key is a caller's key by its id, revoked ones included.
func (s *State) Key(id string) (Key, bool) {
	k, ok := s.keys[id]
	return k, ok
}

// Keys are all callers' keys, the oldest first, revoked ones included.
func (s *State) Keys() []Key {
	return slices.SortedFunc(maps.Values(s.keys), func(a, b Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// PassedOver counts the events that this release could not read (C15).
func (s *State) PassedOver() map[Unknown]int64 { return maps.Clone(s.passedOver) }

// Objects assembles everything that a file can configure, in canonical form.
func (s *State) Objects() Objects {
	o := Objects{
		Providers:   slices.Collect(maps.Values(s.providers)),
		Deployments: slices.Collect(maps.Values(s.deployments)),
		Classes:     slices.Collect(maps.Values(s.classes)),
		Tiers:       slices.Collect(maps.Values(s.tiers)),
	}
	for slug, m := range s.models {
		m.Chain = s.chains[slug]
		o.Models = append(o.Models, m)
	}
	aliases, rules, budgets := byTenant(s.aliases), byTenant(s.rules), byTenant(s.budgets)
	connections, overrides, promotions := byTenant(s.connections), byTenant(s.overrides), byTenant(s.promotions)
	webhooks := byTenant(s.webhooks)
	o.Webhooks = webhooks[""]
	for id, t := range s.tenants {
		t.Aliases, t.RoutingRules, t.Budgets = aliases[id], rules[id], budgets[id]
		t.Connections, t.Chains, t.Promotions = connections[id], overrides[id], promotions[id]
		t.Webhooks = webhooks[id]
		o.Tenants = append(o.Tenants, t)
	}
	return o.Canonical()
}

func byTenant[T any](objects map[string]owned[T]) map[string][]T {
	lists := map[string][]T{}
	for _, o := range objects {
		lists[o.tenant] = append(lists[o.tenant], o.value)
	}
	return lists
}

// Objects is the configurable content of a catalog, without history and without
// callers' keys.
type Objects struct {
	Providers   []Provider   `json:"providers,omitempty"`
	Deployments []Deployment `json:"deployments,omitempty"`
	Models      []Model      `json:"models,omitempty"`
	Classes     []Class      `json:"classes,omitempty"`
	Tiers       []Tier       `json:"tiers,omitempty"`
	Tenants     []Tenant     `json:"tenants,omitempty"`
	Webhooks    []Webhook    `json:"webhooks,omitempty"`
}

// Canonical is the same content in its one written form: objects sorted by id,
// sets sorted, amounts without trailing zeros. Two catalogs that mean the same
// are equal after it. It copies what it changes; orders that mean something
// (chains, provider keys, preferences) stay.
func (o Objects) Canonical() Objects {
	o.Providers = sorted(o.Providers, func(p Provider) string { return p.ID })
	o.Deployments = sorted(o.Deployments, func(d Deployment) string { return d.ID })
	o.Models = sorted(o.Models, func(m Model) string { return m.Slug })
	o.Classes = sorted(o.Classes, func(c Class) string { return c.Name })
	o.Tiers = sorted(o.Tiers, func(t Tier) string { return t.Name })
	o.Tenants = sorted(o.Tenants, func(t Tenant) string { return t.ID })
	o.Webhooks = canonicalWebhooks(o.Webhooks)
	for i := range o.Deployments {
		d := &o.Deployments[i]
		d.Capabilities = set(d.Capabilities)
		d.Prices = canonicalPrices(d.Prices)
		if d.Dispatch != nil && *d.Dispatch == (Dispatch{}) {
			d.Dispatch = nil
		}
	}
	for i := range o.Models {
		m := &o.Models[i]
		if len(m.Chain) == 0 {
			m.Chain = nil
		}
		m.Surcharge = canonicalRate(m.Surcharge)
		if m.Policy.Circuit != nil && *m.Policy.Circuit == (CircuitPolicy{}) {
			m.Policy.Circuit = nil
		}
	}
	for i := range o.Tenants {
		t := &o.Tenants[i]
		t.Aliases = sorted(t.Aliases, func(a Alias) string { return a.Name })
		for j := range t.Aliases {
			t.Aliases[j].Capabilities = set(t.Aliases[j].Capabilities)
		}
		t.RoutingRules = sorted(t.RoutingRules, func(r RoutingRule) string { return r.Match })
		t.Connections = sorted(t.Connections, func(c Connection) string { return c.ID })
		t.Chains = sorted(t.Chains, func(c TenantChain) string { return c.Model })
		t.Promotions = sorted(t.Promotions, func(p Promotion) string { return p.ID })
		for j := range t.Promotions {
			t.Promotions[j] = t.Promotions[j].canonical()
		}
		t.Webhooks = canonicalWebhooks(t.Webhooks)
		t.Budgets = sorted(t.Budgets, Budget.ID)
		for j := range t.Budgets {
			t.Budgets[j].LimitUSD = canonicalUSD(t.Budgets[j].LimitUSD)
		}
	}
	return o
}

func sorted[T any](list []T, key func(T) string) []T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return list
}

func set[T cmp.Ordered](list []T) []T {
	list = slices.Sorted(slices.Values(list))
	return slices.Compact(list)
}

func canonicalWebhooks(list []Webhook) []Webhook {
	list = sorted(list, func(w Webhook) string { return w.ID })
	for i := range list {
		list[i].Events = set(list[i].Events)
	}
	return list
}
