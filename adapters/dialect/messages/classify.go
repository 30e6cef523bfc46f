package messages

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

const (
	// maxWraps is how deep relays may have wrapped each other's errors.
	maxWraps = 4
)

// Classify names a reply that is no 2xx: by the phrases of the innermost error
// first, then by its type, and by the status alone when neither is known (W4).
// Anthropic's types are broad: an empty balance and a prompt that is too long are
// both invalid_request_error, so the phrases come first.
func (Outbound) Classify(r dialect.Refusal) failure.Failure {
	f := classify(unwrap(r.Body), r.Status)
	f.Status = r.Status
	f.Retry = retryAfter(r)
	switch f.Class {
	case failure.InvalidRequest, failure.ContextLength, failure.ContentPolicy:
		if f.Relay == nil {
			f.Relay = &failure.Relay{}
		}
		if f.Relay.Status = r.Status; r.Status < 400 || r.Status > 499 {
			f.Relay.Status = http.StatusBadRequest
		}
	default:
		f.Relay = nil
	}
	return f
}

// stated is what one error says about itself, in strings of its own.
type stated struct{ kind, message string }

func (e *stated) relay() *failure.Relay {
	return &failure.Relay{Message: dialect.Clip(e.message), Type: dialect.Clip(e.kind)}
}

// classify goes from the innermost error outward. A status of a relay is its own;
// that of an error inside a 2xx says nothing.
func classify(errs []stated, status int) failure.Failure {
	if status < 300 {
		status = noStatus
	}
	for i := len(errs) - 1; i >= 0; i-- {
		e := &errs[i]
		if row := byPhrase(e, status, i > 0); row != nil {
			return failure.Failure{Class: row.class, Code: row.name, Relay: e.relay()}
		}
		class, ok := typeRules[e.kind]
		if !ok {
			continue
		}
		if class == failure.DeploymentGone && ofCaller(e.message) {
			class = failure.InvalidRequest
		}
		if class == failure.InvalidRequest && i == 0 && status >= 500 {
			continue // a status of the provider's own outweighs a word of its caller's
		}
		return failure.Failure{Class: class, Code: "type", Relay: e.relay(), SealRejected: rejectsSeal(e)}
	}
	f := byStatus(status)
	for i := len(errs) - 1; i >= 0 && f.Relay == nil; i-- {
		f.Relay = errs[i].relay()
	}
	return f
}

// byPhrase is the row whose phrase a message has. A relay's status says nothing about
// the error inside.
func byPhrase(e *stated, status int, wrapped bool) *phraseRule {
	message := strings.ToLower(e.message)
	if quotesField(message) {
		return nil
	}
	for i := range phraseRules {
		r := &phraseRules[i]
		if (wrapped || slices.Contains(r.statuses, status)) &&
			slices.ContainsFunc(r.phrases, func(p string) bool { return strings.Contains(message, p) }) {
			return r
		}
	}
	return nil
}

// quotesField reports whether a message is about a field, which Anthropic names in
// front: "tools.0.input_schema: ...". What follows may be the caller's own text, and a
// schema with "insufficient balance" in it is no empty account.
func quotesField(message string) bool {
	field, _, ok := strings.Cut(message, ": ")
	return ok && strings.ContainsAny(field, ".") && !strings.ContainsAny(field, " ")
}

// rejectsSeal tells a signature that the provider cannot read from the caller's other
// faults (K5).
func rejectsSeal(e *stated) bool {
	message := strings.ToLower(e.message)
	return e.kind == "invalid_request_error" && strings.Contains(message, "thinking") &&
		(strings.Contains(message, "invalid `signature`") || strings.Contains(message, "invalid `data`"))
}

// ofCaller tells a missing thing that the request names from a missing model or path.
func ofCaller(message string) bool {
	message = strings.ToLower(message)
	return !strings.HasPrefix(message, "model") && slices.ContainsFunc([]string{"file", "container", "skill"}, func(thing string) bool {
		return strings.Contains(message, thing)
	})
}

func byStatus(status int) failure.Failure {
	if class, ok := statusRules[status]; ok {
		return failure.Failure{Class: class, Code: "status"}
	}
	switch {
	case status >= 500, status == noStatus:
		return failure.Failure{Class: failure.ServerError, Code: "status"}
	case status >= 400:
		return failure.Failure{Class: failure.InvalidRequest, Code: "status"}
	default:
		return failure.Failure{Class: failure.BadPayload, Code: "redirect"}
	}
}

// unwrap lists the errors of a body, outermost first: Anthropic's envelope, and what
// relays put around it, as an object or as JSON in the message.
func unwrap(body []byte) []stated {
	if !rawjson.Shallow(body) || !gjson.ValidBytes(body) {
		return nil
	}
	var errs []stated
	next := gjson.ParseBytes(body)
	for range maxWraps {
		if e := next.Get("error"); e.IsObject() || (e.Type == gjson.String && e.Str != "") {
			next = e
		}
		if next.Type == gjson.String {
			return append(errs, stated{message: next.Str})
		}
		if !next.IsObject() {
			return errs
		}
		e := stated{kind: next.Get("type").Str, message: next.Get("message").Str}
		if e.kind == "" {
			e.kind = next.Get("code").Str
		}
		errs = append(errs, e)
		inner := embedded(next)
		if !inner.Exists() {
			return errs
		}
		next = inner
	}
	return errs
}

func embedded(v gjson.Result) gjson.Result {
	for _, path := range []string{"metadata.raw", "error", "message"} {
		inner := v.Get(path)
		if inner.Type == gjson.String && strings.HasPrefix(strings.TrimSpace(inner.Str), "{") &&
			rawjson.Shallow([]byte(inner.Str)) && gjson.Valid(inner.Str) {
			inner = gjson.Parse(inner.Str)
		}
		if inner.IsObject() {
			return inner
		}
	}
	return gjson.Result{}
}

// inBody names an error object inside a 2xx: by what it says itself, since its
// status says nothing. What would be a server error has the class otherwise.
func inBody(body []byte, otherwise failure.Class) *failure.Failure {
	f := Outbound{}.Classify(dialect.Refusal{Status: http.StatusOK, Body: body})
	if f.Class == failure.ServerError {
		f.Class = otherwise
	}
	return &f
}

// inStream names an error event (S4).
func inStream(body []byte) *failure.Failure { return inBody(body, failure.StreamErrorEvent) }
