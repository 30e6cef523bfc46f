package rawjson

// Balance follows the nesting of a JSON text that comes in pieces. It is no parser:
// a model that writes bad arguments is the caller's to judge, one that was
// interrupted is ours to notice. The zero value is before the first piece.
type Balance struct {
	depth    int
	inString bool
	escaped  bool
}

// Add takes the next piece. Pieces are short, and searching for the next mark is the
// slower way through them.
func (b *Balance) Add(s []byte) {
	for _, c := range s {
		switch {
		case b.escaped:
			b.escaped = false
		case b.inString:
			switch c {
			case '\\':
				b.escaped = true
			case '"':
				b.inString = false
			}
		case c == '"':
			b.inString = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
		}
	}
}

// Open reports whether the text so far cannot be the whole of one.
func (b *Balance) Open() bool { return b.depth > 0 || b.inString }
