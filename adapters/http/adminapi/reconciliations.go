package adminapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
)

// Reconciliations begins runs and tells about them (reconciler.Reconciler).
type Reconciliations interface {
	Start(ctx context.Context, checks []reconciliation.Check, budget time.Duration, by eventstore.Meta) (uuid.UUID, error)
	Get(ctx context.Context, id uuid.UUID) (reconciler.Report, error)
	List(ctx context.Context, before uuid.UUID, limit int) ([]reconciler.Report, error)
}

const (
	defaultRuns = 20
	// maxRuns bounds a page of runs: each is several events and is folded when asked.
	maxRuns = 100
)

// reconciliationBody is what a run shall be; all of it may be left out.
type reconciliationBody struct {
	Checks []reconciliation.Check `json:"checks"`
	// TimeBudget is a duration such as 5m.
	TimeBudget string `json:"time_budget"`
}

// startReconciliation is POST reconciliations (R7): it answers as soon as the start is in
// the log, and this worker does the rest behind requests.
func (a *API) startReconciliation(ctx context.Context, c *call) *edge.Reply {
	checks, budget, err := wanted(c)
	if err != nil {
		return a.refuse(err)
	}
	id, err := a.Reconciliations.Start(ctx, checks, budget, c.by)
	unknown, isUnknown := errors.AsType[*reconciliation.UnknownCheckError](err)
	switch {
	case isUnknown:
		return badField("checks", unknown.Error()).reply()
	case errors.Is(err, reconciliation.ErrTimeBudget):
		return badField("time_budget", fmt.Sprintf("must be between %s and %s", reconciliation.MinTimeBudget, reconciliation.MaxTimeBudget)).reply()
	case errors.Is(err, reconciler.ErrRunning):
		return fail(http.StatusConflict, codeReconciling, "A reconciliation is running; one runs at a time, on all workers together.").reply()
	case errors.Is(err, reconciler.ErrStopping):
		return unavailable("This worker is stopping; ask another.").reply()
	case err != nil:
		return a.refuse(err)
	}
	report, err := a.Reconciliations.Get(ctx, id)
	if err != nil {
		return a.refuse(err)
	}
	a.Logger.Info("reconciliation asked for", "id", id, "actor", c.by.Actor)
	return document(http.StatusAccepted, report)
}

// wanted reads which checks are asked for and how long they may take.
func wanted(c *call) (checks []reconciliation.Check, budget time.Duration, err error) {
	if len(bytes.TrimSpace(c.Body)) == 0 {
		return nil, 0, nil
	}
	doc, err := body(c, false)
	if err != nil {
		return nil, 0, err
	}
	var sent reconciliationBody
	if err := doc.Decode(&sent); err != nil {
		return nil, 0, err
	}
	if sent.TimeBudget != "" {
		budget, err = time.ParseDuration(sent.TimeBudget)
		if err != nil || budget == 0 {
			return nil, 0, badField("time_budget", "must be a duration such as 5m")
		}
	}
	return sent.Checks, budget, nil
}

// listReconciliations is GET reconciliations, newest first.
func (a *API) listReconciliations(ctx context.Context, c *call) *edge.Reply {
	limit, refused := number(c, "limit", defaultRuns)
	if refused != nil {
		return refused.reply()
	}
	limit = min(max(limit, 1), maxRuns)
	var before uuid.UUID
	if cursor := c.Query.Get("cursor"); cursor != "" {
		var err error
		if before, err = uuid.Parse(cursor); err != nil {
			return badField("cursor", "must be one that a former page returned").reply()
		}
	}
	runs, err := a.Reconciliations.List(ctx, before, limit)
	if err != nil {
		return a.refuse(err)
	}
	p := page[reconciler.Report]{Data: runs}
	if len(runs) == limit {
		last := runs[limit-1].ID.String()
		p.NextCursor = &last
	}
	return document(http.StatusOK, p)
}

// getReconciliation is GET reconciliations/{id}.
func (a *API) getReconciliation(ctx context.Context, c *call) *edge.Reply {
	absent := fail(http.StatusNotFound, codeNotFound, "There is no such reconciliation.")
	id, err := uuid.Parse(c.Params["id"])
	if err != nil {
		return absent.reply()
	}
	report, err := a.Reconciliations.Get(ctx, id)
	switch {
	case errors.Is(err, reconciler.ErrNotFound):
		return absent.reply()
	case err != nil:
		return a.refuse(err)
	}
	return document(http.StatusOK, report)
}
