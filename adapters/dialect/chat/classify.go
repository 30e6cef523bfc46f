package chat

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

// Classify names a reply that is no 2xx: by known codes, then by known phrases, of
// the innermost error first, and by the status alone when neither is known (W4).
func (Outbound) Classify(r dialect.Refusal) failure.Failure {
	f := classify(unwrap(r.Body), r.Status)
	f.Status = r.Status
	f.Retry = retryAfter(r)
	if f.Class == failure.InvalidRequest || f.Class == failure.ContextLength || f.Class == failure.ContentPolicy {
		f.Relay.Status = relayStatus(r.Status, f.Relay.Status)
	} else {
		f.Relay = nil
	}
	return f
}

// relayStatus is the caller's fault as a status: the provider's own, unless a
// wrapper turned it into something else.
func relayStatus(status, inner int) int {
	for _, s := range []int{status, inner} {
		if s >= 400 && s <= 499 {
			return s
		}
	}
	return http.StatusBadRequest
}

// stated is what one error says about itself. Its strings are copies: the body is
// gone when they are used.
type stated struct {
	code, kind, status, reason string
	message, param             string
	// number is an HTTP status in the body, 0 when there is none.
	number int
}

// classify goes from the innermost error outward. status is the reply's.
func classify(errs []stated, status int) failure.Failure {
	for _, e := range slices.Backward(errs) {
		under := e.number
		if under == 0 {
			under = httpStatus(status)
		}
		if class, name, ok := e.match(under); ok {
			return failure.Failure{Class: class, Code: name, Relay: e.relay()}
		}
	}
	relay := &failure.Relay{}
	for _, e := range slices.Backward(errs) {
		if relay.Message == "" {
			relay = e.relay()
		}
	}
	f := byOwnStatus(errs, httpStatus(status))
	f.Relay = relay
	return f
}

// byOwnStatus takes the status that the innermost error gives itself; what a relay
// made of it is its own affair.
func byOwnStatus(errs []stated, status int) failure.Failure {
	param := ""
	for depth, e := range slices.Backward(errs) {
		param = e.param
		switch wrapped := depth > 0 || status == noStatus; {
		case e.number != 0:
			return byStatus(e.number, param)
		case wrapped && slices.Contains(callerTypes, strings.ToLower(e.kind)):
			return failure.Failure{Class: failure.InvalidRequest, Code: "type"}
		}
	}
	return byStatus(status, param)
}

// httpStatus is a status as the rules count it: an error inside a 2xx has none.
func httpStatus(status int) int {
	if status < 300 {
		return noStatus
	}
	return status
}

func byStatus(status int, param string) failure.Failure {
	if status == http.StatusNotFound && param != "" && param != "model" {
		// Something that the request names is missing, such as a file, and not the model.
		return failure.Failure{Class: failure.InvalidRequest, Code: "status"}
	}
	if row, ok := statusRules[status]; ok {
		return failure.Failure{Class: row.class, Code: row.name}
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

// match tries all codes before all phrases. A row with both needs both and counts
// as one of codes.
func (e *stated) match(status int) (failure.Class, string, bool) {
	message := strings.ToLower(e.message)
	for _, own := range []string{e.code, e.reason, e.status, e.kind} {
		own = strings.ToLower(own)
		for i := range refusalRules {
			r := &refusalRules[i]
			if own != "" && slices.Contains(r.codes, own) && (r.phrases == nil || containsAny(message, r.phrases)) {
				return r.class, r.name, true
			}
		}
	}
	for i := range refusalRules {
		r := &refusalRules[i]
		if r.codes == nil && slices.Contains(r.statuses, status) && (r.ownParam || e.param == "") && containsAny(message, r.phrases) {
			return r.class, r.name, true
		}
	}
	return "", "", false
}

func containsAny(s string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(s, p) })
}

func (e *stated) relay() *failure.Relay {
	return &failure.Relay{
		Status:  e.number,
		Message: dialect.Clip(e.message), Type: dialect.Clip(e.kind), Param: dialect.Clip(e.param), Code: dialect.Clip(e.code),
	}
}

// unwrap lists the errors of a body, outermost first. Relays put the provider's
// error inside their own: OpenRouter as a string in metadata.raw, others as an
// object in error or as JSON in the message.
func unwrap(body []byte) []stated {
	if !rawjson.Shallow(body) || !gjson.ValidBytes(body) {
		return nil
	}
	var errs []stated
	next := gjson.ParseBytes(body)
	for range maxWraps {
		if next.IsArray() {
			next = next.Get("0") // Gemini's compatible endpoint
		}
		if e := next.Get("error"); !rawjson.IsNull(e) {
			next = e
		} else if e := next.Get("errors.0"); !rawjson.IsNull(e) {
			next = e
		}
		if next.Type == gjson.String {
			return append(errs, stated{message: next.Str})
		}
		if !next.IsObject() {
			return errs
		}
		e, inner := state(next)
		errs = append(errs, e)
		if !inner.Exists() {
			return errs
		}
		next = inner
	}
	return errs
}

// state reads one error object and the error inside it, if there is one.
func state(v gjson.Result) (e stated, inner gjson.Result) {
	e = stated{
		code: scalar(v.Get("code")), kind: scalar(v.Get("type")), status: scalar(v.Get("status")),
		reason: scalar(v.Get("details.#.reason|0")), message: scalar(v.Get("message")), param: scalar(v.Get("param")),
	}
	if e.message == "" {
		e.message = scalar(v.Get("detail"))
	}
	if e.message == "" {
		e.message = scalar(v.Get("detail.0.msg"))
	}
	if e.reason == "" {
		e.reason = scalar(v.Get("innererror.code")) // Azure
	}
	for _, number := range []gjson.Result{v.Get("code"), v.Get("status"), v.Get("status_code")} {
		if n := number.Int(); n >= 400 && n <= 599 {
			e.number = int(n)
			break
		}
	}
	for _, path := range []string{"metadata.raw", "error", "message"} {
		if inner = embedded(v.Get(path)); inner.Exists() {
			return e, inner
		}
	}
	if raw := v.Get("metadata.raw"); raw.Type == gjson.String && raw.Str != "" {
		// Not JSON: the provider's bare words.
		e.message = raw.Str
	}
	return e, gjson.Result{}
}

// embedded is an error object in v, as an object or as JSON in a string.
func embedded(v gjson.Result) gjson.Result {
	if v.Type == gjson.String && strings.HasPrefix(strings.TrimSpace(v.Str), "{") {
		if !rawjson.Shallow([]byte(v.Str)) || !gjson.Valid(v.Str) {
			return gjson.Result{}
		}
		v = gjson.Parse(v.Str)
	}
	if v.IsObject() {
		return v
	}
	return gjson.Result{}
}

func scalar(v gjson.Result) string {
	if v.Type == gjson.String || v.Type == gjson.Number {
		return v.String()
	}
	return ""
}

// errorIn finds an error in a 2xx body or in an event of a stream. A member that is
// empty, false or null is none.
func errorIn(doc gjson.Result, event string) ([]byte, bool) {
	signs := errorSigns{found: event == "error"}
	doc.ForEach(func(key, v gjson.Result) bool {
		signs.note(key.Str, v)
		return true
	})
	if !signs.error() {
		return nil, false
	}
	return []byte(doc.Raw), true
}

// errorSigns are what gives an error object away.
type errorSigns struct {
	found        bool
	object, kind string
}

// note looks at one member of the object.
func (s *errorSigns) note(key string, v gjson.Result) {
	switch key {
	case "error":
		s.found = s.found || rawjson.Truthy(v)
	case "object":
		s.object = v.Str
	case "type":
		s.kind = v.Str
	}
}

func (s *errorSigns) error() bool { return s.found || s.object == "error" || s.kind == "error" }

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
