package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxSearchedBytes bounds a file in which the line of a syntax error is searched:
// the search reads the file some twenty times.
const maxSearchedBytes = 8 << 20

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxProblem says where a text stops being YAML. The yaml package names the
// line of what it was reading, not of what it met: that is right for a value and
// for a bracket that is never closed (one too low there), and far off for a line
// that is indented wrongly, where it names the start of the whole section.
func syntaxProblem(text []byte, err error) *Problem {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return &Problem{Line: 1, Reason: "not YAML"}
	}
	line, _ := strconv.Atoi(m[1])
	switch message := m[2]; {
	case strings.Contains(message, "expected ',' or"):
		line++
	case len(text) > maxSearchedBytes:
	case line == 0, strings.Contains(message, "did not find expected"), strings.Contains(message, "tab character"):
		line = firstLineWith(text, message)
	}
	reason := "not YAML: " + m[2]
	if strings.Contains(m[2], "unknown anchor") {
		reason = "YAML anchors are not read here: write the value out"
	}
	last := 1 + bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n"))
	return &Problem{Line: min(max(line, 1), last), Reason: reason}
}

// firstLineWith finds the line that brings a syntax error about: the text up to
// the line before does not have it, and any longer one does.
func firstLineWith(text []byte, message string) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	ends := make([]int, len(lines))
	end := 0
	for i, line := range lines {
		end += len(line)
		ends[i] = end
	}
	return 1 + sort.Search(len(ends)-1, func(i int) bool {
		err := readAll(text[:ends[i]])
		return err != nil && strings.HasSuffix(err.Error(), message)
	})
}

func readAll(text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		switch err := decoder.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
