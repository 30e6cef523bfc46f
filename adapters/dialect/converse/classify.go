package converse

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// Classify names a reply that is no 2xx: by its exception's type and message first,
// by the status alone when neither is known (W4).
func (Outbound) Classify(r dialect.Refusal) failure.Failure {
	e := refusalOf(r.Header.Get("X-Amzn-Errortype"), r.Body)
	f := e.classify(r.Status)
	f.Status = r.Status
	f.Retry = retryAfter(r)
	return f
}

// exception is what Bedrock says about a refusal. Its strings are copies: the body is
// gone when they are used.
type exception struct {
	// kind is the bare name, in lower case; told as the provider spelled it.
	kind, told string
	message    string
}

// refusalOf reads an exception. Its type stands in a header, and in the body's __type
// or code where something in between has dropped that.
func refusalOf(kind string, body []byte) exception {
	e := exception{told: bareName(kind)}
	if doc, ok := rawjson.Parse(body); ok {
		for _, name := range []string{"__type", "code"} {
			if e.told == "" {
				e.told = bareName(doc.Get(name).Str)
			}
		}
		// A model's own error inside: its message says more than ours does.
		for _, name := range []string{"originalMessage", "message", "Message"} {
			if e.message == "" {
				e.message = scalar(doc.Get(name))
			}
		}
	}
	e.kind = strings.ToLower(e.told)
	return e
}

func scalar(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return strings.Clone(v.Str)
}

// bareName is a type without its namespace before it and its address behind it:
// com.amazon.coral.service#AccessDeniedException, ThrottlingException:http://….
func bareName(kind string) string {
	kind, _, _ = strings.Cut(kind, ":")
	if at := strings.LastIndexByte(kind, '#'); at >= 0 {
		kind = kind[at+1:]
	}
	return strings.Clone(strings.TrimSpace(kind))
}

// classify goes through the table, then by status. status is the reply's, 0 inside a
// 2xx.
func (e exception) classify(status int) failure.Failure {
	f := e.match(status)
	if f.Class == failure.InvalidRequest || f.Class == failure.ContextLength || f.Class == failure.ContentPolicy {
		f.Relay = &failure.Relay{Status: callerStatus(status), Message: dialect.Clip(e.message), Type: dialect.Clip(e.told)}
	}
	return f
}

func callerStatus(status int) int {
	if status >= 400 && status <= 499 {
		return status
	}
	return http.StatusBadRequest
}

func (e exception) match(status int) failure.Failure {
	message := strings.ToLower(e.message)
	for i := range rules {
		r := &rules[i]
		if len(r.kinds) > 0 && !slices.Contains(r.kinds, e.kind) {
			continue
		}
		if len(r.phrases) > 0 && !slices.ContainsFunc(r.phrases, func(p string) bool { return strings.Contains(message, p) }) {
			continue
		}
		return failure.Failure{Class: r.class, Code: r.name, SealRejected: r.seal}
	}
	if class, ok := statusClasses[status]; ok {
		return failure.Failure{Class: class, Code: "status"}
	}
	switch {
	case status >= 500, status == 0:
		return failure.Failure{Class: failure.ServerError, Code: "status"}
	case status >= 400:
		return failure.Failure{Class: failure.InvalidRequest, Code: "status"}
	default:
		return failure.Failure{Class: failure.BadPayload, Code: "redirect"}
	}
}

// inBody names an exception inside a 2xx. What would be a server error has the class
// otherwise.
func inBody(kind string, body []byte, otherwise failure.Class) *failure.Failure {
	f := refusalOf(kind, body).classify(0)
	if f.Class == failure.ServerError {
		f.Class = otherwise
	}
	return &f
}

// inStream names an exception frame (S4).
func inStream(kind string, body []byte) *failure.Failure {
	return inBody(kind, body, failure.StreamErrorEvent)
}
