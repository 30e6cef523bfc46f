package fakeprovider

import (
	"encoding/json"
	"strings"
)

// schema is the part of JSON Schema that examples are made from.
type schema struct {
	Type       any               `json:"type"` // a name or a list of names
	Enum       []json.RawMessage `json:"enum"`
	Const      json.RawMessage   `json:"const"`
	Properties properties        `json:"properties"`
	Items      *schema           `json:"items"`
	MinItems   int               `json:"minItems"`
	Minimum    *float64          `json:"minimum"`
	AnyOf      []*schema         `json:"anyOf"`
	OneOf      []*schema         `json:"oneOf"`
	AllOf      []*schema         `json:"allOf"`
	Ref        string            `json:"$ref"`

	Defs        map[string]*schema `json:"$defs"`
	Definitions map[string]*schema `json:"definitions"`
}

// Schemas come from callers and may refer to themselves: depth and width of
// an example are bounded.
const (
	maxSchemaDepth = 16
	maxSchemaItems = 16
	maxExampleSize = 64 << 10
)

// exampleOf returns a small JSON text of the schema's shape: an object for a
// schema that is absent or not understood.
func exampleOf(raw json.RawMessage) string {
	var root schema
	if len(raw) == 0 || json.Unmarshal(raw, &root) != nil {
		return "{}"
	}
	return string(appendExample(nil, &root, &root, 0))
}

// argumentsFor is exampleOf for a tool's parameters: arguments are an object
// even if the schema does not say so.
func argumentsFor(raw json.RawMessage) string {
	if example := exampleOf(raw); example[0] == '{' {
		return example
	}
	return "{}"
}

func appendExample(b []byte, s, root *schema, depth int) []byte {
	if s == nil || depth > maxSchemaDepth || len(b) > maxExampleSize {
		return append(b, "null"...)
	}
	for _, choices := range [][]*schema{s.AnyOf, s.OneOf, s.AllOf} {
		if len(choices) > 0 {
			return appendExample(b, choices[0], root, depth+1)
		}
	}
	switch {
	case s.Ref != "":
		return appendExample(b, root.lookUp(s.Ref), root, depth+1)
	case s.Const != nil:
		return append(b, s.Const...)
	case len(s.Enum) > 0:
		return append(b, s.Enum[0]...)
	}
	switch s.typeName() {
	case "object":
		return appendObject(b, s, root, depth)
	case "array":
		b = append(b, '[')
		for i := range min(max(s.MinItems, 1), maxSchemaItems) {
			b = appendComma(b, i)
			b = appendExample(b, s.Items, root, depth+1)
		}
		return append(b, ']')
	case "integer", "number":
		if s.Minimum != nil {
			number, _ := json.Marshal(*s.Minimum) // a JSON number is finite
			return append(b, number...)
		}
		return append(b, '1')
	case "boolean":
		return append(b, "true"...)
	case "null":
		return append(b, "null"...)
	default:
		return append(b, `"text"`...)
	}
}

func appendObject(b []byte, s, root *schema, depth int) []byte {
	b = append(b, '{')
	for i, property := range s.Properties {
		b = appendComma(b, i)
		b = appendString(b, property.name)
		b = append(b, ':')
		b = appendExample(b, property.schema, root, depth+1)
	}
	return append(b, '}')
}

func (s *schema) typeName() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			name, _ := t[0].(string)
			return name
		}
	}
	if len(s.Properties) > 0 {
		return "object"
	}
	return ""
}

// lookUp resolves a reference inside the document, "#/$defs/Name".
func (s *schema) lookUp(ref string) *schema {
	if ref == "#" {
		return s
	}
	if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		return s.Defs[name]
	}
	if name, ok := strings.CutPrefix(ref, "#/definitions/"); ok {
		return s.Definitions[name]
	}
	return nil
}

// properties keeps the order of the document: answers are deterministic.
type properties []property

type property struct {
	name   string
	schema *schema
}

// UnmarshalJSON reads an object in the order of its members.
func (p *properties) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var s schema
		if err := decoder.Decode(&s); err != nil {
			return err
		}
		text, _ := name.(string) // a member's name is a string
		*p = append(*p, property{text, &s})
	}
	return nil
}
