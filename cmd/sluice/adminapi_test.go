package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

// The admin API of a real worker, on a real log: an edit is served at once, and
// what the worker knows can be asked for (C11, E4, X1).
func TestAdminAPI_C11_E4_X1(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	key := configure(t, fake.URL()+"/v1")
	const admin = "the-bootstrap-key-of-a-test"
	t.Setenv("SLUICE_ADMIN_KEY", admin)
	s := serve(t)
	base := s.admin + "/admin/v1"
	ask := func(want int, method, path, body string) string {
		t.Helper()
		status, text := do(t, method, base+path, admin, body)
		if status != want {
			t.Fatalf("%s %s: %d %s", method, path, status, text)
		}
		return text
	}

	if status, _ := get(t, base+"/snapshot", key); status != http.StatusForbidden {
		t.Errorf("a caller's key: %d", status)
	}
	if status, text := get(t, base+"/nonsense", admin); status != http.StatusNotFound || !strings.Contains(text, `"not_found"`) {
		t.Errorf("no such path: %d %s", status, text)
	}

	// An alias that is made while the worker serves is there for the next request.
	ask(http.StatusCreated, "PUT", "/tenants/acme/aliases/mine", `{"pin":"m"}`)
	reply, err := post(s.public+"/v1/chat/completions", key, strings.Replace(hello, `"m"`, `"mine"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("the alias is not served: %d", reply.StatusCode)
	}
	id := reply.Header.Get("X-Request-Id")
	if text := ask(http.StatusOK, "GET", "/requests/"+id+"/trail", ""); !strings.Contains(text, "attempt_settled") {
		t.Errorf("trail %s", text)
	}
	eventually(t, "the request is in the list", func() bool {
		return strings.Contains(ask(http.StatusOK, "GET", "/requests?tenant=acme", ""), id)
	})
	if text := ask(http.StatusOK, "GET", "/events?type=request_finalized", ""); !strings.Contains(text, "request/"+id) {
		t.Errorf("events %s", text)
	}
	if out := must(t, "history", "alias/acme/mine"); !strings.Contains(out, "bootstrap") {
		t.Errorf("history says %s", out)
	}

	ask(http.StatusAccepted, "POST", "/projections/requests/rebuild", "")
	eventually(t, "the rebuild is done", func() bool {
		return strings.Contains(ask(http.StatusOK, "GET", "/projections", ""), `"state":"done"`)
	})
	for _, path := range []string{"/snapshot", "/circuits", "/models", "/tenants/acme/keys"} {
		ask(http.StatusOK, "GET", path, "")
	}
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, s.stderr)
	}
}
