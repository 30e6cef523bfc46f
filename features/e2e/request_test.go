package e2e_test

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestOneRequestEndToEnd_X1_X4: what the reply's headers, the trail, the detail and
// the list say about a request that failed over once, and that they agree.
//
// Rules: X1, X4.
func TestOneRequestEndToEnd_X1_X4(t *testing.T) {
	for _, stream := range []bool{false, true} {
		name := map[bool]string{false: "whole", true: "stream"}[stream]
		t.Run(name, func(t *testing.T) {
			s := newScene(t, map[string][]string{"m": {"a/fake-503", "b/fake-words:5"}})
			body := harness.ChatBody("m", "hello", map[string]any{"stream": stream})
			reply := s.client.Do(t, "POST", harness.ChatPath, body, "x-request-id", "mine-1")
			if !reply.IsWhole() || len(strings.Fields(reply.Text())) != 5 {
				t.Fatalf("no whole answer: %s", reply)
			}
			checkReplyHeaders(t, reply, stream)
			trail := s.client.Trail(t, reply.ID())
			checkTrail(t, trail)
			checkDetail(t, s, reply, trail)
		})
	}
}

func checkReplyHeaders(t *testing.T, reply harness.Reply, stream bool) {
	t.Helper()
	want := map[string]string{
		// A bare 503 is tried once more where it happened, and then elsewhere.
		"X-Sluice-Attempts": "3", "X-Sluice-Fallback-Depth": "1", "X-Sluice-Provider": "b",
		"X-Sluice-Canonical-Model": "m", "X-Sluice-Fallback-Kind": "same_model", "Request-Id": reply.ID(),
	}
	if stream {
		want["Cache-Control"], want["X-Accel-Buffering"] = "no-cache", "no"
	}
	for header, value := range want {
		if got := reply.Header.Get(header); got != value {
			t.Errorf("%s: %q, want %q", header, got, value)
		}
	}
	if reply.ID() == "" || reply.ID() == "mine-1" {
		t.Errorf("x-request-id is %q: always ours", reply.ID())
	}
	if cost := reply.Header.Get("X-Sluice-Cost-Nanousd"); (cost == "") != stream {
		t.Errorf("cost is %q", cost)
	}
}

func checkTrail(t *testing.T, trail harness.Reply) {
	t.Helper()
	var events []string
	for _, e := range trail.Get("entries.#.event").Array() {
		events = append(events, e.String())
	}
	failed := "attempt_reserved attempt_failed attempt_settled reservation_released "
	want := "request_admitted " + failed + failed +
		"attempt_reserved attempt_committed attempt_settled request_finalized"
	if got := strings.Join(events, " "); got != want {
		t.Errorf("trail: %s\nwant:  %s\n%s", got, want, trail.Body)
	}
	for path, value := range map[string]string{
		"tenant": "acme", "requested_model": "m", "canonical_model": "m", "outcome": "completed",
		"attempts": "3", "fallback_depth": "1",
		`entries.#(event=="attempt_failed").failure`:                 "server_error",
		`entries.#(event=="attempt_failed").status`:                  "503",
		`entries.#(event=="attempt_failed").possibly_billed`:         "false",
		`entries.#(event=="attempt_settled")#|0.charge_nanousd`:      "0",
		`entries.#(event=="attempt_settled")#|2.basis`:               "reported",
		`entries.#(event=="attempt_settled")#|2.usage.output_tokens`: "5",
		`entries.#(event=="attempt_reserved")#|0.kind`:               "first",
		`entries.#(event=="attempt_reserved")#|0.provider`:           "a",
		`entries.#(event=="attempt_reserved")#|1.kind`:               "retry",
		`entries.#(event=="attempt_reserved")#|2.kind`:               "failover",
		`entries.#(event=="attempt_reserved")#|2.deployment`:         "m-1@b",
		`entries.#(event=="attempt_reserved")#|2.credential_owner`:   "operator",
		`entries.#(event=="attempt_committed").first_output`:         "text",
	} {
		if got := trail.Get(path).String(); got != value {
			t.Errorf("%s: %q, want %q", path, got, value)
		}
	}
	for i, seq := range trail.Get("entries.#.seq").Array() {
		if int(seq.Int()) != i+1 {
			t.Errorf("entry %d has seq %d", i+1, seq.Int())
		}
	}
}

// checkDetail reads the request back at once and finds it in the search as soon as
// that has caught up (X2).
func checkDetail(t *testing.T, s *scene, reply, trail harness.Reply) {
	t.Helper()
	detail := s.client.Get(t, "/v1/requests/"+reply.ID())
	settled := trail.Get(`entries.#(event=="attempt_settled")#|2`)
	for path, value := range map[string]string{
		"id": reply.ID(), "outcome": "completed", "requested_model": "m", "canonical_model": "m", "attempts": "3",
		"fallback_depth": "1", "client_request_id": "mine-1", "basis": "reported",
		"charge_nanousd": settled.Get("charge_nanousd").String(), "list_nanousd": settled.Get("list_nanousd").String(),
	} {
		if got := detail.Get(path).String(); got != value || got == "" {
			t.Errorf("detail %s: %q, want %q\n%s", path, got, value, detail.Body)
		}
	}
	// 5 tokens at 15 USD a million are 75,000 nano-USD; the prompt's come on top.
	if charge := detail.Get("charge_nanousd").Int(); charge <= 75_000 {
		t.Errorf("charge is %d nano-USD", charge)
	}
	if cost := reply.Header.Get("X-Sluice-Cost-Nanousd"); cost != "" && cost != detail.Get("charge_nanousd").String() {
		t.Errorf("the header says %s", cost)
	}
	harness.Eventually(t, "the request is found by the search", func() bool {
		row := s.client.Get(t, "/v1/requests?model=m&provider=b&outcome=completed").Get("data.0")
		return row.Get("id").String() == reply.ID() && row.Get("charge_nanousd").Int() == detail.Get("charge_nanousd").Int()
	})
}

// TestOwnRequestIsReadableAtOnce_M17: the answer's end is sent after its settlement
// is in the log, and detail and trail are read from the log itself.
//
// Rules: M17.
func TestOwnRequestIsReadableAtOnce_M17(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	for range 20 {
		for _, ask := range []func(testing.TB, string, string, ...string) harness.Reply{s.client.Chat, s.client.Stream} {
			reply := ask(t, "m", "hello")
			trail := s.client.Trail(t, reply.ID())
			if trail.Get("outcome").String() != "completed" || trail.Get(`entries.#(event=="attempt_settled")#|#`).Int() != 1 {
				t.Fatalf("a whole answer without its end in the log: %s", trail)
			}
		}
	}
}

// TestClientThatLeavesEndsTheUpstreamCall_S7: the provider sees the caller's
// departure, and the trail says whose it was.
//
// Rules: S7.
func TestClientThatLeavesEndsTheUpstreamCall_S7(t *testing.T) {
	for _, c := range []struct {
		name, model         string
		stream, afterOutput bool
	}{
		{"stream, before the first byte", "silent", true, false},
		{"stream, after the first output", "stalls", true, true},
		{"whole, before the first byte", "silent", false, false},
		{"whole, inside the answer", "stalls", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, map[string][]string{"silent": {"a/fake-silence"}, "stalls": {"a/fake-stall:3"}})
			id := leave(t, s, c.model, c.stream, c.afterOutput)
			harness.Eventually(t, "the provider sees the caller gone", func() bool {
				return s.a.Ledger().Calls[0].ClientGone
			})
			harness.Eventually(t, "the trail ends client_cancelled", func() bool {
				return s.client.Trail(t, id).Get("outcome").String() == "client_cancelled"
			})
			trail := s.client.Trail(t, id)
			if n := trail.Get(`entries.#(event=="attempt_settled")#|#`).Int(); n != 1 {
				t.Errorf("%d settlements: %s", n, trail.Body)
			}
		})
	}
}
