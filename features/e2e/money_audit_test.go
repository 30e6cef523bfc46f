package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// moneyAttempt is what the log says about one attempt.
type moneyAttempt struct {
	request, tenant, key, model, deployment string
	owner, kind, basis                      string
	number, rung                            int64
	prices                                  rates
	reserved                                int64 // nano-USD
	settled                                 bool
	observed                                time.Time
	charge, list, cost                      int64 // nano-USD
	waived                                  bool
	usage                                   tokensUsed
	overrun, told                           int64 // nano-USD; told is what an event said of it
	held                                    []taken
	meterHeld                               bool
}

// tokensUsed are a settlement's tokens; -1 is unknown.
type tokensUsed struct{ input, cached, written, written1h, output int64 }

func usedOf(data gjson.Result) tokensUsed {
	count := func(name string) int64 {
		if c := data.Get("usage." + name); c.Type == gjson.Number {
			return c.Int()
		}
		return -1
	}
	return tokensUsed{
		count("input_tokens"), count("cached_input_tokens"), count("cache_write_5m_tokens"), count("cache_write_1h_tokens"), count("output_tokens"),
	}
}

// moneyAudit reads the whole log once and adds up what it says about money, sharing no
// code with what wrote it.
type moneyAudit struct {
	*audit
	limits   *limitAudit
	attempts []*moneyAttempt
	by       map[string]*moneyAttempt // request and number
	// callers are who asked for what: the admissions.
	callers map[string]caller
	counts  map[string]int // events by type
}

type caller struct{ tenant, key, root string }

func auditMoney(t *testing.T, in *harness.Installation, limits map[string][]moneyLimit) *moneyAudit {
	t.Helper()
	a := &moneyAudit{by: map[string]*moneyAttempt{}, callers: map[string]caller{}, counts: map[string]int{}}
	a.audit = auditLog(t, in)
	a.limits = newLimitAudit(limits, a.problem)
	for e := range in.Events(t) {
		a.counts[e.Type]++
		if id, ok := strings.CutPrefix(e.Stream, "request/"); ok {
			a.money(id, e)
		}
	}
	for _, one := range a.attempts {
		a.checkAttempt(one)
	}
	return a
}

func (a *moneyAudit) money(id string, e harness.Event) {
	data := gjson.Parse(e.Data)
	number := data.Get("attempt").Int()
	name := fmt.Sprint(id, "/", number)
	switch e.Type {
	case "request_admitted":
		a.callers[id] = caller{data.Get("tenant").String(), data.Get("key").String(), data.Get("canonical_model").String()}
	case "attempt_reserved":
		one := &moneyAttempt{
			request: id, number: number, rung: data.Get("rung").Int(),
			tenant: data.Get("tenant").String(), key: a.callers[id].key, model: data.Get("model").String(), deployment: data.Get("deployment").String(),
			owner: data.Get("credential_owner").String(), kind: data.Get("fallback_kind").String(),
			prices: ratesOf(data.Get("prices")), reserved: data.Get("reserved_nanousd").Int(), held: takesOf(data),
		}
		a.attempts = append(a.attempts, one)
		a.by[name] = one
		a.limits.reserved(one, a.callers[id], e, data)
	case "attempt_settled":
		one := a.by[name]
		if one == nil || one.settled {
			a.problem("%s: a settlement of what is not held", name)
			return
		}
		one.settled, one.observed = true, e.Observed
		one.charge, one.list, one.cost = data.Get("charge_nanousd").Int(), data.Get("list_nanousd").Int(), data.Get("provider_cost_nanousd").Int()
		one.basis, one.usage, one.waived = data.Get("basis").String(), usedOf(data), data.Get("waived").Bool()
		one.overrun = max(0, one.charge-one.reserved)
		a.limits.settled(one, e, data)
	case "reservation_overrun":
		a.by[name].told += data.Get("overrun_nanousd").Int()
	case "meter_hold_placed":
		a.by[name].meterHeld = true
		a.limits.take(e, takesOf(data))
	case "meter_hold_resolved":
		a.limits.take(e, takesOf(data))
	case "request_refused":
		a.limits.refused(data.Get("tenant").String(), e, data)
	}
}

// checkAttempt prices a settlement again from its usage and the prices of its
// reservation, and looks at who bears it.
func (a *moneyAudit) checkAttempt(one *moneyAttempt) {
	name := fmt.Sprintf("%s attempt %d (%s)", one.request, one.number, one.deployment)
	if one.overrun != one.told {
		a.problem("%s: %d nano-USD over its reservation, and an event about %d", name, one.overrun, one.told)
	}
	if !one.settled {
		return
	}
	want := int64(0)
	if one.basis != "unknown" {
		want = one.prices.cost(one.usage)
	}
	if one.list != want || one.cost != want {
		a.problem("%s: list %d and cost %d, its usage %+v costs %d", name, one.list, one.cost, one.usage, want)
	}
	charged := want
	if one.waived || one.owner == "workspace" {
		charged = 0
	}
	if one.charge != charged {
		a.problem("%s: charged %d, not %d", name, one.charge, charged)
	}
	if held := one.basis == "unknown" && one.owner == "operator" && a.lives[one.request].attempts[one.number].committed; one.meterHeld != held {
		a.problem("%s: basis %s of %s, a meter hold is placed: %t", name, one.basis, one.owner, one.meterHeld)
	}
}

// upstreamKey is the name under which the provider knows an attempt's calls.
func (one *moneyAttempt) upstreamKey() string {
	key := one.request + "-" + one.deployment
	if one.owner == "workspace" {
		key += fmt.Sprint("-own-", one.rung)
	}
	return key
}

// ledgerSums are the provider's bill, by what the log knows of it, in nano-USD.
type ledgerSums struct {
	// calls and cost are all that the provider says; known is the part of which the log
	// has the usage, counted what it has counted itself, unknown what it cannot know.
	calls                        int
	cost, known, counted, silent int64
	// logged is what the log says of the known part, and estimated of the counted one.
	logged, estimated int64
	neverSent         int
}

// compareLedger holds every call that the provider has seen against the log: one call is
// one attempt, of the same tokens where the provider has told them, at the same price.
func (a *moneyAudit) compareLedger(calls []fakeprovider.Call) ledgerSums {
	sums := ledgerSums{calls: len(calls)}
	seen := map[string][]fakeprovider.Call{}
	for _, call := range calls {
		seen[call.IdempotencyKey] = append(seen[call.IdempotencyKey], call)
	}
	for _, one := range a.attempts { // in the order of the log, which is each request's own
		key := one.upstreamKey()
		if len(seen[key]) == 0 {
			sums.neverSent++
			if one.charge != 0 || one.basis == "reported" && one.cost != 0 {
				a.problem("%s: charged %d for a call that the provider never saw", key, one.charge)
			}
			continue
		}
		call := seen[key][0]
		seen[key] = seen[key][1:]
		a.compareCall(&sums, one, call)
	}
	for key, left := range seen {
		if len(left) > 0 {
			a.problem("the provider saw %d calls of %s that are no attempt", len(left), key)
		}
	}
	return sums
}

func (a *moneyAudit) compareCall(sums *ledgerSums, one *moneyAttempt, call fakeprovider.Call) {
	billed := tokensUsed{
		input: int64(call.BilledInputTokens), cached: int64(call.BilledCachedTokens),
		written: int64(call.BilledWrittenTokens), output: int64(call.BilledOutputTokens),
	}
	cost := one.prices.cost(billed)
	sums.cost += cost
	switch {
	case one.settled && one.basis == "reported" && !call.ClientGone:
		sums.known += cost
		sums.logged += one.cost
		if one.cost != cost || max(one.usage.input, 0) != billed.input || max(one.usage.output, 0) != billed.output {
			a.problem("%s attempt %d: settled %+v for %d nano-USD, the provider bills %+v for %d (%s)",
				one.request, one.number, one.usage, one.cost, billed, cost, call.Outcome)
		}
	case one.settled && one.basis != "unknown":
		sums.counted += cost
		sums.estimated += one.cost
	default:
		sums.silent += cost
	}
}

// moneySum is what one organization owes, as one of those who count says it.
type moneySum struct{ charge, attempts int64 }

// organizations are the sums of the log.
func (a *moneyAudit) organizations() map[string]moneySum {
	sums := map[string]moneySum{}
	for _, one := range a.attempts {
		if s := sums[one.tenant]; one.settled {
			sums[one.tenant] = moneySum{s.charge + one.charge, s.attempts + 1}
		}
	}
	return sums
}

// compareCounters: every counter of the database is what the log adds up to.
func (a *moneyAudit) compareCounters(t *testing.T, in *harness.Installation) {
	t.Helper()
	live := map[string]counted{}
	in.Query(t, "select key, held, settled from budget_counters", func(rows pgx.Rows) error {
		var key string
		var c counted
		err := rows.Scan(&key, &c.held, &c.settled)
		live[key] = c
		return err
	})
	for key := range live {
		if _, known := a.limits.counters[key]; !known && live[key] != (counted{}) {
			a.problem("counter %s is %+v, the log knows nothing of it", key, live[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.limits.counters)) {
		if fold := a.limits.counters[key]; live[key] != *fold {
			a.problem("counter %s is %+v, the log adds up to %+v", key, live[key], *fold)
		}
	}
}

// compareBills: each organization's bill, usage and counters of money say what the log
// says, and the bill's lines are the log's attempts.
func (a *moneyAudit) compareBills(t *testing.T, reader func(tenant string) harness.Client) {
	t.Helper()
	lines := map[string]moneySum{}
	for _, one := range a.attempts {
		if key := one.line(); one.settled {
			lines[key] = moneySum{lines[key].charge + one.charge, lines[key].attempts + 1}
		}
	}
	for tenant, want := range a.organizations() {
		client := reader(tenant)
		var billed, used moneySum
		for _, period := range client.Get(t, "/v1/bills").Get("data.#.period").Array() {
			bill := client.Get(t, "/v1/bills/"+period.String())
			var sum int64
			for _, line := range bill.Get("lines").Array() {
				got := moneySum{line.Get("charge_nanousd").Int(), line.Get("attempts").Int()}
				key := lineKey(tenant, period.String(), line)
				if lines[key] != got {
					a.problem("bill line %s says %+v, the log %+v", key, got, lines[key])
				}
				delete(lines, key)
				sum += got.charge
				billed.attempts += got.attempts
			}
			if said := bill.Get("charge_nanousd").Int(); said != sum {
				a.problem("%s: a bill of %d with lines of %d", tenant, said, sum)
			}
			billed.charge += sum
		}
		for _, row := range client.Get(t, "/v1/usage?group_by=model,key,day").Get("data").Array() {
			used = moneySum{used.charge + row.Get("charge_nanousd").Int(), used.attempts + row.Get("attempts").Int()}
		}
		if billed != want || used != want {
			a.problem("%s: the log says %+v, the bills %+v, usage %+v", tenant, want, billed, used)
		}
		for family, settled := range a.limits.organizationMoney(tenant) {
			if settled != want.charge {
				a.problem("%s: the counters of %s have settled %d, the log %d", tenant, family, settled, want.charge)
			}
		}
	}
	for key, left := range lines {
		a.problem("the log has %+v for %s, which is on no bill", left, key)
	}
}

// line names the line of a bill that an attempt belongs to.
func (one *moneyAttempt) line() string {
	return strings.Join([]string{one.tenant, one.observed.UTC().Format("2006-01"), one.model, one.deployment, one.owner, one.kind}, " ")
}

func lineKey(tenant, period string, line gjson.Result) string {
	return strings.Join([]string{
		tenant, period, line.Get("model").String(), line.Get("deployment").String(),
		line.Get("credential_owner").String(), line.Get("fallback_kind").String(),
	}, " ")
}
