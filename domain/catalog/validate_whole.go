package catalog

import (
	"errors"
	"fmt"
)

// whole checks what only all objects together show: where chains lead, and what names
// stand for.
func (v *validation) whole(o Objects) {
	w := wholeCheck{validation: v, snapshot: newSnapshot(o), referrers: map[string][]*Model{}}
	for i := range o.Models {
		m := &o.Models[i]
		w.chain(at("models", i)+".chain", m, nil)
		for _, r := range m.Chain {
			if r.Model != "" {
				w.referrers[r.Model] = append(w.referrers[r.Model], m)
			}
		}
	}
	for i, c := range o.Classes {
		// An organization's own alias of the same name is the organization's affair.
		w.names(at("classes", i)+".chain", c.Chain, &tenantNames{aliases: w.snapshot.defaults})
	}
	for i, t := range o.Tenants {
		names := w.snapshot.names[t.ID]
		for j, r := range t.RoutingRules {
			w.names(at("tenants", i)+"."+at("routing_rules", j)+".chain", r.Chain, names)
		}
		for j, c := range t.Chains {
			w.override(at("tenants", i)+"."+at("chains", j)+".chain", c.Model, names)
		}
	}
}

type wholeCheck struct {
	*validation
	snapshot *Snapshot
	// referrers are the models whose operator's chain refers to a model.
	referrers map[string][]*Model
}

// chain refuses what would be an error for every request (N18).
func (w *wholeCheck) chain(path string, m *Model, tenant *tenantNames) bool {
	_, err := w.snapshot.expand(m, tenant)
	return !w.tooLong(path, err)
}

func (w *wholeCheck) tooLong(path string, err error) bool {
	bound, ok := errors.AsType[*ExpansionError](err)
	if ok {
		w.fail(path, "with everything it refers to it has more than %d %s", bound.Limit, bound.Bound)
	}
	return ok
}

// override checks an organization's own chain, and every chain that comes to it by
// references: it stands there in the place of the operator's.
func (w *wholeCheck) override(path, model string, tenant *tenantNames) {
	todo, seen := []*Model{w.snapshot.models[model]}, map[string]bool{model: true}
	for len(todo) > 0 {
		m := todo[0]
		todo = todo[1:]
		if !w.chain(path, m, tenant) {
			return
		}
		for _, referrer := range w.referrers[m.Slug] {
			if !seen[referrer.Slug] && tenant.own[referrer.Slug] == nil {
				seen[referrer.Slug] = true
				todo = append(todo, referrer)
			}
		}
	}
}

// names refuses a chain of names that grows past a bound, and one of which two
// neighbouring positions resolve to the same model: the second could only repeat the
// first (N8).
func (w *wholeCheck) names(path string, chain []string, names *tenantNames) {
	if i := w.snapshot.repeats(chain, names); i >= 0 {
		w.fail(fmt.Sprintf("%s[%d]", path, i), "resolves to the same model as the position before it")
	}
	_, err := w.snapshot.resolveChain(Ask{}, chain, names, false)
	w.tooLong(path, err)
}
