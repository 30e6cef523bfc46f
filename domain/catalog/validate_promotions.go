package catalog

import "time"

// maxAllowanceTokens keeps the sum of a counter and a request far inside int64.
const maxAllowanceTokens = 1_000_000_000_000_000

// promotions checks an organization's promotions. Which of two would pay for an
// attempt must never depend on their order, so no two give a model away at once.
func (v *validation) promotions(path string, t Tenant) {
	seen := map[string]bool{}
	for i, p := range t.Promotions {
		at := path + "." + at("promotions", i)
		v.promotion(at, p, seen)
		for _, before := range t.Promotions[:i] {
			if model := shared(p, before); model != "" && overlap(p, before) && p.ID != before.ID {
				v.fail(at+".models", "model %s is given away by promotion %s at the same time", shown(model), shown(before.ID))
			}
		}
	}
}

func (v *validation) promotion(path string, p Promotion, seen map[string]bool) {
	v.id(path+".id", p.ID)
	v.once(path+".id", "promotion", p.ID, seen)
	v.promotedModels(path+".models", p.Models)
	starts, startsErr := readMoment(p.Starts)
	if startsErr != nil {
		v.fail(path+".starts", "%s is neither a date like 2026-11-01 nor a time like 2026-11-01T00:00:00Z", shown(p.Starts))
	}
	ends, endsErr := readMoment(p.Ends)
	if endsErr != nil {
		v.fail(path+".ends", "%s is neither a date like 2026-11-01 nor a time like 2026-11-01T00:00:00Z", shown(p.Ends))
	}
	if startsErr == nil && endsErr == nil && p.Ends != "" && !starts.Before(ends) {
		v.fail(path+".ends", "must be after starts")
	}
	if p.FreeInputTokens == nil && p.FreeOutputTokens == nil {
		v.fail(path, "gives nothing away: it needs free_input_tokens, free_output_tokens or both")
	}
	v.allowances(path+".free_input_tokens", p.FreeInputTokens)
	v.allowances(path+".free_output_tokens", p.FreeOutputTokens)
	if p.CachedInputFree && p.FreeInputTokens == nil {
		v.fail(path+".cached_input_free", "needs free_input_tokens: cached input is taken from their allowances")
	}
}

func (v *validation) promotedModels(path string, models []string) {
	if len(models) == 0 {
		v.fail(path, "is missing: a promotion gives at least one model away")
	}
	if len(models) > maxPerTenant {
		v.fail(path, "has more than %d models", maxPerTenant)
		return
	}
	seen := map[string]bool{}
	for i, m := range models {
		p := at(path, i)
		if !v.models[m] {
			v.fail(p, "model %s does not exist", shown(m))
		}
		v.once(p, "model", m, seen)
	}
}

// allowances must be limited: a promotion without end or size would be a gift that
// nobody decided on.
func (v *validation) allowances(path string, a *Allowances) {
	if a == nil {
		return
	}
	if a.PerModel.canonical() == nil && a.Overall.canonical() == nil {
		v.fail(path, "has no limit: give per_model, overall or both at least one")
	}
	v.allowance(path+".per_model", a.PerModel)
	v.allowance(path+".overall", a.Overall)
}

func (v *validation) allowance(path string, l *AllowanceLimits) {
	if l == nil {
		return
	}
	for _, w := range l.windows() {
		if w.tokens != 0 {
			v.within(path+"."+w.name, w.tokens, 1, maxAllowanceTokens)
		}
		if *w.usd == "" {
			continue
		}
		v.amount(path+"."+w.name+"_usd", *w.usd)
		if w.tokens != 0 {
			v.fail(path+"."+w.name+"_usd", "stands beside %s: a limit is written in tokens or in money", w.name)
		}
	}
}

// shared is a model of both promotions, "" for none.
func shared(p, q Promotion) string {
	for _, m := range p.Models {
		if q.Gives(m) {
			return m
		}
	}
	return ""
}

// overlap reports whether two promotions run at the same time. Moments that cannot be
// read are refused on their own.
func overlap(p, q Promotion) bool {
	before := func(a, b time.Time) bool { return b.IsZero() || a.Before(b) }
	ps, pe := p.Interval()
	qs, qe := q.Interval()
	return before(ps, qe) && before(qs, pe)
}
