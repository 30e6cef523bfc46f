package catalog

// ChainState tells apart what would all read as "there is no chain" (C5).
type ChainState string

// The states of a chain.
const (
	// NoOverride: the organization has no chain of its own and uses the operator's.
	NoOverride ChainState = "no_override"
	// EmptyChain: a chain was written and holds nothing.
	EmptyChain ChainState = "empty"
	// AvailableChain: a request would begin with a direct rung.
	AvailableChain ChainState = "available"
	// UnavailableChain: no direct rung can be called, or only after a reference to
	// another model. Requests are refused, never served by something else (C6).
	UnavailableChain ChainState = "unavailable"
)

// RungState is a rung of a chain and why it cannot be called, empty if it can as far
// as the configuration says.
type RungState struct {
	Rung
	Unusable string `json:"unusable,omitempty"`
}

// The reasons of an unusable rung, in the words of the trail.
const (
	unusableUnresolved = SkipUnresolved
	unusableCredential = "credential_missing"
	unusableBaseURL    = "base_url_refused"
)

// At is what a worker has at hand for the providers that it may call.
type At struct {
	// Holds reports whether a provider's key is there; a provider without keys needs
	// none.
	Holds func(p *Provider, keyID string) bool
	// Refuses reports whether a base URL would not be called (Z1). Nil refuses none.
	Refuses func(baseURL string) bool
}

// JudgeChain tells the state of a chain and of each of its rungs: the operator's for
// a model, or with a tenant that organization's own.
func JudgeChain(o Objects, tenant, model string, chain []Rung, at At) (ChainState, []RungState) {
	if len(chain) == 0 {
		return EmptyChain, []RungState{}
	}
	rungs, ownServe := make([]RungState, len(chain)), false
	for i, r := range chain {
		rungs[i] = RungState{Rung: r, Unusable: unusable(o, tenant, model, r, at)}
		ownServe = ownServe || r.Connection != "" && rungs[i].Unusable == ""
	}
	from, agreed := o.surchargedFrom(tenant, model, chain)
	state, decided := UnavailableChain, false
	for i, r := range chain {
		// What follows an organization's own rungs at a surcharge never serves in their
		// place (M12).
		surcharged := i >= from && r.Deployment != ""
		if surcharged && rungs[i].Unusable == "" && !(agreed && ownServe) {
			rungs[i].Unusable = SkipSurchargeNotEnabled
		}
		if decided || surcharged || rungs[i].Unusable != "" {
			continue
		}
		// The first rung that can be called decides: a reference does not serve in the
		// place of the model's own rungs.
		decided = true
		if r.Model == "" {
			state = AvailableChain
		}
	}
	return state, rungs
}

func unusable(o Objects, tenant, model string, r Rung, at At) string {
	if r.Model != "" {
		next, ok := find(o.Models, ObjectID{Kind: KindModel, Name: r.Model})
		if !ok {
			return unusableUnresolved
		}
		if m, ok := find(o.Models, ObjectID{Kind: KindModel, Name: model}); ok && tenant != "" && m.keepsTo(&next) {
			return SkipNotSameModel
		}
		return ""
	}
	p, ok := o.providerOf(tenant, model, r)
	if !ok {
		return unusableUnresolved
	}
	if at.Refuses != nil && at.Refuses(p.BaseURL) {
		return unusableBaseURL
	}
	for _, k := range p.Keys {
		if at.Holds(&p, k.ID) {
			return ""
		}
	}
	if len(p.Keys) == 0 {
		return ""
	}
	return unusableCredential
}

// providerOf is the provider that a direct rung calls, with the keys it is called
// with; none if the rung leads nowhere.
func (o Objects) providerOf(tenant, model string, r Rung) (Provider, bool) {
	if r.Connection == "" {
		d, ok := find(o.Deployments, ObjectID{Kind: KindDeployment, Name: r.Deployment})
		if !ok {
			return Provider{}, false
		}
		return find(o.Providers, ObjectID{Kind: KindProvider, Name: d.Provider})
	}
	t, _ := find(o.Tenants, ObjectID{Kind: KindTenant, Name: tenant})
	c, ok := t.Connection(r.Connection)
	if !ok {
		return Provider{}, false
	}
	p, ok := find(o.Providers, ObjectID{Kind: KindProvider, Name: c.Provider})
	m, _ := find(o.Models, ObjectID{Kind: KindModel, Name: model})
	byID := func(id string) *Deployment {
		if d, ok := find(o.Deployments, ObjectID{Kind: KindDeployment, Name: id}); ok {
			return &d
		}
		return nil
	}
	if !ok || deploymentOn(p.ID, &m, byID) == nil {
		return Provider{}, false
	}
	return *c.through(p, t.ID), true
}
