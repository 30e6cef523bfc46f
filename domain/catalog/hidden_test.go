package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// rungs reads "a H b >m c": names are deployments, upper case is hidden, > is a
// reference.
func rungs(text string) []catalog.Rung {
	var chain []catalog.Rung
	for word := range strings.FieldsSeq(text) {
		if model, ok := strings.CutPrefix(word, ">"); ok {
			chain = append(chain, catalog.Rung{Model: model})
		} else {
			chain = append(chain, catalog.Rung{Deployment: word})
		}
	}
	return chain
}

func hidden(r catalog.Rung) bool {
	return r.Deployment != "" && r.Deployment == strings.ToUpper(r.Deployment)
}

// Rules: C7.
func TestHiddenRungsKeepTheirGroup_C7(t *testing.T) {
	for _, c := range []struct{ name, stored, edit, want string }{
		{"unchanged", "a H b >m c I", "a b >m c", "a H b >m c I"},
		{"turned around", "a H b >m c", "b a >m c", "b a H >m c"},
		{"its neighbour is gone", "a b H >m c", "a >m c", "a H >m c"},
		{"first in its group", "a >m H c", "a >m c", "a >m H c"},
		{"a visible rung moves across", "a b >m H c", "a >m b c", "a >m H b c"},
		{"two hidden in a row", "a H I b", "b a", "b a H I"},
		{"the reference is taken away", "a H >m c I", "a c", "a H c I"},
		{"a reference is put in", "a H b", "a >m b", "a H >m b"},
		{"only a hidden one is left before the reference", "a H >m", ">m", "H >m"},
	} {
		if got := catalog.KeepHidden(rungs(c.stored), rungs(c.edit), hidden); !slices.Equal(got, rungs(c.want)) {
			t.Errorf("%s: got %v, want %s", c.name, got, c.want)
		}
	}
}

// Whatever the editor does with what is visible, nothing hidden is lost, doubled or
// moved past the reference, and the editor gets what was asked for.
//
// Rules: C7.
func TestHiddenRungsAreKept_C7(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := func(names ...string) string {
			return strings.Join(rapid.Permutation(names).Draw(t, "group"), " ")
		}
		stored := rungs(group("a", "b", "H", "I") + " >m " + group("c", "J"))
		seen := catalog.VisibleRungs(stored, hidden)
		direct := rapid.Permutation(rungs("a b c")).Draw(t, "order")[:rapid.IntRange(0, 3).Draw(t, "left")]
		cut := rapid.IntRange(0, len(direct)).Draw(t, "cut")
		edit := slices.Concat(direct[:cut], rungs(">m"), direct[cut:])

		got := catalog.KeepHidden(stored, edit, hidden)
		if !slices.Equal(catalog.VisibleRungs(got, hidden), edit) {
			t.Fatalf("the editor asked for %v and got %v", edit, got)
		}
		if len(got) != len(edit)+3 {
			t.Fatalf("hidden rungs of %v were lost or doubled: %v", stored, got)
		}
		reference := slices.Index(got, catalog.Rung{Model: "m"})
		for _, name := range []string{"H", "I", "J"} {
			if at := slices.Index(got, catalog.Rung{Deployment: name}); (at < reference) != (name != "J") {
				t.Fatalf("%s crossed the reference: %v", name, got)
			}
		}
		if !slices.Equal(catalog.KeepHidden(stored, seen, hidden), stored) {
			t.Fatalf("saving what was seen changed %v", stored)
		}
	})
}
