package features_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	var reasons []string
	for _, p := range catalog.Validate(s.objects) {
		reasons = append(reasons, p.Reason)
	}
	s.err = errors.New(strings.Join(reasons, "; "))
}
