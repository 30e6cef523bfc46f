package poolcheck

import (
	"context"
	"math"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
)

const (
	// firstOutputWithin and wholeWithin bound an answer of a thousand tokens at the pace
	// of the slowest that are still of use. They are the check's own: it has no request's
	// deadline.
	firstOutputWithin = 60 * time.Second
	wholeWithin       = 120 * time.Second
)

// ask asks one deployment one case, if that is allowed, and writes down what came. The
// error is the context's.
func (r *run) ask(ctx context.Context, a *asked, i int) error {
	entry := &a.to.Answers[i]
	if entry.Reason != "" {
		return nil
	}
	if why := r.allowed(entry.WorstCase); why != "" {
		entry.Result, entry.Reason = equivalence.Blocked, why
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.OnCall != nil {
		r.OnCall(entry.Deployment, a.Name)
	}
	r.evidence.Attempts++
	read, f := r.call(ctx, a, i)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.settle(entry, i, read, f)
	if f != nil {
		entry.Failure, entry.Code, entry.Status = f.Class, f.Code, f.Status
		if repeats(f.Class) {
			r.members[i].gone = equivalence.Unreachable
		}
		return nil
	}
	entry.Shape = read.shape(&a.Case)
	return nil
}

// allowed is the ceiling that a call would pass, or "". Once one was met no other call
// is made: what it would be compared with is missing.
func (r *run) allowed(worst money.NanoUSD) equivalence.Reason {
	switch {
	case r.stopped != "":
	case r.evidence.Attempts >= r.limits.MaxAttempts:
		r.stopped = equivalence.MaxAttempts
	case worst > r.limits.MaxSpend-r.evidence.Cost-r.evidence.Exposure:
		r.stopped = equivalence.MaxUSD
	}
	return r.stopped
}

// call makes one attempt and reads its answer.
func (r *run) call(ctx context.Context, a *asked, i int) (*reading, *failure.Failure) {
	t, credential := &r.pool.Targets[i], r.members[i].credential
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := t.Deployment.Timeouts
	reply, f := r.Providers.Do(ctx, provider.Call{
		Protocol: t.Provider.Protocol, BaseURL: t.Provider.BaseURL, Region: t.Provider.Region,
		Secret: credential.Key.Reveal(),
		Access: dialect.AccessKey{
			ID: credential.AccessKey.Reveal(), Secret: credential.SecretKey.Reveal(), Session: credential.SessionToken.Reveal(),
		},
		UpstreamModel: t.Deployment.UpstreamModel, Request: a.request, Stream: !a.Whole,
		MaxOutputTokens: a.request.MaxOutputTokens,
		Limits: provider.Limits{
			Connect: time.Duration(own.Connect), FirstByte: time.Duration(own.FirstByte), StreamIdle: time.Duration(own.StreamIdle),
			FirstOutput: own.FirstOutput.Or(firstOutputWithin), Whole: wholeWithin,
		},
	})
	if f != nil {
		return &reading{}, f
	}
	defer reply.Close()
	if a.Whole {
		return readWhole(a.request, reply)
	}
	return readStream(reply)
}

// settle writes what a call cost: what its provider counted; nothing where nothing can
// have been billed; else nobody knows, and its worst case stays taken.
func (r *run) settle(entry *equivalence.Answer, i int, read *reading, f *failure.Failure) {
	switch {
	case read.usage.Usable():
		if cost, _, err := r.pool.Targets[i].Deployment.Prices.CostOf(read.usage); err == nil {
			entry.Cost = &cost
			// A provider may count what it likes: the sum stays a sum.
			r.evidence.Cost += min(cost, math.MaxInt64-r.evidence.Cost)
			return
		}
	case f != nil && !f.PossiblyBilled:
		entry.Cost = new(money.NanoUSD)
		return
	}
	r.evidence.Exposure += entry.WorstCase
}

// repeats reports whether the next call would fail in the same way: nobody is asked
// again who cannot be reached, takes no call now, or refuses the account.
func repeats(c failure.Class) bool {
	switch c {
	case failure.ConnectError, failure.BaseURLRefused, failure.TimeoutFirstByte, failure.TimeoutAttempt:
		return true
	}
	h := failure.Of(c).Health
	return h == failure.OpensAtOnce || h == failure.ThrottleWindow
}
