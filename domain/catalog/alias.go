package catalog

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/shopspring/decimal"
)

// DefaultAliases are what every tenant has from the start (N2). A tenant's own alias
// of the same name takes its place.
func DefaultAliases() []Alias {
	return []Alias{
		{Name: "fast", Capabilities: []Capability{Chat}, CostTier: Cheapest},
		{Name: "balanced", Capabilities: []Capability{Chat}, CostTier: Balanced},
		{Name: "best", Capabilities: []Capability{Chat}, CostTier: Best},
		{Name: "transcribe", Capabilities: []Capability{Transcription}},
	}
}

// AliasError is an alias that nothing fits (N2).
type AliasError struct{ Name string }

func (e *AliasError) Error() string { return fmt.Sprintf("no model fits the alias %q", e.Name) }

// fit is the model that an alias stands for in this catalog, nil if none. A pin that
// resolves wins outright; a pin that is gone falls through to the constraints (N3).
// Then: filter, order, and break ties by id, so that the same catalog always
// resolves the same way (N4).
func (s *Snapshot) fit(a Alias) *Model {
	if m := s.models[a.Pin]; a.Pin != "" && m != nil {
		return m
	}
	var fits []candidateModel
	for i := range s.objects.Models {
		if c := s.candidate(&s.objects.Models[i], a); c != nil {
			fits = append(fits, *c)
		}
	}
	if len(fits) == 0 {
		return nil
	}
	return slices.MinFunc(fits, func(x, y candidateModel) int {
		byPrice := x.price.Cmp(y.price)
		if a.CostTier == Best {
			byPrice = -byPrice
		}
		return cmp.Or(cmp.Compare(x.preference, y.preference), comparePriced(x, y), byPrice, cmp.Compare(x.model.Slug, y.model.Slug))
	}).model
}

// candidateModel is a model that an alias's constraints let pass, and what orders
// it.
type candidateModel struct {
	model *Model
	// preference is the rank of its most preferred provider; one that is not named
	// sorts after all that are, and is not excluded (N5).
	preference int
	price      decimal.Decimal
	priced     bool
}

// comparePriced puts a model without a known price last in either direction: it
// cannot serve.
func comparePriced(x, y candidateModel) int {
	switch {
	case x.priced == y.priced:
		return 0
	case x.priced:
		return -1
	}
	return 1
}

// candidate looks at a model through its own deployments: each constraint must be
// met by one that meets them all. A window that is not declared passes no window
// filter (N4).
func (s *Snapshot) candidate(m *Model, a Alias) *candidateModel {
	var best *candidateModel
	for _, rung := range m.Chain {
		d := s.deployments[rung.Deployment]
		if d == nil || !meets(d, a) {
			continue
		}
		c := candidateModel{model: m, preference: math.MaxInt}
		if i := slices.Index(a.ProviderPreference, d.Provider); i >= 0 {
			c.preference = i
		}
		if c.priced = d.Prices.Input != nil; c.priced {
			c.price = *d.Prices.Input
		}
		if best == nil || c.preference < best.preference {
			best = &c
		}
	}
	return best
}

func meets(d *Deployment, a Alias) bool {
	if a.MinContextWindow > 0 && d.Context.Total < a.MinContextWindow {
		return false
	}
	for _, need := range a.Capabilities {
		// A list that was never declared is taken at its word for chat alone.
		if declared := d.Capabilities; !slices.Contains(declared, need) && (declared != nil || need != Chat) {
			return false
		}
	}
	return true
}

// Unresolvable lists the aliases of a tenant that nothing fits, sorted: what begins
// to be one is told by an AliasDegraded event (N2). It reads what was worked out when
// the snapshot was built: fitting every tenant's default aliases again took 12 s with
// 10,000 models and 2,000 tenants.
func (s *Snapshot) Unresolvable(tenant string) []string {
	names := s.names[tenant]
	if names == nil {
		return nil
	}
	var list []string
	for name, model := range names.aliases {
		if model == nil {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
