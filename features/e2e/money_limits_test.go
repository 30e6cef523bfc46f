package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// taken is what an event takes of one counter.
type taken struct {
	key           string
	held, settled int64
}

func takesOf(data gjson.Result) (takes []taken) {
	for _, take := range data.Get("takes").Array() {
		takes = append(takes, taken{take.Get("key").String(), take.Get("held").Int(), take.Get("settled").Int()})
	}
	return takes
}

// counted is a counter of the fold.
type counted struct{ held, settled int64 }

// moment is what came into a trailing window at a time.
type moment struct {
	at time.Time
	n  int64
}

// limitAudit folds the log in its order and looks at every limit at every position.
type limitAudit struct {
	limits   map[string][]moneyLimit
	problem  func(string, ...any)
	counters map[string]*counted
	over     map[string]int64 // overruns by counter of money, nano-USD
	moments  map[string][]moment
	refusals map[string]int // by unit
	checks   map[string]int // what was looked at, how often
}

func newLimitAudit(limits map[string][]moneyLimit, problem func(string, ...any)) *limitAudit {
	return &limitAudit{
		limits: limits, problem: problem, counters: map[string]*counted{}, over: map[string]int64{},
		moments: map[string][]moment{}, refusals: map[string]int{}, checks: map[string]int{},
	}
}

// partsPerToken: counters of tokens hold thousandths.
const partsPerToken = 1000

// subject is whom an attempt counts under in a scope.
func subjectOf(scope string, one *moneyAttempt, c caller) (of []string) {
	switch scope {
	case "organization":
		return []string{""}
	case "key":
		return []string{c.key}
	case "deployment":
		return []string{one.deployment}
	case "model":
		return slices.Compact([]string{c.root, one.model})
	}
	return nil
}

// family is a limit's counters without the window's name.
func (l moneyLimit) family(tenant, of string) string {
	family := "org/" + tenant + "/"
	if l.scope != "organization" {
		family += l.scope + "/" + of + "/"
	}
	return family + l.unit + "/" + l.per
}

// limit finds the limit whose counter a key is.
func (a *limitAudit) limit(tenant, key string) (moneyLimit, bool) {
	family := key[:strings.LastIndexByte(key, '/')]
	for _, l := range a.limits[tenant] {
		if l.scope == "organization" && family == l.family(tenant, "") {
			return l, true
		}
		if l.scope != "organization" && strings.HasPrefix(family, "org/"+tenant+"/"+l.scope+"/") && strings.HasSuffix(family, "/"+l.unit+"/"+l.per) {
			return l, true
		}
	}
	return moneyLimit{}, false
}

func (a *limitAudit) counter(key string) *counted {
	c := a.counters[key]
	if c == nil {
		c = &counted{}
		a.counters[key] = c
	}
	return c
}

// reserved looks at all limits of an attempt as it takes from them.
func (a *limitAudit) reserved(one *moneyAttempt, c caller, e harness.Event, data gjson.Result) {
	var holds []string
	for _, hold := range data.Get("holds").Array() {
		holds = append(holds, hold.String())
	}
	a.checkTaken(one, c, holds)
	if one.owner != "operator" {
		return
	}
	for _, key := range holds {
		counter := a.counter(key)
		counter.held += one.reserved
		l, ok := a.limit(one.tenant, key)
		if ok && !l.observe && counter.held+counter.settled > l.size {
			a.problem("position %d: %s holds %d and has settled %d of %d nano-USD", e.Position, key, counter.held, counter.settled, l.size)
		}
		a.checks["reservations against money"]++
	}
	for _, take := range one.held {
		a.gate(one.tenant, take.key, e)
	}
	a.take(e, one.held)
	for _, take := range one.held {
		a.within(one.tenant, take.key, e)
	}
}

// checkTaken: an attempt takes of exactly the counters that the configuration names.
func (a *limitAudit) checkTaken(one *moneyAttempt, c caller, holds []string) {
	want, got := map[string]bool{}, map[string]bool{}
	if one.owner == "operator" {
		for _, l := range a.limits[one.tenant] {
			for _, of := range subjectOf(l.scope, one, c) {
				family := l.family(one.tenant, of)
				if l.unit == "tokens" && l.per != "minute" && l.per != "hour" {
					family = strings.TrimSuffix(family, "/"+l.per) // days and months share a hold
				}
				want[family] = true
			}
		}
	}
	for _, key := range holds {
		got[key[:strings.LastIndexByte(key, '/')]] = true
	}
	for _, take := range one.held {
		got[take.key[:strings.LastIndexByte(take.key, '/')]] = true
	}
	if !maps.Equal(want, got) {
		a.problem("%s attempt %d takes of %v, not of %v", one.request, one.number,
			slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// settled replaces a hold; what is over it is allowed, and remembered.
func (a *limitAudit) settled(one *moneyAttempt, e harness.Event, data gjson.Result) {
	for _, hold := range data.Get("holds").Array() {
		key := hold.String()
		counter := a.counter(key)
		counter.held -= one.reserved
		counter.settled += one.charge
		a.over[key] += one.overrun
		l, ok := a.limit(one.tenant, key)
		if ok && !l.observe && counter.held+counter.settled > l.size+a.over[key] {
			a.problem("position %d: %s holds %d and has settled %d of %d nano-USD, %d of it overrun",
				e.Position, key, counter.held, counter.settled, l.size, a.over[key])
		}
		a.checks["settlements against money"]++
	}
	a.take(e, takesOf(data))
}

// take applies what an event takes of counters that do not count money.
func (a *limitAudit) take(e harness.Event, takes []taken) {
	for _, take := range takes {
		counter := a.counter(take.key)
		counter.held += take.held
		counter.settled += take.settled
		if counter.held < 0 {
			a.problem("position %d: %s holds %d", e.Position, take.key, counter.held)
		}
		if take.settled != 0 && strings.HasSuffix(take.key, "/trailing") {
			a.moments[take.key] = append(a.moments[take.key], moment{e.Recorded, take.settled})
		}
	}
}

// trailed is what a trailing window of so long holds at a time, exactly.
func (a *limitAudit) trailed(key string, length time.Duration, at time.Time) (n int64) {
	moments := a.moments[key]
	for i := len(moments) - 1; i >= 0 && moments[i].at.After(at.Add(-length)); i-- {
		n += moments[i].n
	}
	return n
}

var trailingLengths = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour}

// within: no window of requests ever holds more than its limit (R1).
func (a *limitAudit) within(tenant, key string, e harness.Event) {
	l, ok := a.limit(tenant, key)
	if !ok || l.observe || l.unit != "requests" {
		return
	}
	a.checks["dispatches against requests"]++
	n := a.counter(key).settled
	if length, trails := trailingLengths[l.per]; trails {
		if l.size > 10_000 { // counting that many at each dispatch is what windows are there to spare
			return
		}
		n = a.trailed(key, length, e.Recorded)
	}
	if n > l.size {
		a.problem("position %d: %d dispatches under %s, of %d", e.Position, n, key, l.size)
	}
}

// gate: under every limit of tokens there was something left before the attempt (R2, R4).
func (a *limitAudit) gate(tenant, key string, e harness.Event) {
	owner, isHold := strings.CutSuffix(key, "/tokens/held")
	if l, ok := a.limit(tenant, key); ok && l.unit == "tokens" && !l.observe && l.size < 1_000_000 {
		a.checks["dispatches against tokens"]++
		used := a.trailed(key, trailingLengths[l.per], e.Recorded) + a.counter(key).held
		a.left(l, key, used, e)
	}
	if !isHold {
		return
	}
	for _, l := range a.limits[tenant] {
		if _, trails := trailingLengths[l.per]; l.unit != "tokens" || l.observe || trails {
			continue
		}
		if l.scope == "organization" && owner == "org/"+tenant {
			window := owner + "/tokens/" + l.per + "/" + map[string]string{"day": e.Recorded.UTC().Format("2006-01-02"), "month": e.Recorded.UTC().Format("2006-01")}[l.per]
			a.checks["dispatches against tokens"]++
			a.left(l, window, a.counter(window).settled+a.counter(key).held, e)
		}
	}
}

func (a *limitAudit) left(l moneyLimit, key string, parts int64, e harness.Event) {
	if whole := (parts + partsPerToken/2) / partsPerToken; whole >= l.size {
		a.problem("position %d: dispatched with %d of %d tokens under %s", e.Position, whole, l.size, key)
	}
}

// refused: what a refusal says of a limit is what the log adds up to at its place (A9).
func (a *limitAudit) refused(tenant string, e harness.Event, data gjson.Result) {
	unit, scope, size, used := data.Get("unit").String(), data.Get("scope").String(), data.Get("limit").Int(), data.Get("used").Int()
	if unit == "" {
		return // no limit refused it
	}
	a.checks["refusals by "+scope+" "+unit]++
	a.refusals[unit]++
	if scope == "deployment" {
		return // one route was refused before this, when the counters were others
	}
	unit = strings.Replace(unit, "nanousd", "usd", 1)
	for _, l := range a.limits[tenant] {
		if l.scope != scope || l.unit != unit || l.size != size || l.observe {
			continue
		}
		if unit == "tokens" {
			if used >= size {
				return
			}
			continue
		}
		for key, c := range a.counters {
			if found, ok := a.limit(tenant, key); !ok || found != l {
				continue
			}
			have := c.held + c.settled
			if length, trails := trailingLengths[l.per]; trails && unit == "requests" {
				have = a.trailed(key, length, e.Recorded)
			}
			if have == used {
				return
			}
		}
		if used == 0 {
			return // a counter that nobody has written
		}
	}
	a.problem("position %d: refused by %s with %d of %d %s used, which no counter says", e.Position, scope, used, size, unit)
}

// organizationMoney is what the counters of each of an organization's own limits of
// money have settled, over all windows.
func (a *limitAudit) organizationMoney(tenant string) map[string]int64 {
	sums := map[string]int64{}
	for _, l := range a.limits[tenant] {
		if l.unit != "usd" || l.scope != "organization" {
			continue
		}
		for key, c := range a.counters {
			if strings.HasPrefix(key, l.family(tenant, "")+"/") {
				sums[l.family(tenant, "")] += c.settled
			}
		}
	}
	return sums
}

// told is how often what was looked at.
func (a *limitAudit) told() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(a.checks)) {
		all = append(all, fmt.Sprintf("%d %s", a.checks[what], what))
	}
	return strings.Join(all, ", ")
}
