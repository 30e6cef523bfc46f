package adminapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
)

// The codes of the admin API. Those that the public API has as well mean the same.
const (
	codeInvalidKey       = "invalid_api_key"
	codeForbidden        = "forbidden"
	codeNotFound         = "not_found"
	codeInvalid          = "invalid_request"
	codeConflict         = "revision_conflict"
	codeRevisionRequired = "revision_required"
	codeBusy             = "rebuild_running"
	codeReconciling      = "reconciliation_running"
	codeTooLarge         = "request_too_large"
	codeUnavailable      = "gateway_unavailable"
)

// failure is an error as it goes out: the one form that every refusal has.
type failure struct {
	status int

	Code    string `json:"code"`
	Message string `json:"message"`
	// Field is where in the body, for a value that is refused: chain[1].model.
	Field string `json:"field,omitempty"`
	// Revision is the object's current one, where that is what is in the way.
	Revision *int64 `json:"revision,omitempty"`
	// Problems are all that was found, where there may be several.
	Problems []catalog.Finding `json:"problems,omitempty"`
}

func fail(status int, code, message string) *failure {
	return &failure{status: status, Code: code, Message: message}
}

func (f *failure) Error() string { return f.Code + ": " + f.Message }

func (f *failure) reply() *edge.Reply {
	r := document(f.status, map[string]*failure{"error": f})
	if f.Revision != nil {
		r.Header.Set("ETag", etag(*f.Revision))
	}
	return r
}

func unavailable(message string) *failure {
	return fail(http.StatusServiceUnavailable, codeUnavailable, message)
}

func notFound(what string, revision int64) *failure {
	f := fail(http.StatusNotFound, codeNotFound, what+" does not exist.")
	f.Revision = &revision
	return f
}

func badField(field, reason string) *failure {
	f := fail(http.StatusBadRequest, codeInvalid, strings.TrimPrefix(field+": "+reason, ": "))
	f.Field = field
	return f
}

// refuse says why an edit was not done. What is not the editor's to mend is logged
// and reads as unavailable; no text of a database goes out.
func (a *API) refuse(err error) *edge.Reply {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.reply()
	}
	if e, ok := errors.AsType[*config.DocumentError](err); ok {
		problems := make([]catalog.Finding, len(e.Problems))
		for i, p := range e.Problems {
			problems[i] = catalog.Finding{Field: p.Path, Reason: p.Reason}
		}
		return invalid(problems).reply()
	}
	if e, ok := errors.AsType[*config.InvalidError](err); ok {
		return invalid(e.Problems).reply()
	}
	if e, ok := errors.AsType[*config.RevisionError](err); ok {
		f := fail(http.StatusConflict, codeConflict, sentence(e.Error()))
		if e.Missing {
			f = fail(http.StatusPreconditionRequired, codeRevisionRequired, sentence(e.Error()+", in If-Match or as \"revision\""))
		}
		f.Revision = &e.Have
		return f.reply()
	}
	if e, ok := errors.AsType[*catalog.MissingError](err); ok {
		return fail(http.StatusNotFound, codeNotFound, sentence(e.Error())).reply()
	}
	if e, ok := errors.AsType[*config.UnknownError](err); ok {
		return fail(http.StatusNotFound, codeNotFound, sentence(e.Error())).reply()
	}
	message := "The log is not available; nothing was changed."
	if errors.Is(err, eventstore.ErrOutcomeUnknown) {
		message = "The connection to the log was lost: the change may or may not have been written. Read the object again."
	}
	a.Logger.Error("admin request failed", "error", err)
	return unavailable(message).reply()
}

// invalid refuses what was sent; the first problem is the one in short.
func invalid(problems []catalog.Finding) *failure {
	first := problems[0]
	f := fail(http.StatusBadRequest, codeInvalid, sentence(first.String()))
	f.Field, f.Problems = first.Field, problems
	return f
}

func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }

// EdgeError renders what the edge refuses by itself.
func EdgeError(_ *edge.Request, kind edge.ErrorKind) *edge.Reply {
	f := fail(kind.Status(), codeInvalid, "The HTTP request cannot be read: "+strings.ReplaceAll(kind.String(), "_", " ")+".")
	switch kind {
	case edge.NotFound:
		f.Code, f.Message = codeNotFound, "There is no such endpoint."
	case edge.BodyTooLarge:
		f.Code = codeTooLarge
	case edge.Overloaded, edge.Panic:
		f.status, f.Code, f.Message = http.StatusServiceUnavailable, codeUnavailable, "The gateway is not available."
	}
	return f.reply()
}

// document is a JSON reply.
func document(status int, v any) *edge.Reply {
	body, err := json.Marshal(v)
	if err != nil {
		return &edge.Reply{Status: http.StatusInternalServerError, Header: http.Header{}}
	}
	return &edge.Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// page is a list as every list goes out.
type page[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

func etag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }
