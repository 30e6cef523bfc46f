package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

const (
	// FormatVersion is the one that `version:` must name.
	FormatVersion = 1
	// maxFileBytes bounds a file: 10,000 deployments take about 6 MiB.
	maxFileBytes = 32 << 20
	// maxProblems are reported at most; a file that is wrong throughout is better
	// read in the editor.
	maxProblems = 50
)

// File is a sluice.yaml that holds together.
type File struct {
	Objects catalog.Objects
	// Warnings are about what is right but will not do what one may expect.
	Warnings []Warning
	// cited are the lines of the evidence that certifications name, by model.
	cited map[string]int
}

// Problem is one reason why a file is refused.
type Problem struct {
	Line int
	// Path is where, as in `models[0].chain[1].model`; empty for the whole file.
	Path   string
	Reason string
}

// FileError refuses a file as a whole: nothing of it is applied (C13).
type FileError struct {
	File     string
	Problems []Problem
	// More problems were found than are listed.
	More int
}

func (e *FileError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: line %d: ", e.File, p.Line)
		if p.Path != "" {
			b.WriteString(p.Path + ": ")
		}
		b.WriteString(p.Reason)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n%s: and %d more problems", e.File, e.More)
	}
	return b.String()
}

// document is the file as a whole.
type document struct {
	Version int `json:"version"`
	catalog.Objects
}

// Loader reads files. Its zero value is ready.
type Loader struct {
	// Refuses reports whether workers would not call a base URL, by what it says (Z1).
	// Nil warns of none.
	Refuses func(baseURL string) bool
	// RefusesWebhook reports whether workers would post nothing to a webhook's address, by
	// what it says; nil is never.
	RefusesWebhook func(url string) bool
}

// Load is Loader.Load of the zero Loader.
func Load(r io.Reader, filename string) (*File, error) { return Loader{}.Load(r, filename) }

// Load reads a file. The error is a *FileError with every problem that was found,
// or the reader's own. No error repeats a value that could be a secret.
func (l Loader) Load(r io.Reader, filename string) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFileBytes {
		return nil, refuse(filename, Problem{Line: 1, Reason: fmt.Sprintf("the file is larger than %d MiB", maxFileBytes>>20)})
	}
	root, problem := parse(text)
	if problem != nil {
		return nil, refuse(filename, *problem)
	}
	d := &decoder{lines: map[string]int{"": root.Line}}
	var doc document
	d.decode(root, &doc)
	if len(d.problems) == 0 {
		d.check(doc)
	}
	if len(d.problems) > 0 {
		return nil, refuse(filename, d.problems...)
	}
	return &File{
		Objects: doc.Objects.Canonical(), Warnings: l.warnings(doc.Objects, d.line), cited: cited(doc.Objects, d.line),
	}, nil
}

// check asks the domain, once the shape is right: what does not decode would be
// reported a second time as missing.
func (d *decoder) check(doc document) {
	if doc.Version != FormatVersion {
		d.fail("version", "must be %d", FormatVersion)
	}
	for _, p := range catalog.Validate(doc.Objects) {
		d.fail(p.Path, "%s", p.Reason)
	}
}

func refuse(filename string, problems ...Problem) *FileError {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	kept := problems[:min(len(problems), maxProblems)]
	return &FileError{File: filename, Problems: kept, More: len(problems) - len(kept)}
}

// parse reads exactly one YAML document whose root is a mapping.
func parse(text []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &Problem{Line: 1, Reason: "the file is empty"}
	case err != nil:
		return nil, syntaxProblem(text, err)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, &Problem{Line: root.Line, Reason: "the file must be a mapping that begins with version: 1"}
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return root, nil
	case err != nil:
		return nil, syntaxProblem(text, err)
	}
	return nil, &Problem{Line: second.Line, Reason: "the file holds a second document"}
}
