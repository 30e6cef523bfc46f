package dialect

import (
	"strings"
	"unicode/utf8"
)

// MaxRelay bounds each text of a provider that is passed to the caller, in bytes (D7).
const MaxRelay = 4 << 10

// Clip cuts a provider's text at MaxRelay bytes, between characters. What it returns
// is a copy: the body that s is a view of may be used again.
func Clip(s string) string {
	if len(s) > MaxRelay {
		cut := MaxRelay
		for cut > MaxRelay-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return strings.ToValidUTF8(strings.Clone(s), "\uFFFD")
}
