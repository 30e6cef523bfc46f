package adminapi_test

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
)

// A key is shown once, opens what its scope says at once, and closes for good; its
// actor is in the log of what it did (Z3, Z7).
func TestKeys_Z3_Z7(t *testing.T) {
	s := start(t)
	created := do(t, s, 201, "POST", "/tenants/acme/keys", "", `{"scopes":["admin"],"expires_at":"2099-01-01T00:00:00Z"}`)
	id, key := strings.Trim(created.Field("id"), `"`), strings.Trim(created.Field("key"), `"`)
	if created.Header.Get("Cache-Control") != "no-store" {
		t.Error("a key may be stored on its way")
	}
	for _, path := range []string{"/tenants/acme/keys", "/tenants/acme/keys/" + id, "/events?limit=1000"} {
		body := string(do(t, s, 200, "GET", path, "", "").Body)
		mentions(t, body, key[:16])
		if strings.Contains(body, key) || strings.Contains(body, "hash") {
			t.Errorf("%s shows a key or its hash: %s", path, body)
		}
	}

	edit, err := s.Do(adminapitest.Ask{Method: "PUT", Path: "/tenants/other", Key: key, Body: `{}`})
	if err != nil || edit.Status != 201 {
		t.Fatalf("an admin key: %d %s %v", edit.Status, edit.Body, err)
	}
	if last := s.Log.Events[len(s.Log.Events)-1]; last.Meta.Actor != "admin-key/"+id || last.Meta.Worker != "w1" {
		t.Errorf("written by %+v", last.Meta)
	}
	// It is acme's: another organization's list does not have it.
	do(t, s, 404, "GET", "/tenants/other/keys/"+id, "", "")
	do(t, s, 404, "DELETE", "/tenants/other/keys/"+id, "", "")
	do(t, s, 404, "POST", "/tenants/nobody/keys", "", "")
	do(t, s, 404, "GET", "/tenants/nobody/keys", "", "")

	do(t, s, 409, "DELETE", "/tenants/acme/keys/"+id, "7", "")
	revoked := do(t, s, 200, "DELETE", "/tenants/acme/keys/"+id, "", "")
	check(t, revoked, "state", `"revoked"`)
	do(t, s, 200, "DELETE", "/tenants/acme/keys/"+id, "", "")
	if after, err := s.Do(adminapitest.Ask{Method: "GET", Path: "/snapshot", Key: key}); err != nil || after.Status != 401 {
		t.Errorf("a revoked key: %d %v", after.Status, err)
	}
	plain := do(t, s, 201, "PUT", "/tenants/acme/keys", "", "")
	check(t, plain, "scopes", `["inference","read"]`)
}
