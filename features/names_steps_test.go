package features_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// namesScene resolves names in a configuration.
type namesScene struct {
	objects catalog.Objects
	key     *catalog.Key
	plan    catalog.Plan
	err     error
}

func registerNamesSteps(sc *godog.ScenarioContext) {
	s := &namesScene{}
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		*s = namesScene{}
		return ctx, nil
	})
	sc.Step(`^the configuration$`, s.configuration)
	sc.Step(`^a key confined to the class "([^"]*)"$`, func(class string) { s.key = &catalog.Key{Class: class} })
	sc.Step(`^a key confined to the models "([^"]*)"$`, func(list string) { s.key = &catalog.Key{Models: words(list)} })
	sc.Step(`^"([^"]*)" asks for "([^"]*)"$`, func(tenant, name string) { s.ask(tenant, name, "") })
	sc.Step(`^"([^"]*)" asks for "([^"]*)" in the class "([^"]*)"$`, s.ask)
	sc.Step(`^the plan serves "([^"]*)"$`, s.serves)
	sc.Step(`^the canonical model is "([^"]*)"$`, func(want string) error { return same("canonical model", want, s.plan.CanonicalModel) })
	sc.Step(`^it is refused as "([^"]*)"$`, s.refusedAs)
	sc.Step(`^the refusal says "([^"]*)"$`, s.refusalSays)
	sc.Step(`^the model "([^"]*)" is removed$`, s.removeModel)
	sc.Step(`^the aliases that degrade are "([^"]*)"$`, s.degrade)
	sc.Step(`^the tenant's rule is written as "([^"]*)"$`, s.writeRule)
	sc.Step(`^it is refused with "([^"]*)"$`, s.refusalSays)
	sc.Step(`^a key that is not confined$`, func() { s.key = nil })
	sc.Step(`^the key of "([^"]*)" sees "([^"]*)"$`, s.sees)
	sc.Step(`^the class "([^"]*)" is written as "([^"]*)"$`, s.writeClass)
	sc.Step(`^the model "([^"]*)" is written with "([^"]*)" over "([^"]*)" certified "([^"]*)"$`, s.writeModel)
	sc.Step(`^the model "([^"]*)" over "([^"]*)"$`, func(slug, chain string) { s.writeModel(slug, slug, chain, "yes") })
	sc.Step(`^the model "([^"]*)" is another pool of "([^"]*)" over "([^"]*)"$`, func(slug, exact, chain string) {
		s.writeModel(slug, exact, chain, "yes")
	})
	sc.Step(`^(\d+) models in a row of (\d+) deployments each$`, s.row)
	sc.Step(`^"([^"]*)" has its own chain for "([^"]*)" over "([^"]*)"$`, s.ownChain)
	sc.Step(`^the rule for "([^"]*)" is "([^"]*)"$`, s.addRule)
	sc.Step(`^the alias "([^"]*)" is pinned to "([^"]*)"$`, s.addPin)
	sc.Step(`^the policy of "([^"]*)" allows (\d+) attempts$`, func(slug string, n int) {
		s.policy(slug, func(p *catalog.Policy) { p.MaxAttempts = n })
	})
	sc.Step(`^the policy of "([^"]*)" keeps to its model$`, func(slug string) {
		s.policy(slug, func(p *catalog.Policy) { p.SameModelOnly = true })
	})
	sc.Step(`^the rungs are "([^"]*)"$`, s.rungsAre)
	sc.Step(`^(\d+) rungs were examined$`, s.examined)
	sc.Step(`^the attempts that each rung's policy allows are "([^"]*)"$`, s.attemptsAllowed)
	sc.Step(`^the default priority of "([^"]*)" is "([^"]*)"$`, func(class, want string) error {
		return same("priority", want, string(catalog.DefaultPriority(class)))
	})
}

func (s *namesScene) configuration(text *godog.DocString) error {
	file, err := config.Load(strings.NewReader(text.Content), "feature")
	if err != nil {
		return err
	}
	s.objects = file.Objects
	return nil
}

func (s *namesScene) ask(tenant, name, class string) {
	s.plan, s.err = catalog.NewSnapshot(s.objects).Resolve(catalog.Ask{Tenant: tenant, Name: name, Class: class, Key: s.key})
}

// serves lists the models of the plan in order, with the skips.
func (s *namesScene) serves(want string) error {
	if s.err != nil {
		return s.err
	}
	var got []string
	for _, stage := range s.plan.Stages {
		line := stage.Model.Slug
		if skip := stage.Rungs[0].Skip; skip != "" {
			line += " " + skip
		}
		got = append(got, line)
	}
	return same("plan", want, strings.Join(got, ", "))
}

func (s *namesScene) refusedAs(want string) error {
	got := fmt.Sprint(s.err)
	switch s.err.(type) {
	case *catalog.NotFoundError, *catalog.ConfinedError:
		got = "model_not_found"
	case *catalog.AliasError:
		got = "alias_unresolvable"
	case *catalog.ClassError:
		got = "class_not_configured"
	}
	return same("refusal", want, got)
}

func (s *namesScene) refusalSays(want string) error {
	if s.err == nil || !strings.Contains(s.err.Error(), want) {
		return fmt.Errorf("want %q in %v", want, s.err)
	}
	return nil
}

var errNoSuchModel = errors.New("no such model")

// removeModel takes a model and its deployments out, and keeps what was before.
func (s *namesScene) removeModel(slug string) error {
	i := slices.IndexFunc(s.objects.Models, func(m catalog.Model) bool { return m.Slug == slug })
	if i < 0 {
		return errNoSuchModel
	}
	after := s.objects
	after.Models = slices.Delete(slices.Clone(after.Models), i, i+1)
	var lines []string
	for _, d := range catalog.Degraded(s.objects, after) {
		lines = append(lines, d.Tenant+" "+d.Name)
	}
	s.err = errors.New(strings.Join(lines, ", "))
	return nil
}

func (s *namesScene) degrade(want string) error { return same("degraded", want, s.err.Error()) }

func (s *namesScene) writeRule(chain string) {
	s.objects.Tenants[0].RoutingRules = []catalog.RoutingRule{{Match: "x", Chain: words(chain)}}
	s.problems()
}

func (s *namesScene) sees(tenant, want string) error {
	key := catalog.Key{Tenant: tenant}
	if s.key != nil {
		key.Class, key.Models = s.key.Class, s.key.Models
	}
	got := "none"
	var names []string
	for _, m := range catalog.NewSnapshot(s.objects).Visible(&key) {
		names = append(names, m.Slug)
	}
	if len(names) > 0 {
		got = strings.Join(names, ", ")
	}
	return same("visible", want, got)
}

// problems keeps what is wrong with the configuration, "nothing" for nothing.
func (s *namesScene) problems() {
	reasons := []string{}
	for _, p := range catalog.Validate(s.objects) {
		reasons = append(reasons, p.Path+": "+p.Reason)
	}
	if len(reasons) == 0 {
		reasons = []string{"nothing"}
	}
	s.err = errors.New(strings.Join(reasons, "; "))
}

func (s *namesScene) writeClass(name, chain string) {
	s.objects.Classes = slices.DeleteFunc(slices.Clone(s.objects.Classes), func(c catalog.Class) bool { return c.Name == name })
	s.objects.Classes = append(s.objects.Classes, catalog.Class{Name: name, Chain: words(chain)})
	s.problems()
}

// rungsNamed reads a chain: "a1, ->B, own!" are a deployment, a reference and a
// connection, "a to b" a range that ends in numbers, "x & ->B" one rung with two
// targets and "nothing" one without any. Deployments that are not there are made, but
// for "nobody".
func (s *namesScene) rungsNamed(chain string) []catalog.Rung {
	var list []catalog.Rung
	for _, text := range words(chain) {
		if first, last, ok := strings.Cut(text, " to "); ok {
			prefix, _, _ := strings.Cut(first, "@")
			var n int
			_, _ = fmt.Sscanf(last, prefix+"@%d", &n)
			for i := range n + 1 {
				list = append(list, catalog.Rung{Deployment: fmt.Sprintf("%s@%d", prefix, i)})
			}
			continue
		}
		var rung catalog.Rung
		for target := range strings.SplitSeq(text, " & ") {
			if model, ok := strings.CutPrefix(target, "->"); ok {
				rung.Model = model
			} else if own, ok := strings.CutSuffix(target, "!"); ok {
				rung.Connection = own
			} else if target != "nothing" {
				rung.Deployment = target
				s.deployment(target)
			}
		}
		list = append(list, rung)
	}
	return list
}

func (s *namesScene) deployment(id string) {
	there := slices.ContainsFunc(s.objects.Deployments, func(d catalog.Deployment) bool { return d.ID == id })
	if id != "nobody" && !there {
		s.objects.Deployments = append(slices.Clone(s.objects.Deployments), catalog.Deployment{ID: id, Provider: "east", UpstreamModel: id})
	}
}

func certification(word string) *catalog.Equivalence {
	e := &catalog.Equivalence{CertifiedBy: "ops", On: "2026-11-01", Evidence: "sha256:00"}
	switch word {
	case "no":
		return nil
	case "by nobody":
		e.CertifiedBy = ""
	case "undated":
		e.On = "yesterday"
	case "unproved":
		e.Evidence = ""
	}
	return e
}

func (s *namesScene) writeModel(slug, exact, chain, certified string) {
	s.objects.Models = append(slices.Clone(s.objects.Models), catalog.Model{
		Slug: slug, ExactModel: exact, Chain: s.rungsNamed(chain), Equivalence: certification(certified),
	})
	s.problems()
}

func (s *namesScene) row(models, width int) {
	for i := range models {
		slug := fmt.Sprintf("row%02d", i)
		m := catalog.Model{Slug: slug, ExactModel: slug, Equivalence: certification("yes")}
		for j := range width {
			d := fmt.Sprintf("%s@%d", slug, j)
			s.deployment(d)
			m.Chain = append(m.Chain, catalog.Rung{Deployment: d})
		}
		if i+1 < models {
			m.Chain = append(m.Chain, catalog.Rung{Model: fmt.Sprintf("row%02d", i+1)})
		}
		s.objects.Models = append(s.objects.Models, m)
	}
}

func (s *namesScene) ownChain(tenant, model, chain string) {
	s.objects.Tenants = slices.Clone(s.objects.Tenants)
	for i := range s.objects.Tenants {
		if s.objects.Tenants[i].ID == tenant {
			s.objects.Tenants[i].Chains = []catalog.TenantChain{{Model: model, Chain: s.rungsNamed(chain)}}
		}
	}
	s.problems()
}

func (s *namesScene) addRule(match, chain string) {
	t := &s.objects.Tenants[0]
	t.RoutingRules = append(slices.Clone(t.RoutingRules), catalog.RoutingRule{Match: match, Chain: words(chain)})
}

func (s *namesScene) addPin(alias, model string) {
	t := &s.objects.Tenants[0]
	t.Aliases = append(slices.Clone(t.Aliases), catalog.Alias{Name: alias, Pin: model})
}

func (s *namesScene) policy(slug string, edit func(*catalog.Policy)) {
	s.objects.Models = slices.Clone(s.objects.Models)
	for i := range s.objects.Models {
		if s.objects.Models[i].Slug == slug {
			edit(&s.objects.Models[i].Policy)
		}
	}
}

// rungsAre lists every rung of the plan in order, with its skip.
func (s *namesScene) rungsAre(want string) error {
	if s.err != nil {
		return s.err
	}
	var got []string
	for _, stage := range s.plan.Stages {
		for _, r := range stage.Rungs {
			got = append(got, strings.TrimSpace(r.Rung.Deployment+r.Rung.Model+" "+r.Skip))
		}
	}
	return same("rungs", want, strings.Join(got, ", "))
}

// examined counts references too, which are followed and no rungs of the plan.
func (s *namesScene) examined(want int) error {
	n := 0
	for _, stage := range s.plan.Stages {
		for _, r := range stage.Rungs {
			n = max(n, r.Index+1)
		}
	}
	return errors.Join(s.err, same("rungs", want, n))
}

func (s *namesScene) attemptsAllowed(want string) error {
	var got []string
	for _, stage := range s.plan.Stages {
		for range stage.Rungs {
			got = append(got, strconv.Itoa(stage.Policy.MaxAttempts))
		}
	}
	return errors.Join(s.err, same("attempts", want, strings.Join(got, ", ")))
}
