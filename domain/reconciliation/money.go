package reconciliation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Account is an organization and the month that something was settled in.
type Account struct{ Tenant, Period string }

// Sums are charges in nano-USD: what the log adds up to, or what is kept beside it.
type Sums struct {
	// Bills and Usage are by organization and month: what stands on a bill about that
	// month, wherever it stands, and what the days of the month say.
	Bills, Usage map[Account]int64
	// Counters are the budget counters of a month.
	Counters map[budget.Key]int64
}

// NewSums are sums of nothing.
func NewSums() Sums {
	return Sums{Bills: map[Account]int64{}, Usage: map[Account]int64{}, Counters: map[budget.Key]int64{}}
}

// IsMonthly reports whether a counter is one of money in a calendar month, the window
// that a bill has too.
func IsMonthly(key budget.Key) bool { return strings.Contains(string(key), MonthlyMark) }

// MonthlyMark stands in the key of every counter of money in a month.
const MonthlyMark = "/usd/month/"

// Charges adds up settlements as arithmetic on the events alone: it shares no code with
// the tables that it is compared with, so that a fault in what makes them shows, which a
// rebuild would only repeat.
type Charges struct {
	sums Sums
	// corrections are those that the bills were told of, by deployment.
	corrections map[string][]billing.Correction
}

// NewCharges prepares a sum under the corrections that the bills were told of, in the
// order of the log.
func NewCharges(corrections []billing.Correction) *Charges {
	c := &Charges{sums: NewSums(), corrections: map[string][]billing.Correction{}}
	for _, one := range corrections {
		c.corrections[one.Deployment] = append(c.corrections[one.Deployment], one)
	}
	return c
}

// Settle adds a settlement. billed reports whether the bills have come that far: they
// follow behind the log, the counters do not.
func (c *Charges) Settle(e request.AttemptSettled, at time.Time, billed bool) {
	for _, d := range budget.Settle(e) {
		if IsMonthly(d.Key) {
			c.sums.Counters[d.Key] += d.Settled
		}
	}
	if !billed {
		return
	}
	account := Account{Tenant: e.Tenant, Period: billing.Period(at)}
	for _, entry := range billing.Entries(e, at, c.corrections[e.Deployment]) {
		c.sums.Bills[account] += int64(entry.Amounts.Charge)
		c.sums.Usage[account] += int64(entry.Amounts.Charge)
	}
}

// Finding compares the log's sums with those that are kept.
func (c *Charges) Finding(kept Sums, position int64) Finding {
	f := Finding{Position: position}
	name := func(table string) func(Account) string {
		return func(a Account) string { return table + " " + a.Tenant + "/" + a.Period }
	}
	compare(&f, name("bill"), c.sums.Bills, kept.Bills)
	compare(&f, name("usage"), c.sums.Usage, kept.Usage)
	compare(&f, func(k budget.Key) string { return "counter " + string(k) }, c.sums.Counters, kept.Counters)
	return f
}

// compare notes where two sets of sums differ; one that is not there is zero.
func compare[K comparable](f *Finding, name func(K) string, log, kept map[K]int64) {
	var drifts []Drift
	for k, sum := range log {
		f.Compared++
		if kept[k] != sum {
			drifts = append(drifts, Amounts(name(k), sum, kept[k]))
		}
	}
	for k, sum := range kept {
		if _, both := log[k]; both {
			continue
		}
		f.Compared++
		if sum != 0 {
			drifts = append(drifts, Amounts(name(k), 0, sum))
		}
	}
	slices.SortFunc(drifts, func(a, b Drift) int { return cmp.Compare(a.Key, b.Key) })
	f.Add(drifts...)
}
