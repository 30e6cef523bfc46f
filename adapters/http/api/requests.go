package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/requests"
	"github.com/sluice-gateway/sluice/projections/trail"
)

// listRequests is GET /v1/requests: the key's own organization, newest first (X2).
func (a *API) listRequests(ctx context.Context, c *call) *edge.Reply {
	q := query{values: c.Query}
	filter := requests.Filter{
		Tenant: c.key.Tenant, Since: q.time("since"), Until: q.time("until"),
		Model: q.text("model"), Provider: q.text("provider"), Outcome: request.Outcome(q.text("outcome")),
		Key: q.text("key"), Class: q.text("class"), MinCost: money.NanoUSD(q.number("min_cost")),
	}
	cursor, limit := q.text("cursor"), int(q.number("limit"))
	if q.bad != nil {
		return a.fail(c.Request, q.bad)
	}
	page, err := requests.List(ctx, a.Requests, filter, cursor, limit)
	switch {
	case errors.Is(err, requests.ErrCursor):
		return a.fail(c.Request, badQuery("cursor", "one that a former page returned"))
	case err != nil:
		a.Logger.Error("search of requests failed", "error", err)
		return a.unavailable(c.Request)
	}
	return writeJSON(page.JSON())
}

// getRequest is GET /v1/requests/{id}, folded from the request's own events: what
// the caller just did is there, however far behind the search is.
func (a *API) getRequest(ctx context.Context, c *call) *edge.Reply {
	events, refused := a.eventsOf(ctx, c)
	if refused != nil {
		return refused
	}
	row, err := requests.Fold(requests.Row{}, events...)
	if err != nil {
		a.Logger.Error("request cannot be folded", "request_id", c.Params["id"], "error", err)
		return a.unavailable(c.Request)
	}
	return writeJSON(row.Detail(false))
}

// getTrail is GET /v1/requests/{id}/trail (X1).
func (a *API) getTrail(ctx context.Context, c *call) *edge.Reply {
	events, refused := a.eventsOf(ctx, c)
	if refused != nil {
		return refused
	}
	t, err := trail.Build(events, trail.Caller)
	if err != nil {
		a.Logger.Error("trail cannot be built", "request_id", c.Params["id"], "error", err)
		return a.unavailable(c.Request)
	}
	return writeJSON(t)
}

// maxTrailEvents bounds one request's events: at most 8 attempts and 256 examined
// rungs, each of which says a handful of things.
const maxTrailEvents = 2048

// eventsOf reads one request of the caller's own organization; any other reads as
// not there (Z6).
func (a *API) eventsOf(ctx context.Context, c *call) ([]eventstore.Recorded, *edge.Reply) {
	notFound := apierror.New(apierror.InvalidRequest)
	notFound.Status, notFound.Message = http.StatusNotFound, "There is no such request."
	id, err := uuid.Parse(c.Params["id"])
	if err != nil || id.Version() != 7 {
		return nil, a.fail(c.Request, notFound)
	}
	events, err := a.Log.ReadStream(ctx, "request/"+id.String(), 0, maxTrailEvents)
	switch {
	case errors.Is(err, eventstore.ErrInvalid):
		return nil, a.fail(c.Request, notFound)
	case err != nil:
		a.Logger.Error("request cannot be read", "request_id", id.String(), "error", err)
		return nil, a.unavailable(c.Request)
	}
	if len(events) == 0 || !ownedBy(events, c.key.Tenant) {
		return nil, a.fail(c.Request, notFound)
	}
	return events, nil
}

// ownedBy reads whose request this is from its first event.
func ownedBy(events []eventstore.Recorded, tenant string) bool {
	row, err := requests.Fold(requests.Row{}, events[0])
	return err == nil && row.Tenant == tenant
}

// query reads parameters and remembers the first that cannot be read.
type query struct {
	values url.Values
	bad    *apierror.Error
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) number(name string) int64 {
	v := q.values.Get(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if (err != nil || n < 0) && q.bad == nil {
		q.bad = badQuery(name, "a whole number, 0 or above")
	}
	return n
}

func (q *query) time(name string) time.Time {
	v := q.values.Get(name)
	if v == "" {
		return time.Time{}
	}
	// A plus sign that was not escaped arrives as a space.
	t, err := time.Parse(time.RFC3339, strings.ReplaceAll(v, " ", "+"))
	if err != nil && q.bad == nil {
		q.bad = badQuery(name, "a time such as 2026-11-29T10:00:00Z")
	}
	return t
}

func badQuery(name, want string) *apierror.Error {
	e := apierror.New(apierror.InvalidRequest)
	e.Message, e.Param = "The parameter "+name+" must be "+want+".", name
	return e
}
