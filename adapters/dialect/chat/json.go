package chat

import (
	"bytes"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
)

// parse reads a JSON object without copying it. The result shares b's memory and
// must not outlive it.
func parse(b []byte) (gjson.Result, bool) {
	if !shallow(b) || !gjson.ValidBytes(b) {
		return gjson.Result{}, false
	}
	r := view(b)
	return r, r.IsObject()
}

// view is what parse gives, for bytes that have been through it.
func view(b []byte) gjson.Result { return gjson.Parse(unsafe.String(unsafe.SliceData(b), len(b))) }

// shallow reports whether b nests no deeper than maxDepth. gjson recurses, so a
// body of brackets alone would otherwise end the process with a stack overflow
// that nothing can recover.
func shallow(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		case '"':
			n := bytes.IndexByte(b[i+1:], '"')
			for n >= 0 && escaped(b[i+1:i+1+n]) {
				next := bytes.IndexByte(b[i+2+n:], '"')
				if next < 0 {
					return true
				}
				n += next + 1
			}
			if n < 0 {
				return true
			}
			i += n + 1
		}
	}
	return true
}

// escaped reports whether what follows s is escaped: s ends in an odd number of
// backslashes.
func escaped(s []byte) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// end is where a value ends in the document that it was read from.
func end(v gjson.Result) int { return v.Index + len(v.Raw) }

// isNull also takes a member that is not there.
func isNull(v gjson.Result) bool { return v.Type == gjson.Null }

// inner is the inside of a JSON string, escapes and all.
func inner(doc []byte, v gjson.Result) []byte { return doc[v.Index+1 : end(v)-1] }

// quote writes s as a JSON string. encoding/json would escape <, > and &, which
// are common in model names of no one and in texts of everyone.
func quote(s string) []byte {
	dst := append(make([]byte, 0, len(s)+2), '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20 || r == 0x7f:
			dst = append(dst, `\u00`...)
			dst = append(dst, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// edit replaces doc[start:end].
type edit struct {
	start, end int
	with       []byte
}

// splice appends doc with its edits, which are in order and do not overlap.
func splice(dst, doc []byte, edits []edit) []byte {
	at := 0
	for _, e := range edits {
		dst = append(dst, doc[at:e.start]...)
		dst = append(dst, e.with...)
		at = e.end
	}
	return append(dst, doc[at:]...)
}

// remover cuts members out of one object, commas included. Members are shown to it
// in order: each either goes or stays.
type remover struct {
	doc  []byte
	kept bool
	last int
}

// stay passes a member by.
func (r *remover) stay(value gjson.Result) { r.kept, r.last = true, end(value) }

// cut is the edit that takes a member away: with the comma before it, or, while
// nothing has stayed, with the one after it.
func (r *remover) cut(key, value gjson.Result) edit {
	if r.kept {
		e := edit{start: r.last, end: end(value)}
		r.last = e.end
		return e
	}
	e := edit{start: key.Index, end: end(value)}
	i := e.end
	for i < len(r.doc) && isSpace(r.doc[i]) {
		i++
	}
	if i < len(r.doc) && r.doc[i] == ',' {
		e.end = i + 1
	}
	return e
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// integer reads a count. Providers write some as 12.0.
func integer(v gjson.Result) (int64, bool) {
	if v.Type != gjson.Number {
		return 0, false
	}
	if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil {
		return n, true
	}
	if v.Num != float64(int64(v.Num)) || v.Num > 1<<53 || v.Num < -(1<<53) {
		return 0, false
	}
	return int64(v.Num), true
}

// text is a string's decoded content: a view of the document, or unescaped at the
// end of arena, which is returned longer.
func text(arena, doc []byte, v gjson.Result) (decoded, longer []byte) {
	raw := inner(doc, v)
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, arena
	}
	from := len(arena)
	arena = dialect.AppendUnescaped(arena, raw)
	return arena[from:len(arena):len(arena)], arena
}
