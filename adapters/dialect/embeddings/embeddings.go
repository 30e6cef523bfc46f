// Package embeddings is OpenAI's embeddings endpoint, in both directions. There is
// one dialect of it and its answers come whole, so nothing is translated: a request
// passes to the providers that speak Chat Completions, reserved and settled like any
// other attempt (P1).
package embeddings

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// Inbound is the endpoint as callers speak it. Errors are said as Chat Completions
// says them.
type Inbound struct{ chat.Inbound }

// Outbound speaks it to the providers of another outbound dialect, and leaves all
// other requests to that one.
type Outbound struct{ dialect.Outbound }

var (
	_ dialect.Inbound  = Inbound{}
	_ dialect.Outbound = Outbound{}
)

// Name is embeddings.
func (Inbound) Name() neutral.Dialect { return neutral.Embeddings }

const (
	// maxName bounds names that become keys of maps and columns of the log.
	maxName = 256
	// leastOutput is held for the output of an answer that has none: a limit of 0
	// would mean that the caller gave none.
	leastOutput = 1
	// bytesPerToken is how base64 is counted (A6): an input of token numbers is
	// counted as that many bytes a number.
	bytesPerToken = 4
)

// errNotEmbeddings is a body that is no JSON object.
var errNotEmbeddings = errors.New("embeddings: not a JSON object")

func invalid(param, message string) error {
	return &dialect.InvalidError{Message: message, Param: param}
}

// Parse reads a request: its model, and its input for the estimate.
func (Inbound) Parse(body []byte) (*dialect.Request, error) {
	doc, ok := rawjson.Parse(body)
	if !ok || !utf8.Valid(body) {
		return nil, invalid("", "The body is not a valid JSON object.")
	}
	model, input := doc.Get("model"), doc.Get("input")
	switch {
	case model.Type != gjson.String || model.Str == "" || len(model.Str) > maxName:
		return nil, invalid("model", "You must give a model.")
	case count(doc, "model") > 1:
		return nil, invalid("model", "The field model is given more than once.")
	case rawjson.IsNull(input):
		return nil, invalid("input", "You must give an input.")
	}
	r := &dialect.Request{
		Dialect: neutral.Embeddings, Raw: body, Model: strings.Clone(model.Str), WholeOnly: true, Choices: 1,
		MaxOutputTokens: leastOutput, Needs: []catalog.Capability{catalog.Embeddings}, Features: []dialect.Feature{dialect.Vectors},
		Hints: dialect.Hints{User: strings.Clone(doc.Get("user").Str)},
	}
	if !read(r, input) {
		return nil, invalid("input", "The input must be a string, token numbers, or a list of either.")
	}
	return r, nil
}

func count(doc gjson.Result, key string) (n int) {
	doc.ForEach(func(k, _ gjson.Result) bool {
		if k.Str == key {
			n++
		}
		return true
	})
	return n
}

// read counts an input (A6).
func read(r *dialect.Request, v gjson.Result) bool {
	switch {
	case v.Type == gjson.String:
		s := dialect.Span{Start: v.Index + 1, End: rawjson.End(v) - 1}
		s.Escaped = strings.IndexByte(v.Raw, '\\') >= 0
		r.Parts.Spans = append(r.Parts.Spans, s)
		r.Parts.Messages++
		return true
	case v.Type == gjson.Number:
		r.Parts.Base64Bytes += bytesPerToken
		return true
	case !v.IsArray():
		return false
	}
	ok := true
	v.ForEach(func(_, v gjson.Result) bool {
		ok = read(r, v)
		return ok
	})
	return ok
}

// Whole is the provider's body under the requested name (N23).
func (Inbound) Whole(_ *dialect.Request, answer *neutral.Answer, meta dialect.Meta) ([]byte, error) {
	return renamed(answer.Raw, meta.Model)
}

// renamed puts another model's name into a body.
func renamed(body []byte, model string) ([]byte, error) {
	doc, ok := rawjson.Parse(body)
	if !ok {
		return nil, errNotEmbeddings
	}
	var edits []rawjson.Edit
	doc.ForEach(func(key, v gjson.Result) bool {
		if key.Str == "model" {
			edits = append(edits, rawjson.Replace(v, rawjson.Quote(model)))
		}
		return true
	})
	return rawjson.Splice(make([]byte, 0, len(body)+len(model)), body, edits), nil
}

// Build passes the caller's own bytes under the provider's name of the model (P4).
func (o Outbound) Build(req *dialect.Request, t dialect.Target) (*dialect.Upstream, error) {
	if req.Dialect != neutral.Embeddings {
		return o.Outbound.Build(req, t)
	}
	body, err := renamed(req.Raw, t.UpstreamModel)
	if err != nil {
		return nil, err
	}
	return chat.NewUpstream(t, body, "embeddings")
}

// DecodeWhole reads a reply.
func (o Outbound) DecodeWhole(req *dialect.Request, body []byte) (neutral.Answer, *failure.Failure) {
	if req == nil || req.Dialect != neutral.Embeddings {
		return o.Outbound.DecodeWhole(req, body)
	}
	doc, ok := rawjson.Parse(body)
	if !ok {
		return neutral.Answer{}, payload("not_json")
	}
	if wrong := doc.Get("error"); !rawjson.IsNull(wrong) {
		f := o.Classify(dialect.Refusal{Status: http.StatusOK, Body: body})
		return neutral.Answer{}, &f
	}
	data := doc.Get("data")
	if !data.IsArray() {
		return neutral.Answer{}, payload("no_data")
	}
	answer := neutral.Answer{Dialect: neutral.Embeddings, Raw: body, Stop: neutral.StopEnd, FirstOutput: neutral.Structure}
	if input := rawjson.Count(doc.Get("usage.prompt_tokens")); input.Known() {
		answer.Usage = usage.Usage{Input: input, Output: usage.Of(0)}
	}
	if !data.Get("0").Exists() {
		answer.FirstOutput, answer.Empty = neutral.Opaque, true
		return answer, &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	return answer, nil
}

// payload is a 2xx reply that is not what the endpoint says.
func payload(code string) *failure.Failure {
	return &failure.Failure{Class: failure.BadPayload, Code: code, PossiblyBilled: true}
}
