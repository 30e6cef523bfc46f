package domain_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sluice-gateway/sluice/"

// mayImport says which rooms a room may import from: cmd -> adapters ->
// projections, eventstore -> domain. Each arrow points one way.
var mayImport = map[string][]string{
	"domain":      {"domain"},
	"migrations":  {},
	"eventstore":  {"eventstore", "domain", "migrations"},
	"projections": {"projections", "eventstore", "domain", "migrations"},
	"adapters":    {"adapters", "projections", "eventstore", "domain", "migrations"},
	"cmd":         {"cmd", "adapters", "projections", "eventstore", "domain", "migrations"},
	"features":    {"cmd", "adapters", "projections", "eventstore", "domain", "migrations", "features"},
}

// worldly are the packages of the standard library that the domain does not use:
// whatever reads the machine, waits or talks.
var worldly = []string{"os", "net", "net/http", "database/sql", "log", "log/slog", "sync", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "io/ioutil", "context", "runtime"}

// domainDependencies are the only foreign modules of the domain.
var domainDependencies = []string{"github.com/google/uuid", "github.com/shopspring/decimal"}

func TestImportsPointOneWay(t *testing.T) {
	files := 0
	eachGoFile(t, func(path string, imports []string) {
		files++
		room, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		allowed, known := mayImport[room]
		if !known {
			t.Errorf("%s: no such room", path)
		}
		for _, imp := range imports {
			if inner, ok := strings.CutPrefix(imp, module); ok {
				from, _, _ := strings.Cut(inner, "/")
				if !slices.Contains(allowed, from) {
					t.Errorf("%s imports %s: %s may only import from %v", path, imp, room, allowed)
				}
			}
			if room == "domain" {
				checkPure(t, path, imp)
			}
			if strings.HasPrefix(imp, "github.com/gofiber/") && !strings.HasPrefix(filepath.ToSlash(path), "adapters/http/edge/") {
				t.Errorf("%s imports %s: only adapters/http/edge owns fiber", path, imp)
			}
		}
	})
	if files < 50 {
		t.Fatalf("only %d files looked at: the walk over the source is broken", files)
	}
}

func checkPure(t *testing.T, path, imp string) {
	t.Helper()
	foreign := strings.Contains(strings.SplitN(imp, "/", 2)[0], ".")
	switch {
	case slices.Contains(worldly, imp):
		t.Errorf("%s imports %s: the domain does no I/O, keeps no time and starts nothing", path, imp)
	case foreign && !strings.HasPrefix(imp, module) && !slices.Contains(domainDependencies, imp):
		t.Errorf("%s imports %s: the domain depends on %v alone", path, imp, domainDependencies)
	}
}

// TestTheDomainReadsNoClock looks for time.Now and its kin in the source: the
// package time itself is needed for its types.
func TestTheDomainReadsNoClock(t *testing.T) {
	forbidden := []string{"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After(", "time.NewTimer(", "time.NewTicker(", "uuid.New(", "uuid.NewV7("}
	eachGoFile(t, func(path string, _ []string) {
		if !strings.HasPrefix(filepath.ToSlash(path), "domain/") {
			return
		}
		source, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range forbidden {
			if strings.Contains(string(source), call) {
				t.Errorf("%s calls %s): time and ids are arguments", path, call)
			}
		}
	})
}

// eachGoFile visits every source file of the module but tests, by its path from
// the module's root.
func eachGoFile(t *testing.T, visit func(path string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel("..", path)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || rel == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, imp := range f.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			imports = append(imports, name)
		}
		visit(rel, imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
