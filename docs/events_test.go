package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/usage"
)

const module = "github.com/sluice-gateway/sluice/"

// families are the packages that events come from, in the order of the document.
var families = []struct{ dir, title, stream string }{
	{"domain/request", "A request", "`request/<UUIDv7>`"},
	{"domain/circuit", "A circuit", "`circuit/<kind>/<hash>`"},
	{"domain/idempotency", "An idempotency key", "`idempotency/<tenant>/<hash>`"},
	{"domain/billing", "A bill", "`bill/<tenant>/<month>`"},
	{"domain/reconciliation", "A reconciliation", "`reconciliation/<UUIDv7>`"},
	{"domain/worker", "A worker", "`worker/<id>`"},
	{"domain/catalog", "Configuration", "the stream that each event names below"},
}

// kind is a registered event type as the source and its golden file have it.
type kind struct {
	name    string
	version int
	goType  reflect.Type
	doc     typeDoc
	// golden is the newest golden file, field by field.
	golden map[string]json.RawMessage
}

// typeDoc is what the source says about a struct.
type typeDoc struct {
	text   string
	fields map[string]string
	// order is where it stands in its package.
	order string
}

// eventTypes lists every registered type with its fields, from the registry, the
// golden files and the doc comments of the structs.
func eventTypes(t *testing.T) string {
	byDir := map[string][]kind{}
	for name, version := range event.Types() {
		golden := read(t, filepath.Join("..", "domain", "event", "testdata", fmt.Sprintf("%s.v%d.json", name, version)))
		e, err := event.Decode(name, version, []byte(golden))
		if err != nil {
			t.Fatal(err)
		}
		k := kind{name: name, version: version, goType: reflect.TypeOf(e)}
		if err := json.Unmarshal([]byte(golden), &k.golden); err != nil {
			t.Fatal(err)
		}
		dir := dirOf(k.goType)
		k.doc = docsOf(t, dir)[k.goType.Name()]
		byDir[dir] = append(byDir[dir], k)
	}
	var b strings.Builder
	for _, f := range families {
		kinds := byDir[f.dir]
		delete(byDir, f.dir)
		slices.SortFunc(kinds, func(a, b kind) int { return strings.Compare(a.doc.order, b.doc.order) })
		fmt.Fprintf(&b, "\n## %s\n\nStream: %s.\n", f.title, f.stream)
		for _, k := range kinds {
			fmt.Fprintf(&b, "\n### %s\n\n", k.name)
			if k.version > 1 {
				fmt.Fprintf(&b, "Version %d. ", k.version)
			}
			fmt.Fprintf(&b, "%s\n", prose(k.goType.Name(), k.name, k.doc.text))
			if rows := fieldRows(t, k.goType, k.golden); len(rows) > 0 {
				fmt.Fprintf(&b, "\n%s", table([]string{"field", "type", "example", "about"}, rows))
			}
		}
	}
	if len(byDir) > 0 {
		t.Errorf("say in families where the events of %v belong", slices.Sorted(maps.Keys(byDir)))
	}
	return b.String()
}

// eventObjects lists the objects that stand inside events.
func eventObjects(t *testing.T) string {
	objects := map[string]reflect.Type{}
	for name, version := range event.Types() {
		e, err := event.Decode(name, version, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		collect(reflect.TypeOf(e), objects)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		o := objects[name]
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if text := docsOf(t, dirOf(o))[o.Name()].text; text != "" {
			fmt.Fprintf(&b, "%s\n\n", prose(o.Name(), o.Name(), text))
		}
		b.WriteString(table([]string{"field", "type", "about"}, fieldRows(t, o, nil)))
	}
	return b.String()
}

// collect finds the struct types under an event's fields.
func collect(of reflect.Type, into map[string]reflect.Type) {
	for _, f := range wireFields(of) {
		inner := element(f.Type)
		if !isObject(inner) || into[inner.Name()] == inner || registered()[inner] != "" {
			continue
		}
		if other := into[inner.Name()]; other != nil {
			panic(fmt.Sprintf("%s and %s have one name in the document", other, inner))
		}
		into[inner.Name()] = inner
		collect(inner, into)
	}
}

// fieldRows has a column of examples when there is a golden file.
func fieldRows(t *testing.T, of reflect.Type, golden map[string]json.RawMessage) [][]string {
	var rows [][]string
	for _, f := range wireFields(of) {
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		typ := wireType(f.Type)
		if optional(tag) {
			typ += ", may be absent"
		}
		row := []string{code(name), typ}
		if golden != nil {
			example := ""
			if !isObject(element(f.Type)) {
				example = code(string(golden[name]))
			}
			row = append(row, example)
		}
		about := docsOf(t, dirOf(f.owner))[f.owner.Name()].fields[f.Name]
		rows = append(rows, append(row, prose(f.Name, name, about)))
	}
	return rows
}

// registered are the event types by their Go types.
var registered = sync.OnceValue(func() map[reflect.Type]string {
	types := map[reflect.Type]string{}
	for name, version := range event.Types() {
		if e, err := event.Decode(name, version, []byte(`{}`)); err == nil {
			types[reflect.TypeOf(e)] = name
		}
	}
	return types
})

// wireField is a field as JSON has it: those of an embedded struct stand among
// those of its owner.
type wireField struct {
	reflect.StructField
	owner reflect.Type
}

func wireFields(of reflect.Type) []wireField {
	var list []wireField
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous && f.Tag.Get("json") == "" {
			list = append(list, wireFields(f.Type)...)
			continue
		}
		if f.IsExported() && f.Tag.Get("json") != "-" {
			list = append(list, wireField{f, of})
		}
	}
	return list
}

func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// scalars are the types that write themselves as one value.
var scalars = map[reflect.Type]string{
	reflect.TypeFor[time.Time]():       "time, RFC 3339",
	reflect.TypeFor[decimal.Decimal](): "decimal in a string",
	reflect.TypeFor[usage.Count]():     "integer or null",
}

func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && scalars[t] == ""
}

func wireType(t reflect.Type) string {
	list := t.Kind() == reflect.Slice
	inner := element(t)
	word := scalars[inner]
	switch {
	case word != "":
	case registered()[inner] != "":
		name := registered()[inner]
		word = fmt.Sprintf("[%s](#%s)", name, name)
	case isObject(inner):
		word = fmt.Sprintf("[%s](#%s)", inner.Name(), strings.ToLower(inner.Name()))
	case inner.Name() == "Duration":
		word = "duration, such as `20s`"
	case inner.Kind() == reflect.String && inner.Name() != "string":
		word = "word" // one of a fixed list
	case inner.Kind() == reflect.Map:
		word = "object of strings"
	default:
		word = map[reflect.Kind]string{
			reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number",
			reflect.Int: "integer", reflect.Int64: "integer",
		}[inner.Kind()]
	}
	if list {
		return "list of " + word
	}
	return word
}

func dirOf(t reflect.Type) string { return strings.TrimPrefix(t.PkgPath(), module) }

// ruleNumbers stand in doc comments for those who read the code.
var ruleNumbers = regexp.MustCompile(` \((?:[A-Z][0-9]+(?:-[A-Z]?[0-9]+)?(?:, )?)+\)`)

// prose makes a doc comment speak of what stands in the log: by the names that
// stand there.
func prose(goName, name, text string) string {
	text = ruleNumbers.ReplaceAllString(text, "")
	if rest, ok := strings.CutPrefix(text, goName+" "); ok {
		text = code(name) + " " + rest
	}
	for t, wire := range registered() {
		text = regexp.MustCompile(`\b`+t.Name()+`\b`).ReplaceAllString(text, code(wire))
	}
	return text
}

var parsed = map[string]map[string]typeDoc{}

// docsOf reads the doc comments of a package's structs.
func docsOf(t *testing.T, dir string) map[string]typeDoc {
	t.Helper()
	if docs := parsed[dir]; docs != nil {
		return docs
	}
	docs := map[string]typeDoc{}
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	for _, file := range files {
		set := token.NewFileSet()
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(set, file, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				s := spec.(*ast.TypeSpec)
				structure, ok := s.Type.(*ast.StructType)
				if !ok {
					continue
				}
				doc := s.Doc
				if doc == nil {
					doc = gen.Doc
				}
				docs[s.Name.Name] = typeDoc{
					text: oneLine(doc), fields: fieldDocs(structure),
					order: fmt.Sprintf("%s:%08d", filepath.Base(file), set.Position(s.Pos()).Line),
				}
			}
		}
	}
	parsed[dir] = docs
	return docs
}

func fieldDocs(s *ast.StructType) map[string]string {
	docs := map[string]string{}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			docs[name.Name] = oneLine(f.Doc)
		}
	}
	return docs
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}

// The examples in events.md are golden lines as they are stored.
func TestExampleEventsAreGoldens(t *testing.T) {
	_, rest, found := strings.Cut(read(t, "events.md"), "```json\n")
	example, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("events.md shows no example")
	}
	golden := read(t, filepath.Join("..", "domain", "event", "testdata", "attempt_failed.v1.json"))
	var want, got any
	if err := json.Unmarshal([]byte(golden), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(example), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("events.md shows %v, the golden file has %v", got, want)
	}
}
