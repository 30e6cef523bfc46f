// Package features_test runs the promises in *.feature. A scenario's tags name the
// rules that it proves.
package features_test

import (
	"context"
	"testing"

	"github.com/cucumber/godog"
	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

func TestMain(m *testing.M) {
	// fasthttp's clock and the cleaner of an ended server's pool sleep on.
	pgtest.Main(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

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
			registerServingSteps(sc)
			registerWorkersSteps(sc, t)
			registerBillSteps(sc, t)
			registerPoolSteps(sc, t)
			registerPromotionSteps(sc)
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
