// Package inbound is what reading a caller's body has in common in all dialects: how
// strict it is, what an error says, and where the prompt's text is.
package inbound

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

const (
	// MaxName bounds names that become keys of maps and columns of the log.
	MaxName = 256
	// maxCount is far above any real token count and keeps sums inside an int64.
	maxCount = 1 << 50
)

// Reader reads one body into a Request. The first failure stays; what is read after
// it does not matter.
type Reader struct {
	Req *dialect.Request
	// Err is an *dialect.InvalidError or nil.
	Err  error
	seen map[string]bool
}

// Open checks that a body can be read at all: UTF-8, not nested too deep, one JSON
// object.
func Open(body []byte) (gjson.Result, error) {
	if !utf8.Valid(body) {
		return gjson.Result{}, Invalid("", "The body is not valid UTF-8.")
	}
	if !rawjson.Shallow(body) {
		return gjson.Result{}, Invalid("", fmt.Sprintf("The body nests deeper than %d levels.", rawjson.MaxDepth))
	}
	doc, ok := rawjson.Parse(body)
	if !ok {
		return gjson.Result{}, Invalid("", "The body is not a valid JSON object.")
	}
	return doc, nil
}

// NewReader reads into req.
func NewReader(req *dialect.Request) Reader {
	return Reader{Req: req, seen: make(map[string]bool, 16)}
}

// Each reads a document's fields with what the dialect knows of them and lets all
// others be: what they mean is between the caller and the provider (P4). A known
// field that comes twice is refused, because two readers of the same bytes would not
// agree on which one counts. null is as good as absent.
func (r *Reader) Each(doc gjson.Result, known func(key string) func(gjson.Result)) {
	doc.ForEach(func(k, v gjson.Result) bool {
		key := k.Str
		read := known(key)
		switch {
		case read == nil:
		case r.seen[key]:
			r.Fail(key, "The field %s is given more than once.", key)
		default:
			r.seen[strings.Clone(key)] = true
			if !rawjson.IsNull(v) {
				read(v)
			}
		}
		return r.Err == nil
	})
}

// Invalid is a body that the dialect does not allow.
func Invalid(param, message string) *dialect.InvalidError {
	return &dialect.InvalidError{Message: message, Param: param}
}

// Fail notes what is wrong with a field, if nothing was wrong before.
func (r *Reader) Fail(param, format string, args ...any) {
	if r.Err == nil {
		r.Err = Invalid(param, fmt.Sprintf(format, args...))
	}
}

// Text is a string of the request's own: the body's memory may be used again by the
// server that read it.
func (r *Reader) Text(param string, v gjson.Result) string {
	if v.Type != gjson.String {
		r.Fail(param, "The field %s must be a string.", param)
		return ""
	}
	return strings.Clone(v.Str)
}

// Name is a text of at most MaxName bytes.
func (r *Reader) Name(param string, v gjson.Result) string {
	s := r.Text(param, v)
	if len(s) > MaxName {
		r.Fail(param, "The field %s is longer than %d bytes.", param, MaxName)
	}
	return s
}

// Boolean is true or false.
func (r *Reader) Boolean(param string, v gjson.Result) bool {
	if !v.IsBool() {
		r.Fail(param, "The field %s must be true or false.", param)
	}
	return v.Type == gjson.True
}

// Positive is a count from 1.
func (r *Reader) Positive(param string, v gjson.Result) int64 {
	n, ok := rawjson.Integer(v)
	if !ok || n < 1 || n > maxCount {
		r.Fail(param, "The field %s must be a positive integer.", param)
		return 0
	}
	return n
}

// JSON counts a value's own text, as it stands, as prompt text.
func (r *Reader) JSON(v gjson.Result) {
	if v.Exists() && v.Index > 0 {
		r.Req.Parts.Spans = append(r.Req.Parts.Spans, dialect.Span{Start: v.Index, End: rawjson.End(v)})
	}
}

// Prompt counts a string as prompt text.
func (r *Reader) Prompt(v gjson.Result) {
	if v.Type != gjson.String || v.Str == "" {
		return
	}
	s := dialect.Span{Start: v.Index + 1, End: rawjson.End(v) - 1}
	s.Escaped = bytes.IndexByte(r.Req.Raw[s.Start:s.End], '\\') >= 0
	r.Req.Parts.Spans = append(r.Req.Parts.Spans, s)
}
