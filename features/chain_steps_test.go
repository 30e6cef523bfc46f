package features_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// chainScene walks one request after another over one chain, with real circuits and
// a clock that the scenario moves.
type chainScene struct {
	rungs  []walk.Rung
	req    walk.Request
	limit  time.Duration
	world  chainWorld
	now    time.Time
	run    sim.Run
	served []string
	// orders are the routes of each conversation in the order of their calls.
	orders [][]string
	// book is the counters of the organization's limits; first is when the scenario's
	// first request began.
	book  *budget.Book
	first time.Time
}

// chainWorld is a worker's circuits, with a cache and a jitter of the scenario's.
type chainWorld struct {
	*health.Registry
	cached map[string]float64
}

// CacheEstimate implements walk.World.
func (w *chainWorld) CacheEstimate(r *walk.Rung) float64 { return w.cached[r.Deployment.ID] }

// allSecrets holds every key but the one called "missing".
type allSecrets struct{}

// Holds implements health.Secrets.
func (allSecrets) Holds(_ *catalog.Provider, keyID string) bool { return keyID != "missing" }

func (s *chainScene) reset() {
	*s = chainScene{req: walkRequest(), limit: 10 * time.Minute, now: noon, book: budget.NewBook()}
	s.world = chainWorld{Registry: health.New(health.Config{Secrets: allSecrets{}}), cached: map[string]float64{}}
}

func registerChainSteps(sc *godog.ScenarioContext, s *chainScene) {
	sc.Step(`^the chain$`, s.theChain)
	sc.Step(`^the request may make (\d+) attempts$`, func(n int) { s.req.Admitted.MaxAttempts = n })
	sc.Step(`^the request must end within (\S+)$`, s.within)
	sc.Step(`^the request needs "([^"]*)"$`, func(c string) { s.req.Needs = []catalog.Capability{catalog.Capability(c)} })
	sc.Step(`^the caller allows only the same model$`, func() { s.req.Fallback = walk.FallbackSameModel })
	sc.Step(`^the caller allows no fallback$`, func() { s.req.Fallback = walk.FallbackNone })
	sc.Step(`^lost answers stop the walk$`, func() {
		s.eachPolicy(func(p *catalog.Policy) { p.LostAnswer = catalog.StopLost })
	})
	sc.Step(`^the organization may spend (\S+) USD$`, func(usd string) {
		s.req.Budgets = []catalog.Budget{{Scope: catalog.ScopeOrganization, LimitUSD: usd, Per: catalog.Total}}
	})
	registerLimitSteps(sc, s)
	sc.Step(`^the policy is (\S+) with threshold (\S+)$`, s.policy)
	sc.Step(`^every stage is ordered by affinity$`, func() {
		s.eachPolicy(func(p *catalog.Policy) { p.FailoverMode = catalog.MaximizeCacheAffinity })
	})
	sc.Step(`^(\d+) conversations ask and no route can serve$`, s.conversationsAsk)
	sc.Step(`^each was tried on "([^"]*)", in any order within a group$`, s.triedInGroups)
	sc.Step(`^every group was tried in either order$`, s.eitherOrder)
	sc.Step(`^throttles are redialled (\d+) times from (\S+) up to (\S+)$`, s.schedule)
	sc.Step(`^(\S+) of the prompt is cached on "([^"]*)"$`, func(share float64, route string) { s.world.cached[route] = share })
	sc.Step(`^the calls end$`, s.callsEnd)
	sc.Step(`^(\S+) go by$`, s.goBy)
	sc.Step(`^the moves are$`, s.movesAre)
	sc.Step(`^nobody was called$`, func() error { return same("calls", 0, len(s.run.Calls)) })
	sc.Step(`^the fallback depth is (\d+)$`, s.depthIs)
	sc.Step(`^the fallback kind is "([^"]*)"$`, s.kindIs)
	sc.Step(`^the selections are "([^"]*)"$`, s.selectionsAre)
	sc.Step(`^the last attempt costs (\d+) nano-USD and a surcharge of (\d+)$`, s.costs)
	sc.Step(`^the keys that served were "([^"]*)"$`, func(keys string) error {
		defer func() { s.served = nil }()
		return same("keys", keys, strings.Join(s.served, ", "))
	})
	sc.Step(`^the throttle decisions are "([^"]*)"$`, s.decisionsAre)
	sc.Step(`^each wait is within half and all of "([^"]*)"$`, s.waitsAre)
	sc.Step(`^the envelope lists "([^"]*)"$`, s.envelopeLists)
	sc.Step(`^the skip names the circuit "([^"]*)"$`, s.skipNames)
	sc.Step(`^the caller is told to come back after "([^"]*)"$`, func(after string) error {
		return same("retry after", after, s.run.Answer.RetryAfter.String())
	})
	sc.Step(`^the answer is "([^"]*)" with status (\d+)$`, s.answerIs)
}

func (s *chainScene) theChain(table *godog.Table) error {
	s.rungs = nil
	for i, cells := range rows(table) {
		r, err := routeOf(i, cells)
		if err != nil {
			return err
		}
		s.rungs = append(s.rungs, r)
	}
	return nil
}

func (s *chainScene) within(limit string) (err error) {
	s.limit, err = time.ParseDuration(limit)
	return err
}

func (s *chainScene) eachPolicy(edit func(*catalog.Policy)) {
	for i := range s.rungs {
		edit(&s.rungs[i].Policy)
	}
}

func (s *chainScene) policy(mode, threshold string) error {
	var t *float64
	if threshold != "none" {
		v, err := strconv.ParseFloat(threshold, 64)
		if err != nil {
			return err
		}
		t = &v
	}
	for i := range s.rungs {
		// Affinity orders routes inside a stage; the table's order is what is meant.
		s.rungs[i].Stage = i
	}
	s.eachPolicy(func(p *catalog.Policy) {
		p.FailoverMode, p.ThrottleCacheThreshold = catalog.FailoverMode(mode), t
	})
	return nil
}

func (s *chainScene) schedule(n int, base, limit string) error {
	b, err := time.ParseDuration(base)
	if err != nil {
		return err
	}
	l, err := time.ParseDuration(limit)
	if err != nil {
		return err
	}
	s.eachPolicy(func(p *catalog.Policy) {
		p.ThrottleRedial = &catalog.ThrottleRedial{MaxRetries: n, BaseDelay: catalog.Duration(b), MaxDelay: catalog.Duration(l)}
	})
	return nil
}

// callsEnd walks one request whose calls end as the table says; a route's last
// ending repeats, and a route without a row may not be called.
func (s *chainScene) callsEnd(table *godog.Table) error {
	endings := map[string][]sim.Ending{}
	for _, cells := range rows(table) {
		for _, text := range words(cells["endings"]) {
			end, err := endingOf(text)
			if err != nil {
				return err
			}
			endings[cells["route"]] = append(endings[cells["route"]], end)
		}
	}
	if s.first.IsZero() {
		s.first = s.now
	}
	var unexpected error
	calls := map[string]int{}
	s.req.Deadline = s.now.Add(s.limit)
	s.req.Admitted.DeadlineMS = s.limit.Milliseconds()
	s.run = sim.Walk(walk.New(s.req, s.rungs, &s.world), func(c *walk.Call, now time.Time) sim.Ending {
		list := endings[c.Rung.Deployment.ID]
		if len(list) == 0 {
			unexpected = fmt.Errorf("route %s was called", c.Rung.Deployment.ID)
			return served()
		}
		end := list[min(calls[c.Rung.Deployment.ID], len(list)-1)]
		calls[c.Rung.Deployment.ID]++
		s.world.Observe(&c.Rung, c.Key, "acme/key1", end.Failure, now.Add(end.After))
		if end.Failure == nil {
			s.served = append(s.served, c.Key)
		}
		return end
	}, s.book, s.now)
	s.now = s.run.End
	return unexpected
}

func (s *chainScene) goBy(span string) error {
	d, err := time.ParseDuration(span)
	s.now = s.now.Add(d)
	return err
}

// movesAre compares the whole list (W23).
func (s *chainScene) movesAre(want *godog.DocString) error {
	if got := strings.Join(s.moves(), "\n"); got != want.Content {
		return fmt.Errorf("want\n%s\ngot\n%s", want.Content, got)
	}
	return nil
}

func (s *chainScene) moves() []string {
	names := map[int]string{}
	for _, r := range s.rungs {
		names[r.Index] = r.Deployment.ID
	}
	var lines []string
	for _, e := range s.run.Events {
		switch e := e.(type) {
		case request.RouteSkipped:
			lines = append(lines, fmt.Sprintf("skip %s %s", names[e.Rung], e.Reason))
		case request.AttemptReserved:
			lines = append(lines, fmt.Sprintf("%s %s %s", e.Kind, e.Deployment, e.ProviderKey))
		case request.RequestRefused:
			lines = append(lines, "refused "+e.Code)
		case request.LimitObserved:
			lines = append(lines, fmt.Sprintf("observed %s: %d of %d", e.Budget, e.Used, e.Limit))
		case request.RequestFinalized:
			lines = append(lines, strings.TrimSpace(strings.Join(slices.DeleteFunc([]string{string(e.Outcome), e.Code, e.Exhausted}, func(w string) bool { return w == "" }), " ")))
		}
	}
	return lines
}

func (s *chainScene) lastReserved() (last request.AttemptReserved) {
	for _, e := range s.run.Events {
		if r, ok := e.(request.AttemptReserved); ok {
			last = r
		}
	}
	return last
}

func (s *chainScene) depthIs(want int) error {
	return same("fallback depth", want, s.lastReserved().FallbackDepth)
}

func (s *chainScene) kindIs(want string) error {
	return same("fallback kind", want, string(s.lastReserved().FallbackKind))
}

// costs is what an attempt comes to: the charge is the list price and the surcharge.
func (s *chainScene) costs(list, surcharge int64) error {
	var last request.Amounts
	for _, e := range s.run.Events {
		if settled, ok := e.(request.AttemptSettled); ok {
			last = settled.Amounts
		}
	}
	want := request.Amounts{
		List: money.NanoUSD(list), Charge: money.NanoUSD(list + surcharge), ProviderCost: money.NanoUSD(list),
		Surcharge: money.NanoUSD(surcharge),
	}
	return same("amounts", want, last)
}

// selectionsAre lists the label of each attempt, empty where it has none.
func (s *chainScene) selectionsAre(want string) error {
	var got []string
	for _, e := range s.run.Events {
		if r, ok := e.(request.AttemptReserved); ok {
			got = append(got, string(r.Selection))
		}
	}
	return same("selections", want, strings.Join(got, ", "))
}

func (s *chainScene) decisionsAre(want string) error {
	var got []string
	for _, e := range s.run.Events {
		if d, ok := e.(request.ThrottleDecided); ok {
			got = append(got, string(d.Decision))
		}
	}
	return same("decisions", want, strings.Join(got, ", "))
}

func (s *chainScene) waitsAre(want string) error {
	list := words(want)
	if len(list) != len(s.run.Waits) {
		return fmt.Errorf("waited %v", s.run.Waits)
	}
	for i, text := range list {
		d, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		if w := s.run.Waits[i]; w < d/2 || w > d {
			return fmt.Errorf("wait %d is %s, not within %s and %s", i+1, w, d/2, d)
		}
	}
	return nil
}

func (s *chainScene) envelopeLists(want string) error {
	var got []string
	for _, a := range s.run.Answer.Attempts {
		got = append(got, a.Provider+" "+string(a.Failure))
	}
	return same("envelope", want, strings.Join(got, ", "))
}

func (s *chainScene) skipNames(want string) error {
	for _, e := range s.run.Events {
		if skipped, ok := e.(request.RouteSkipped); ok {
			return same("circuit", want, skipped.Detail["circuit"])
		}
	}
	return fmt.Errorf("nothing was skipped")
}

func (s *chainScene) answerIs(code string, status int) error {
	if err := same("code", code, string(s.run.Answer.Code)); err != nil {
		return err
	}
	got := apierror.New(s.run.Answer.Code).HTTPStatus()
	if s.run.Answer.AllOpen && s.run.Answer.Code == request.CodeUpstreamExhausted {
		got = 503
	}
	return same("status", status, got)
}

// conversationsAsk walks one request a conversation over routes that are all missing,
// each on circuits of its own.
func (s *chainScene) conversationsAsk(n int) error {
	s.req.Admitted.MaxAttempts = len(s.rungs)
	s.req.Deadline = s.now.Add(s.limit)
	for i := range n {
		world := chainWorld{Registry: health.New(health.Config{Secrets: allSecrets{}})}
		s.req.Conversation = fmt.Sprint("conversation ", i)
		var order []string
		sim.Walk(walk.New(s.req, s.rungs, &world), func(c *walk.Call, _ time.Time) sim.Ending {
			order = append(order, c.Rung.Deployment.ID)
			return failed(failure.DeploymentGone)
		}, nil, s.now)
		s.orders = append(s.orders, order)
	}
	return nil
}

// groupsOf cuts a conversation's order into the groups of the scenario, which have two
// routes each.
func groupsOf(order []string) [][]string { return slices.Collect(slices.Chunk(order, 2)) }

func (s *chainScene) triedInGroups(want string) error {
	for _, order := range s.orders {
		var got []string
		for _, group := range groupsOf(order) {
			got = append(got, strings.Join(slices.Sorted(slices.Values(group)), " "))
		}
		if err := same("groups", want, strings.Join(got, ", ")); err != nil {
			return err
		}
	}
	return nil
}

func (s *chainScene) eitherOrder() error {
	seen := map[string]bool{}
	for _, order := range s.orders {
		for _, group := range groupsOf(order) {
			seen[strings.Join(group, " ")] = true
		}
	}
	return same("orders", len(s.rungs), len(seen))
}
