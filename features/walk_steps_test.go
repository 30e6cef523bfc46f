package features_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cucumber/godog"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// provedClasses are the classes that some scenario has walked.
var provedClasses = map[failure.Class]bool{}

// walkScene is one request's walk over invented routes.
type walkScene struct {
	rungs []walk.Rung
	req   walk.Request
	world sim.World
	class failure.Class
	run   sim.Run
}

func registerWalkSteps(sc *godog.ScenarioContext) {
	s := &walkScene{}
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		*s = walkScene{req: walkRequest()}
		return ctx, nil
	})
	sc.Step(`^a model with two routes$`, func() { s.rungs = []walk.Rung{route(0), route(1)} })
	sc.Step(`^the model fails over on refusals$`, func() {
		for i := range s.rungs {
			s.rungs[i].Policy.FailoverOnRefusal = true
		}
	})
	sc.Step(`^the second route has a larger window$`, func() {
		s.rungs[0].Deployment.Context.Total, s.rungs[1].Deployment.Context.Total = 8_000, 200_000
	})
	sc.Step(`^the first route always fails with "([^"]*)" and the second serves$`, s.firstFails)
	sc.Step(`^every route always fails with "([^"]*)"$`, s.allFail)
	sc.Step(`^the same route is tried again: (yes|no)$`, s.sameRoute)
	sc.Step(`^the other route is tried: (yes|no)$`, s.otherRoute)
	sc.Step(`^the health record touched is "([^"]*)"$`, s.health)
	sc.Step(`^the attempt may have been billed: (yes|no)$`, s.billed)
	sc.Step(`^the caller gets "([^"]*)" with status (\d+)$`, s.callerGets)
	sc.Step(`^the caller is told to retry: (yes|no)$`, s.toldToRetry)
	sc.Step(`^the request carries reasoning that only its issuer can read$`, func() { s.req.Sealed = true })
	sc.Step(`^the first route cannot read that reasoning$`, s.cannotRead)
	sc.Step(`^it is tried again without that reasoning, as a "([^"]*)"$`, s.repaired)
}

func walkRequest() walk.Request {
	return walk.Request{
		Admitted: request.RequestAdmitted{
			Tenant: "acme", Key: "key1", Team: "search", Identity: "ada", RequestedModel: "fable", CanonicalModel: "fable", DeadlineMS: 600_000,
			Estimate: request.Estimate{InputTokens: 1000},
		},
		FloorTokens: 800, OutputTokens: 100, Fallback: walk.FallbackAny, Deadline: noon.Add(10 * time.Minute),
	}
}

func route(i int) walk.Rung {
	in, out := decimal.RequireFromString("3"), decimal.RequireFromString("15")
	return walk.Rung{
		Index: i, Model: "fable", Root: true, Policy: catalog.Policy{}.WithDefaults(),
		Provider: &catalog.Provider{ID: fmt.Sprintf("provider%d", i), Keys: []catalog.ProviderKey{{ID: "k1"}}},
		Deployment: &catalog.Deployment{
			ID: fmt.Sprintf("route%d", i), Prices: money.Prices{Input: &in, Output: &out},
			Context: catalog.Context{Total: 100_000},
		},
	}
}

func served() sim.Ending {
	return sim.Ending{Report: walk.Report{FirstOutput: "text", Usage: usage.Usage{Input: usage.Of(900), Output: usage.Of(50)}}}
}

func failed(c failure.Class) sim.Ending {
	return sim.Ending{Failure: &failure.Failure{Class: c, PossiblyBilled: failure.Of(c).MaybeBilled}}
}

func (s *walkScene) walk(providers sim.Providers) {
	s.run = sim.Walk(walk.New(s.req, s.rungs, &s.world), providers, nil, noon)
}

func (s *walkScene) firstFails(class string) {
	s.class = failure.Class(class)
	provedClasses[s.class] = true
	s.walk(func(c *walk.Call, _ time.Time) sim.Ending {
		if c.Rung.Index == 0 {
			return failed(s.class)
		}
		return served()
	})
}

// cannotRead is a route that serves whatever comes without the reasoning.
func (s *walkScene) cannotRead() {
	s.class = failure.InvalidRequest
	s.walk(func(c *walk.Call, _ time.Time) sim.Ending {
		if c.WithoutSeals {
			return served()
		}
		rejected := failed(s.class)
		rejected.Failure.SealRejected = true
		return rejected
	})
}

func (s *walkScene) repaired(kind string) error {
	if err := same("calls", 2, len(s.run.Calls)); err != nil {
		return err
	}
	again := s.run.Calls[1]
	if err := same("route", 0, again.Rung.Index); err != nil {
		return err
	}
	return same("kind", kind, string(again.Reserved.Kind))
}

func (s *walkScene) allFail(class string) {
	s.walk(func(*walk.Call, time.Time) sim.Ending { return failed(failure.Class(class)) })
}

func (s *walkScene) calledRoutes() []int {
	var list []int
	for _, c := range s.run.Calls {
		list = append(list, c.Rung.Index)
	}
	return list
}

func (s *walkScene) sameRoute(want string) error {
	calls := 0
	for _, r := range s.calledRoutes() {
		if r == 0 {
			calls++
		}
	}
	return same("tried again", want, yesNo(calls > 1))
}

func (s *walkScene) otherRoute(want string) error {
	return same("other route", want, yesNo(slices.Contains(s.calledRoutes(), 1)))
}

func (s *walkScene) health(want string) error {
	names := map[failure.Health]string{
		failure.NoHealth: "none", failure.Operational: "operational",
		failure.OpensAtOnce: "opens", failure.ThrottleWindow: "throttle",
	}
	return same("health", want, names[failure.Of(s.class).Health])
}

func (s *walkScene) billed(want string) error {
	for _, e := range s.run.Events {
		if f, ok := e.(request.AttemptFailed); ok {
			return same("possibly billed", want, yesNo(f.PossiblyBilled))
		}
	}
	return same("possibly billed", want, "no")
}

// clientClosed is what metrics say of a client that left; nothing is sent (api.md).
const clientClosed = 499

func (s *walkScene) callerGets(code string, status int) error {
	if err := same("code", code, string(s.run.Answer.Code)); err != nil {
		return err
	}
	got := clientClosed
	if s.run.Answer.Code != request.CodeClientCancelled {
		got = apierror.New(s.run.Answer.Code).HTTPStatus()
	}
	return same("status", status, got)
}

func (s *walkScene) toldToRetry(want string) error {
	return same("retryable", want, yesNo(s.run.Answer.Retryable))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func same[T comparable](what string, want, got T) error {
	if want != got {
		return fmt.Errorf("%s: want %v, got %v", what, want, got)
	}
	return nil
}
