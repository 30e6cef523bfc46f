package catalog_test

import (
	"slices"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/equivalence"
)

// A certification is held against the check that it cites: that it is known, that it
// passed, and that it asked the deployments of the chain as they are now.
//
// Rules: N15, N24.
func TestDoubts_N15_N24(t *testing.T) {
	const hash = "sha256:aa"
	objects := fixture()
	model := objects.Models[0]
	model.Equivalence = &catalog.Equivalence{CertifiedBy: "ops", On: "2026-11-01", Evidence: hash}
	members := catalog.Members(objects)
	checked := func(change func(*equivalence.Evidence)) *catalog.State {
		state := folded(history(t, fixture()))
		e := equivalence.Evidence{Model: "gone", Result: equivalence.Passed}
		for _, id := range model.Pool() {
			member := members[id]
			member.Result = equivalence.Passed
			e.Pool = append(e.Pool, member)
		}
		change(&e)
		before := state.Snapshot().ID
		state.Fold(catalog.Recorded{Stream: "model/gone", Version: 9, Position: 900, Event: catalog.EquivalenceChecked{Model: "gone", Hash: hash, Evidence: e}})
		if state.Snapshot().ID != before {
			t.Error("a check changed the catalog")
		}
		return state
	}
	if len(model.Pool()) < 2 || members[model.Pool()[1]].UpstreamModel == "" || members[model.Pool()[1]].Protocol == "" {
		t.Fatalf("the fixture has no pool: %v, %+v", model.Pool(), members)
	}
	second := model.Pool()[1]
	moved := []string{"deployment " + second + " has another provider, protocol or upstream model than when it was checked"}
	for name, c := range map[string]struct {
		state *catalog.State
		want  []string
	}{
		"passed":         {checked(func(*equivalence.Evidence) {}), nil},
		"not passed":     {checked(func(e *equivalence.Evidence) { e.Result = equivalence.Untested }), []string{"the check that it cites ended as untested"}},
		"not asked":      {checked(func(e *equivalence.Evidence) { e.Pool = e.Pool[:1] }), []string{"the check that it cites did not ask deployment " + second}},
		"other model":    {checked(func(e *equivalence.Evidence) { e.Pool[1].UpstreamModel = "older" }), moved},
		"other protocol": {checked(func(e *equivalence.Evidence) { e.Pool[1].Protocol = "gemini" }), moved},
		"not known":      {folded(history(t, fixture())), []string{"no check of this installation stored this evidence"}},
	} {
		if got := c.state.Doubts(members, model); !slices.Equal(got, c.want) {
			t.Errorf("%s: doubts %q, want %q", name, got, c.want)
		}
	}
	model.Equivalence.Evidence = "comparison of 2026-10-30"
	if got := folded(history(t, fixture())).Doubts(members, model); got != nil {
		t.Errorf("an operator's own evidence is doubted: %q", got)
	}
	model.Equivalence = nil
	if got := folded(history(t, fixture())).Doubts(members, model); got != nil {
		t.Errorf("no certification is doubted: %q", got)
	}
}
