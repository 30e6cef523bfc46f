package gateway

import (
	"context"
	"strconv"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// attempt calls a provider once. It gives the next move after a failure, or the
// outcome once the answer has begun or is whole.
func (w *walker) attempt(ctx context.Context, call *walk.Call) (walk.Move, *Outcome) {
	credential, err := w.g.Secrets.Lookup(ctx, call.Rung.Provider, call.Key)
	if err != nil {
		return w.attemptFailed(call, &failure.Failure{Class: failure.ProviderAuth, Code: "credential_missing"}, walk.Report{}), nil
	}
	begun := w.g.Now()
	upstream, cancel := upstreamContext(ctx, call)
	reply, f := w.g.Providers.Do(upstream, provider.Call{
		Protocol: call.Rung.Provider.Protocol, BaseURL: call.Rung.Provider.BaseURL, Region: call.Rung.Provider.Region,
		Secret: credential.Key.Reveal(), Access: accessOf(credential),
		UpstreamModel: call.Rung.Deployment.UpstreamModel, Request: w.req, Stream: call.Stream,
		IdempotencyKey: w.upstreamKey(call), WithoutSeals: call.WithoutSeals, Limits: limitsOf(call.Timeouts),
		MaxOutputTokens: w.outputToName(call),
	})
	if f != nil {
		cancel()
		return w.attemptFailed(call, f, walk.Report{}), nil
	}
	a := &answer{w: w, call: call, reply: reply, begun: begun, release: func() { reply.Close(); cancel() }}
	if w.req.Stream {
		return a.begin()
	}
	return a.whole(ctx)
}

// outputToName is the output that is named to a provider whose dialect has to name one
// where the caller named none. With a long prompt the deployment's ceiling does not fit
// its window any more, and the provider would refuse what the windows let through (A5):
// what is left of the window is named then. The caller's own maximum is never lowered.
func (w *walker) outputToName(call *walk.Call) int64 {
	planned, window := call.Reserved.Estimate.MaxOutputTokens, call.Rung.Deployment.Context
	if w.req.MaxOutputTokens > 0 || window.Total == 0 {
		return planned
	}
	return min(planned, max(window.Total-w.inputTokens, window.MinOutput, 1))
}

// accessOf is a credential of two or three parts; zero for an API key.
func accessOf(c secrets.Credential) dialect.AccessKey {
	return dialect.AccessKey{ID: c.AccessKey.Reveal(), Secret: c.SecretKey.Reveal(), Session: c.SessionToken.Reveal()}
}

// attemptFailed tells the circuits and the walk.
func (w *walker) attemptFailed(call *walk.Call, f *failure.Failure, r walk.Report) walk.Move {
	now := w.g.Now()
	w.g.Health.Observe(&call.Rung, call.Key, w.caller(), f, now)
	return w.machine.Failed(*f, r, now)
}

// caller is who a failure happened to: many callers with the same 5xx are an
// outage, one is perhaps that caller's request (H4).
func (w *walker) caller() string { return w.in.Key.Tenant + "/" + w.in.Key.ID }

// upstreamKey is the idempotency key of a rung's upstream calls: the same on its
// retries, another on every other rung (I4).
func (w *walker) upstreamKey(call *walk.Call) string {
	key := w.id + "-" + call.Rung.Deployment.ID
	if call.Rung.Owner == request.Workspace {
		// The operator's rung may go to the same deployment, on another account.
		key += "-own-" + strconv.Itoa(call.Rung.Index)
	}
	if call.WithoutSeals {
		// A repaired request is another one (K5): a provider would take it for a misuse
		// of the key.
		key += "-repaired"
	}
	return key
}

func limitsOf(t walk.Timeouts) provider.Limits {
	return provider.Limits{
		Connect: t.Connect, FirstByte: t.FirstByte, FirstOutput: t.FirstOutput,
		StreamIdle: t.StreamIdle, ErrorBody: t.ErrorBody, Whole: t.Whole,
	}
}

// answer is a provider's answer on its way to the caller.
type answer struct {
	w       *walker
	call    *walk.Call
	reply   *provider.Reply
	begun   time.Time
	ttft    time.Duration
	release func()
}

// whole fetches an answer for a caller that does not stream. It commits when it is
// whole and valid, so a break inside it may still fail over (S13).
func (a *answer) whole(ctx context.Context) (walk.Move, *Outcome) {
	defer a.release()
	w := a.w
	ans, f := a.reply.Answer()
	now := w.g.Now()
	a.ttft = now.Sub(a.begun)
	report := walk.Report{
		Usage: ans.Usage, FirstOutput: ans.FirstOutput.String(), TTFT: a.ttft,
		DeliveredTokens: estimateTokens(ans.OutputBytes, 0),
	}
	switch {
	case f != nil:
	case ans.Empty:
		f = &failure.Failure{Class: failure.EmptyCompletion, Status: a.reply.Status()}
	case (ans.FirstOutput == neutral.Refusal || ans.Stop == neutral.StopRefusal) && a.call.Rung.Policy.FailoverOnRefusal:
		f = &failure.Failure{Class: failure.Refusal, Status: a.reply.Status()}
	}
	if f != nil {
		return w.attemptFailed(a.call, f, report), nil
	}
	body, err := w.in.Dialect.Whole(w.req, &ans, w.replyMeta())
	if err != nil {
		return w.attemptFailed(a.call, &failure.Failure{Class: failure.BadPayload, Code: "not_encodable", PossiblyBilled: true}, report), nil
	}
	w.g.Health.Observe(&a.call.Rung, a.call.Key, w.caller(), nil, now)
	w.g.issuers.note(w.caller(), ans.Seal, a.call.Rung.Deployment.ID)
	move := w.machine.Completed(report, now)
	if err := w.close(ctx, "", move.Say...); err != nil {
		return walk.Move{}, w.unsettled()
	}
	cost := move.Finish.ChargeNanoUSD
	w.facts.CostNanoUSD = &cost
	return walk.Move{}, &Outcome{RequestID: w.id, Facts: w.facts, Whole: body}
}

func (w *walker) replyMeta() dialect.Meta {
	meta := dialect.Meta{RequestID: w.id, Model: w.req.Model, InputTokens: w.inputTokens}
	if w.in.Snapshot.ReplyModel(w.in.Key) == catalog.ReplyCanonical {
		meta.Model = w.facts.CanonicalModel
	}
	return meta
}

// encode says a chunk in the caller's dialect; one that cannot be said is a bad
// payload.
func encode(enc dialect.StreamEncoder, dst []byte, c *neutral.Chunk) ([]byte, error) {
	out, err := enc.Encode(dst, c)
	if err != nil {
		return dst, &failure.Failure{Class: failure.BadPayload, Code: "not_encodable", PossiblyBilled: true}
	}
	return out, nil
}

// report is what was seen of a stream so far.
func (a *answer) report() walk.Report {
	t := a.reply.Tally()
	return walk.Report{
		Usage: t.Usage, FirstOutput: t.FirstOutput.String(), TTFT: a.ttft,
		DeliveredTokens: estimateTokens(t.OutputBytes, t.OutputEvents),
	}
}

// bytesPerToken is the usual length of a token of English text; most providers
// send a token an event, so the larger of the two counts is nearer to the truth
// for text that is denser (S6).
const bytesPerToken = 4

func estimateTokens(bytes, events int64) int64 {
	return max((bytes+bytesPerToken-1)/bytesPerToken, events)
}
