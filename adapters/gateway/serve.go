package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// Serve answers one request. ctx ends when the client goes away.
func (g *Gateway) Serve(ctx context.Context, in Incoming) *Outcome {
	if in.Controls.IdempotencyKey != "" {
		return g.serveOnce(ctx, in)
	}
	return g.serve(ctx, in, nil)
}

// serve runs a request, under a claimed key or without one.
func (g *Gateway) serve(ctx context.Context, in Incoming, c *claim) *Outcome {
	w := g.newWalker(in)
	w.claim = c
	leave, refused, gone := g.admission.enter(ctx, in.Key.Tenant, in.yields)
	switch {
	case gone != nil:
		return &Outcome{RequestID: w.id, Gone: true}
	case refused != nil:
		return w.refuse(ctx, "", refused)
	}
	w.leave = leave
	defer leave()
	req, err := in.Dialect.Parse(in.Body)
	if err != nil {
		return w.refuse(ctx, "", Invalid(err))
	}
	if err := g.pointsInside(req); err != nil {
		return w.refuse(ctx, req.Model, Invalid(err))
	}
	plan, err := in.Snapshot.Resolve(catalog.Ask{Tenant: in.Key.Tenant, Name: req.Model, Class: in.Controls.Class, Key: in.Key})
	if err != nil {
		return w.refuseFor(ctx, req.Model, Unresolved(err), scopeOf(err))
	}
	rungs := walk.Rungs(plan)
	g.refuseBaseURLs(rungs)
	if err := untranslatable(req, rungs); err != nil {
		return w.refuse(ctx, req.Model, Invalid(err))
	}
	req.Flags = in.Flags
	w.req = req
	w.machine = walk.New(w.walkRequest(in, req, plan), rungs, g.Health)
	return w.run(ctx)
}

// refuseBaseURLs marks the rungs whose base URL leads into the own network by what it
// says: they are skipped, and cost no reservation and no attempt (Z1, W15).
func (g *Gateway) refuseBaseURLs(rungs []walk.Rung) {
	for i := range rungs {
		if p := rungs[i].Provider; p != nil {
			rungs[i].BaseURLRefused = g.Providers.Refuses(p.BaseURL)
		}
	}
}

// untranslatable finds what is wrong with a request that each of its routes would have
// to be told in another dialect: it is refused before any attempt (A3). Where a route
// speaks the caller's own dialect, its provider is the judge.
func untranslatable(req *dialect.Request, rungs []walk.Rung) error {
	unsayable, translated := req.Unsayable(), false
	for i := range rungs {
		p := rungs[i].Provider
		switch {
		case p == nil:
		case dialect.SpokenIn(p.Protocol) == req.Dialect:
			return nil
		default:
			translated = translated || unsayable[p.Protocol] == ""
		}
	}
	if !translated || req.Neutral == nil {
		return nil
	}
	_, err := req.Neutral()
	return err
}

// walkRequest is what the walk knows from the start. Everything a later decision
// depends on is fixed here (N14).
func (w *walker) walkRequest(in Incoming, req *dialect.Request, plan catalog.Plan) walk.Request {
	tokens := w.g.Estimator.Estimate(req)
	w.inputTokens = tokens.InputTokens
	deadline := walk.DefaultRequestDeadline
	if d := in.Controls.Deadline; d > 0 {
		deadline = min(deadline, d)
	}
	var budgets []catalog.Budget
	var promotions []catalog.Promotion
	if t, ok := in.Snapshot.Tenant(in.Key.Tenant); ok {
		budgets, promotions = t.Budgets, t.Promotions
	}
	return walk.Request{
		Admitted: request.RequestAdmitted{
			Tenant: in.Key.Tenant, Key: in.Key.ID, Team: in.Key.Team, Identity: in.Key.Identity, Dialect: string(req.Dialect), RequestedModel: req.Model,
			CanonicalModel: plan.CanonicalModel, Class: plan.Class, Priority: string(w.priority(plan)), Stream: req.Stream, Snapshot: in.Snapshot.ID,
			DeadlineMS: deadline.Milliseconds(), MaxAttempts: maxAttempts(in, plan),
			Fallback: string(in.Controls.Fallback), FreeOnly: plan.FreeOnly,
			Estimate:        request.Estimate{InputTokens: tokens.InputTokens, MaxOutputTokens: plannedOutput(req, plan)},
			ClientRequestID: in.Controls.ClientRequestID, ClientRetry: in.Controls.ClientRetry,
		},
		FloorTokens: tokens.FloorTokens, OutputTokens: req.MaxOutputTokens, Choices: req.Choices, Media: mediaOf(req), Needs: req.Needs,
		Sealed: req.Sealed, Issuer: w.g.issuers.of(w.caller(), req.Seal), Unsayable: req.Unsayable(),
		Fallback: in.Controls.Fallback, Stream: req.Stream, Mode: modeOf(req),
		Deadline: in.At.Add(deadline), Budgets: budgets, Promotions: promotions, Hold: in.Controls.Hold,
		Conversation: w.conversation(req),
	}
}

// mediaOf is what a request holds or asks for beside text.
func mediaOf(req *dialect.Request) money.Media {
	return money.Media{
		Images: slices.Contains(req.Needs, catalog.Images),
		Audio:  slices.Contains(req.Features, dialect.AudioInput) || slices.Contains(req.Features, dialect.AudioOutput),
	}
}

// modeOf asks for whole answers where the dialect has no others.
func modeOf(req *dialect.Request) walk.UpstreamMode {
	if req.WholeOnly {
		return walk.Whole
	}
	return walk.Auto
}

// yields reports whether a request gives way to others while it waits for a slot (N12).
// That is before its body is read: of the body only the name that it asks for is looked
// at, and only by a request that has to wait.
func (in *Incoming) yields() bool {
	if in.Controls.Priority != "" {
		return in.Controls.Priority == catalog.Background
	}
	class := cmp.Or(in.Key.Class, in.Controls.Class)
	if class == "" {
		name := gjson.GetBytes(in.Body, "model").String()
		class = in.Snapshot.ClassNamed(in.Key.Tenant, name)
	}
	return catalog.DefaultPriority(class) == catalog.Background
}

// priority is the request's own, else its class's default (N12).
func (w *walker) priority(plan catalog.Plan) catalog.Priority {
	return cmp.Or(w.in.Controls.Priority, catalog.DefaultPriority(plan.Class))
}

// plannedOutput is the most output that the first route of the plan may produce;
// each attempt plans with its own (A6).
func plannedOutput(req *dialect.Request, plan catalog.Plan) int64 {
	for _, stage := range plan.Stages {
		for _, c := range stage.Rungs {
			if c.Deployment != nil {
				return walk.OutputCeiling(c.Deployment, req.MaxOutputTokens)
			}
		}
	}
	return req.MaxOutputTokens
}

// conversation is the caller's best hint at which conversation this is: what it
// says outright, then what its dialect has for it. Without any the request is a
// conversation of its own.
func (w *walker) conversation(req *dialect.Request) string {
	c := w.in.Controls
	return cmp.Or(c.Conversation, req.Hints.PromptCacheKey, req.Hints.User, c.IdempotencyKey, w.id)
}

// maxAttempts is the operator's bound of the root model, which a caller may only
// lower (W9).
func maxAttempts(in Incoming, plan catalog.Plan) int {
	limit := walk.DefaultMaxAttempts
	if len(plan.Stages) > 0 && plan.Stages[0].Policy.MaxAttempts > 0 {
		limit = plan.Stages[0].Policy.MaxAttempts
	}
	if asked := in.Controls.MaxAttempts; asked > 0 {
		limit = min(limit, asked)
	}
	return limit
}

// pointsInside refuses an address that leads into the own network (Z1): a provider may
// stand there too and would fetch it for the caller.
func (g *Gateway) pointsInside(req *dialect.Request) error {
	for _, a := range req.Addresses {
		if network.Inside(a.URL, g.InternalHosts) {
			return &dialect.InvalidError{Param: a.Param, Message: fmt.Sprintf("The field %s must not point into a private network.", a.Param)}
		}
	}
	return nil
}

// Invalid is a body that its dialect does not allow.
func Invalid(err error) *apierror.Error {
	e := apierror.New(apierror.InvalidRequest)
	if inv, ok := errors.AsType[*dialect.InvalidError](err); ok {
		e.Message, e.Param = inv.Message, inv.Param
		if inv.Status != 0 {
			e.Status = inv.Status
		}
	}
	return e
}

// Unresolved says why a name led to no plan. A name that the key may not use reads
// like one that does not exist (N1, N13).
func Unresolved(err error) *apierror.Error {
	switch err.(type) {
	case *catalog.AliasError:
		return apierror.New(apierror.AliasUnresolvable)
	case *catalog.ClassError:
		e := apierror.New(apierror.ClassNotConfigured)
		e.Message = err.Error()
		return e
	case *catalog.ExpansionError:
		return apierror.New(apierror.ChainUnavailable)
	}
	e := apierror.New(apierror.ModelNotFound)
	e.Param = "model"
	return e
}

// Refuse turns away a request that the edge could not even hand over: it is on
// record like any other refusal (A9).
func (g *Gateway) Refuse(ctx context.Context, in Incoming, e *apierror.Error) *Outcome {
	return g.newWalker(in).refuse(ctx, "", e)
}

// scopeOf is the scope that refused a name, for the log. The caller is not told: a name
// that the key may not use reads like one that does not exist (N13).
func scopeOf(err error) string {
	switch err.(type) {
	case *catalog.ConfinedError:
		return "key"
	case *catalog.ClassError, *catalog.ExpansionError:
		return "model"
	}
	return "organization"
}

// refuse turns a request away before its walk: one event, one commit (A9).
func (w *walker) refuse(ctx context.Context, model string, e *apierror.Error) *Outcome {
	return w.refuseFor(ctx, model, e, e.Scope)
}

func (w *walker) refuseFor(ctx context.Context, model string, e *apierror.Error, scope string) *Outcome {
	refusal := request.Refusal{Code: string(e.Code), Scope: scope, Unit: e.Unit}
	if e.Limit != nil && e.Used != nil {
		refusal.Limit, refusal.Used = *e.Limit, *e.Used
	}
	if e.RetryAfter > 0 {
		refusal.Resets = w.g.Now().Add(e.RetryAfter).UTC().Format(time.RFC3339Nano)
	}
	refused := request.RequestRefused{
		Tenant: w.in.Key.Tenant, Key: w.in.Key.ID, Dialect: string(w.in.Dialect.Name()), RequestedModel: model,
		Snapshot: w.in.Snapshot.ID, ClientRequestID: w.in.Controls.ClientRequestID,
		Refusal: refusal,
	}
	if err := w.close(ctx, string(e.Code), refused); err != nil {
		return w.unavailable()
	}
	return w.failed(e)
}

func (g *Gateway) newWalker(in Incoming) *walker {
	id := g.NewID().String()
	return &walker{g: g, in: in, id: id, stream: "request/" + id, shard: g.ShardOf(in.Key.Tenant)}
}

// unavailable is our own fault, said as such (A2, O5).
func (w *walker) unavailable() *Outcome {
	return w.failed(apierror.New(apierror.GatewayUnavailable))
}

// unsettled is a complete answer whose settlement is not in the log yet: the caller
// does not get it (M17), and is told not to buy it again.
func (w *walker) unsettled() *Outcome {
	e := apierror.New(apierror.GatewayUnavailable)
	e.Retryable = false
	return w.failed(e)
}
