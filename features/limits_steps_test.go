package features_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
)

func registerLimitSteps(sc *godog.ScenarioContext, s *chainScene) {
	sc.Step(`^the limits$`, s.theLimits)
	sc.Step(`^the budget "([^"]*)" stands at (\d+)$`, s.budgetStands)
	sc.Step(`^the refusal is "([^"]*)"$`, s.refusalIs)
	sc.Step(`^the refused skips are "([^"]*)"$`, s.refusedSkips)
	sc.Step(`^the moves in a line are "([^"]*)"$`, func(want string) error {
		return same("moves", want, strings.Join(s.moves(), ", "))
	})
	sc.Step(`^it is (\S+) after the first call$`, func(span string) error {
		d, err := time.ParseDuration(span)
		s.now = s.first.Add(d)
		return err
	})
}

// theLimits are the organization's budgets, in the columns of sluice.yaml.
func (s *chainScene) theLimits(table *godog.Table) error {
	s.req.Budgets = nil
	for _, cells := range rows(table) {
		b := catalog.Budget{
			Scope: cells["scope"], Of: cells["of"], Per: catalog.Period(cells["per"]),
			Enforcement: catalog.Enforcement(cells["enforcement"]),
		}
		size, unit, _ := strings.Cut(cells["limit"], " ")
		n, _ := strconv.ParseInt(size, 10, 64)
		switch unit {
		case "USD":
			b.LimitUSD = size
		case "requests", "request":
			b.Requests = n
		case "tokens":
			b.Tokens = n
		default:
			return fmt.Errorf("no unit in %q", cells["limit"])
		}
		s.req.Budgets = append(s.req.Budgets, b)
	}
	return nil
}

// budgetStands checks what counts against a budget now, in whole units.
func (s *chainScene) budgetStands(id string, want int64) error {
	subjects := []budget.Subject{{Tenant: "acme", Key: "key1", Team: "search", Identity: "ada", Root: "fable", Model: "fable"}}
	for _, r := range s.rungs {
		subjects = append(subjects, budget.Subject{Tenant: "acme", Root: "fable", Model: r.Model, Deployment: r.Deployment.ID})
	}
	for _, who := range subjects {
		limits, err := budget.Limits(who, s.req.Budgets, s.now)
		if err != nil {
			return err
		}
		for i := range limits {
			if limits[i].Budget == id {
				return same(id, want, limits[i].See(s.book.At(s.now)).Used)
			}
		}
	}
	return fmt.Errorf("there is no budget %q", id)
}

// refusalIs checks what the caller is told of the limit that refused (A9).
func (s *chainScene) refusalIs(want string) error {
	r := s.run.Answer.Refusal
	if r == nil {
		return fmt.Errorf("nothing was refused")
	}
	return same("refusal", want, fmt.Sprintf("%s: %d of %d %s", r.Scope, r.Used, r.Limit, r.Unit))
}

func (s *chainScene) refusedSkips(want string) error {
	i := slices.IndexFunc(s.run.Events, func(e event.Event) bool { _, ok := e.(request.RequestRefused); return ok })
	if i < 0 {
		return fmt.Errorf("nothing was refused")
	}
	var got []string
	for _, skipped := range s.run.Events[i].(request.RequestRefused).Skipped {
		got = append(got, skipped.Provider+" "+string(skipped.Reason))
	}
	return same("skips", want, strings.Join(got, ", "))
}
