package fakeprovider

import (
	"encoding/json"
	"strings"
)

// appendString appends s as a JSON string. Plain ASCII, nearly everything the
// server sends, is copied; the rest takes the library's way.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendStringOr appends s as a JSON string, or the literal when s is empty.
func appendStringOr(b []byte, s, literal string) []byte {
	if s == "" {
		return append(b, literal...)
	}
	return appendString(b, s)
}

// appendStringOrNull joins pieces into one string, or writes null for none.
func appendStringOrNull(b []byte, pieces []string) []byte {
	if len(pieces) == 0 {
		return append(b, "null"...)
	}
	return appendString(b, strings.Join(pieces, ""))
}

// appendComma separates the i-th element of a list from the one before.
func appendComma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}
