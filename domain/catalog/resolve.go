package catalog

import "fmt"

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
	// CanonicalModel is the slug of the model the name stands for.
	CanonicalModel string
	Stages         []Stage
}

// Stage is one uninterrupted run of rungs of one model. A model whose chain holds
// a reference has a stage before it and one after it, so that whatever reorders
// rungs inside a stage can never move one across a reference (N19).
type Stage struct {
	Model *Model
	// Policy is the model's own, defaults filled in, also with a single rung (N20).
	Policy Policy
	Rungs  []Candidate
}

// Candidate is one rung of a plan.
type Candidate struct {
	// Index counts the examined rungs of the whole plan from zero.
	Index int
	Rung  Rung
	// Deployment and Provider are nil when Skip is set.
	Deployment *Deployment
	Provider   *Provider
	// Skip is why the rung cannot be called whatever else happens: SkipUnresolved
	// or SkipModelAlreadyVisited. Empty: it can.
	Skip string
}

// The skips that are known when a name is resolved, in the words of the trail.
const (
	SkipUnresolved          = "unresolved"
	SkipModelAlreadyVisited = "model_already_visited"
)

// Resolve turns a requested name into a plan for an organization (N1). It takes no
// lock and does no I/O. Models are all it looks through so far; the names that an
// organization or an operator adds (aliases, routing rules, classes) come after
// the models, in the place marked by the error.
//
// The error is a *NotFoundError or an *ExpansionError.
func (s *Snapshot) Resolve(tenant, name string) (Plan, error) {
	if _, ok := s.tenants[tenant]; !ok {
		return Plan{}, &NotFoundError{Name: name}
	}
	model, ok := s.models[name]
	if !ok {
		return Plan{}, &NotFoundError{Name: name}
	}
	stages, err := s.expand(model)
	if err != nil {
		return Plan{}, err
	}
	return Plan{RequestedModel: name, CanonicalModel: model.Slug, Stages: stages}, nil
}

func (s *Snapshot) expand(m *Model) ([]Stage, error) {
	x := expansion{snapshot: s, visited: map[string]bool{m.Slug: true}}
	if err := x.expand(m); err != nil {
		return nil, err
	}
	return x.stages, nil
}

// expansion walks a chain and the chains it refers to, depth first. With
// A = [a1, ->B, a2] and B = [b1, ->A, b2] it yields a1, b1, (A skipped), b2, a2
// (N17).
type expansion struct {
	snapshot *Snapshot
	visited  map[string]bool
	stages   []Stage
	rungs    int
}

func (x *expansion) expand(m *Model) error {
	var rungs []Candidate
	for _, rung := range m.Chain {
		if x.rungs == MaxRungs {
			return &ExpansionError{Model: m.Slug, Bound: "rungs", Limit: MaxRungs}
		}
		candidate := Candidate{Index: x.rungs, Rung: rung}
		x.rungs++
		if rung.Model == "" {
			rungs = append(rungs, x.reach(candidate))
			continue
		}
		// A reference ends the stage, whether it is followed or not (N19).
		next := x.snapshot.models[rung.Model]
		switch {
		case next == nil:
			candidate.Skip = SkipUnresolved
		case x.visited[next.Slug]:
			candidate.Skip = SkipModelAlreadyVisited
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
	return nil
}

func (x *expansion) follow(m *Model) error {
	if len(x.visited) == MaxModels {
		return &ExpansionError{Model: m.Slug, Bound: "models", Limit: MaxModels}
	}
	x.visited[m.Slug] = true
	return x.expand(m)
}

// reach finds the deployment and the provider of a direct rung. One that has
// disappeared since the chain was written is a skip with a reason, never a reason
// to call something else.
func (x *expansion) reach(c Candidate) Candidate {
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

func (x *expansion) add(m *Model, rungs []Candidate) {
	if len(rungs) > 0 {
		x.stages = append(x.stages, Stage{Model: m, Policy: x.snapshot.policies[m.Slug], Rungs: rungs})
	}
}
