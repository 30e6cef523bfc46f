package budget

import (
	"slices"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Limit is one budget in the window that holds now.
type Limit struct {
	Key Key
	// HeldKey is where the limit's holds are, when not under Key; see Check.
	HeldKey Key
	Unit    catalog.Unit
	// Limit is in whole units: nano-USD, requests, tokens.
	Limit int64
	Soft  int64
	// Budget is the budget's id, which is unique in its organization; Of is whose counter
	// this is.
	Budget  string
	Scope   string
	Of      string
	Per     catalog.Period
	Observe bool
	Resets  time.Time // zero for a total, which never resets, and a trailing window
}

// Subject is whom and what an attempt is counted under.
type Subject struct {
	Tenant string
	// Key, Team and Identity are the caller's.
	Key, Team, Identity string
	// Root is the model that was asked for and Model the one that is called: the
	// budgets of both hold (M8).
	Root, Model string
	// Pool is the exact model that is called.
	Pool       string
	Deployment string
}

// Limits are the limits that an attempt is under at one moment, with the counters that
// hold them. A budget that applies twice is there once (M8); two budgets may share a
// counter, of which Holds, Take and Return take once.
func Limits(s Subject, budgets []catalog.Budget, now time.Time) ([]Limit, error) {
	// A budget counts for two models at most.
	limits := make([]Limit, 0, len(budgets)+1)
	clock := calendar{now: now.UTC()}
	for i := range budgets {
		b := &budgets[i]
		held, n := s.under(b)
		for _, of := range held[:n] {
			l, err := limitOf(s.Tenant, b, of, &clock)
			if err != nil {
				return nil, err
			}
			limits = append(limits, l)
		}
	}
	return limits, nil
}

// under are whose counters a budget of this scope counts in, for the subject. A budget
// that names nobody in particular is each one's own.
func (s *Subject) under(b *catalog.Budget) (held [2]string, n int) {
	var of [2]string
	switch b.Scope {
	case catalog.ScopeOrganization:
		return of, 1
	case catalog.ScopeTeam:
		of[0] = s.Team
	case catalog.ScopeIdentity:
		of[0] = s.Identity
	case catalog.ScopeKey:
		of[0] = s.Key
	case catalog.ScopeModel:
		of = [2]string{s.Root, s.Model}
		if s.Root == s.Model {
			of[1] = ""
		}
	case catalog.ScopePool:
		of[0] = s.Pool
	case catalog.ScopeDeployment:
		of[0] = s.Deployment
	}
	for _, one := range of {
		if one != "" && (b.Of == "" || b.Of == one) {
			held[n] = one
			n++
		}
	}
	return held, n
}

// ScopePromotion refuses what a promotion would have given away (M10).
const ScopePromotion = "promotion"

// limitKeys begins the keys of all counters of limits.
const limitKeys = "org/"

// limitOf is one budget in the window that holds now. It is made for every reservation,
// a dozen at a time, so a key is put together at once.
func limitOf(tenant string, b *catalog.Budget, of string, clock *calendar) (Limit, error) {
	size, err := b.Limit()
	if err != nil {
		return Limit{}, err
	}
	unit := b.Unit()
	l := Limit{
		Unit: unit, Limit: size, Soft: share(size, b.Soft()), Budget: b.ID(), Scope: b.Scope, Of: of, Per: b.Per,
		Observe: b.Enforcement == catalog.Observe,
	}
	window, resets := clock.window(unit, b.Per)
	l.Resets = resets
	scope, between := "", ""
	if of != "" {
		scope, between = b.Scope, "/"
	}
	l.Key = Key(limitKeys + tenant + "/" + scope + between + of + between + string(unit) + "/" + string(b.Per) + "/" + window)
	if unit == catalog.Tokens && window != trailing[1:] {
		l.HeldKey = Key(limitKeys + tenant + "/" + scope + between + of + between + "tokens/held")
	}
	return l, nil
}

// share is a percentage of a limit, rounded up: reached is never said too early.
func share(limit int64, percent int) int64 {
	if percent == 0 {
		return 0
	}
	whole, rest := limit/100, limit%100
	return whole*int64(percent) + (rest*int64(percent)+99)/100
}

// calendar is one moment. It names each window once, however many limits have it.
type calendar struct {
	now    time.Time
	seen   [5]catalog.Period
	names  [5]string
	resets [5]time.Time
}

// window names the window that holds now, and when the next one starts. Money is
// counted by the UTC calendar; of requests and tokens a minute and an hour trail (R1,
// R2).
func (c *calendar) window(unit catalog.Unit, per catalog.Period) (name string, resets time.Time) {
	if unit != catalog.USD && (per == catalog.PerMinute || per == catalog.PerHour) {
		return trailing[1:], time.Time{}
	}
	for i := range c.seen {
		switch c.seen[i] {
		case per:
			return c.names[i], c.resets[i]
		case "":
			c.seen[i] = per
			c.names[i], c.resets[i] = CalendarWindow(per, c.now)
			return c.names[i], c.resets[i]
		}
	}
	return CalendarWindow(per, c.now)
}

// CalendarWindow names the UTC window that holds now, and when the next one starts.
func CalendarWindow(per catalog.Period, now time.Time) (name string, resets time.Time) {
	now = now.UTC()
	y, m, d := now.Date()
	switch per {
	case catalog.PerMinute:
		start := now.Truncate(time.Minute)
		return start.Format("2006-01-02T15:04"), start.Add(time.Minute)
	case catalog.PerHour:
		start := now.Truncate(time.Hour)
		return start.Format("2006-01-02T15"), start.Add(time.Hour)
	case catalog.PerDay:
		return now.Format("2006-01-02"), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
	case catalog.PerMonth:
		return now.Format("2006-01"), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	default:
		return "total", time.Time{}
	}
}

// check asks the limit for an attempt that costs at most ask nano-USD.
func (l *Limit) check(ask int64) Check {
	c := Check{
		Key: l.Key, HeldKey: l.HeldKey, Unit: l.Unit, Limit: l.Limit, Soft: l.Soft,
		Observe: l.Observe, Budget: l.Budget, Scope: l.Scope, Of: l.Of, Per: l.Per, Resets: l.Resets,
	}
	switch l.Unit {
	case catalog.USD:
		c.Ask = ask
	case catalog.Requests:
		c.Ask = 1
	}
	return c
}

// Seen is where a limit stands, in whole units.
type Seen struct {
	Unit                string
	Held, Settled, Used int64
	// Resets as in Refusal.
	Resets time.Time
}

// See reads a limit's counters for people.
func (l *Limit) See(counters map[Key]Counter) Seen {
	c := l.check(0)
	now := counters[l.Key]
	s := Seen{
		Unit: c.UnitName(), Held: now.Held, Settled: now.Settled - now.Passed,
		Used: c.used(counters), Resets: c.resets(counters),
	}
	if l.HeldKey != "" {
		s.Held = counters[l.HeldKey].Held
	}
	if l.Unit == catalog.Tokens {
		s.Held, s.Settled = wholeTokens(s.Held), wholeTokens(s.Settled)
	}
	return s
}

// Holds are the counters that hold an attempt's money, each once: a limit of every model
// and one of this model share theirs (M8).
func Holds(limits []Limit) []string {
	keys := make([]string, 0, len(limits))
	for i := range limits {
		if key := string(limits[i].Key); limits[i].Unit == catalog.USD && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Checks asks every limit for one more attempt that costs at most ask nano-USD.
func Checks(limits []Limit, ask int64) []Check {
	checks := make([]Check, len(limits))
	for i := range limits {
		checks[i] = limits[i].check(ask)
	}
	return checks
}

// AskAtLeast raises what checks ask for under the given limits of money. One that
// applies twice is asked once, for the larger amount (M8, M9).
func AskAtLeast(checks []Check, limits []Limit, ask int64) []Check {
	for i := range checks {
		c := &checks[i]
		under := slices.ContainsFunc(limits, func(l Limit) bool { return l.Key == c.Key })
		if under && c.Unit == catalog.USD {
			c.Ask = max(c.Ask, ask)
		}
	}
	return checks
}

// MovesOn reports whether the exhaustion of a scope concerns one route only, so that
// the walk goes on (M13), or a promotion only, without which it may (M10). Any other
// scope stops it.
func MovesOn(scope string) bool {
	return scope == catalog.ScopeDeployment || scope == catalog.ScopePool || scope == ScopePromotion
}

// UnitName is the unit of the check's amounts: money is counted in nano-USD.
func (c *Check) UnitName() string {
	if c.Unit == catalog.USD {
		return "nanousd"
	}
	return string(c.Unit)
}

// Trails reports whether a counter is read through a trailing window.
func Trails(k Key) bool {
	_, ok := WindowOf(k)
	return ok
}

// Window names the window of the UTC calendar that a threshold is told in (R9): the
// check's own, or for one that trails the minute or hour that holds now.
func (c *Check) Window(now time.Time) string {
	w, ok := WindowOf(c.Key)
	if !ok {
		return string(c.Key[strings.LastIndexByte(string(c.Key), '/')+1:])
	}
	per := catalog.PerMinute
	if w.Length == time.Hour {
		per = catalog.PerHour
	}
	name, _ := CalendarWindow(per, now)
	return name
}
