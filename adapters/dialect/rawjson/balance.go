package rawjson

import "bytes"

// Balance follows the nesting of a JSON text that comes in pieces. It is no parser:
// a model that writes bad arguments is the caller's to judge, one that was
// interrupted is ours to notice. The zero value is before the first piece.
type Balance struct {
	depth    int
	inString bool
	escaped  bool
}

// Add takes the next piece.
func (b *Balance) Add(s []byte) {
	for len(s) > 0 {
		if b.escaped {
			b.escaped, s = false, s[1:]
			continue
		}
		marks := `"{}[]`
		if b.inString {
			marks = `"\`
		}
		at := bytes.IndexAny(s, marks)
		if at < 0 {
			return
		}
		switch s[at] {
		case '\\':
			b.escaped = true
		case '"':
			b.inString = !b.inString
		case '{', '[':
			b.depth++
		default:
			b.depth--
		}
		s = s[at+1:]
	}
}

// Open reports whether the text so far cannot be the whole of one.
func (b *Balance) Open() bool { return b.depth > 0 || b.inString }
