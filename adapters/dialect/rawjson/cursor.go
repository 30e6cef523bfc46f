package rawjson

import (
	"bytes"

	"github.com/sluice-gateway/sluice/adapters/dialect"
)

// Cursor walks a document from its beginning to its end and looks at each byte once,
// where reading it level by level looks at the innermost text as often as it is deep.
// The document must be one that Parse took.
type Cursor struct {
	doc []byte
	at  int
}

// NewCursor stands before the document's value.
func NewCursor(doc []byte) Cursor {
	c := Cursor{doc: doc}
	c.space()
	return c
}

func (c *Cursor) space() {
	for c.at < len(c.doc) && isSpace(c.doc[c.at]) {
		c.at++
	}
}

// Kind is the first byte of the value ahead, which tells its kind: one of {["tfn-0123456789, or 0
// at the end.
func (c *Cursor) Kind() byte {
	if c.at >= len(c.doc) {
		return 0
	}
	return c.doc[c.at]
}

// Members calls each with every key of the object ahead, standing before the key's
// value, which each reads or leaves. A value that is no object is passed by. It stops
// where each returns false: the cursor is of no use then.
func (c *Cursor) Members(each func(key []byte) bool) bool {
	if c.Kind() != '{' {
		c.Skip()
		return true
	}
	return c.inside('}', func() bool {
		key := c.Skip()
		key = key[1 : len(key)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = dialect.AppendUnescaped(nil, key)
		}
		c.space()
		c.at++ // the colon
		c.space()
		return c.one(func() bool { return each(key) })
	})
}

// Elements calls each before every element of the array ahead, as Members does.
func (c *Cursor) Elements(each func() bool) bool {
	if c.Kind() != '[' {
		c.Skip()
		return true
	}
	return c.inside(']', func() bool { return c.one(each) })
}

// one passes the value by that each has left.
func (c *Cursor) one(each func() bool) bool {
	before := c.at
	if !each() {
		return false
	}
	if c.at == before {
		c.Skip()
	}
	return true
}

// inside goes from the opening bracket ahead past its closing one.
func (c *Cursor) inside(closing byte, each func() bool) bool {
	c.at++
	for {
		c.space()
		switch c.Kind() {
		case closing:
			c.at++
			return true
		case ',':
			c.at++
			c.space()
		case 0:
			return true
		}
		if !each() {
			return false
		}
	}
}

// Skip passes the value ahead by and returns it as it stands.
func (c *Cursor) Skip() []byte {
	from := c.at
	switch c.Kind() {
	case '"':
		c.str()
	case '{', '[':
		c.nested()
	default:
		for c.at < len(c.doc) && !isEnd(c.doc[c.at]) {
			c.at++
		}
	}
	return c.doc[from:c.at]
}

func isEnd(b byte) bool { return b == ',' || b == '}' || b == ']' || isSpace(b) }

// str passes a string by.
func (c *Cursor) str() {
	n := closing(c.doc[c.at+1:])
	if n < 0 {
		c.at = len(c.doc)
		return
	}
	c.at += n + 2
}

// nested passes an object or an array by.
func (c *Cursor) nested() {
	depth := 0
	for c.at < len(c.doc) {
		switch c.doc[c.at] {
		case '"':
			c.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.at++
		if depth == 0 {
			return
		}
	}
}

// Unquoted is the content of a string that Skip returned: a view, or unescaped at the
// end of arena, which is returned longer.
func Unquoted(arena, quoted []byte) (decoded, longer []byte) {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, arena
	}
	from := len(arena)
	arena = dialect.AppendUnescaped(arena, raw)
	return arena[from:len(arena):len(arena)], arena
}
