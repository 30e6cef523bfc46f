package catalog

import (
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/money"
)

// Promotion gives an organization input, output or both of some models for nothing,
// up to its allowances, for as long as it runs (M10). The operator pays what the
// customer does not.
type Promotion struct {
	ID string `json:"id"`
	// Models are the slugs of the models that are given away. What another model
	// serves is never paid by it, also when it serves in the place of one of these.
	Models []string `json:"models"`
	// Starts is the first moment of the promotion, as RFC 3339 or as a date, which is
	// its midnight in UTC; left out, it has always run.
	Starts string `json:"starts,omitempty"`
	// Ends is the first moment after the promotion; left out, it runs until it is
	// removed.
	Ends string `json:"ends,omitempty"`
	// FreeInputTokens are the allowances of free input; left out, input is not free.
	FreeInputTokens *Allowances `json:"free_input_tokens,omitempty"`
	// FreeOutputTokens are the allowances of free output; left out, output is not free.
	FreeOutputTokens *Allowances `json:"free_output_tokens,omitempty"`
	// CachedInputFree gives away input that is read from a provider's cache too. It is
	// charged at its discounted price otherwise.
	CachedInputFree bool `json:"cached_input_free,omitempty"`
}

// Allowances are the limits of what is given away; all of them hold at once.
type Allowances struct {
	// PerModel holds for each model of the promotion on its own.
	PerModel *AllowanceLimits `json:"per_model,omitempty"`
	// Overall holds for all models of the promotion together.
	Overall *AllowanceLimits `json:"overall,omitempty"`
}

// AllowanceLimits are the limits of one allowance in tokens, or in the USD that the
// tokens would have cost. Hours and days are those of UTC.
type AllowanceLimits struct {
	PerHour    int64  `json:"per_hour,omitempty"`
	PerDay     int64  `json:"per_day,omitempty"`
	Total      int64  `json:"total,omitempty"`
	PerHourUSD string `json:"per_hour_usd,omitempty"`
	PerDayUSD  string `json:"per_day_usd,omitempty"`
	TotalUSD   string `json:"total_usd,omitempty"`
}

// AllowanceLimit is one limit: Tokens, or NanoUSD where it was written in money.
type AllowanceLimit struct {
	Per     Period
	Tokens  int64
	NanoUSD money.NanoUSD
}

// InMoney reports whether the limit was written in money.
func (l AllowanceLimit) InMoney() bool { return l.NanoUSD > 0 }

// Limits lists what is set, the shortest window first. A valid promotion has no
// amount that cannot be read.
func (l *AllowanceLimits) Limits() []AllowanceLimit {
	if l == nil {
		return nil
	}
	var list []AllowanceLimit
	for _, w := range l.windows() {
		switch {
		case w.tokens > 0:
			list = append(list, AllowanceLimit{Per: w.per, Tokens: w.tokens})
		case *w.usd != "":
			if usd, err := decimal.NewFromString(*w.usd); err == nil {
				if nano, err := money.FromUSD(usd); err == nil {
					list = append(list, AllowanceLimit{Per: w.per, NanoUSD: nano})
				}
			}
		}
	}
	return list
}

// allowanceWindow is one window of an allowance as it was written.
type allowanceWindow struct {
	name   string
	per    Period
	tokens int64
	usd    *string
}

func (l *AllowanceLimits) windows() []allowanceWindow {
	return []allowanceWindow{
		{"per_hour", PerHour, l.PerHour, &l.PerHourUSD},
		{"per_day", PerDay, l.PerDay, &l.PerDayUSD},
		{"total", Total, l.Total, &l.TotalUSD},
	}
}

// Gives reports whether the promotion is one of a model's at all, running or not.
func (p Promotion) Gives(model string) bool { return slices.Contains(p.Models, model) }

// Runs reports whether the promotion runs at a moment: from its start on, before its
// end.
func (p Promotion) Runs(at time.Time) bool {
	starts, ends := p.Interval()
	return !at.Before(starts) && (ends.IsZero() || at.Before(ends))
}

// Interval is when the promotion starts and ends; a zero end is none.
func (p Promotion) Interval() (starts, ends time.Time) {
	starts, _ = readMoment(p.Starts)
	ends, _ = readMoment(p.Ends)
	return starts, ends
}

// readMoment reads RFC 3339 or a date, which is its midnight in UTC. Empty is the
// zero time.
func readMoment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err
}

// canonicalMoment writes a moment the one way; what is none stays as it is, for
// validation to refuse.
func canonicalMoment(text string) string {
	at, err := readMoment(text)
	if err != nil || text == "" {
		return text
	}
	return at.Format(time.RFC3339)
}

func (p Promotion) canonical() Promotion {
	p.Models = set(p.Models)
	p.Starts, p.Ends = canonicalMoment(p.Starts), canonicalMoment(p.Ends)
	p.FreeInputTokens, p.FreeOutputTokens = p.FreeInputTokens.canonical(), p.FreeOutputTokens.canonical()
	return p
}

func (a *Allowances) canonical() *Allowances {
	if a == nil {
		return nil
	}
	return &Allowances{PerModel: a.PerModel.canonical(), Overall: a.Overall.canonical()}
}

func (l *AllowanceLimits) canonical() *AllowanceLimits {
	if l == nil || *l == (AllowanceLimits{}) {
		return nil
	}
	c := *l
	for _, w := range c.windows() {
		*w.usd = canonicalUSD(*w.usd)
	}
	return &c
}

// PromotionDefined creates or replaces a promotion. Stream promotion/<tenant>/<id>.
type PromotionDefined struct {
	Tenant    string    `json:"tenant"`
	Promotion Promotion `json:"promotion"`
}

// PromotionRemoved ends a promotion. What it has given away stays given: one of the
// same id goes on from there.
type PromotionRemoved struct {
	Tenant    string `json:"tenant"`
	Promotion string `json:"promotion"`
}

// TenantPromotion is a promotion with its owner.
type TenantPromotion struct {
	Tenant string `json:"-"`
	Promotion
}

func promotionStream(tenant, id string) string { return "promotion/" + tenant + "/" + id }

// DearestRate is the highest ordinary price of input, or of output, of some models on
// the operator's account, in USD per million tokens; nil where none is known.
func (s *Snapshot) DearestRate(models []string, output bool) *decimal.Decimal {
	var dearest *decimal.Decimal
	for _, slug := range models {
		m := s.models[slug]
		if m == nil {
			continue
		}
		for _, r := range m.Chain {
			d := s.deployments[r.Deployment]
			if d == nil {
				continue
			}
			rate := d.Prices.Input
			if output {
				rate = d.Prices.Output
			}
			if rate != nil && (dearest == nil || rate.GreaterThan(*dearest)) {
				dearest = rate
			}
		}
	}
	return dearest
}
