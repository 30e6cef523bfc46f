package features_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// promotionScene walks one request after another of an organization over what its
// names resolve to, under counters that stay.
type promotionScene struct {
	base    string
	objects catalog.Objects
	now     time.Time
	book    *budget.Book
	fails   map[string]failure.Class
	world   sim.World
	choices int
	run     sim.Run
	refused string
}

func registerPromotionSteps(sc *godog.ScenarioContext) {
	s := &promotionScene{}
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		*s = promotionScene{now: noon, book: budget.NewBook(), fails: map[string]failure.Class{}}
		s.world.Closed = map[string]walk.Verdict{}
		return ctx, nil
	})
	sc.Step(`^the models and prices$`, func(text *godog.DocString) { s.base = text.Content })
	sc.Step(`^acme has$`, s.acmeHas)
	sc.Step(`^it is "([^"]*)"$`, func(at string) (err error) { s.now, err = time.Parse(time.RFC3339, at); return err })
	sc.Step(`^every call of "([^"]*)" ends as "([^"]*)"$`, func(route, class string) { s.fails[route] = failure.Class(class) })
	sc.Step(`^the circuit of "([^"]*)" is open$`, func(route string) {
		s.world.Closed[route] = walk.Verdict{Skip: request.SkipBreakerOpen}
	})
	sc.Step(`^"([^"]*)" is offered at a surcharge of (\d+) percent$`, s.surcharge)
	sc.Step(`^each request asks for (\d+) answers$`, func(n int) { s.choices = n })
	sc.Step(`^"([^"]*)" is asked with (\d+) in and at most (\d+) out, and uses (.*)$`, s.ask)
	sc.Step(`^the attempts are$`, s.attemptsAre)
	sc.Step(`^the amounts are (\d+) list, (\d+) charge, (\d+) subsidy, (\d+) provider cost$`, s.amountsAre)
	sc.Step(`^the allowances hold$`, s.allowancesHold)
	sc.Step(`^it is refused as "([^"]*)" by "([^"]*)" with limit (\d+), used (\d+), until "([^"]*)"$`, s.isRefused)
	sc.Step(`^nobody is called, and "([^"]*)" is answered$`, s.isAnswered)
}

func (s *promotionScene) acmeHas(text *godog.DocString) error {
	yaml := s.base + "\ntenants:\n  - id: acme\n    " + strings.ReplaceAll(text.Content, "\n", "\n    ") + "\n"
	file, err := config.Load(strings.NewReader(yaml), "promotions.yaml")
	s.objects = file.Objects
	return err
}

func (s *promotionScene) surcharge(slug string, percent int64) error {
	for i := range s.objects.Models {
		if m := &s.objects.Models[i]; m.Slug == slug {
			rate := decimal.NewFromInt(percent)
			m.Surcharge = &rate
			return nil
		}
	}
	return fmt.Errorf("no model %q", slug)
}

// ask walks one request whose serving call uses what the step says: "900 in, 300
// cached, 50 out", or "what nobody knows".
func (s *promotionScene) ask(name string, in, out int64, used string) error {
	snap := catalog.NewSnapshot(s.objects.Canonical())
	plan, err := snap.Resolve(catalog.Ask{Tenant: "acme", Name: name})
	if err != nil {
		s.run, s.refused = sim.Run{}, string(gateway.Unresolved(err).Code)
		return nil
	}
	report, err := reportOf(used)
	if err != nil {
		return err
	}
	tenant, _ := snap.Tenant("acme")
	req := walk.Request{
		Admitted: request.RequestAdmitted{
			Tenant: "acme", Key: "key1", RequestedModel: name, CanonicalModel: plan.CanonicalModel, FreeOnly: plan.FreeOnly,
			DeadlineMS: 600_000, Estimate: request.Estimate{InputTokens: in},
		},
		FloorTokens: in, OutputTokens: out, Choices: s.choices, Fallback: walk.FallbackAny, Deadline: s.now.Add(10 * time.Minute),
		Budgets: tenant.Budgets, Promotions: tenant.Promotions,
	}
	s.run = sim.Walk(walk.New(req, walk.Rungs(plan), &s.world), func(c *walk.Call, _ time.Time) sim.Ending {
		if class := s.fails[c.Rung.Deployment.ID]; class != "" {
			return failed(class)
		}
		return sim.Ending{Report: report}
	}, s.book, s.now)
	s.refused = string(s.run.Answer.Code)
	return nil
}

func reportOf(used string) (walk.Report, error) {
	r := walk.Report{FirstOutput: "text"}
	if used == "what nobody knows" {
		return r, nil
	}
	for _, part := range words(used) {
		var n int64
		var what string
		if _, err := fmt.Sscanf(part, "%d %s", &n, &what); err != nil {
			return r, fmt.Errorf("usage %q: %w", part, err)
		}
		switch what {
		case "in":
			r.Usage.Input = usage.Of(n)
		case "cached":
			r.Usage.CachedInput = usage.Of(n)
		case "out":
			r.Usage.Output = usage.Of(n)
		default:
			return r, fmt.Errorf("usage %q", part)
		}
	}
	return r, nil
}

// attemptsAre compares every attempt and skip of the last request: its deployment, what
// was held in money, and what a promotion pays.
func (s *promotionScene) attemptsAre(want *godog.DocString) error {
	var lines []string
	for _, e := range s.run.Events {
		switch e := e.(type) {
		case request.RouteSkipped:
			lines = append(lines, fmt.Sprintf("skip rung %d %s", e.Rung, e.Reason))
		case request.AttemptReserved:
			lines = append(lines, fmt.Sprintf("%s holds %d%s", e.Deployment, e.Reserved, paidBy(e.Promotion)))
		}
	}
	if got := strings.Join(lines, "\n"); got != want.Content {
		return fmt.Errorf("want\n%s\ngot\n%s", want.Content, got)
	}
	return nil
}

func paidBy(p *request.Gift) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf(", %s pays %s", p.ID, p.Free)
}

func (s *promotionScene) amountsAre(list, charge, subsidy, cost int64) error {
	var sum request.Amounts
	for _, e := range s.run.Events {
		if settled, ok := e.(request.AttemptSettled); ok {
			sum = sum.Add(settled.Amounts)
		}
	}
	return errors.Join(
		same("list", list, int64(sum.List)), same("charge", charge, int64(sum.Charge)),
		same("subsidy", subsidy, int64(sum.Subsidy)), same("provider cost", cost, int64(sum.ProviderCost)))
}

// allowancesHold compares every counter of a promotion that something was put into.
func (s *promotionScene) allowancesHold(table *godog.Table) error {
	var want []string
	for _, cells := range rows(table) {
		want = append(want, fmt.Sprintf("%s held %s given %s", cells["counter"], cells["held"], cells["given"]))
	}
	var got []string
	for _, key := range slices.SortedFunc(maps.Keys(s.book.Counters), cmp.Compare[budget.Key]) {
		name, ok := strings.CutPrefix(string(key), "promo/acme/")
		if c := s.book.Counters[key]; ok && c != (budget.Counter{}) {
			got = append(got, fmt.Sprintf("%s held %d given %d", name, c.Held, c.Settled))
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, got) {
		return fmt.Errorf("want\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	return nil
}

func (s *promotionScene) isRefused(code, scope string, limit, used int64, until string) error {
	r := s.run.Answer.Refusal
	if r == nil {
		return fmt.Errorf("answered %q without a refusal", s.refused)
	}
	return errors.Join(same("code", code, r.Code), same("scope", scope, r.Scope), same("limit", limit, r.Limit),
		same("used", used, r.Used), same("until", until, r.Resets))
}

func (s *promotionScene) isAnswered(code string) error {
	return errors.Join(same("calls", 0, len(s.run.Calls)), same("answer", code, s.refused))
}
