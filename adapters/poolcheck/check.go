package poolcheck

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
)

// The ceilings of a check that names none.
const (
	// DefaultMaxSpend is some five times what the set costs at the highest list prices of
	// 2026 on three deployments.
	DefaultMaxSpend = money.NanoPerUSD / 2
	// DefaultMaxAttempts is enough for six deployments. Each case is asked once and never
	// retried: an answer that came at the second try would hide the first.
	DefaultMaxAttempts = 40
)

// Limits are what a check may spend and how often it may call.
type Limits struct {
	MaxSpend    money.NanoUSD
	MaxAttempts int
}

// Providers makes one attempt.
type Providers interface {
	Do(ctx context.Context, call provider.Call) (*provider.Reply, *failure.Failure)
	// Refuses reports whether nothing would be sent to a base URL (Z1).
	Refuses(baseURL string) bool
}

// Secrets opens the credentials that the catalog names.
type Secrets interface {
	Holds(p *catalog.Provider, keyID string) bool
	Lookup(ctx context.Context, p *catalog.Provider, keyID string) (secrets.Credential, error)
}

// Checker asks a pool.
type Checker struct {
	Providers Providers
	Secrets   Secrets
	Estimator *tokens.Estimator
	Now       func() time.Time
	// Set is what is asked; nil is Synthetic.
	Set []Case
	// OnCall is told of each call before it is made; nil for nobody.
	OnCall func(deployment, name string)
}

// Check asks every deployment of a pool every case, one call after the other, and
// judges the answers. Before each call its worst case is added to what was spent, and a
// call that could pass a ceiling is not made, nor any after it. The error is the
// context's: a check that was interrupted is no evidence.
func (c *Checker) Check(ctx context.Context, pool Pool, limits Limits) (equivalence.Evidence, error) {
	run, err := c.plan(ctx, pool, limits)
	if err != nil {
		return equivalence.Evidence{}, err
	}
	for i := range run.asked {
		run.prepare(&run.asked[i])
		for j := range run.pool.Targets {
			if err := run.ask(ctx, &run.asked[i], j); err != nil {
				return equivalence.Evidence{}, err
			}
		}
		equivalence.Judge(run.asked[i].to, run.asked[i].Demand)
	}
	run.evidence.At = c.Now().UTC().Truncate(time.Microsecond)
	equivalence.Conclude(&run.evidence)
	return run.evidence, nil
}

// Plan is what Check would ask and what each call could cost at most, without calling
// anybody: the evidence of a check that has not begun.
func (c *Checker) Plan(ctx context.Context, pool Pool, limits Limits) (equivalence.Evidence, error) {
	run, err := c.plan(ctx, pool, limits)
	return run.evidence, err
}

// run is one check.
type run struct {
	*Checker
	pool     Pool
	limits   Limits
	members  []member
	asked    []asked
	evidence equivalence.Evidence
	// stopped is the ceiling that a call would have passed.
	stopped equivalence.Reason
}

// member is what the run knows of a deployment of the pool.
type member struct {
	credential secrets.Credential
	// blocked and gone are why it is not called, or not called any more.
	blocked, gone equivalence.Reason
}

// asked is a case with its request, and where its answers are written.
type asked struct {
	Case
	request  *dialect.Request
	estimate tokens.Estimate
	to       *equivalence.Case
}

// plan says of every case and deployment whether it may be called, and what for.
func (c *Checker) plan(ctx context.Context, pool Pool, limits Limits) (*run, error) {
	set := c.Set
	if set == nil {
		set = Synthetic()
	}
	r := &run{Checker: c, pool: pool, limits: limits, members: make([]member, len(pool.Targets))}
	r.evidence = equivalence.Evidence{
		Format: equivalence.Format, Model: pool.Model.Slug, ExactModel: pool.Model.ExactModel, Set: setHash(set),
		MaxSpend: limits.MaxSpend, MaxAttempts: limits.MaxAttempts,
	}
	for i := range pool.Targets {
		t := &pool.Targets[i]
		r.evidence.Pool = append(r.evidence.Pool, equivalence.Member{
			Deployment: t.Deployment.ID, Provider: t.Provider.ID, Protocol: string(t.Provider.Protocol),
			UpstreamModel: t.Deployment.UpstreamModel, Result: equivalence.Untested,
		})
		r.members[i] = c.open(ctx, t)
	}
	for _, one := range set {
		request, err := messages.Inbound{}.Parse([]byte(one.Body))
		if err != nil {
			return r, err
		}
		a := asked{Case: one, request: request, estimate: c.Estimator.Estimate(request)}
		a.to = &equivalence.Case{Name: one.Name, Result: equivalence.Untested, Answers: r.answers(&a)}
		if !slices.ContainsFunc(a.to.Answers, func(a equivalence.Answer) bool { return !unable(a.Reason) }) {
			r.evidence.LeftOut = append(r.evidence.LeftOut, one.Name)
			continue
		}
		r.asked = append(r.asked, a)
	}
	r.evidence.Cases = make([]equivalence.Case, len(r.asked))
	for i := range r.asked {
		r.evidence.Cases[i] = *r.asked[i].to
		r.asked[i].to = &r.evidence.Cases[i]
	}
	return r, nil
}

// open finds the credential of a deployment: that of the first key that is held.
func (c *Checker) open(ctx context.Context, t *Target) member {
	if c.Providers.Refuses(t.Provider.BaseURL) {
		return member{blocked: equivalence.BaseURLRefused}
	}
	key := ""
	for _, k := range t.Provider.Keys {
		if c.Secrets.Holds(&t.Provider, k.ID) {
			key = k.ID
			break
		}
	}
	credential, err := c.Secrets.Lookup(ctx, &t.Provider, key)
	if err != nil {
		return member{blocked: equivalence.CredentialMissing}
	}
	return member{credential: credential}
}

// answers are the entries of a case before anybody was asked: those that never will be
// have their reason.
func (r *run) answers(a *asked) []equivalence.Answer {
	list := make([]equivalence.Answer, len(r.pool.Targets))
	for i := range r.pool.Targets {
		t := &r.pool.Targets[i]
		entry := equivalence.Answer{Deployment: t.Deployment.ID, Result: equivalence.Untested}
		worst, priced := a.worstCase(&t.Deployment)
		switch blocked := r.members[i].blocked; {
		case a.unfit(t) != "":
			entry.Reason = a.unfit(t)
		case blocked != "":
			entry.Result, entry.Reason = equivalence.Blocked, blocked
		case !priced:
			entry.Result, entry.Reason = equivalence.Blocked, equivalence.PriceUnknown
		default:
			entry.WorstCase = worst
		}
		list[i] = entry
	}
	return list
}

// prepare takes out of a case who need not be asked: a deployment that is gone, and one
// that is left alone, whose answer would be paid for and compared with nothing.
func (r *run) prepare(a *asked) {
	left := 0
	for i := range a.to.Answers {
		entry := &a.to.Answers[i]
		if entry.Reason == "" {
			entry.Reason = r.members[i].gone
		}
		if entry.Reason == "" {
			left++
		}
	}
	for i := range a.to.Answers {
		if entry := &a.to.Answers[i]; left < 2 && entry.Reason == "" {
			entry.Reason = equivalence.NothingToCompare
		}
	}
}

// unfit is why a deployment cannot be asked a case as it stands, or "". What a
// deployment does not declare excludes nothing, as when it serves.
func (a *asked) unfit(t *Target) equivalence.Reason {
	d := &t.Deployment
	for _, need := range a.request.Needs {
		if d.Capabilities != nil && !slices.Contains(d.Capabilities, need) {
			return equivalence.CapabilityMissing
		}
	}
	in, out := a.estimate.FloorTokens, a.request.MaxOutputTokens
	switch {
	case a.StopAt != "" && t.Provider.Protocol == catalog.OpenAIResponses:
		// Responses has no stop sequences: they are left out there, which the table of what
		// is dropped says (P5).
		return equivalence.CapabilityMissing
	case d.Context.MaxOutput > 0 && out > d.Context.MaxOutput, d.Context.Total > 0 && in+out > d.Context.Total,
		d.Context.MaxInput > 0 && in > d.Context.MaxInput:
		return equivalence.ContextTooSmall
	}
	return ""
}

func unable(r equivalence.Reason) bool {
	return r == equivalence.CapabilityMissing || r == equivalence.ContextTooSmall
}

// worstCase is what one call can cost at most (M2); false for prices that make no sum.
func (a *asked) worstCase(d *catalog.Deployment) (money.NanoUSD, bool) {
	if !d.Prices.Known() {
		return 0, false
	}
	worst, err := d.Prices.WorstCase(a.estimate.InputTokens, a.request.MaxOutputTokens, money.Media{})
	return worst, err == nil
}
