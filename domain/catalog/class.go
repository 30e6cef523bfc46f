package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Priority says who yields when capacity is short. It is a property of the request;
// a class is a kind of work (N12).
type Priority string

// The priorities of x-sluice-priority.
const (
	Realtime   Priority = "realtime"
	Background Priority = "background"
)

// ClassPrefix names a class in a request's model field: "class/summarize" (N9).
const ClassPrefix = "class/"

// assistantClass lends its chain to the classes that may borrow.
const assistantClass = "assistant"

// builtInClasses are the classes that exist without configuration (N9).
var builtInClasses = []string{assistantClass, "background", "session-name", "summarize", "compaction", "vision"}

// borrows reports whether a class without a chain of its own serves from
// assistant's (N10).
func borrows(class string) bool { return class == "background" || class == "session-name" }

// DefaultPriority is the priority of a class's requests that name none (N12).
func DefaultPriority(class string) Priority {
	switch class {
	case "summarize", "compaction":
		return Background
	}
	return Realtime
}

// ClassError is a class that has no chain (N10).
type ClassError struct{ Class string }

func (e *ClassError) Error() string {
	return fmt.Sprintf("class %q has no chain; give it one under classes in sluice.yaml", e.Class)
}

// classNamed reports whether a requested name means a class, and which.
func (s *Snapshot) classNamed(name string) (string, bool) {
	if class, ok := strings.CutPrefix(name, ClassPrefix); ok {
		return class, true
	}
	_, configured := s.classes[name]
	return name, configured || slices.Contains(builtInClasses, name)
}

// ClassNamed is the class that an organization's request for a name means, empty where
// the name is a rule, a model, an alias or nothing.
func (s *Snapshot) ClassNamed(tenant, name string) string {
	if names := s.names[tenant]; names != nil {
		_, alias := names.aliases[name]
		if names.rules[name] != nil || s.models[name] != nil || alias {
			return ""
		}
	}
	class, _ := s.classNamed(name)
	return class
}

// chainOfClass is the chain that a class serves from, nil if it has none.
func (s *Snapshot) chainOfClass(class string) []string {
	if chain := s.classes[class]; len(chain) > 0 {
		return chain
	}
	if borrows(class) {
		return s.classes[assistantClass]
	}
	return nil
}
