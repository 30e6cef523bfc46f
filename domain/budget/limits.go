package budget

import (
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

// ScopeOrganization refuses for the whole organization: the walk stops (M13).
const ScopeOrganization = "organization"

// Limit is one monetary budget in the window that holds now.
type Limit struct {
	Key    Key
	Limit  money.NanoUSD
	Scope  string
	Resets time.Time // zero for a total: it never resets
}

// MoneyLimits are the monetary limits of an organization at one moment, with the
// counters that hold them. Request and token windows are not counters of the
// calendar: a trailing minute (R1) is kept elsewhere.
func MoneyLimits(tenant string, budgets []catalog.Budget, now time.Time) ([]Limit, error) {
	var limits []Limit
	for _, b := range budgets {
		if b.LimitUSD == "" {
			continue
		}
		usd, err := decimal.NewFromString(b.LimitUSD)
		if err != nil {
			return nil, err
		}
		nano, err := money.FromUSD(usd)
		if err != nil {
			return nil, err
		}
		window, resets := windowOf(b.Per, now)
		key := strings.Join([]string{"org", tenant, "usd", string(b.Per), window}, "/")
		limits = append(limits, Limit{Key: Key(key), Limit: nano, Scope: b.Scope, Resets: resets})
	}
	return limits, nil
}

// windowOf names the UTC window that holds now, and when the next one starts.
func windowOf(per catalog.Period, now time.Time) (name string, resets time.Time) {
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

// Checks asks every limit whether ask more may be held.
func Checks(limits []Limit, ask money.NanoUSD) []Check {
	checks := make([]Check, len(limits))
	for i, l := range limits {
		checks[i] = Check{Key: l.Key, Limit: int64(l.Limit), Ask: int64(ask), Scope: l.Scope}
	}
	return checks
}
