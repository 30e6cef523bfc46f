package gemini

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// Classify names a reply that is no 2xx: by its reasons, then by known phrases, then
// by Google's own status, and by the HTTP status alone when none is known (W4).
func (Outbound) Classify(r dialect.Refusal) failure.Failure {
	f := classify(stated(r.Body), httpStatus(r.Status))
	f.Status = r.Status
	f.Retry = retryAfter(r)
	if f.Relay != nil && r.Status >= 400 && r.Status <= 499 {
		f.Relay.Status = r.Status
	}
	return f
}

// noStatus stands for an error inside a 2xx, whose status says nothing.
const noStatus = 0

func httpStatus(status int) int {
	if status < 300 {
		return noStatus
	}
	return status
}

// statement is what an error says about itself. Its strings are copies: the body is
// gone when they are used.
type statement struct {
	// number is the HTTP status in the body, 0 when there is none.
	number int
	// status is google.rpc.Code's name, such as RESOURCE_EXHAUSTED.
	status  string
	message string
	// reasons are those of the ErrorInfo details.
	reasons []string
	// field is the one that a BadRequest detail points at.
	field string
}

// given reports whether there was an error at all.
func (s statement) given() bool { return s.message != "" || s.status != "" || s.number != 0 }

// stated reads an error body: an object, or the list that a stream is without SSE.
func stated(body []byte) statement {
	if !rawjson.Shallow(body) || !gjson.ValidBytes(body) {
		return statement{}
	}
	root := gjson.ParseBytes(body)
	if root.IsArray() {
		list := root.Array()
		at := slices.IndexFunc(list, func(v gjson.Result) bool { return v.Get("error").IsObject() })
		if at < 0 {
			return statement{}
		}
		root = list[at]
	}
	e := root.Get("error")
	if e.Type == gjson.String {
		return statement{message: e.Str}
	}
	s := statement{status: e.Get("status").Str, message: e.Get("message").Str, field: e.Get("details.#.fieldViolations|0.0.field").Str}
	if n := e.Get("code").Int(); n >= 400 && n <= 599 {
		s.number = int(n)
	}
	for _, reason := range e.Get("details.#.reason").Array() {
		s.reasons = append(s.reasons, reason.Str)
	}
	return s
}

func classify(s statement, status int) failure.Failure {
	if status == noStatus {
		status = s.number
	}
	message := strings.ToLower(s.message)
	f := failure.Failure{Class: failure.ServerError, Code: "status"}
	if row := match(s, message, status); row != nil {
		f.Class, f.Code, f.SealRejected = row.class, row.name, row.seal
	} else if row, ok := codeRules[s.status]; ok {
		f.Class, f.Code = row.class, row.name
	} else {
		f.Class = byStatus(status)
	}
	if f.Class == failure.InvalidRequest || f.Class == failure.ContextLength || f.Class == failure.ContentPolicy {
		f.Relay = relay(s)
	}
	return f
}

// match is the first row whose reasons or phrases hold: all reasons before all
// phrases.
func match(s statement, message string, status int) *rule {
	for i := range rules {
		if slices.ContainsFunc(rules[i].reasons, func(r string) bool { return slices.Contains(s.reasons, r) }) {
			return &rules[i]
		}
	}
	for i := range rules {
		r := &rules[i]
		here := status == noStatus || slices.Contains(r.statuses, status)
		if here && slices.ContainsFunc(r.phrases, func(p string) bool { return strings.Contains(message, p) }) {
			return r
		}
	}
	return nil
}

func byStatus(status int) failure.Class {
	if class, ok := statusRules[status]; ok {
		return class
	}
	switch {
	case status >= 500, status == noStatus:
		return failure.ServerError
	case status >= 400:
		return failure.InvalidRequest
	default:
		return failure.BadPayload
	}
}

func relay(s statement) *failure.Relay {
	status := http.StatusBadRequest
	if s.number >= 400 && s.number <= 499 {
		status = s.number
	}
	return &failure.Relay{Status: status, Message: dialect.Clip(s.message), Type: dialect.Clip(s.status), Param: dialect.Clip(s.field)}
}

// inBody names an error object inside a 2xx: by what it says itself. What would be a
// server error has the class otherwise.
func inBody(body []byte, otherwise failure.Class) *failure.Failure {
	f := Outbound{}.Classify(dialect.Refusal{Status: http.StatusOK, Body: bytes.Clone(body)})
	if f.Class == failure.ServerError {
		f.Class = otherwise
	}
	return &f
}

// inStream names an error event (S4).
func inStream(body []byte) *failure.Failure { return inBody(body, failure.StreamErrorEvent) }

// blocked names a prompt that was not answered at all. The reason is a word of
// Google's own, not the caller's text.
func blocked(reason string) *failure.Failure {
	return &failure.Failure{Class: failure.ContentPolicy, Code: "prompt_blocked", Relay: &failure.Relay{
		Status: http.StatusBadRequest, Message: "The prompt was blocked: " + dialect.Clip(reason) + ".", Type: "prompt_blocked", Code: dialect.Clip(reason),
	}}
}
