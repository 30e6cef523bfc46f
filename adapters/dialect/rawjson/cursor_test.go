package rawjson

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"
)

// walked writes down what a cursor sees of a document, value by value.
func walked(c *Cursor, b *strings.Builder) {
	switch c.Kind() {
	case '{':
		b.WriteByte('{')
		c.Members(func(key []byte) bool { b.WriteString(string(key) + ":"); walked(c, b); return true })
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		c.Elements(func() bool { walked(c, b); return true })
		b.WriteByte(']')
	case '"':
		text, _ := Unquoted(nil, c.Skip())
		b.WriteString(string(text) + ";")
	default:
		b.WriteString(string(c.Skip()) + ";")
	}
}

// read writes the same down by another reader.
func read(v gjson.Result, b *strings.Builder) {
	switch {
	case v.IsObject():
		b.WriteByte('{')
		v.ForEach(func(key, v gjson.Result) bool { b.WriteString(key.String() + ":"); read(v, b); return true })
		b.WriteByte('}')
	case v.IsArray():
		b.WriteByte('[')
		v.ForEach(func(_, v gjson.Result) bool { read(v, b); return true })
		b.WriteByte(']')
	case v.Type == gjson.String:
		b.WriteString(v.Str + ";")
	default:
		b.WriteString(v.Raw + ";")
	}
}

// checkWalk compares the two, and what is passed by with what is there.
func checkWalk(t interface {
	Helper()
	Fatalf(string, ...any)
}, doc []byte,
) {
	t.Helper()
	v, ok := Parse(doc)
	if !ok {
		return
	}
	var got, want strings.Builder
	c := NewCursor(doc)
	walked(&c, &got)
	read(v, &want)
	if got.String() != string([]rune(want.String())) && got.String() != want.String() {
		t.Fatalf("%s\nwalked %s\nread   %s", doc, got.String(), want.String())
	}
	c = NewCursor(doc)
	var values []string
	c.Members(func([]byte) bool { values = append(values, ""); return true })
	n := 0
	v.ForEach(func(_, _ gjson.Result) bool { n++; return true })
	if len(values) != n {
		t.Fatalf("%s has %d members, %d were left", doc, n, len(values))
	}
}

func TestCursorSeesWhatIsThere(t *testing.T) {
	for _, doc := range []string{
		`{}`, ` { } `, `{"a":[]}`, `{"a":[ ] , "b" : { "c":null} }`, `{"a\"\u0062":"x\\","n":-1.5e3,"t":true}`,
		`{"a":[[1,2],[],{"b":"]}"}],"c":"{["}`, "{\"a\"\n:\t1\r,\"b\":[1 ,2 , 3 ]}",
	} {
		checkWalk(t, []byte(doc))
	}
	rapid.Check(t, func(t *rapid.T) {
		var value func(depth int) string
		value = func(depth int) string {
			space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind == 0 && depth < 4:
				var list []string
				for range rapid.IntRange(0, 3).Draw(t, "n") {
					list = append(list, value(depth+1))
				}
				return "[" + space + strings.Join(list, space+","+space) + space + "]"
			case kind <= 2 && depth < 4:
				var list []string
				for range rapid.IntRange(0, 3).Draw(t, "n") {
					list = append(list, string(Quote(rapid.String().Draw(t, "key")))+space+":"+space+value(depth+1))
				}
				return "{" + space + strings.Join(list, space+","+space) + space + "}"
			case kind == 3:
				return rapid.SampledFrom([]string{"null", "true", "0", "-1.5e+9"}).Draw(t, "literal")
			default:
				return string(Quote(rapid.String().Draw(t, "text")))
			}
		}
		checkWalk(t, []byte(`{"v":`+value(0)+`}`))
	})
}

func TestCursorStops(t *testing.T) {
	c := NewCursor([]byte(`{"a":[1,2,3],"b":1}`))
	seen := ""
	c.Members(func(key []byte) bool {
		seen += string(key)
		return c.Elements(func() bool { seen += string(c.Skip()); return !strings.HasSuffix(seen, "2") })
	})
	if seen != "a12" {
		t.Errorf("saw %s", seen)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":"\\\"]"},1e5,null]}`))
	f.Fuzz(func(t *testing.T, doc []byte) { checkWalk(t, doc) })
}
