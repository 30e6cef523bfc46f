package dialect

import "strings"

// DataURL reads data:TYPE;base64,DATA. ok is false for anything else, and for data
// that is no standard base64. What it returns are views of s: a picture is not
// copied.
func DataURL(s string) (mediaType, data string, ok bool) {
	rest, found := strings.CutPrefix(s, "data:")
	if !found {
		return "", "", false
	}
	head, data, found := strings.Cut(rest, ",")
	if !found {
		return "", "", false
	}
	mediaType, found = strings.CutSuffix(head, ";base64")
	if !found || !IsBase64(data) {
		return "", "", false
	}
	// Parameters such as charset mean nothing to a destination that takes a type.
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return mediaType, data, true
}

// IsBase64 reports whether s is standard base64, padded or not. A provider that
// finds out later would blame the whole request without naming the field.
func IsBase64(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		if c := s[i]; !base64Alphabet[c] {
			return false
		}
	}
	return s != "" && len(s)%4 != 1
}

var base64Alphabet = func() (is [256]bool) {
	for c := range len(is) {
		b := byte(c)
		is[c] = 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '+' || b == '/'
	}
	return is
}()
