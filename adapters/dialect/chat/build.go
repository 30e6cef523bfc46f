package chat

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

// errBaseURL is a base URL that is no http(s) URL.
var errBaseURL = errors.New("chat: base URL is not an absolute http or https URL")

// Build makes a request of the caller's own bytes, or says one of another dialect
// anew.
//
// In its own dialect it cuts the upstream model into the caller's own bytes, and asks for usage on
// a stream (S8). Everything else, key order included, stays as the caller sent it:
// nothing is silently taken away (N21), and a prompt's bytes are the same from turn
// to turn (P12).
func (Outbound) Build(req *dialect.Request, t dialect.Target) (*dialect.Upstream, error) {
	base, err := parseBase(t)
	if err != nil {
		return nil, err
	}
	q := quirksOf(base)
	var body []byte
	if req.Dialect == neutral.Chat {
		body, err = buildBody(req, t, q)
	} else {
		body, err = buildForeign(req, t, q)
	}
	if err != nil {
		return nil, err
	}
	return NewUpstream(t, body, "chat", "completions")
}

func parseBase(t dialect.Target) (*url.URL, error) {
	base, err := url.Parse(t.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, errBaseURL
	}
	return base, nil
}

// NewUpstream addresses a body to an endpoint of a provider that speaks this dialect.
func NewUpstream(t dialect.Target, body []byte, endpoint ...string) (*dialect.Upstream, error) {
	base, err := parseBase(t)
	if err != nil {
		return nil, err
	}
	// JoinPath keeps a query such as Azure's api-version.
	return &dialect.Upstream{
		Method: http.MethodPost, URL: base.JoinPath(endpoint...).String(), Header: header(t, quirksOf(base)), Body: body,
	}, nil
}

// header is all that goes upstream. Nothing comes from the caller but the
// idempotency key that the gateway has decided to pass (Z4).
func header(t dialect.Target, q *quirks) http.Header {
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
	switch {
	case t.Secret == "":
		// A server of one's own often has no key.
	case q.keyHeader != "":
		h.Set(q.keyHeader, t.Secret)
	default:
		h.Set("Authorization", "Bearer "+t.Secret)
	}
	if t.IdempotencyKey != "" {
		h.Set("Idempotency-Key", t.IdempotencyKey)
	}
	return h
}

// buildForeign says a request that came in another dialect.
func buildForeign(req *dialect.Request, t dialect.Target, q *quirks) ([]byte, error) {
	if req.Neutral == nil {
		return nil, &foreignError{req.Dialect}
	}
	n, err := req.Neutral()
	if err != nil {
		return nil, err
	}
	return writeNeutral(n, t, q, len(req.Raw))
}

// buildBody edits model, stream and stream_options in place, and adds at the end
// what is not there.
func buildBody(req *dialect.Request, t dialect.Target, q *quirks) ([]byte, error) {
	doc, ok := rawjson.Parse(req.Raw)
	if !ok {
		return nil, errNotChat
	}
	b := builder{raw: req.Raw, cut: rawjson.Remover{Doc: req.Raw}}
	stream, options := false, false
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			b.replace(v, rawjson.Quote(t.UpstreamModel))
		case "stream":
			stream = true
			b.setStream(v, t.Stream)
		case "stream_options":
			options = true
			if !t.Stream || q.noStreamOptions {
				// Refused by OpenAI on a request that does not stream.
				b.edits = append(b.edits, b.cut.Cut(key, v))
				return true
			}
			b.setOptions(v)
		}
		b.cut.Stay(v)
		return true
	})
	var extra []byte
	if t.Stream && !stream {
		extra = append(extra, `,"stream":true`...)
	}
	if t.Stream && !options && !q.noStreamOptions {
		extra = append(extra, `,"stream_options":{"include_usage":true}`...)
	}
	if extra != nil {
		// The object has a model and so is not empty.
		last := doc.Index + strings.LastIndexByte(doc.Raw, '}')
		b.edits = append(b.edits, rawjson.Edit{Start: last, End: last, With: extra})
	}
	return rawjson.Splice(make([]byte, 0, len(req.Raw)+len(extra)+len(t.UpstreamModel)+64), req.Raw, b.edits), nil
}

type builder struct {
	raw   []byte
	cut   rawjson.Remover
	edits []rawjson.Edit
}

func (b *builder) replace(v gjson.Result, with []byte) {
	b.edits = append(b.edits, rawjson.Replace(v, with))
}

func (b *builder) setStream(v gjson.Result, stream bool) {
	switch {
	case stream && v.Type != gjson.True:
		b.replace(v, []byte("true"))
	case !stream && v.Type == gjson.True:
		b.replace(v, []byte("false"))
	}
}

// setOptions asks for usage within the options that a caller gave.
func (b *builder) setOptions(v gjson.Result) {
	if !v.IsObject() {
		b.replace(v, []byte(`{"include_usage":true}`))
		return
	}
	found, any := false, false
	v.ForEach(func(key, v gjson.Result) bool {
		any = true
		if key.Str == "include_usage" {
			found = true
			if v.Type != gjson.True {
				b.replace(v, []byte("true"))
			}
		}
		return true
	})
	if found {
		return
	}
	with := []byte(`"include_usage":true`)
	if any {
		with = append(with, ',')
	}
	b.edits = append(b.edits, rawjson.Edit{Start: v.Index + 1, End: v.Index + 1, With: with})
}
