package catalog

import (
	"fmt"
	"maps"
	"time"

	"github.com/shopspring/decimal"
)

func (v *validation) modelHead(path string, m Model) {
	v.name(path+".slug", m.Slug)
	v.once(path+".slug", "model", m.Slug, v.models)
	v.bySlug[m.Slug] = m
	v.name(path+".exact_model", m.ExactModel)
	v.pools[m.ExactModel] = true
}

func (v *validation) model(path string, m Model) {
	v.policy(path+".policy", m.Policy)
	v.surcharge(path+".surcharge", m.Surcharge)
	if e := m.Equivalence; e != nil {
		v.text(path+".equivalence.certified_by", e.CertifiedBy, true)
		v.text(path+".equivalence.evidence", e.Evidence, true)
		if _, err := time.Parse(time.DateOnly, e.On); err != nil {
			v.fail(path+".equivalence.on", "is not a date like 2026-11-01")
		}
	}
	v.chain(path, m, nil)
}

// chain checks N15 and N16. owner is nil for an operator's chain.
func (v *validation) chain(path string, m Model, owner *Tenant) {
	if len(m.Chain) == 0 {
		v.fail(path+".chain", "is empty: a model needs at least one deployment")
	}
	if len(m.Chain) > MaxRungs {
		v.fail(path+".chain", "has more than %d rungs", MaxRungs)
		return
	}
	direct, references := map[Rung]bool{}, 0
	for i, rung := range m.Chain {
		p := path + "." + at("chain", i)
		switch targets := rung.targets(); {
		case targets == 0:
			v.fail(p, "names no target: a rung is a deployment, a connection or a model")
		case targets > 1:
			v.fail(p, "names %d targets: a rung is one deployment, one connection or one model", targets)
		case rung.Deployment != "":
			v.directRung(p+".deployment", m, rung.Deployment, direct)
		case rung.Connection != "":
			v.connectionRung(p+".connection", owner, rung.Connection, direct)
		default:
			references++
			v.reference(p+".model", m, rung.Model, len(direct), references)
		}
	}
	// A connection reaches one of the deployments that the operator's chain certifies.
	maps.DeleteFunc(direct, func(r Rung, _ bool) bool { return r.Connection != "" })
	if len(direct) > 1 && m.Equivalence == nil {
		v.fail(path+".equivalence", "is missing: a pool of %d deployments needs an operator's certification that they are one model", len(direct))
	}
}

func (r Rung) targets() int {
	n := 0
	for _, target := range []string{r.Deployment, r.Connection, r.Model} {
		if target != "" {
			n++
		}
	}
	return n
}

// connectionRung lets only an organization's own chain name a connection, and only
// its own. Whether the model can be reached through it is judged when it is called:
// an operator may change the model's deployments whatever organizations wrote.
func (v *validation) connectionRung(path string, owner *Tenant, connection string, direct map[Rung]bool) {
	rung := Rung{Connection: connection}
	if owner == nil {
		v.fail(path, "only an organization's own chain may name a connection")
	} else if _, ok := owner.Connection(connection); !ok {
		v.fail(path, "connection %s does not exist", shown(connection))
	}
	if direct[rung] {
		v.fail(path, "connection %s stands in this chain twice", shown(connection))
	}
	direct[rung] = true
}

func (v *validation) directRung(path string, m Model, deployment string, direct map[Rung]bool) {
	if !v.deployments[deployment] {
		v.fail(path, "deployment %s does not exist", shown(deployment))
	}
	rung := Rung{Deployment: deployment}
	if direct[rung] {
		v.fail(path, "deployment %s stands in this chain twice", shown(deployment))
	}
	direct[rung] = true
	first, used := v.exactModels[deployment]
	switch {
	case !used:
		v.exactModels[deployment] = m
	case first.ExactModel != m.ExactModel:
		v.fail(path, "deployment %s serves exact model %s in model %s, so it cannot serve %s here",
			shown(deployment), shown(first.ExactModel), shown(first.Slug), shown(m.ExactModel))
	}
}

func (v *validation) reference(path string, m Model, model string, direct, references int) {
	switch {
	case !v.models[model]:
		v.fail(path, "model %s does not exist", shown(model))
	case model == m.Slug:
		v.fail(path, "a chain cannot refer to its own model")
	}
	if direct == 0 {
		v.fail(path, "a reference to a model may come only after a deployment or a connection")
	}
	if references > 1 {
		v.fail(path, "a chain may hold at most one reference to a model")
	}
}

func (v *validation) policy(path string, p Policy) {
	oneOf(v, path+".failover_mode", p.FailoverMode, MaximizeCache, MaximizeAvailability, MaximizeCacheAffinity)
	v.fraction(path+".throttle_cache_threshold", p.ThrottleCacheThreshold, 1)
	if r := p.ThrottleRedial; r != nil {
		v.within(path+".throttle_redial.max_retries", int64(r.MaxRetries), 0, maxRedialRetries)
		v.duration(path+".throttle_redial.base_delay", r.BaseDelay, maxTimeout)
		v.duration(path+".throttle_redial.max_delay", r.MaxDelay, maxTimeout)
		if r.BaseDelay.Or(DefaultRedialBaseDelay) > r.MaxDelay.Or(DefaultRedialMaxDelay) {
			v.fail(path+".throttle_redial", "base_delay is longer than max_delay")
		}
	}
	oneOf(v, path+".lost_answer", p.LostAnswer, Continue, StopLost)
	v.within(path+".max_attempts", int64(p.MaxAttempts), 0, maxMaxAttempts)
	if c := p.Circuit; c != nil {
		v.within(path+".circuit.failures_to_open", int64(c.FailuresToOpen), 0, 1000)
		v.duration(path+".circuit.window", c.Window, 24*time.Hour)
		v.duration(path+".circuit.open_for", c.OpenFor, 24*time.Hour)
	}
}

// names checks a chain of names. A name that resolves to nothing is allowed: it
// is dropped and recorded when it is used (N7).
func (v *validation) names(path string, chain []string) {
	if len(chain) == 0 {
		v.fail(path, "is empty")
	}
	if len(chain) > MaxFallbackDepth {
		v.fail(path, "is longer than max_fallback_depth = %d", MaxFallbackDepth)
	}
	for i, name := range chain {
		p := fmt.Sprintf("%s[%d]", path, i)
		v.name(p, name)
		if i > 0 && name == chain[i-1] {
			v.fail(p, "repeats the position before it")
		}
	}
}

func (v *validation) tenant(path string, t Tenant, seen map[string]bool) {
	v.id(path+".id", t.ID)
	v.once(path+".id", "tenant", t.ID, seen)
	v.tierOf(path+".tier", t.Tier)
	oneOf(v, path+".reply_model", t.ReplyModel, ReplyRequested, ReplyCanonical)
	v.tierOf(path+".system_tier", t.SystemTier)
	if n := max(len(t.Aliases), len(t.RoutingRules), len(t.Budgets), len(t.Connections), len(t.Chains), len(t.Promotions)); n > maxPerTenant {
		v.fail(path, "has more than %d aliases, rules, budgets, connections, chains or promotions", maxPerTenant)
		return
	}
	aliases, rules, budgets := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, a := range t.Aliases {
		v.alias(path+"."+at("aliases", i), a, aliases)
	}
	for i, r := range t.RoutingRules {
		p := path + "." + at("routing_rules", i)
		v.name(p+".match", r.Match)
		v.once(p+".match", "a rule for", r.Match, rules)
		v.names(p+".chain", r.Chain)
	}
	for i, b := range t.Budgets {
		v.budget(path+"."+at("budgets", i), b, budgets)
	}
	connections := map[string]bool{}
	for i, c := range t.Connections {
		v.connection(path+"."+at("connections", i), c, connections)
	}
	v.overrides(path, t)
	v.promotions(path, t)
	v.webhooks(path+".webhooks", t.ID, t.Webhooks)
}

// overrides checks a tenant's own chains by the rules of the models' chains.
func (v *validation) overrides(path string, t Tenant) {
	seen := map[string]bool{}
	for i, c := range t.Chains {
		p := path + "." + at("chains", i)
		v.once(p+".model", "a chain for", c.Model, seen)
		m, ok := v.bySlug[c.Model]
		switch {
		case !ok:
			v.fail(p+".model", "model %s does not exist", shown(c.Model))
		case t.ID == OperatorChain:
			v.fail(p, "the tenant %s cannot have chains of its own: its chains would have the operator's streams", shown(t.ID))
		default:
			m.Chain = c.Chain
			v.chain(p, m, &t)
		}
	}
}

func (v *validation) alias(path string, a Alias, seen map[string]bool) {
	v.name(path+".name", a.Name)
	v.once(path+".name", "alias", a.Name, seen)
	if a.Pin != "" {
		v.name(path+".pin", a.Pin)
	}
	v.capabilities(path+".capabilities", a.Capabilities)
	v.within(path+".min_context_window", a.MinContextWindow, 0, maxTokens)
	for i, p := range a.ProviderPreference {
		v.id(fmt.Sprintf("%s.provider_preference[%d]", path, i), p)
	}
	oneOf(v, path+".cost_tier", a.CostTier, Cheapest, Balanced, Best)
}

func (v *validation) budget(path string, b Budget, seen map[string]bool) {
	if b.Scope == "" {
		v.fail(path+".scope", "is missing")
	}
	oneOf(v, path+".scope", b.Scope, BudgetScopes()...)
	v.budgetOf(path+".of", b)
	if b.Per == "" {
		v.fail(path+".per", "is missing")
	}
	oneOf(v, path+".per", b.Per, PerMinute, PerHour, PerDay, PerMonth, Total)

	limits := 0
	for _, set := range []bool{b.LimitUSD != "", b.Requests != 0, b.Tokens != 0} {
		if set {
			limits++
		}
	}
	if limits != 1 {
		v.fail(path, "has %d limits: a budget is exactly one of limit_usd, requests and tokens", limits)
		return
	}
	switch b.Unit() {
	case USD:
		v.amount(path+".limit_usd", b.LimitUSD)
	case Requests:
		v.within(path+".requests", b.Requests, 1, 1_000_000_000_000)
	case Tokens:
		v.within(path+".tokens", b.Tokens, 1, 1_000_000_000_000_000)
	}
	if b.SoftPercent != nil {
		v.within(path+".soft_percent", int64(*b.SoftPercent), 0, 100)
	}
	oneOf(v, path+".enforcement", b.Enforcement, Enforce, Observe)
	v.once(path, "a budget of", b.ID(), seen)
}

// budgetOf checks whose a limit is. Teams, identities and keys are not written in the
// catalog's file; a misspelt model or deployment would be a limit that nobody is under.
func (v *validation) budgetOf(path string, b Budget) {
	if b.Of == "" {
		return
	}
	exists := true
	switch b.Scope {
	case ScopeOrganization:
		v.fail(path, "is for scopes inside an organization")
		return
	case ScopeModel:
		exists = v.models[b.Of]
	case ScopePool:
		exists = v.pools[b.Of]
	case ScopeDeployment:
		exists = v.deployments[b.Of]
	}
	if v.name(path, b.Of) && !exists {
		v.fail(path, "%s %s does not exist", b.Scope, shown(b.Of))
	}
}

func (v *validation) amount(path, usd string) {
	amount, err := decimal.NewFromString(usd)
	switch {
	case err != nil:
		v.fail(path, "%s is not an amount", shown(usd))
	case amount.Sign() <= 0:
		v.fail(path, "a limit must be more than 0")
	case !fits(amount, maxBudgetIntegerDigits, maxBudgetFractionDigits):
		v.fail(path, "an amount has at most %d digits before the point and %d after it",
			maxBudgetIntegerDigits, maxBudgetFractionDigits)
	}
}
