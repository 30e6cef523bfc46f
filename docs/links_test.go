package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9_]*`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	anchor   = regexp.MustCompile("`([a-z]+(?:/[A-Za-z0-9_.-]+)+\\.(?:go|feature|sql|yaml))`")
)

// A document that names a file that has moved sends its reader nowhere.
func TestLinksAndFilesExist(t *testing.T) {
	for _, file := range documents(t) {
		text := read(t, file)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", file, m[1])
			}
		}
		for _, m := range anchor.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names the file %s, which is not there", file, m[1])
			}
		}
	}
}

// A claim rests on the test that it names.
func TestNamedTestsExist(t *testing.T) {
	known := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
		return err
	})
	if err != nil || len(known) < 100 {
		t.Fatalf("%d tests found in the source: %v", len(known), err)
	}
	for _, file := range documents(t) {
		for _, name := range testName.FindAllString(read(t, file), -1) {
			if !known[name] {
				t.Errorf("%s names %s, which is no test", file, name)
			}
		}
	}
}

// Every field that sluice.yaml may hold is in configuration.md, under its path.
func TestEveryFieldIsDocumented(t *testing.T) {
	text := read(t, "configuration.md")
	for _, path := range yamlPaths(reflect.TypeFor[catalog.Objects](), "") {
		if !strings.Contains(text, "`"+path+"`") {
			t.Errorf("configuration.md says nothing about `%s`", path)
		}
	}
}

// yamlPaths lists the leaves under a type, by their names in the file.
func yamlPaths(t reflect.Type, prefix string) []string {
	var paths []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.Field(0).IsExported() {
			paths = append(paths, yamlPaths(inner, prefix+name+".")...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}
