package adminapi

import (
	"slices"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// shownChain is a chain as it was written, and what became of it (C5).
type shownChain struct {
	Chain []catalog.Rung      `json:"chain"`
	State catalog.ChainState  `json:"state"`
	Rungs []catalog.RungState `json:"rungs"`
}

func (a *API) judged(objects catalog.Objects, t target, chain []catalog.Rung) shownChain {
	state, rungs := catalog.JudgeChain(objects, t.id.Tenant, t.id.Name, chain, catalog.At{Holds: a.Holds, Refuses: a.Refuses})
	if len(chain) == 0 {
		chain = []catalog.Rung{}
		if t.id.Kind == catalog.KindTenantChain {
			state = catalog.NoOverride
		}
	}
	if t.visible {
		hidden := objects.Masked
		chain = catalog.VisibleRungs(chain, hidden)
		rungs = slices.DeleteFunc(rungs, func(r catalog.RungState) bool { return hidden(r.Rung) })
	}
	return shownChain{chain, state, rungs}
}

// place puts what was written into the catalog. An organization's empty chain is
// the reset of its override (C4).
func (t target) place(objects catalog.Objects, value any) (catalog.Objects, error) {
	switch v := value.(type) {
	case catalog.ModelChain:
		stored, _ := objects.Find(t.id)
		have, _ := stored.(catalog.ModelChain)
		v.Chain = t.unseen(objects, have.Chain, v.Chain)
		return objects.With(v)
	case catalog.ChainOverride:
		if len(v.Chain) == 0 {
			return objects.Without(t.id)
		}
		stored, _ := objects.Find(t.id)
		have, _ := stored.(catalog.ChainOverride)
		v.Chain = t.unseen(objects, have.Chain, v.Chain)
		return objects.With(v)
	}
	return objects.With(value)
}

// unseen is a wanted chain with the rungs that its editor did not see where they were
// (C7).
func (t target) unseen(objects catalog.Objects, stored, wanted []catalog.Rung) []catalog.Rung {
	if !t.visible {
		return wanted
	}
	return catalog.KeepHidden(stored, catalog.VisibleRungs(wanted, objects.Masked), objects.Masked)
}

// noOverride stands for an organization's chain that is not there: that is a state
// and not an error (C5), as long as both of its ends exist.
func noOverride(o catalog.Objects, id catalog.ObjectID) (any, bool) {
	if id.Kind != catalog.KindTenantChain {
		return nil, false
	}
	_, tenant := o.Find(catalog.ObjectID{Kind: catalog.KindTenant, Name: id.Tenant})
	_, model := o.Find(catalog.ObjectID{Kind: catalog.KindModel, Name: id.Name})
	return catalog.ChainOverride{Tenant: id.Tenant, TenantChain: catalog.TenantChain{Model: id.Name}}, tenant && model
}
