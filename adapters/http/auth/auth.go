// Package auth reads a caller's key from where clients put it.
package auth

import (
	"net/http"
	"strings"
)

// headers are the headers that vendors' clients put a key in, beside Authorization
// (A1). None of them ever goes upstream (Z4).
var headers = []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// Sent is the key that a request carries, empty for none.
func Sent(h http.Header) string {
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	for _, name := range headers {
		if key := h.Get(name); key != "" {
			return key
		}
	}
	return ""
}
