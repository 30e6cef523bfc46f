package converse

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect"
)

// userAgent is how we name ourselves upstream.
const userAgent = "sluice"

var (
	// errBaseURL is a base URL that is no http(s) URL.
	errBaseURL = errors.New("converse: base URL is not an absolute http or https URL")
	// errRegion is a target whose address or signature needs a region that nobody gave.
	errRegion = errors.New("converse: no region")
	// errNoNeutral is a request that cannot be said in any dialect but its own.
	errNoNeutral = errors.New("converse: the request has no neutral form")
)

// Build says a request for one target and signs it. The body follows from the request
// and the target alone (P12); the signature from the body, the address and the time.
func (Outbound) Build(req *dialect.Request, t dialect.Target) (*dialect.Upstream, error) {
	base, err := address(t)
	if err != nil {
		return nil, err
	}
	if req.Neutral == nil {
		return nil, errNoNeutral
	}
	in, err := req.Neutral()
	if err != nil {
		return nil, err
	}
	operation := "/converse"
	if t.Stream {
		operation = "/converse-stream"
	}
	up := &dialect.Upstream{
		Method: http.MethodPost,
		URL:    strings.TrimRight(base.String(), "/") + "/model/" + segment(t.UpstreamModel) + operation,
		Header: header(t),
		Body:   render(in, t, betaFlags(req, t)),
	}
	return up, authorize(up, t, base.Hostname())
}

// address is the base URL: the configured one, or the region's public endpoint.
func address(t dialect.Target) (*url.URL, error) {
	if t.BaseURL == "" {
		if t.Region == "" {
			return nil, errRegion
		}
		host := "bedrock-runtime." + t.Region + ".amazonaws.com"
		if strings.HasPrefix(t.Region, "cn-") {
			host += ".cn"
		}
		return &url.URL{Scheme: "https", Host: host}, nil
	}
	base, err := url.Parse(t.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, errBaseURL
	}
	// The signature is over the host without a default port, and net/http would send it
	// with the port.
	base.Host = strings.TrimSuffix(base.Host, map[string]string{"https": ":443", "http": ":80"}[base.Scheme])
	return base, nil
}

// segment escapes a model's id, which may be an ARN with slashes, as the vendor's own
// SDK does: everything but unreserved characters. Signature and server have to agree
// on the path byte by byte.
func segment(model string) string {
	return strings.ReplaceAll(url.QueryEscape(model), "+", "%20")
}

// header is all that goes upstream but the signature. Nothing comes from the caller
// (Z4); the protocol knows no idempotency key.
func header(t dialect.Target) http.Header {
	h := http.Header{
		"Content-Type": {contentType},
		"Accept":       {contentType},
		"User-Agent":   {userAgent},
		// A compressed stream is held back until its block is full.
		"Accept-Encoding": {"identity"},
	}
	if t.Stream {
		h.Set("Accept", "application/vnd.amazon.eventstream")
	}
	return h
}
