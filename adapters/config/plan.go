package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Plan is what an apply would write.
type Plan struct {
	Changes []catalog.ObjectChange
	// Degraded are the aliases that nothing fits any more once it is applied (N2).
	Degraded []catalog.AliasDegraded
	// Revision is the configuration's own, which the plan was made on.
	Revision int64
}

// Diff tells what has to change so that the configuration is what the file says.
// The file is the whole of it: an object that the file does not hold is removed.
// Callers' keys are not in any file and stay.
func Diff(state *catalog.State, want catalog.Objects) Plan {
	return Plan{
		Changes: catalog.Diff(state, want), Degraded: catalog.Degraded(state.Objects(), want),
		Revision: state.Revision(catalog.ConfigurationStream),
	}
}

// Empty reports that there is nothing to do.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Counts are how many objects are created, changed and removed.
func (p Plan) Counts() (created, changed, removed int) {
	for _, c := range p.Changes {
		switch c.Action {
		case catalog.Create:
			created++
		case catalog.Change:
			changed++
		case catalog.Remove:
			removed++
		}
	}
	return created, changed, removed
}

var marks = map[catalog.Action]string{catalog.Create: "+", catalog.Change: "~", catalog.Remove: "-"}

// Print writes the plan for people: one line an object, and below it the fields
// that differ, before and after.
func (p Plan) Print(w io.Writer) error {
	var b bytes.Buffer
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s %s %s\n", marks[c.Action], c.Kind, c.ID)
		before, after := Lines(c.Before), Lines(c.After)
		for _, line := range before {
			if !slices.Contains(after, line) {
				fmt.Fprintf(&b, "    - %s\n", line)
			}
		}
		for _, line := range after {
			if !slices.Contains(before, line) {
				fmt.Fprintf(&b, "    + %s\n", line)
			}
		}
	}
	if p.Empty() {
		b.WriteString("nothing to change\n")
	} else {
		created, changed, removed := p.Counts()
		fmt.Fprintf(&b, "%d to create, %d to change, %d to remove\n", created, changed, removed)
	}
	_, err := b.WriteTo(w)
	return err
}

// Lines writes an object as one `path: value` a field, in a stable order; nothing
// for nil.
func Lines(object any) []string {
	if object == nil {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("config: %T cannot be encoded: %v", object, err)) // plain structs
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		panic(fmt.Sprintf("config: %T is encoded as no JSON: %v", object, err))
	}
	return flatten(nil, "", tree)
}

func flatten(lines []string, path string, tree any) []string {
	switch t := tree.(type) {
	case map[string]any:
		keys := make([]string, 0, len(t))
		for key := range t {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			lines = flatten(lines, strings.TrimPrefix(path+"."+key, "."), t[key])
		}
	case []any:
		for i, item := range t {
			lines = flatten(lines, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case nil:
	default:
		lines = append(lines, fmt.Sprintf("%s: %v", path, t))
	}
	return lines
}
