package e2e_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestEveryKeyHeaderIsRead_A1: each vendor's clients put the key elsewhere.
//
// Rules: A1.
func TestEveryKeyHeaderIsRead_A1(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	key, bare := s.client.Key, s.worker.Client("")
	for _, header := range []string{"x-api-key", "api-key", "x-goog-api-key", "Authorization"} {
		value := key
		if header == "Authorization" {
			value = "Bearer " + key
		}
		if reply := bare.Chat(t, "m", "hello", header, value); reply.Status != 200 {
			t.Errorf("%s: %s", header, reply)
		}
	}
	reply := bare.Do(t, "POST", "/openai"+harness.ChatPath, harness.ChatBody("m", "hello", nil), "api-key", key)
	if reply.Status != 200 {
		t.Errorf("/openai: %s", reply)
	}
}

// TestKeysThatAreRefused_A2_Z3: absent, unknown and revoked read the same 401; a
// scope that is missing is a 403. Nobody is called.
//
// Rules: A2, Z3.
func TestKeysThatAreRefused_A2_Z3(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	id, revoked := s.NewKey(t, "acme")
	reader := s.Key(t, "acme", "read")
	inference := s.Key(t, "acme", "inference")
	for _, key := range []string{revoked, reader, inference} {
		harness.Eventually(t, "a new key is known", func() bool {
			return s.worker.Client(key).Get(t, "/v1/models").Status != 401
		})
	}
	s.Must(t, "keys", "revoke", id)
	harness.Eventually(t, "the revoked key is refused", func() bool {
		return s.worker.Client(revoked).Get(t, "/v1/models").Status == 401
	})
	for name, c := range map[string]struct {
		key, path string
		status    int
		code      string
	}{
		"absent":            {"", harness.ChatPath, 401, "invalid_api_key"},
		"unknown":           {"sk-sluice-nobody", harness.ChatPath, 401, "invalid_api_key"},
		"revoked":           {revoked, harness.ChatPath, 401, "invalid_api_key"},
		"no inference":      {reader, harness.ChatPath, 403, "forbidden"},
		"no read":           {inference, "/v1/requests", 403, "forbidden"},
		"no read of trails": {inference, "/v1/requests/01a22987-1698-7b92-af67-2c5cfb464bf3/trail", 403, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			method, body := "GET", ""
			if c.path == harness.ChatPath {
				method, body = "POST", harness.ChatBody("m", "hello", nil)
			}
			reply := s.worker.Client(c.key).Do(t, method, c.path, body)
			checkError(t, reply, c.status, c.code)
			if got := reply.Header.Get("X-Should-Retry"); got != "false" {
				t.Errorf("x-should-retry: %q", got)
			}
		})
	}
	if n := s.calls(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestAnotherTenantsRequestIsNotThere_Z6: reading it is the same as reading one
// that never was.
//
// Rules: Z6.
func TestAnotherTenantsRequestIsNotThere_Z6(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	stranger := s.worker.Client(s.Key(t, "umbrella"))
	mine := s.client.Chat(t, "m", "hello")
	harness.Eventually(t, "the stranger's key is known", func() bool {
		return stranger.Get(t, "/v1/requests").Status == 200
	})
	harness.Eventually(t, "the search knows the request", func() bool {
		return s.client.Get(t, "/v1/requests").Get("data.0.id").String() == mine.ID()
	})
	for _, path := range []string{"/v1/requests/" + mine.ID(), "/v1/requests/" + mine.ID() + "/trail"} {
		reply := stranger.Get(t, path)
		if reply.Status != 404 {
			t.Errorf("%s: %s", path, reply)
		}
		never := stranger.Get(t, "/v1/requests/01a22987-1698-7b92-af67-2c5cfb464bf3")
		if got, want := reply.Get("error.message").String(), never.Get("error.message").String(); got != want {
			t.Errorf("%s: %q, for one that never was: %q", path, got, want)
		}
	}
	if n := stranger.Get(t, "/v1/requests").Get("data.#").Int(); n != 0 {
		t.Errorf("the stranger finds %d requests", n)
	}
}
