package gemini

import (
	"slices"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

// write writes what has been read.
func (s *schemaWriter) write(f *facts) {
	if s.err != nil {
		return
	}
	depth := len(s.open)
	s.open = append(s.open, f.refs...)
	s.raw("{")
	switch {
	case len(f.anyOf) > 0:
		// Beside its alternatives a schema may say nothing else but what it is for.
		s.key("anyOf")
		s.raw("[")
		for i, v := range f.anyOf {
			s.comma(i)
			s.node(v)
		}
		s.raw("]")
	case len(f.types) > 1:
		s.key("anyOf")
		s.raw("[")
		for i, t := range f.types {
			s.comma(i)
			s.raw("{")
			s.typed(f, t)
			s.raw("}")
		}
		s.raw("]")
	default:
		s.typed(f, f.types[0])
	}
	if f.description != "" {
		s.key("description")
		s.dst = rawjson.AppendQuoted(s.dst, f.description)
	}
	if f.nullable {
		s.key("nullable")
		s.raw("true")
	}
	s.raw("}")
	s.open = s.open[:depth]
}

func (s *schemaWriter) comma(i int) {
	if i > 0 {
		s.raw(",")
	}
}

// formats are the ones that are known for a type. Any other is refused.
var formats = map[string][]string{
	"STRING":  {"enum", "date-time"},
	"NUMBER":  {"float", "double"},
	"INTEGER": {"int32", "int64"},
}

// typed writes what belongs to one type.
func (s *schemaWriter) typed(f *facts, t string) {
	s.key("type")
	s.dst = rawjson.AppendQuoted(s.dst, t)
	if slices.Contains(formats[t], f.format) {
		s.key("format")
		s.raw(`"` + f.format + `"`)
	}
	if t == "STRING" && len(f.enum) > 0 {
		s.key("enum")
		s.raw("[")
		for i, v := range f.enum {
			s.comma(i)
			s.raw(v.Raw)
		}
		s.raw("]")
	}
	for _, b := range f.bounds {
		if boundOf(b.name, t) {
			s.key(b.name)
			s.raw(b.schema.Raw)
		}
	}
	switch t {
	case "OBJECT":
		s.object(f)
	case "ARRAY":
		s.key("items")
		// An array must say what is in it, be it anything.
		s.node(f.items)
	}
}

// boundOf reports whether a bound is one of a type.
func boundOf(bound, t string) bool {
	switch bound {
	case "minimum", "maximum":
		return t == "NUMBER" || t == "INTEGER"
	case "minItems", "maxItems":
		return t == "ARRAY"
	case "minProperties", "maxProperties":
		return t == "OBJECT"
	default:
		return t == "STRING"
	}
}

func (s *schemaWriter) object(f *facts) {
	if len(f.properties) == 0 {
		return
	}
	s.key("properties")
	s.raw("{")
	names := make([]string, len(f.properties))
	for i, p := range f.properties {
		s.comma(i)
		s.dst = rawjson.AppendQuoted(s.dst, p.name)
		s.raw(":")
		s.node(p.schema)
		names[i] = p.name
	}
	s.raw("}")
	// A required property that is not described is refused.
	required := slices.DeleteFunc(slices.Clone(f.required), func(name string) bool { return !slices.Contains(names, name) })
	s.names("required", required)
	if s.ordered {
		s.names("propertyOrdering", names)
	}
}

func (s *schemaWriter) names(key string, names []string) {
	if len(names) == 0 {
		return
	}
	s.key(key)
	s.raw("[")
	for i, name := range names {
		s.comma(i)
		s.dst = rawjson.AppendQuoted(s.dst, name)
	}
	s.raw("]")
}
