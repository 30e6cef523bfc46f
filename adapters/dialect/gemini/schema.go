package gemini

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

const (
	// maxSchemaNodes bounds one schema with its references written out: ten definitions
	// that each use the next one ten times are small and come to ten thousand million.
	maxSchemaNodes = 10_000
	// maxSchemaBytes bounds the same in bytes, texts included.
	maxSchemaBytes = 1 << 20
)

// schema says a JSON schema in the few words that Google's Schema has; one word more
// and the whole request is refused. What is rewritten and what is left out is in the
// table of what is dropped (P5). It is nil for a schema that says nothing, such as the
// one of a function without parameters.
//
// A schema that refers to itself has no end when it is written out: the error names
// the field.
func (w *writer) schema(raw json.RawMessage, field string, ordered bool) []byte {
	if len(raw) == 0 {
		return nil
	}
	doc, ok := rawjson.Parse(raw)
	if !ok {
		w.fail(&dialect.InvalidError{Param: field, Message: "The schema of " + field + " must be a JSON object nested at most " + strconv.Itoa(rawjson.MaxDepth) + " deep."})
		return nil
	}
	s := schemaWriter{root: doc, field: field, ordered: ordered, open: []string{"#"}}
	f := s.read(doc)
	if s.err == nil && len(f.properties) == 0 && len(f.anyOf) == 0 && f.isObject() {
		return nil
	}
	s.write(f)
	if s.err != nil {
		w.fail(s.err)
		return nil
	}
	return s.dst
}

type schemaWriter struct {
	root  gjson.Result
	field string
	// ordered writes the order of properties down: without it they come in the order of
	// their names.
	ordered bool
	dst     []byte
	nodes   int
	// open are the references that the schema being written stands inside of, and chain
	// those that have led to the one being read.
	open  []string
	chain []string
	err   error
}

func (s *schemaWriter) fail(why string) {
	if s.err == nil {
		s.err = &dialect.InvalidError{Param: s.field, Message: "The schema of " + s.field + " " + why}
	}
}

func (s *schemaWriter) raw(text string) { s.dst = append(s.dst, text...) }

func (s *schemaWriter) key(name string) {
	if s.dst[len(s.dst)-1] != '{' {
		s.raw(",")
	}
	s.raw(`"` + name + `":`)
}

// facts are what is kept of a schema, after its references and its allOf have been
// taken in.
type facts struct {
	types       []string
	nullable    bool
	format      string
	description string
	enum        []gjson.Result
	properties  []property
	required    []string
	items       gjson.Result
	anyOf       []gjson.Result
	// bounds are kept as they stand.
	bounds []property
	// refs are the references that were followed to come by all this.
	refs []string
}

type property struct {
	name   string
	schema gjson.Result
}

// boundKeywords are the bounds that both sides know.
var boundKeywords = []string{
	"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "pattern",
}

// node writes one schema.
func (s *schemaWriter) node(v gjson.Result) { s.write(s.read(v)) }

// read takes a schema in and makes of it what can be written.
func (s *schemaWriter) read(v gjson.Result) *facts {
	f := &facts{}
	s.take(f, v)
	s.optional(f)
	f.guessType()
	f.spellEnum()
	return f
}

// take reads a schema's members into f. What f has already comes from nearer by and
// stays.
func (s *schemaWriter) take(f *facts, v gjson.Result) {
	if s.nodes++; s.nodes > maxSchemaNodes || len(s.dst) > maxSchemaBytes {
		s.fail("is too large with its references written out.")
	}
	if s.err != nil || !v.IsObject() {
		return
	}
	var ref string
	var all []gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "$ref":
			ref = v.Str
		case "allOf":
			all = v.Array()
		default:
			f.member(key.Str, v)
		}
		return true
	})
	if ref != "" {
		s.follow(f, ref)
	}
	for _, part := range all {
		s.take(f, part)
	}
}

// follow takes in what a reference points at.
func (s *schemaWriter) follow(f *facts, ref string) {
	switch {
	case slices.Contains(s.open, ref), slices.Contains(s.chain, ref):
		s.fail("refers to itself, which this model's provider cannot take.")
		return
	case slices.Contains(f.refs, ref):
		return // by another part of an allOf
	}
	target, ok := s.resolve(ref)
	if !ok {
		s.fail("has a $ref that leads nowhere.")
		return
	}
	f.refs = append(f.refs, ref)
	s.chain = append(s.chain, ref)
	s.take(f, target)
	s.chain = s.chain[:len(s.chain)-1]
}

// resolve finds what a JSON pointer into the schema's own document points at.
func (s *schemaWriter) resolve(ref string) (gjson.Result, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return gjson.Result{}, false
	}
	at := s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if step == "" {
			continue
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var found gjson.Result
		i := 0
		list := at.IsArray()
		at.ForEach(func(key, v gjson.Result) bool {
			if (!list && key.Str == step) || (list && strconv.Itoa(i) == step) {
				found = v
				return false
			}
			i++
			return true
		})
		if !found.Exists() {
			return gjson.Result{}, false
		}
		at = found
	}
	return at, at.IsObject()
}

func (f *facts) member(key string, v gjson.Result) {
	switch key {
	case "type":
		if f.types == nil {
			f.setTypes(v)
		}
	case "nullable":
		f.nullable = f.nullable || v.Bool()
	case "format":
		f.format = cmp.Or(f.format, v.Str)
	case "description":
		f.description = cmp.Or(f.description, v.Str)
	case "const":
		if f.enum == nil {
			f.enum = []gjson.Result{v}
		}
	case "enum":
		if f.enum == nil {
			f.enum = v.Array()
		}
	case "properties":
		v.ForEach(func(key, v gjson.Result) bool {
			if !slices.ContainsFunc(f.properties, func(p property) bool { return p.name == key.Str }) {
				f.properties = append(f.properties, property{key.Str, v})
			}
			return true
		})
	case "required":
		for _, name := range v.Array() {
			if !slices.Contains(f.required, name.Str) {
				f.required = append(f.required, name.Str)
			}
		}
	case "items":
		f.items = v
	case "anyOf", "oneOf":
		if f.anyOf == nil {
			f.anyOf = v.Array()
		}
	default:
		known := func(p property) bool { return p.name == key }
		if slices.Contains(boundKeywords, key) && !slices.ContainsFunc(f.bounds, known) {
			f.bounds = append(f.bounds, property{key, v})
		}
	}
}

// setTypes reads a type or a list of them, of which null is a property here.
func (f *facts) setTypes(v gjson.Result) {
	list := []gjson.Result{v}
	if v.IsArray() {
		list = v.Array()
	}
	for _, t := range list {
		if t.Str == "null" && len(list) > 1 {
			f.nullable = true
		} else if t.Str != "" {
			f.types = append(f.types, strings.ToUpper(t.Str))
		}
	}
}

// optional reads "this or null", the usual form of an optional value, as this with
// nullable.
func (s *schemaWriter) optional(f *facts) {
	isNull := func(v gjson.Result) bool { return v.Get("type").Str == "null" }
	if slices.ContainsFunc(f.anyOf, isNull) {
		f.anyOf = slices.DeleteFunc(slices.Clone(f.anyOf), isNull)
		f.nullable = true
	}
	// One alternative is none. What stands in for it may have alternatives of its own.
	for len(f.anyOf) == 1 && s.err == nil {
		only := f.anyOf[0]
		f.anyOf = nil
		s.take(f, only)
	}
}

// guessType finds the type of a schema that leaves it out, as many do. One that says
// nothing at all may be anything.
func (f *facts) guessType() {
	if len(f.types) > 0 || len(f.anyOf) > 0 {
		return
	}
	switch {
	case len(f.properties) > 0:
		f.types = []string{"OBJECT"}
	case f.items.Exists():
		f.types = []string{"ARRAY"}
	case len(f.enum) > 0:
		f.types = []string{enumType(f.enum)}
	default:
		f.types = []string{"STRING", "NUMBER", "BOOLEAN", "OBJECT"}
	}
}

// isObject reports whether an object is among what the schema allows.
func (f *facts) isObject() bool { return slices.Contains(f.types, "OBJECT") }

func enumType(values []gjson.Result) string {
	switch first := values[0]; first.Type {
	case gjson.Number:
		if slices.ContainsFunc(values, func(v gjson.Result) bool { return v.Num != float64(int64(v.Num)) }) {
			return "NUMBER"
		}
		return "INTEGER"
	case gjson.True, gjson.False:
		return "BOOLEAN"
	case gjson.JSON:
		if first.IsArray() {
			return "ARRAY"
		}
		return "OBJECT"
	default:
		return "STRING"
	}
}

// spellEnum takes null out of an enum, and says the values of one that are no strings
// in words: only strings can be listed here.
func (f *facts) spellEnum() {
	f.enum = slices.DeleteFunc(slices.Clone(f.enum), func(v gjson.Result) bool {
		f.nullable = f.nullable || v.Type == gjson.Null
		return v.Type == gjson.Null
	})
	if !slices.ContainsFunc(f.enum, func(v gjson.Result) bool { return v.Type != gjson.String }) {
		return
	}
	values := make([]string, len(f.enum))
	for i, v := range f.enum {
		values[i] = v.Raw
	}
	f.enum = nil
	words := "One of: " + strings.Join(values, ", ") + "."
	f.description = strings.TrimSpace(f.description + " " + words)
}
