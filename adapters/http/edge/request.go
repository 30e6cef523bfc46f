package edge

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

var methods = []string{
	http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace,
}

// knownMethod is the method as a constant, "" for one that is not HTTP's.
func knownMethod(b []byte) string {
	for _, m := range methods {
		if string(b) == m {
			return m
		}
	}
	return ""
}

// copyHead copies everything but the body out of fasthttp's buffers. It fails on
// a header that others could read differently; the Request then has what was
// copied before.
func copyHead(fctx *fasthttp.RequestCtx) (*Request, bool) {
	r := &Request{
		Method:     knownMethod(fctx.Method()),
		Path:       string(fctx.URI().PathOriginal()),
		RemoteAddr: fctx.Conn().(*conn).remote,
		At:         fctx.Time(),
	}
	if q := fctx.URI().QueryString(); len(q) > 0 {
		r.Query, _ = url.ParseQuery(string(q))
	}
	h, ok := parseHeader(string(fctx.Request.Header.RawHeaders()))
	r.Header = h
	return r, ok && unambiguousLength(h)
}

// parseHeader parses the raw lines instead of asking fasthttp for its view of
// them: that one has lost all but the last of a repeated Content-Length,
// Content-Type or Host. Keys and values share raw's memory, one copy for all.
func parseHeader(raw string) (http.Header, bool) {
	n := strings.Count(raw, "\n")
	h := make(http.Header, n)
	values := make([]string, 0, n)
	for line := range strings.SplitSeq(raw, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || key == "" || strings.ContainsAny(key, " \t") { // folded lines too
			return h, false
		}
		key = textproto.CanonicalMIMEHeaderKey(key)
		value = strings.Trim(value, " \t")
		if have := h[key]; have != nil {
			h[key] = append(have, value)
			continue
		}
		values = append(values, value)
		h[key] = values[len(values)-1 : len(values) : len(values)]
	}
	return h, true
}

// unambiguousLength refuses what request smuggling needs: a body whose length a
// proxy before us may have read differently.
func unambiguousLength(h http.Header) bool {
	length, coding := h["Content-Length"], h["Transfer-Encoding"]
	switch {
	case len(length) > 1, len(coding) > 1, len(length) > 0 && len(coding) > 0:
		return false
	case len(coding) == 1:
		return strings.EqualFold(coding[0], "chunked")
	}
	return true
}

// fiberPath translates a net/http pattern into fiber's, and names the values in
// the order in which fiber counts them.
func fiberPath(pattern string) (path string, names []string) {
	var b strings.Builder
	for rest := pattern; rest != ""; {
		literal, tail, found := strings.Cut(rest, "{")
		for _, c := range literal {
			if strings.ContainsRune(`:*+?<>;()\`, c) {
				b.WriteByte('\\')
			}
			b.WriteRune(c)
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(tail, "}")
		name, greedy := strings.CutSuffix(name, "...")
		if !closed || name == "" || greedy && after != "" || slices.Contains(names, name) {
			panic("edge: bad pattern " + pattern)
		}
		names = append(names, name)
		if greedy {
			b.WriteByte('+')
		} else {
			b.WriteString(":" + name)
		}
		rest = after
	}
	return b.String(), names
}

// copyParams copies the path values. They are decoded here and not by fiber, so
// that an escaped slash stays inside its value.
func copyParams(fc *fiber.Ctx, names []string) map[string]string {
	if len(names) == 0 {
		return nil
	}
	params := make(map[string]string, len(names))
	for i, key := range fc.Route().Params {
		value := fc.Params(key)
		decoded, err := url.PathUnescape(value)
		if err != nil {
			decoded = value
		}
		params[names[i]] = strings.Clone(decoded)
	}
	return params
}
