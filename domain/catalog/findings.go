package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Finding is a Problem said about an object instead of a place in a file, for those
// who edit one object at a time.
type Finding struct {
	Object string `json:"object,omitempty"`
	// Field is where in the object: chain[1].model. Empty is the object as a whole.
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
}

func (f Finding) String() string {
	switch {
	case f.Object == "":
		return f.Reason
	case f.Field == "":
		return fmt.Sprintf("%s: %s", f.Object, f.Reason)
	}
	return fmt.Sprintf("%s: %s: %s", f.Object, f.Field, f.Reason)
}

// NewFindings validates a catalog and tells what is wrong with it that was not
// wrong before. A catalog may hold something that only a newer release refuses;
// that must not keep every other object from being edited.
func NewFindings(before, after Objects) []Finding {
	list := findings(after)
	if len(list) == 0 {
		return nil
	}
	old := findings(before)
	return slices.DeleteFunc(list, func(f Finding) bool { return slices.Contains(old, f) })
}

func findings(o Objects) []Finding {
	problems := Validate(o)
	list := make([]Finding, len(problems))
	for i, p := range problems {
		list[i] = locate(o, p)
	}
	return list
}

var listPath = regexp.MustCompile(`^(\w+)\[(\d+)\]\.?(.*)$`)

// locate says which object a problem is about.
func locate(o Objects, p Problem) Finding {
	list, i, rest, ok := cutPath(p.Path)
	if !ok {
		return Finding{Field: p.Path, Reason: p.Reason}
	}
	var value any
	switch list {
	case "providers":
		value = o.Providers[i]
	case "deployments":
		value = o.Deployments[i]
	case "models":
		value = o.Models[i]
	case "classes":
		value = o.Classes[i]
	case "tiers":
		value = o.Tiers[i]
	case "tenants":
		value, rest = locateOwned(o.Tenants[i], rest)
	case "webhooks":
		value = o.Webhooks[i]
	}
	return Finding{Object: Identify(value).String(), Field: rest, Reason: p.Reason}
}

// locateOwned goes on into a tenant's lists.
func locateOwned(t Tenant, path string) (value any, field string) {
	list, i, rest, ok := cutPath(path)
	if ok {
		switch list {
		case "aliases":
			return TenantAlias{t.ID, t.Aliases[i]}, rest
		case "routing_rules":
			return TenantRule{t.ID, t.RoutingRules[i]}, rest
		case "budgets":
			return TenantBudget{t.ID, t.Budgets[i]}, rest
		case "connections":
			return TenantConnection{t.ID, t.Connections[i]}, rest
		case "chains":
			return ChainOverride{t.ID, t.Chains[i]}, rest
		case "promotions":
			return TenantPromotion{t.ID, t.Promotions[i]}, rest
		case "webhooks":
			return TenantWebhook{t.ID, t.Webhooks[i]}, rest
		}
	}
	return t, path
}

func cutPath(path string) (list string, i int, rest string, ok bool) {
	m := listPath.FindStringSubmatch(path)
	if m == nil {
		return "", 0, path, false
	}
	i, err := strconv.Atoi(m[2])
	return m[1], i, m[3], err == nil
}
