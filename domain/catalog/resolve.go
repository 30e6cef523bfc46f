package catalog

import (
	"fmt"
	"slices"

	"github.com/shopspring/decimal"
)

// The fixed bounds of an expansion (N18).
const (
	MaxModels = 16
	MaxRungs  = 256
)

// NotFoundError is a name that resolves to nothing for this organization (N1).
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("model %q does not exist", e.Name) }

// ExpansionError is a chain that grew past a fixed bound. It is an error and
// never a shorter plan (N18).
type ExpansionError struct {
	Model string
	Bound string
	Limit int
}

func (e *ExpansionError) Error() string {
	return fmt.Sprintf("the chain of model %q has more than %d %s", e.Model, e.Limit, e.Bound)
}

// Plan is what a name resolved to for one request: ordered stages, fixed at
// admission (N14).
type Plan struct {
	RequestedModel string
	// Class is the traffic class it was resolved through, empty for none.
	Class string
	// CanonicalModel is the slug of the model the name stands for.
	CanonicalModel string
	// FreeOnly is set where the name asks for what is free of charge (M10).
	FreeOnly bool
	Stages   []Stage
}

// Stage is one uninterrupted run of rungs of one model. A model whose chain holds
// a reference has a stage before it and one after it, so that whatever reorders
// rungs inside a stage can never move one across a reference (N19). Nor can it move a
// rung that is paid on the operator's account before one of the organization's own.
type Stage struct {
	Model *Model
	// Policy is the model's own, defaults filled in, also with a single rung (N20).
	Policy Policy
	// Position counts the places of a chain of names; a name alone is one place.
	Position int
	// Referred is set where the position's chain came here by a reference to another
	// model: it cannot serve in the place of the model's own rungs (C6).
	Referred bool
	// Override is set where the position's chain is the organization's own.
	Override bool
	Rungs    []Candidate
}

// Candidate is one rung of a plan.
type Candidate struct {
	// Index counts the examined rungs of the whole plan from zero.
	Index int
	Rung  Rung
	// Deployment and Provider are nil when Skip is set.
	Deployment *Deployment
	Provider   *Provider
	// Skip is why the rung cannot be called whatever else happens: SkipUnresolved,
	// SkipModelAlreadyVisited, SkipNotSameModel or SkipSurchargeNotEnabled. Empty: it can.
	Skip string
	// Surcharge is set where the rung follows an organization's own: only their failure
	// engages it, at so many percent on top of its list price (M12).
	Surcharge *decimal.Decimal
}

// The skips that are known when a name is resolved, in the words of the trail.
const (
	SkipUnresolved          = "unresolved"
	SkipModelAlreadyVisited = "model_already_visited"
	SkipNotSameModel        = "not_same_model"
)

// Ask is what a request asks for by name.
type Ask struct {
	Tenant string
	// Name is the model field of the request.
	Name string
	// Class is x-sluice-class; it takes the place of the name (N9).
	Class string
	// Key is the caller's, which may be confined (N13); nil is not.
	Key *Key
}

// Resolve turns a requested name into a plan for an organization: a routing rule's
// chain, a model, an alias or a class, in this order (N1, N6). It takes no lock and
// does no I/O.
//
// The error is a *NotFoundError, *AliasError, *ClassError, *ConfinedError or
// *ExpansionError.
func (s *Snapshot) Resolve(ask Ask) (Plan, error) {
	tenant := s.names[ask.Tenant]
	if tenant == nil {
		return Plan{}, &NotFoundError{Name: ask.Name}
	}
	if base, free := s.asksFree(ask, tenant); free {
		return s.resolveFree(ask, base)
	}
	ask, err := confine(ask)
	if err != nil {
		return Plan{}, err
	}
	if ask.Class != "" {
		return s.resolveClass(ask, ask.Class, tenant)
	}
	if chain, ok := tenant.rules[ask.Name]; ok {
		return s.resolveChain(ask, chain, tenant, true)
	}
	if model, ok := s.models[ask.Name]; ok {
		return s.plan(ask, []position{{model: model}}, tenant, false)
	}
	if model, ok := tenant.aliases[ask.Name]; ok {
		if model == nil {
			return Plan{}, &AliasError{Name: ask.Name}
		}
		return s.plan(ask, []position{{model: model}}, tenant, false)
	}
	if class, ok := s.classNamed(ask.Name); ok {
		return s.resolveClass(ask, class, tenant)
	}
	return Plan{}, &NotFoundError{Name: ask.Name}
}

// tenantNames is what a tenant's names stand for in one catalog, worked out when the
// snapshot is built: a request looks it up.
type tenantNames struct {
	rules map[string][]string
	// aliases maps to nil where nothing fits.
	aliases map[string]*Model
	// own are the models whose chain is the tenant's own (C4).
	own map[string]*Model
	// connections are the providers as they are called with the tenant's credentials.
	connections map[string]*Provider
	// surcharge says that the tenant agreed to the operator's rungs at a surcharge (M12).
	surcharge bool
}

func (s *Snapshot) resolveClass(ask Ask, class string, tenant *tenantNames) (Plan, error) {
	chain := s.chainOfClass(class)
	if chain == nil {
		return Plan{}, &ClassError{Class: class}
	}
	plan, err := s.resolveChain(ask, chain, tenant, false)
	plan.Class = class
	return plan, err
}

// position is one place of a chain of names: at most one model (N7).
type position struct {
	model *Model
	// name is what the position said, for the skip of one that resolves to nothing.
	name string
}

// resolveChain resolves each position to a model or an alias's model. A name inside
// a rule's chain never means a rule again, so a rule's own name does not recurse
// (N7).
func (s *Snapshot) resolveChain(ask Ask, chain []string, tenant *tenantNames, theirs bool) (Plan, error) {
	var positions []position
	for _, name := range chain {
		model := s.models[name]
		if model == nil {
			model = tenant.aliases[name]
		}
		positions = append(positions, position{model: model, name: name})
	}
	return s.plan(ask, positions, tenant, theirs)
}

// plan lays positions out as stages. A position that resolves to nothing is a skip,
// and a chain of which nothing is left is not found. theirs says that the chain of
// names is the organization's own: it cannot lead away from a model that the operator
// keeps to itself (N22).
func (s *Snapshot) plan(ask Ask, positions []position, tenant *tenantNames, theirs bool) (Plan, error) {
	plan := Plan{RequestedModel: ask.Name}
	x := s.expansionFor(tenant)
	var root *Model
	for i, p := range positions {
		x.position, x.root = i, p.model
		var err error
		switch {
		case p.model == nil:
			err = x.lone(&Model{Slug: p.name}, SkipUnresolved)
		case x.visited(p.model.Slug):
			err = x.lone(p.model, SkipModelAlreadyVisited)
		case root != nil && root.keepsTo(p.model):
			err = x.lone(p.model, SkipNotSameModel)
		default:
			err = x.follow(p.model)
		}
		if err != nil {
			return Plan{}, err
		}
		if plan.CanonicalModel == "" && p.model != nil {
			plan.CanonicalModel = p.model.Slug
			if theirs {
				root = p.model
			}
		}
	}
	if plan.CanonicalModel == "" {
		return Plan{}, &NotFoundError{Name: ask.Name}
	}
	plan.Stages = x.stages
	return plan, nil
}

// expand lays a model's chain out, the operator's or with a tenant that tenant's own.
func (s *Snapshot) expand(m *Model, tenant *tenantNames) ([]Stage, error) {
	x := s.expansionFor(tenant)
	if err := x.follow(m); err != nil {
		return nil, err
	}
	return x.stages, nil
}

func (s *Snapshot) expansionFor(tenant *tenantNames) expansion {
	x := expansion{snapshot: s}
	if tenant != nil {
		x.own, x.connections, x.surcharge = tenant.own, tenant.connections, tenant.surcharge
	}
	return x
}

// expansion walks a chain and the chains it refers to, depth first. With
// A = [a1, ->B, a2] and B = [b1, ->A, b2] it yields a1, b1, (A skipped), b2, a2
// (N17).
type expansion struct {
	snapshot *Snapshot
	// own are the models whose chain is the asking organization's own. It takes the
	// place of the operator's whole: what it cannot serve is never served by the
	// inherited one (C6).
	own         map[string]*Model
	connections map[string]*Provider
	surcharge   bool
	// entered are the slugs of the models that were visited: so few that looking through
	// them costs less than making a map.
	entered [MaxModels]string
	models  int
	stages  []Stage
	rungs   int
	// position and root are the place of the chain of names that is expanded, and its
	// model; root is nil where no request asks.
	position int
	root     *Model
}

func (x *expansion) expand(m *Model) error {
	chain, surcharged := m.Chain, []Rung(nil)
	own := x.own[m.Slug]
	if own != nil {
		chain, surcharged = x.ownChain(m, own)
		m = own
	}
	var rungs []Candidate
	behindOwn := false
	for _, rung := range chain {
		candidate, err := x.examine(m, rung)
		if err != nil {
			return err
		}
		behindOwn = behindOwn || rung.Connection != ""
		if rung.Model == "" {
			if len(rungs) > 0 && (rung.Connection != "") != (rungs[0].Rung.Connection != "") {
				x.add(m, rungs)
				rungs = nil
			}
			candidate = x.reach(candidate, m)
			if behindOwn && candidate.Skip == "" && rung.Deployment != "" && m.Surcharge != nil {
				candidate.Skip = SkipSurchargeNotEnabled
			}
			rungs = append(rungs, candidate)
			continue
		}
		// A reference ends the stage, whether it is followed or not (N19).
		next := x.snapshot.models[rung.Model]
		switch {
		case next == nil:
			candidate.Skip = SkipUnresolved
		case x.visited(next.Slug):
			candidate.Skip = SkipModelAlreadyVisited
		case own != nil && m.keepsTo(next):
			candidate.Skip = SkipNotSameModel
		}
		if candidate.Skip != "" {
			rungs = append(rungs, candidate)
		}
		x.add(m, rungs)
		rungs = nil
		if candidate.Skip == "" {
			if err := x.follow(next); err != nil {
				return err
			}
		}
	}
	x.add(m, rungs)
	return x.addSurcharged(m, surcharged)
}

// examine counts a rung of a chain.
func (x *expansion) examine(m *Model, rung Rung) (Candidate, error) {
	if x.rungs == MaxRungs {
		return Candidate{}, &ExpansionError{Model: m.Slug, Bound: "rungs", Limit: MaxRungs}
	}
	x.rungs++
	return Candidate{Index: x.rungs - 1, Rung: rung}, nil
}

func (x *expansion) follow(m *Model) error {
	if x.models == MaxModels {
		return &ExpansionError{Model: m.Slug, Bound: "models", Limit: MaxModels}
	}
	x.entered[x.models] = m.Slug
	x.models++
	return x.expand(m)
}

func (x *expansion) visited(slug string) bool { return slices.Contains(x.entered[:x.models], slug) }

// reach finds the deployment and the provider of a direct rung. One that has
// disappeared since the chain was written is a skip with a reason, never a reason
// to call something else.
func (x *expansion) reach(c Candidate, m *Model) Candidate {
	if c.Rung.Connection != "" {
		return x.connect(c, m)
	}
	deployment := x.snapshot.deployments[c.Rung.Deployment]
	if deployment == nil {
		c.Skip = SkipUnresolved
		return c
	}
	provider := x.snapshot.providers[deployment.Provider]
	if provider == nil {
		c.Skip = SkipUnresolved
		return c
	}
	c.Deployment, c.Provider = deployment, provider
	return c
}

// connect finds the provider of a connection's rung, with the connection's credential,
// and the deployment that says how the model is called there.
func (x *expansion) connect(c Candidate, m *Model) Candidate {
	provider := x.connections[c.Rung.Connection]
	if provider != nil {
		byID := func(id string) *Deployment { return x.snapshot.deployments[id] }
		c.Deployment = deploymentOn(provider.ID, x.snapshot.models[m.Slug], byID)
	}
	if c.Deployment == nil {
		c.Skip = SkipUnresolved
		return c
	}
	c.Provider = provider
	return c
}

// lone records a position that cannot be followed: it names nothing (N7), a model that
// the plan has already (N17), or one that may not take the root's place (N22).
func (x *expansion) lone(m *Model, skip string) error {
	c, err := x.examine(m, Rung{Model: m.Slug})
	if err != nil {
		return err
	}
	c.Skip = skip
	x.stages = append(x.stages, Stage{Model: m, Position: x.position, Rungs: []Candidate{c}})
	return nil
}

func (x *expansion) add(m *Model, rungs []Candidate) {
	if len(rungs) > 0 {
		x.stages = append(x.stages, Stage{
			Model: m, Policy: x.snapshot.policies[m.Slug], Rungs: rungs, Position: x.position,
			Referred: x.root != nil && m.Slug != x.root.Slug, Override: x.root != nil && x.own[x.root.Slug] != nil,
		})
	}
}
