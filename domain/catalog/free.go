package catalog

import (
	"slices"
	"strings"
)

// FreeSuffix asks for a name free of charge or not at all: "fable-5:free" (M10).
const FreeSuffix = ":free"

// asksFree reports whether a request asks for another name free of charge, and which.
// A name that is somebody's own means itself, whatever it ends in.
func (s *Snapshot) asksFree(ask Ask, tenant *tenantNames) (base string, free bool) {
	base, free = strings.CutSuffix(ask.Name, FreeSuffix)
	if !free || base == "" || strings.HasSuffix(base, FreeSuffix) {
		return "", false
	}
	_, rule := tenant.rules[ask.Name]
	_, model := s.models[ask.Name]
	_, alias := tenant.aliases[ask.Name]
	_, class := s.classNamed(ask.Name)
	if class && strings.HasPrefix(ask.Name, ClassPrefix) {
		// "class/NAME:free" is the class NAME, unless there is one of the whole name.
		class = s.chainOfClass(strings.TrimPrefix(ask.Name, ClassPrefix)) != nil
	}
	return base, !rule && !model && !alias && !class
}

// resolveFree resolves the name that a request asks for free of charge. A key that is
// confined to models may use them free too, and one that names the free ones no other
// (N13). Where no promotion gives away anything of the plan, the name means nothing.
func (s *Snapshot) resolveFree(ask Ask, base string) (Plan, error) {
	asked := ask.Name
	if k := ask.Key; k != nil && k.Class == "" && ask.Class == "" && slices.Contains(k.Models, asked) {
		ask.Key = nil
	}
	ask.Name = base
	plan, err := s.Resolve(ask)
	if err != nil {
		return Plan{}, renamed(err, asked)
	}
	plan.RequestedModel, plan.FreeOnly = asked, true
	tenant := s.tenants[ask.Tenant]
	gives := func(stage Stage) bool {
		return slices.ContainsFunc(tenant.Promotions, func(p Promotion) bool { return p.Gives(stage.Model.Slug) })
	}
	if !slices.ContainsFunc(plan.Stages, gives) {
		return Plan{}, &NotFoundError{Name: asked}
	}
	return plan, nil
}

// leadsFree reports whether a name asks for another one free of charge and leads
// somewhere.
func (s *Snapshot) leadsFree(tenant, name string) bool {
	plan, err := s.Resolve(Ask{Tenant: tenant, Name: name})
	return err == nil && plan.FreeOnly
}

// renamed says an error of the name that was asked for.
func renamed(err error, asked string) error {
	switch err.(type) {
	case *NotFoundError:
		return &NotFoundError{Name: asked}
	case *ConfinedError:
		return &ConfinedError{Name: asked}
	case *AliasError:
		return &AliasError{Name: asked}
	}
	return err
}
