package api

import (
	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/http/auth"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// authenticate finds the caller's key in the snapshot: no database is asked on the
// way of a request (A1). An unknown, revoked or expired key reads the same.
func (a *API) authenticate(s *catalog.Snapshot, r *edge.Request) (*catalog.Key, *apierror.Error) {
	sent := auth.Sent(r.Header)
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

func forbidden(scope catalog.Scope) *apierror.Error {
	e := apierror.New(apierror.Forbidden)
	e.Message = "The API key lacks the scope \"" + string(scope) + "\"."
	return e
}
