// Package rawjson reads JSON in place and edits it in place: what a dialect does
// not touch keeps its bytes, key order and spelling included (P4, P12). Values are
// views of the document that they were read from and must not outlive it.
package rawjson

import (
	"bytes"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// MaxDepth bounds nesting (Z5). The deepest thing in a request is a tool's JSON
// schema; readers below recurse, and so do providers'.
const MaxDepth = 64

// Parse reads a JSON object without copying it. The result shares b's memory and
// must not outlive it.
func Parse(b []byte) (gjson.Result, bool) {
	if !Shallow(b) || !gjson.ValidBytes(b) {
		return gjson.Result{}, false
	}
	r := View(b)
	return r, r.IsObject()
}

// View is what Parse gives, for bytes that have been through it.
func View(b []byte) gjson.Result {
	return gjson.Parse(unsafe.String(unsafe.SliceData(b), len(b)))
}

// Shallow reports whether b nests no deeper than MaxDepth. gjson recurses, so a
// body of brackets alone would otherwise end the process with a stack overflow
// that nothing can recover.
func Shallow(b []byte) bool {
	// Nearly every event of a stream has too few brackets to be deep.
	if bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) <= MaxDepth {
		return true
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return false
			}
		case '}', ']':
			depth--
		case '"':
			n := closing(b[i+1:])
			if n < 0 {
				return true
			}
			i += n + 1
		}
	}
	return true
}

// closing is where the string that s is inside of ends, or -1.
func closing(s []byte) int {
	at := 0
	for {
		n := bytes.IndexByte(s[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		backslashes := 0
		for backslashes < at && s[at-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return at
		}
		at++
	}
}

// End is where a value ends in the document that it was read from.
func End(v gjson.Result) int { return v.Index + len(v.Raw) }

// IsNull also takes a member that is not there.
func IsNull(v gjson.Result) bool { return v.Type == gjson.Null }

// Inner is the inside of a JSON string, escapes and all.
func Inner(doc []byte, v gjson.Result) []byte { return doc[v.Index+1 : End(v)-1] }

// Text is a string's decoded content: a view of the document, or unescaped at the
// end of arena, which is returned longer.
func Text(arena, doc []byte, v gjson.Result) (decoded, longer []byte) {
	raw := Inner(doc, v)
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, arena
	}
	from := len(arena)
	arena = dialect.AppendUnescaped(arena, raw)
	return arena[from:len(arena):len(arena)], arena
}

// AppendQuoted appends s as a JSON string. encoding/json would escape <, > and &,
// which are common in model names of no one and in texts of everyone. What is no
// UTF-8 becomes U+FFFD.
func AppendQuoted[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[plain:i]...)
				dst = append(dst, "\uFFFD"...)
				plain = i + 1
			}
			i += n
			continue
		case c == '"' || c == '\\':
			dst = append(dst, s[plain:i]...)
			dst = append(dst, '\\', c)
			plain = i + 1
		case c < 0x20 || c == 0x7f:
			dst = append(dst, s[plain:i]...)
			dst = appendControl(dst, c)
			plain = i + 1
		}
		i++
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

func appendControl(dst []byte, c byte) []byte {
	switch c {
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// Quote is s as a JSON string.
func Quote(s string) []byte { return AppendQuoted(make([]byte, 0, len(s)+2), s) }

// Integer reads a count. Some write 12.0.
func Integer(v gjson.Result) (int64, bool) {
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

// Count reads what a provider says that was used, and tells a number, null and nothing
// apart (M4). What is no count at all, negative, not whole or more than anything can use,
// reads as null: present and unknown (M6).
func Count(v gjson.Result) usage.Count {
	if !v.Exists() {
		return usage.Count{}
	}
	n, ok := Integer(v)
	if !ok || n < 0 || n > usage.MaxCount {
		return usage.Count{State: usage.Null}
	}
	return usage.Of(n)
}

// Member is one member of an object. Unlike gjson's Get it keeps the place in the
// document, and it takes no path.
func Member(object gjson.Result, name string) (found gjson.Result) {
	object.ForEach(func(key, v gjson.Result) bool {
		if key.Str == name {
			found = v
			return false
		}
		return true
	})
	return found
}

// Truthy tells an error from a member that only has its name.
func Truthy(v gjson.Result) bool {
	switch v.Type {
	case gjson.String:
		return v.Str != ""
	case gjson.JSON:
		return v.Raw != "{}" && v.Raw != "[]"
	default:
		return v.Type == gjson.True || v.Num != 0
	}
}
