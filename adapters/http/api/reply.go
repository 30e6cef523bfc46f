package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
)

// retryUnavailable is what a caller is told while there is no catalog yet.
const retryUnavailable = 2 * time.Second

// unavailable is being unable to know: our fault, never a 401 (A2).
func (a *API) unavailable(r *edge.Request) *edge.Reply {
	e := apierror.New(apierror.GatewayUnavailable)
	e.RetryAfter = retryUnavailable
	return a.fail(r, e)
}

// fail says an error in the caller's dialect. A request that never reached the
// gateway has no trail; its id is for support all the same.
func (a *API) fail(r *edge.Request, e *apierror.Error) *edge.Reply {
	if e.RequestID == "" {
		e.RequestID = newID()
	}
	status, header, body := voice(r).Error(e)
	setID(header, e.RequestID)
	return &edge.Reply{Status: status, Header: header, Body: body}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// setID sends the id under both names that SDKs read (P11).
func setID(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("Request-Id", id)
}

// setFacts sends what X4 promises. What is not known is not sent.
func setFacts(h http.Header, f gateway.Facts) {
	h.Set("X-Sluice-Attempts", strconv.Itoa(f.Attempts))
	h.Set("X-Sluice-Fallback-Depth", strconv.Itoa(f.FallbackDepth))
	for name, value := range map[string]string{
		"X-Sluice-Provider": f.Provider, "X-Sluice-Canonical-Model": f.CanonicalModel,
		"X-Sluice-Fallback-Kind": f.FallbackKind,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if f.CostNanoUSD != nil {
		h.Set("X-Sluice-Cost-Nanousd", strconv.FormatInt(*f.CostNanoUSD, 10))
	}
}

// reply turns an outcome into what goes over the wire.
func (a *API) reply(r *edge.Request, out *gateway.Outcome) *edge.Reply {
	var reply *edge.Reply
	switch {
	case out.Gone:
		return nil
	case out.Err != nil:
		reply = a.fail(r, out.Err)
	case out.Stream != nil:
		reply = &edge.Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}}
		reply.Header.Set("Cache-Control", "no-cache")
		reply.Header.Set("X-Accel-Buffering", "no")
		reply.Stream = func(ctx context.Context, w edge.StreamWriter) error { return out.Stream(ctx, w) }
	default:
		reply = &edge.Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: out.Whole}
	}
	setID(reply.Header, out.RequestID)
	setFacts(reply.Header, out.Facts)
	setLimits(reply.Header, voice(r).Name(), limitsOf(out), a.Now())
	if out.Replayed {
		reply.Header.Set("Idempotent-Replayed", "true")
	}
	return reply
}

// writeJSON is a tenant API's own document. It is no request of the log's, and has an
// id all the same, as every reply has (P11).
func writeJSON(v any) *edge.Reply {
	body, err := json.Marshal(v)
	if err != nil {
		return &edge.Reply{Status: http.StatusInternalServerError}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	setID(header, uuid.Must(uuid.NewV7()).String())
	return &edge.Reply{Status: http.StatusOK, Header: header, Body: body}
}

// EdgeError renders what the edge refuses by itself.
func (a *API) EdgeError(r *edge.Request, kind edge.ErrorKind) *edge.Reply {
	e := apierror.New(apierror.InvalidRequest)
	switch kind {
	case edge.BodyTooLarge:
		e = apierror.New(apierror.RequestTooLarge)
	case edge.Overloaded, edge.Panic:
		e = apierror.New(apierror.GatewayUnavailable)
		e.RetryAfter = retryUnavailable
	case edge.NotFound:
		e.Message = "There is no such endpoint."
	default:
		e.Message = "The HTTP request cannot be read: " + strings.ReplaceAll(kind.String(), "_", " ") + "."
	}
	e.Status = kind.Status()
	if kind == edge.Panic {
		e.Status = http.StatusServiceUnavailable
	}
	return a.fail(r, e)
}
