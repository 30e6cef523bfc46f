package responses

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// userAgent is how we name ourselves upstream.
const userAgent = "sluice"

// azureHosts is what the names of Azure's endpoints for models end in.
const azureHosts = ".azure.com"

var (
	// errBaseURL is a base URL that is no http(s) URL.
	errBaseURL = errors.New("responses: base URL is not an absolute http or https URL")
	// errNoNeutral is a request whose dialect cannot say it in any other words.
	errNoNeutral = errors.New("responses: the request has no neutral form")
	// errNotResponses is a chunk or an answer whose bytes are no JSON object.
	errNotResponses = errors.New("responses: not a JSON object")
)

// Build makes the upstream request: out of the caller's own bytes where the caller
// speaks this dialect too, else out of the neutral request. Either way the bytes
// depend on nothing but the request and the target, so that a provider's prompt cache
// meets the same prefix in every turn (P12).
func (Outbound) Build(req *dialect.Request, t dialect.Target) (*dialect.Upstream, error) {
	base, err := url.Parse(t.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, errBaseURL
	}
	body, err := buildBody(req, t)
	if err != nil {
		return nil, err
	}
	// JoinPath keeps a query such as Azure's api-version.
	h := header(t)
	if t.Secret != "" && strings.HasSuffix(base.Hostname(), azureHosts) {
		// A resource's own key comes in this header there; the other takes tokens of
		// Entra, and on newer paths either.
		h.Set("Api-Key", t.Secret)
	}
	return &dialect.Upstream{Method: http.MethodPost, URL: base.JoinPath("responses").String(), Header: h, Body: body}, nil
}

// header is all that goes upstream. Nothing comes from the caller but the
// idempotency key that the gateway has decided to pass (Z4).
func header(t dialect.Target) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json"},
		"User-Agent":   {userAgent},
		// A compressed stream is held back until its block is full.
		"Accept-Encoding": {"identity"},
	}
	if t.Stream {
		h.Set("Accept", "text/event-stream")
	}
	if t.Secret != "" {
		h.Set("Authorization", "Bearer "+t.Secret)
	}
	if t.IdempotencyKey != "" {
		h.Set("Idempotency-Key", t.IdempotencyKey)
	}
	return h
}

func buildBody(req *dialect.Request, t dialect.Target) ([]byte, error) {
	if req.Dialect == neutral.Responses {
		return edited(req, t)
	}
	if req.Neutral == nil {
		return nil, errNoNeutral
	}
	r, err := req.Neutral()
	if err != nil {
		return nil, err
	}
	return write(r, t), nil
}

// edited is the caller's own body with model and stream put right and unreadable
// reasoning cut out. Everything else, key order included, stays (P4).
func edited(req *dialect.Request, t dialect.Target) ([]byte, error) {
	doc, ok := rawjson.Parse(req.Raw)
	if !ok {
		return nil, errNotResponses
	}
	var edits []rawjson.Edit
	cut := rawjson.Remover{Doc: req.Raw}
	stream := false
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			edits = append(edits, rawjson.Replace(v, rawjson.Quote(t.UpstreamModel)))
		case "stream":
			stream = true
			if v.Bool() != t.Stream || !v.IsBool() {
				edits = append(edits, rawjson.Replace(v, word(t.Stream)))
			}
		case "stream_options":
			if !t.Stream {
				// Refused on a request that does not stream.
				edits = append(edits, cut.Cut(key, v))
				return true
			}
		case "input":
			edits = append(edits, withoutUnreadable(req.Raw, v, t.WithoutSeals)...)
		}
		cut.Stay(v)
		return true
	})
	if t.Stream && !stream {
		edits = append(edits, rawjson.Insert(req.Raw, doc, []byte(`"stream":true`)))
	}
	return rawjson.Splice(make([]byte, 0, len(req.Raw)+len(t.UpstreamModel)+64), req.Raw, edits), nil
}

func word(b bool) []byte {
	if b {
		return []byte("true")
	}
	return []byte("false")
}

func withoutUnreadable(doc []byte, input gjson.Result, withoutSeals bool) []rawjson.Edit {
	if !input.IsArray() {
		return nil
	}
	var edits []rawjson.Edit
	cut := rawjson.Remover{Doc: doc}
	input.ForEach(func(_, item gjson.Result) bool {
		if unreadable(item, withoutSeals) {
			edits = append(edits, cut.Cut(item, item))
		} else {
			cut.Stay(item)
		}
		return true
	})
	return edits
}
