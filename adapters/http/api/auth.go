package api

import (
	"net/http"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// keyHeaders are the headers that vendors' clients put a key in, beside
// Authorization (A1). None of them ever goes upstream (Z4).
var keyHeaders = []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// authenticate finds the caller's key in the snapshot: no database is asked on the
// way of a request (A1). An unknown, revoked or expired key reads the same.
func (a *API) authenticate(s *catalog.Snapshot, r *edge.Request) (*catalog.Key, *apierror.Error) {
	sent := sentKey(r.Header)
	if sent == "" {
		e := apierror.New(apierror.InvalidAPIKey)
		e.Message = "No API key was sent. Send it as \"Authorization: Bearer KEY\"."
		return nil, e
	}
	key, ok := s.KeyByHash(catalog.HashKey(sent))
	if !ok || !key.Usable(a.Now()) {
		return nil, apierror.New(apierror.InvalidAPIKey)
	}
	return key, nil
}

func sentKey(h http.Header) string {
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	for _, name := range keyHeaders {
		if key := h.Get(name); key != "" {
			return key
		}
	}
	return ""
}

func forbidden(scope catalog.Scope) *apierror.Error {
	e := apierror.New(apierror.Forbidden)
	e.Message = "The API key lacks the scope \"" + string(scope) + "\"."
	return e
}
