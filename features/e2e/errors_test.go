package e2e_test

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// checkError holds an error to the shape that the dialect's clients read.
func checkError(t *testing.T, reply harness.Reply, status int, code string) {
	t.Helper()
	if reply.Status != status || reply.Get("error.code").String() != code {
		t.Errorf("want %d %s, got %s", status, code, reply)
	}
	for _, member := range []string{"message", "type", "param", "code", "request_id", "retryable"} {
		if !reply.Get("error." + member).Exists() {
			t.Errorf("no error.%s in %s", member, reply.Body)
		}
	}
	id := reply.Header.Get("X-Request-Id")
	if id == "" || id != reply.Header.Get("Request-Id") || id != reply.Get("error.request_id").String() {
		t.Errorf("the ids differ or are absent: %s", reply)
	}
	if retry := reply.Header.Get("X-Should-Retry"); retry != "" && retry != reply.Get("error.retryable").String() {
		t.Errorf("x-should-retry says %s: %s", retry, reply.Body)
	}
}

// TestBadRequestsAreRefusedAndNobodyIsCalled_W3: each gets its code, and no
// provider hears of it.
//
// Rules: W3.
func TestBadRequestsAreRefusedAndNobodyIsCalled_W3(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	deep := `{"model":"m","messages":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"empty":             {"", 400, "invalid_request"},
		"not JSON":          {"{", 400, "invalid_request"},
		"not an object":     {"[]", 400, "invalid_request"},
		"over-deep":         {deep, 400, "invalid_request"},
		"no messages":       {`{"model":"m"}`, 400, "invalid_request"},
		"wrong type":        {`{"model":"m","messages":"hello"}`, 400, "invalid_request"},
		"model of no name":  {`{"model":7,"messages":[{"role":"user","content":"x"}]}`, 400, "invalid_request"},
		"unknown model":     {harness.ChatBody("nothing", "hello", nil), 404, "model_not_found"},
		"endless model":     {harness.ChatBody(strings.Repeat("m", 2<<20), "hello", nil), 400, "invalid_request"},
		"over 32 MiB":       {harness.ChatBody("m", strings.Repeat("x", 32<<20), nil), 413, "request_too_large"},
		"null bytes":        {harness.ChatBody("m", "x", nil) + "\x00", 400, "invalid_request"},
		"invalid UTF-8":     {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", 400, "invalid_request"},
		"two documents":     {harness.ChatBody("m", "x", nil) + "{}", 400, "invalid_request"},
		"content of number": {`{"model":"m","messages":[{"role":"user","content":7}]}`, 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := s.client.Do(t, "POST", harness.ChatPath, c.body)
			checkError(t, reply, c.status, c.code)
			if got := reply.Header.Get("X-Should-Retry"); got != "false" {
				t.Errorf("x-should-retry: %q", got)
			}
		})
	}
	checkError(t, s.client.Get(t, "/v1/nothing"), 404, "invalid_request")
	if n := s.calls(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestCompressedBodyIsRead_Z5: gzip is read, also where it unpacks past the limit.
//
// Rules: Z5.
func TestCompressedBodyIsRead_Z5(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	ask := func(body string) harness.Reply {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte(body))
		_ = w.Close()
		return s.client.Do(t, "POST", harness.ChatPath, packed.String(), "Content-Encoding", "gzip")
	}
	if reply := ask(harness.ChatBody("m", "hello", nil)); reply.Status != 200 {
		t.Errorf("%s", reply)
	}
	checkError(t, ask(harness.ChatBody("m", strings.Repeat("x", 33<<20), nil)), 413, "request_too_large")
	if n := s.calls(); n != 1 {
		t.Errorf("%d calls were made", n)
	}
}

// TestUpstreamFailuresSayWhenToComeBack_P11: a walk that was spent tells what was
// tried; waits are sent in both forms and agree.
//
// Rules: P11.
func TestUpstreamFailuresSayWhenToComeBack_P11(t *testing.T) {
	s := newScene(t, map[string][]string{"down": {"a/fake-500", "b/fake-500"}, "busy": {"a/fake-429:7"}})
	down := s.client.Chat(t, "down", "hello")
	checkError(t, down, 502, "upstream_exhausted")
	if n := down.Get("error.attempts.#").Int(); n < 2 || down.Get("error.attempts.0.failure").String() != "server_error" {
		t.Errorf("attempts: %s", down.Body)
	}
	busy := s.client.Chat(t, "busy", "hello")
	if busy.Status != 429 && busy.Status != 502 {
		t.Fatalf("%s", busy)
	}
	checkRetryAfter(t, busy)
}

// checkRetryAfter: whole seconds, rounded up from the milliseconds, at most 60 s.
func checkRetryAfter(t *testing.T, reply harness.Reply) {
	t.Helper()
	seconds, err := strconv.Atoi(reply.Header.Get("Retry-After"))
	ms, errMS := strconv.Atoi(reply.Header.Get("Retry-After-Ms"))
	if err != nil || errMS != nil || seconds < 1 || seconds > 60 || seconds != (ms+999)/1000 {
		t.Errorf("retry-after %q and retry-after-ms %q: %s", reply.Header.Get("Retry-After"), reply.Header.Get("Retry-After-Ms"), reply)
	}
}

// TestEveryReplyHasAnID_P11: also those that are about requests and none themselves.
//
// Rules: P11.
func TestEveryReplyHasAnID_P11(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	asked := s.client.Chat(t, "m", "hello")
	ids := map[string]bool{asked.ID(): true}
	for _, path := range []string{
		"/v1/models", "/v1/models/m", "/v1/models/nothing", "/v1/requests", "/v1/requests?limit=x",
		"/v1/requests/" + asked.ID(), "/v1/requests/" + asked.ID() + "/trail", "/v1/health", "/nothing",
	} {
		reply := s.client.Get(t, path)
		if reply.ID() == "" || reply.ID() != reply.Header.Get("Request-Id") || ids[reply.ID()] {
			t.Errorf("%s: x-request-id %q, request-id %q", path, reply.ID(), reply.Header.Get("Request-Id"))
		}
		ids[reply.ID()] = true
	}
}
