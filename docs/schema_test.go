package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"go.yaml.in/yaml/v3"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// schemaFile is what editors check a sluice.yaml with while it is typed. It is made
// of the structs that the file is read into: their json tags, the constants of their
// word types and their doc comments. What only the whole file shows (a rung whose
// deployment is not there) is left to `sluice apply --dry-run`.
const schemaFile = "sluice.schema.json"

const catalogDir = "domain/catalog"

// required are the fields that Validate calls missing.
var required = map[reflect.Type][]string{
	reflect.TypeFor[catalog.Provider]():    {"id", "protocol"},
	reflect.TypeFor[catalog.ProviderKey](): {"id"},
	reflect.TypeFor[catalog.Deployment]():  {"id", "provider", "upstream_model"},
	reflect.TypeFor[catalog.Model]():       {"slug", "exact_model", "chain"},
	reflect.TypeFor[catalog.Equivalence](): {"certified_by", "on", "evidence"},
	reflect.TypeFor[catalog.Class]():       {"name", "chain"},
	reflect.TypeFor[catalog.Tier]():        {"name", "weight"},
	reflect.TypeFor[catalog.Tenant]():      {"id"},
	reflect.TypeFor[catalog.Alias]():       {"name"},
	reflect.TypeFor[catalog.RoutingRule](): {"match", "chain"},
	reflect.TypeFor[catalog.Connection]():  {"id", "provider"},
	reflect.TypeFor[catalog.TenantChain](): {"model", "chain"},
	reflect.TypeFor[catalog.Webhook]():     {"id", "url"},
	reflect.TypeFor[catalog.Budget]():      {"scope", "per"},
	reflect.TypeFor[catalog.Promotion]():   {"id", "models"},
}

type schema = map[string]any

// Rules: C13.
func TestSchemaIsWhatTheCodeSays_C13(t *testing.T) {
	s := schemaOf(t, reflect.TypeFor[catalog.Objects]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "sluice.yaml"
	s["description"] = "The whole configuration of a Sluice."
	s["required"] = []string{"version"}
	s["properties"].(schema)["version"] = schema{"const": 1, "description": "The format of the file."}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		t.Fatal(err)
	}
	if *update {
		write(t, schemaFile, text.String())
		return
	}
	if diff := cmp.Diff(text.String(), read(t, schemaFile)); diff != "" {
		t.Errorf("%s is not what the code says; run go test ./docs -update (-code +document):\n%s", schemaFile, diff)
	}
}

// schemaOf describes one type of the catalog.
func schemaOf(t *testing.T, of reflect.Type) schema {
	switch {
	case of.Kind() == reflect.Pointer:
		return schemaOf(t, of.Elem())
	case of == reflect.TypeFor[decimal.Decimal]():
		return schema{"type": []string{"string", "number"}, "pattern": `^[0-9]{1,30}(\.[0-9]{1,30})?$`}
	case of == reflect.TypeFor[catalog.Duration]():
		return schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	}
	switch of.Kind() {
	case reflect.Struct:
		return objectSchema(t, of)
	case reflect.Slice:
		return schema{"type": "array", "items": schemaOf(t, of.Elem())}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return schema{"type": "number", "minimum": 0}
	case reflect.String:
		if values := words(t)[of.Name()]; len(values) > 0 {
			return schema{"enum": values}
		}
		return schema{"type": "string", "minLength": 1}
	}
	t.Fatalf("no schema for %s", of)
	return nil
}

func objectSchema(t *testing.T, of reflect.Type) schema {
	doc := docsOf(t, dirOf(of))[of.Name()]
	properties := schema{}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		property := schemaOf(t, f.Type)
		if text := doc.fields[f.Name]; text != "" {
			property["description"] = describe(f.Name, name, text)
		}
		if strings.HasSuffix(name, "_usd") {
			property = schemaOf(t, reflect.TypeFor[decimal.Decimal]())
		}
		if !slices.Contains(required[of], name) {
			property = nullable(property)
		}
		properties[name] = property
	}
	s := schema{"type": "object", "additionalProperties": false, "properties": properties}
	if doc.text != "" {
		s["description"] = describe(of.Name(), of.Name(), doc.text)
	}
	if r := required[of]; r != nil {
		s["required"] = r
	}
	if of == reflect.TypeFor[catalog.Rung]() {
		s["minProperties"], s["maxProperties"] = 1, 1
	}
	return s
}

// nullable lets null stand for a field that is left out, as the file does.
func nullable(s schema) schema {
	switch words := s["type"].(type) {
	case string:
		s["type"] = []string{words, "null"}
	case []string:
		s["type"] = append(words, "null")
	}
	if values, ok := s["enum"].([]string); ok {
		list := []any{nil}
		for _, v := range values {
			list = append(list, v)
		}
		s["enum"] = list
	}
	return s
}

// describe makes a doc comment a description: "Class is a traffic class" says "A
// traffic class".
func describe(goName, name, text string) string {
	text = ruleNumbers.ReplaceAllString(text, "")
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(text, goName+verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	if rest, ok := strings.CutPrefix(text, goName+" "); ok {
		return name + " " + rest
	}
	return text
}

// words lists the constants of each word type of the catalog.
func words(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	files, err := filepath.Glob(filepath.Join("..", catalogDir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", catalogDir, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			typ, isNamed := spec.Type.(*ast.Ident)
			value, isText := spec.Values[0].(*ast.BasicLit)
			if isNamed && isText && value.Kind == token.STRING {
				text, _ := strconv.Unquote(value.Value)
				values[typ.Name] = append(values[typ.Name], text)
			}
			return true
		})
	}
	return values
}

// What apply takes the schema takes, and what is misspelt or out of its words it
// refuses.
//
// Rules: C13.
func TestSchemaTakesWhatApplyTakes_C13(t *testing.T) {
	var s schema
	if err := json.Unmarshal([]byte(read(t, schemaFile)), &s); err != nil {
		t.Fatal(err)
	}
	good := read(t, filepath.Join("..", "adapters", "config", "testdata", "whole.yaml"))
	if problem := against(s, parsedYAML(t, good), "file"); problem != "" {
		t.Errorf("refuses a good file: %s", problem)
	}
	for from, to := range map[string]string{
		"version: 1":                      "version: 2",
		"providers:":                      "provider:",
		"protocol: anthropic":             "protocol: antropic",
		"key_strategy:":                   "key_stratgy:",
		"first_byte: 20s":                 "first_byte: 20",
		`input: "3.00"`:                   `input: "3.00 USD"`,
		"max_attempts: 8":                 "max_attempts: -8",
		"cost_tier: cheapest":             "cost_tier: cheap",
		"slug: fable-5":                   "slag: fable-5",
		"masked: false":                   "masked: nein",
		"{deployment: fable-5@anthropic}": "{deploy: fable-5@anthropic}",
	} {
		bad := strings.Replace(good, from, to, 1)
		if bad == good {
			t.Errorf("the good file does not hold %q", from)
		} else if against(s, parsedYAML(t, bad), "file") == "" {
			t.Errorf("takes %q", to)
		}
	}
}

func parsedYAML(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// against checks a value with as much of JSON Schema as the file uses, and says
// what is wrong.
func against(s schema, v any, at string) string {
	if want, ok := s["const"]; ok && fmt.Sprint(want) != fmt.Sprint(v) {
		return at + " is not the constant"
	}
	if words, ok := s["enum"].([]any); ok && !slices.Contains(words, v) {
		return fmt.Sprintf("%s: %v is none of %v", at, v, words)
	}
	if types := typesOf(s["type"]); len(types) > 0 && !slices.Contains(types, typeName(v)) && !(typeName(v) == "integer" && slices.Contains(types, "number")) {
		return fmt.Sprintf("%s is %s and not %v", at, typeName(v), types)
	}
	if pattern, ok := s["pattern"].(string); ok {
		if text, is := v.(string); is && !regexp.MustCompile(pattern).MatchString(text) {
			return fmt.Sprintf("%s: %q does not look like %s", at, text, pattern)
		}
	}
	if least, ok := s["minimum"].(float64); ok {
		if n, is := v.(int); is && float64(n) < least {
			return at + " is too small"
		}
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if problem := against(s["items"].(schema), item, fmt.Sprintf("%s[%d]", at, i)); problem != "" {
				return problem
			}
		}
	case map[string]any:
		return againstObject(s, v, at)
	}
	return ""
}

func againstObject(s schema, v map[string]any, at string) string {
	properties := s["properties"].(schema)
	for name, field := range v {
		property, known := properties[name].(schema)
		if !known {
			return at + " has an unknown field " + name
		}
		if problem := against(property, field, at+"."+name); problem != "" {
			return problem
		}
	}
	names, _ := s["required"].([]any)
	for _, name := range names {
		if _, there := v[name.(string)]; !there {
			return fmt.Sprintf("%s has no %s", at, name)
		}
	}
	return ""
}

func typesOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, t := range v {
			list = append(list, t.(string))
		}
		return list
	}
	return nil
}

func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int:
		return "integer"
	case float64:
		return "number"
	}
	return "string"
}
