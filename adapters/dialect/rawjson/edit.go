package rawjson

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// Edit replaces doc[Start:End].
type Edit struct {
	Start, End int
	With       []byte
}

// Replace is the edit that puts another value in a value's place.
func Replace(v gjson.Result, with []byte) Edit {
	return Edit{Start: v.Index, End: End(v), With: with}
}

// Insert is the edit that adds members, written without a leading comma, at the end
// of an object.
func Insert(doc []byte, object gjson.Result, members []byte) Edit {
	at := object.Index + strings.LastIndexByte(object.Raw, '}')
	inside := bytes.TrimSpace(doc[object.Index+1 : at])
	if len(inside) > 0 {
		members = append([]byte{','}, members...)
	}
	return Edit{Start: at, End: at, With: members}
}

// Splice appends doc with its edits, which are in order and do not overlap.
func Splice(dst, doc []byte, edits []Edit) []byte {
	at := 0
	for _, e := range edits {
		dst = append(dst, doc[at:e.Start]...)
		dst = append(dst, e.With...)
		at = e.End
	}
	return append(dst, doc[at:]...)
}

// Remover cuts members out of one object, or elements out of one array, commas
// included. They are shown to it in order: each either goes or stays.
type Remover struct {
	Doc  []byte
	kept bool
	last int
}

// Stay passes a member by.
func (r *Remover) Stay(value gjson.Result) { r.kept, r.last = true, End(value) }

// Cut is the edit that takes a member away: with the comma before it, or, while
// nothing has stayed, with the one after it. For an element, key is the element.
func (r *Remover) Cut(key, value gjson.Result) Edit {
	if r.kept {
		e := Edit{Start: r.last, End: End(value)}
		r.last = e.End
		return e
	}
	e := Edit{Start: key.Index, End: End(value)}
	i := e.End
	for i < len(r.Doc) && isSpace(r.Doc[i]) {
		i++
	}
	if i < len(r.Doc) && r.Doc[i] == ',' {
		e.End = i + 1
	}
	return e
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
