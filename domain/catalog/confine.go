package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// ConfinedError is a name that a confined key may not use (N13). It reads to the
// caller as a model that does not exist.
type ConfinedError struct{ Name string }

func (e *ConfinedError) Error() string { return fmt.Sprintf("the key may not use %q", e.Name) }

// confine holds a request to what its key may use. A key that is confined to a class
// has that class whatever the request says; a key with a list of models may use
// those names and no class: nothing in the request widens it.
func confine(ask Ask) (Ask, error) {
	switch key := ask.Key; {
	case key == nil:
		return ask, nil
	case key.Class != "":
		named, isClass := strings.CutPrefix(ask.Name, ClassPrefix)
		if other := ask.Class != "" && ask.Class != key.Class; other || isClass && named != key.Class {
			return ask, &ConfinedError{Name: ask.Name}
		}
		ask.Class = key.Class
		return ask, nil
	case len(key.Models) > 0:
		if ask.Class != "" || !slices.Contains(key.Models, ask.Name) {
			return ask, &ConfinedError{Name: ask.Name}
		}
	}
	return ask, nil
}

// Visible lists the names that a key may ask for, sorted (N13). A key that is confined
// to a class has no other name than the class; one with a list has the names of it
// that lead somewhere. The slice is read-only.
func (s *Snapshot) Visible(key *Key) []ModelInfo {
	switch {
	case key.Class != "":
		if s.chainOfClass(key.Class) == nil {
			return nil
		}
		return []ModelInfo{{Slug: ClassPrefix + key.Class, Since: key.CreatedAt}}
	case len(key.Models) == 0:
		return s.Models(key.Tenant)
	}
	names := s.names[key.Tenant]
	if names == nil {
		return nil
	}
	var list []ModelInfo
	for _, name := range set(key.Models) {
		if i, ok := slices.BinarySearchFunc(s.infos, name, func(m ModelInfo, slug string) int { return strings.Compare(m.Slug, slug) }); ok {
			list = append(list, s.infos[i])
		} else if names.rules[name] != nil || names.aliases[name] != nil || s.leadsFree(key.Tenant, name) {
			list = append(list, ModelInfo{Slug: name, Since: key.CreatedAt})
		}
	}
	return list
}
