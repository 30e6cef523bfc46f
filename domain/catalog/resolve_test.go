package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// shape writes a plan as text: one bracket a stage, the model before it.
func shape(p catalog.Plan) string {
	var stages []string
	index := 0
	for _, stage := range p.Stages {
		var rungs []string
		for _, c := range stage.Rungs {
			name := c.Rung.Deployment + c.Rung.Model
			if c.Skip != "" {
				name += "!" + c.Skip
			}
			if c.Skip == "" && (c.Deployment.ID != c.Rung.Deployment || c.Provider.ID != c.Deployment.Provider) {
				name += "?mismatch"
			}
			if c.Index < index {
				name += "?order"
			}
			index = c.Index + 1
			rungs = append(rungs, name)
		}
		stages = append(stages, stage.Model.Slug+"["+strings.Join(rungs, " ")+"]")
	}
	return strings.Join(stages, " ")
}

// Rules: N1.
func TestUnknownNameIsNotFound_N1(t *testing.T) {
	snap := snapshotOf(t, fixture())
	for _, c := range []struct{ tenant, name string }{{"acme", "nothing"}, {"acme", ""}, {"acme", "a@east"}, {"nobody", "a"}} {
		plan, err := snap.Resolve(catalog.Ask{Tenant: c.tenant, Name: c.name})
		var missing *catalog.NotFoundError
		if !errors.As(err, &missing) || missing.Name != c.name || len(plan.Stages) != 0 {
			t.Errorf("Resolve(%q, %q) = %s, %v", c.tenant, c.name, shape(plan), err)
		}
	}
}

// Reciprocal references walk a1, b1, skip, b2, a2 (N17), and no stage holds rungs
// from both sides of a reference (N19).
func TestReciprocalReferences_N17_N19(t *testing.T) {
	snap := snapshotOf(t, fixture())
	for name, want := range map[string]string{
		"a": "a[a@east] b[b@east a!model_already_visited] b[b@west] a[a@west]",
		"b": "b[b@east] a[a@east b!model_already_visited] a[a@west] b[b@west]",
	} {
		plan, err := snap.Resolve(catalog.Ask{Tenant: "acme", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := shape(plan); got != want {
			t.Errorf("%s resolves to\n%s, want\n%s", name, got, want)
		}
		if plan.RequestedModel != name || plan.CanonicalModel != name {
			t.Errorf("requested %s, canonical %s", plan.RequestedModel, plan.CanonicalModel)
		}
	}
}

// Each stage keeps its own policy, defaults filled in (N20).
func TestStagesKeepTheirPolicy_N20(t *testing.T) {
	plan, err := snapshotOf(t, fixture()).Resolve(catalog.Ask{Tenant: "acme", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range plan.Stages {
		want := catalog.MaximizeCache
		attempts := catalog.DefaultMaxAttempts
		if stage.Model.Slug == "a" {
			want, attempts = catalog.MaximizeAvailability, 4
		}
		if stage.Policy.FailoverMode != want || stage.Policy.MaxAttempts != attempts {
			t.Errorf("stage %s has policy %+v", stage.Model.Slug, stage.Policy)
		}
	}
}

// What disappeared after the chain was written is skipped with a reason; the rest
// of the chain serves.
func TestVanishedTargetsAreSkipped(t *testing.T) {
	state := folded(history(t, fixture()))
	state.Fold(catalog.Recorded{Stream: "deployment/a@east", Version: 9, Position: 900, Event: catalog.DeploymentRemoved{Deployment: "a@east"}})
	state.Fold(catalog.Recorded{Stream: "provider/west", Version: 9, Position: 901, Event: catalog.ProviderRemoved{Provider: "west"}})
	state.Fold(catalog.Recorded{Stream: "model/b", Version: 9, Position: 902, Event: catalog.ModelRemoved{Model: "b"}})
	plan, err := state.Snapshot().Resolve(catalog.Ask{Tenant: "acme", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shape(plan), "a[a@east!unresolved b!unresolved] a[a@west!unresolved]"; got != want {
		t.Errorf("resolves to %s, want %s", got, want)
	}
}

// line is a chain of n models that refer to each other in a row, each with width
// deployments before its reference.
func line(n, width int) catalog.Objects {
	o := catalog.Objects{
		Providers: []catalog.Provider{{ID: "p", Protocol: catalog.OpenAI, BaseURL: "https://p.example.test/v1"}},
		Tenants:   []catalog.Tenant{{ID: "acme"}},
	}
	for i := range n {
		slug := fmt.Sprintf("m%02d", i)
		m := catalog.Model{
			Slug: slug, ExactModel: slug,
			Equivalence: &catalog.Equivalence{CertifiedBy: "ops", On: "2026-11-01", Evidence: "e"},
		}
		for j := range width {
			d := catalog.Deployment{ID: fmt.Sprintf("%s@%d", slug, j), Provider: "p", UpstreamModel: slug}
			o.Deployments = append(o.Deployments, d)
			m.Chain = append(m.Chain, catalog.Rung{Deployment: d.ID})
		}
		if i+1 < n {
			m.Chain = append(m.Chain, catalog.Rung{Model: fmt.Sprintf("m%02d", i+1)})
		}
		o.Models = append(o.Models, m)
	}
	return o
}

// Past 16 models or 256 rungs an expansion is an error and never a shorter plan
// (N18); the bounds themselves still resolve. Both are refused when written (D4).
func TestExpansionBounds_N18(t *testing.T) {
	for _, c := range []struct {
		name          string
		models, width int
		bound         string
	}{
		{"16 models", 16, 1, ""},
		{"17 models", 17, 1, "models"},
		// 15 x (16 + a reference) + 1 x 16 = 271; 15 x 15 + 15 + 15 = 255.
		{"255 rungs", 16, 15, ""},
		{"271 rungs", 16, 16, "rungs"},
		{"256 rungs", 1, 256, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := line(c.models, c.width)
			_, err := snapshotOf(t, o).Resolve(catalog.Ask{Tenant: "acme", Name: "m00"})
			problems := catalog.Validate(o)
			var bound *catalog.ExpansionError
			switch {
			case c.bound == "" && (err != nil || len(problems) > 0):
				t.Errorf("refused: %v, %v", err, problems)
			case c.bound != "" && (!errors.As(err, &bound) || bound.Bound != c.bound):
				t.Errorf("error %v, want too many %s", err, c.bound)
			case c.bound != "" && len(problems) == 0:
				t.Error("may be written")
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	snap := snapshotOf(b, fixture())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := snap.Resolve(catalog.Ask{Tenant: "acme", Name: "a"}); err != nil {
			b.Fatal(err)
		}
	}
}
