// Package features_test runs the promises in *.feature. A scenario's tags name the
// rules that it proves.
package features_test

import (
	"context"
	"testing"

	"github.com/cucumber/godog"

	"github.com/sluice-gateway/sluice/domain/failure"
)

func TestFeatures(t *testing.T) {
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			registerWalkSteps(sc)
			chain := &chainScene{}
			sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
				chain.reset()
				return ctx, nil
			})
			registerChainSteps(sc, chain)
			registerNamesSteps(sc)
			registerConfigurationSteps(sc)
		},
		// Strict: a step that nobody wrote fails.
		Options: &godog.Options{Format: "pretty", Paths: []string{"."}, TestingT: t, Strict: true, NoColors: true},
	}
	if suite.Run() != 0 {
		t.Fatal("a scenario failed")
	}
	// A class that was added to the table without a row in the outline would go
	// unproved.
	for _, c := range failure.Classes() {
		if !provedClasses[c] {
			t.Errorf("no scenario walks the class %q", c)
		}
	}
}
