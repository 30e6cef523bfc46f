package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
)

func schemaOf(t testing.TB, in string, ordered bool) (string, error) {
	t.Helper()
	w := writer{}
	return string(w.schema(json.RawMessage(in), "tools[0]", ordered)), w.err
}

// Rules: P5.
func TestSchema_P5(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing", ``, ``},
		{"no parameters", `{"type":"object","properties":{}}`, ``},
		{"anything", `{}`, ``},
		{
			"plain", `{"type":"object","properties":{"a":{"type":"string","description":"d","minLength":1}},"required":["a"]}`,
			`{"type":"OBJECT","properties":{"a":{"type":"STRING","minLength":1,"description":"d"}},"required":["a"]}`,
		},
		{
			"types left out", `{"properties":{"a":{"enum":["x"]},"b":{"items":{"type":"integer"}},"c":{"enum":[1,2]},"d":{"enum":[1.5]},"e":{"const":true}}}`,
			`{"type":"OBJECT","properties":{"a":{"type":"STRING","enum":["x"]},"b":{"type":"ARRAY","items":{"type":"INTEGER"}},"c":{"type":"INTEGER","description":"One of: 1, 2."},"d":{"type":"NUMBER","description":"One of: 1.5."},"e":{"type":"BOOLEAN","description":"One of: true."}}}`,
		},
		{
			"optional", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}],"description":"d"}}}`,
			`{"type":"OBJECT","properties":{"a":{"type":"STRING","format":"date-time","description":"d","nullable":true}}}`,
		},
		{
			"several types", `{"type":"object","properties":{"a":{"type":["string","number","null"],"maxLength":3,"maximum":9}}}`,
			`{"type":"OBJECT","properties":{"a":{"anyOf":[{"type":"STRING","maxLength":3},{"type":"NUMBER","maximum":9}],"nullable":true}}}`,
		},
		{
			"enum with null", `{"type":"object","properties":{"a":{"type":"string","enum":["x",null]}}}`,
			`{"type":"OBJECT","properties":{"a":{"type":"STRING","enum":["x"],"nullable":true}}}`,
		},
		{
			"a list of anything", `{"type":"object","properties":{"a":{"type":"array","items":true}}}`,
			`{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"}]}}}}`,
		},
		{
			"properties named like keywords", `{"type":"object","properties":{"$ref":{"type":"string"},"const":{"type":"string"},"type":{"type":"string"}},"required":["const","gone"]}`,
			`{"type":"OBJECT","properties":{"$ref":{"type":"STRING"},"const":{"type":"STRING"},"type":{"type":"STRING"}},"required":["const"]}`,
		},
		{
			"references", `{"$ref":"#/$defs/top","$defs":{"top":{"type":"object","properties":{"x":{"$ref":"#/definitions/a~1b"},"y":{"$ref":"#/definitions/a~1b","description":"mine"}}}},"definitions":{"a/b":{"type":"string","description":"theirs"}}}`,
			`{"type":"OBJECT","properties":{"x":{"type":"STRING","description":"theirs"},"y":{"type":"STRING","description":"mine"}}}`,
		},
		{
			"allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}},"required":["a","b"]}`,
		},
		{
			"the same twice", `{"$defs":{"a":{"properties":{"x":{"type":"string"}}}},"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}`,
			`{"type":"OBJECT","properties":{"x":{"type":"STRING"}}}`,
		},
		{
			"a choice of objects", `{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}]}`,
			`{"anyOf":[{"type":"OBJECT","properties":{"a":{"type":"STRING"}}},{"type":"OBJECT","properties":{"b":{"type":"STRING"}}}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := schemaOf(t, tt.in, false)
			if err != nil || got != tt.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, tt.want)
			}
		})
	}
	got, _ := schemaOf(t, `{"properties":{"b":{"type":"string"},"a":{"type":"string"}}}`, true)
	if !strings.HasSuffix(got, `"propertyOrdering":["b","a"]}`) {
		t.Errorf("the order of an answer's members is not asked for: %s", got)
	}
}

// A schema that has no end when it is written out, or none that is worth it, is a 400
// that names the field, however it goes about it.
//
// Rules: P5.
func TestSchemasWithoutEnd_P5(t *testing.T) {
	doubling := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 30 {
		doubling += fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	doubling += `"d30":{"type":"string"}}}`
	for name, in := range map[string]string{
		"a tree":             `{"$defs":{"node":{"properties":{"left":{"$ref":"#/$defs/node"}}}},"properties":{"root":{"$ref":"#/$defs/node"}}}`,
		"the whole":          `{"properties":{"child":{"$ref":"#"}}}`,
		"itself at once":     `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"by a path":          `{"properties":{"a":{"properties":{"b":{"$ref":"#/properties/a"}}}}}`,
		"through a list":     `{"$defs":{"n":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}},"properties":{"a":{"$ref":"#/$defs/n"}}}`,
		"doubling":           doubling,
		"nowhere":            `{"properties":{"a":{"$ref":"#/$defs/none"}}}`,
		"another document":   `{"properties":{"a":{"$ref":"https://x.test/schema"}}}`,
		"no object":          `[1]`,
		"nested without end": strings.Repeat(`{"items":`, 5000) + `{}` + strings.Repeat(`}`, 5000),
	} {
		_, err := schemaOf(t, in, false)
		invalid, ok := errors.AsType[*dialect.InvalidError](err)
		if !ok || invalid.Param != "tools[0]" || !strings.Contains(invalid.Message, "tools[0]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// keywords are all that Google's Schema has; one more and the request is refused.
var keywords = map[string]bool{
	"type": true, "format": true, "description": true, "nullable": true, "enum": true, "items": true, "properties": true,
	"required": true, "anyOf": true, "propertyOrdering": true, "minimum": true, "maximum": true, "minItems": true,
	"maxItems": true, "minLength": true, "maxLength": true, "minProperties": true, "maxProperties": true, "pattern": true,
}

func checkSchema(t *testing.T, v gjson.Result) {
	t.Helper()
	if !v.Get("type").Exists() && !v.Get("anyOf").Exists() {
		t.Fatalf("neither type nor anyOf: %s", v.Raw)
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "properties":
			v.ForEach(func(_, v gjson.Result) bool { checkSchema(t, v); return true })
		case "items":
			checkSchema(t, v)
		case "anyOf":
			v.ForEach(func(_, v gjson.Result) bool { checkSchema(t, v); return true })
		}
		if !keywords[key.Str] {
			t.Fatalf("keyword %q: %s", key.Str, v.Raw)
		}
		return true
	})
}

// FuzzSchema: whatever a schema says, what comes of it is one that Google takes, or an
// error that names the field.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":["string",null],"enum":[null,{}],"anyOf":[{"const":[]},true],"items":[{}]}`))
	f.Add([]byte(`{"$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`))
	f.Add([]byte(`{"properties":{"a":{"allOf":[{"$ref":"#/properties/b"},{"minimum":1e999}]},"b":{"type":"integer"}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		w := writer{}
		out := w.schema(in, "tools[0]", true)
		if w.err != nil {
			if _, ok := errors.AsType[*dialect.InvalidError](w.err); !ok {
				t.Fatalf("untyped error %v", w.err)
			}
			return
		}
		if out == nil {
			return
		}
		if !gjson.ValidBytes(out) {
			t.Fatalf("no JSON: %s", out)
		}
		checkSchema(t, gjson.ParseBytes(out))
	})
}
