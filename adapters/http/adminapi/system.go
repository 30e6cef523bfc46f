package adminapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/requests"
	"github.com/sluice-gateway/sluice/projections/trail"
)

// shownSnapshot is what this worker serves from, and how fresh it is.
type shownSnapshot struct {
	ID       string `json:"id"`
	Position int64  `json:"position"`
	// CheckedAt is when the log was last read to its end.
	CheckedAt time.Time `json:"checked_at"`
	// Stale says that the last refresh failed; the last good snapshot is in use (C11).
	Stale      bool         `json:"stale"`
	Objects    objectCounts `json:"objects"`
	PassedOver []passedOver `json:"passed_over"`
}

type objectCounts struct {
	Providers   int `json:"providers"`
	Deployments int `json:"deployments"`
	Models      int `json:"models"`
	Classes     int `json:"classes"`
	Tiers       int `json:"tiers"`
	Tenants     int `json:"tenants"`
}

// passedOver counts events that this release cannot read (C15).
type passedOver struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
	Events  int64  `json:"events"`
}

func (a *API) getSnapshot(context.Context, *call) *edge.Reply {
	snapshot := a.Catalog.Current()
	if snapshot == nil {
		return unavailable("The configuration has not been read yet.").reply()
	}
	status := a.Catalog.Status()
	o := snapshot.Objects()
	shown := shownSnapshot{
		ID: snapshot.ID, Position: snapshot.Position, CheckedAt: status.CheckedAt.UTC(), Stale: status.Err != nil,
		Objects: objectCounts{
			Providers: len(o.Providers), Deployments: len(o.Deployments), Models: len(o.Models),
			Classes: len(o.Classes), Tiers: len(o.Tiers), Tenants: len(o.Tenants),
		},
		PassedOver: []passedOver{},
	}
	for e, n := range status.PassedOver {
		shown.PassedOver = append(shown.PassedOver, passedOver{e.Type, e.Version, n})
	}
	reply := document(http.StatusOK, shown)
	reply.Header.Set("ETag", `"`+snapshot.ID+`"`)
	return reply
}

// getSnapshotDocument is the snapshot as it is published: the very bytes that its id is
// the hash of. Who keeps them can have them read by any later release (C16).
func (a *API) getSnapshotDocument(context.Context, *call) *edge.Reply {
	snapshot := a.Catalog.Current()
	if snapshot == nil {
		return unavailable("The configuration has not been read yet.").reply()
	}
	return &edge.Reply{
		Status: http.StatusOK, Body: snapshot.Document(),
		Header: http.Header{"Content-Type": {"application/json"}, "Etag": {`"` + snapshot.ID + `"`}},
	}
}

func (a *API) getCircuits(context.Context, *call) *edge.Reply {
	return document(http.StatusOK, map[string]any{"circuits": a.Circuits.Open(a.Now())})
}

// listRequests searches over all organizations, or one of them.
func (a *API) listRequests(ctx context.Context, c *call) *edge.Reply {
	q := c.Query
	filter := requests.Filter{
		Tenant: q.Get("tenant"), Model: q.Get("model"), Provider: q.Get("provider"),
		Outcome: request.Outcome(q.Get("outcome")), Key: q.Get("key"), Class: q.Get("class"),
	}
	var refused *failure
	for name, into := range map[string]*time.Time{"since": &filter.Since, "until": &filter.Until} {
		if v := q.Get(name); v != "" {
			// A plus sign that was not escaped arrives as a space.
			at, err := time.Parse(time.RFC3339, strings.ReplaceAll(v, " ", "+"))
			if *into = at; err != nil {
				refused = badField(name, "must be a time such as 2026-11-29T10:00:00Z")
			}
		}
	}
	minCost, bad := number(c, "min_cost", 0)
	if bad != nil {
		refused = bad
	}
	limit, bad := number(c, "limit", requests.DefaultLimit)
	if bad != nil {
		refused = bad
	}
	if refused != nil {
		return refused.reply()
	}
	filter.MinCost = money.NanoUSD(minCost)
	found, err := requests.List(ctx, a.Requests, filter, q.Get("cursor"), limit)
	switch {
	case errors.Is(err, requests.ErrCursor):
		return badField("cursor", "must be one that a former page returned").reply()
	case err != nil:
		return a.refuse(err)
	}
	return document(http.StatusOK, found.JSON())
}

// getRequest is one request, its provider unmasked.
func (a *API) getRequest(ctx context.Context, c *call) *edge.Reply {
	events, refused := a.eventsOf(ctx, c)
	if refused != nil {
		return refused
	}
	row, err := requests.Fold(requests.Row{}, events...)
	if err != nil {
		return a.refuse(err)
	}
	return document(http.StatusOK, row.Detail(true))
}

// getTrail is a request's trail as its operator sees it: nothing is masked (X1).
func (a *API) getTrail(ctx context.Context, c *call) *edge.Reply {
	events, refused := a.eventsOf(ctx, c)
	if refused != nil {
		return refused
	}
	t, err := trail.Build(events, trail.Operator)
	if err != nil {
		return a.refuse(err)
	}
	return document(http.StatusOK, t)
}

// maxTrailEvents bounds one request's events, as the public API does.
const maxTrailEvents = 2048

func (a *API) eventsOf(ctx context.Context, c *call) ([]eventstore.Recorded, *edge.Reply) {
	absent := fail(http.StatusNotFound, codeNotFound, "There is no such request.")
	id, err := uuid.Parse(c.Params["id"])
	if err != nil || id.Version() != 7 {
		return nil, absent.reply()
	}
	events, err := a.Log.ReadStream(ctx, "request/"+id.String(), 1, maxTrailEvents)
	switch {
	case errors.Is(err, eventstore.ErrInvalid), err == nil && len(events) == 0:
		return nil, absent.reply()
	case err != nil:
		return nil, a.refuse(err)
	}
	return events, nil
}
