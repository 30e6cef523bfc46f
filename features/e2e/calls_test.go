package e2e_test

import (
	"testing"
)

// TestEachCallHasItsReservation_M2: a provider that closes a connection which was
// used before is where an HTTP client likes to send the request again by itself.
// That would be a call which nobody reserved.
//
// Rules: M2.
func TestEachCallHasItsReservation_M2(t *testing.T) {
	for _, fault := range []string{"close", "reset"} {
		t.Run(fault, func(t *testing.T) {
			s := newScene(t, map[string][]string{"m": {"a/fake-ok," + fault + ",ok"}})
			s.client.Chat(t, "m", "leaves an idle connection behind")
			reply := s.client.Chat(t, "m", "hello")
			seen := map[string]int{}
			for _, call := range s.a.Ledger().Calls {
				seen[requestOf(call)]++
			}
			reserved := s.client.Trail(t, reply.ID()).Get(`entries.#(event=="attempt_reserved")#|#`).Int()
			if int64(seen[reply.ID()]) != reserved || reserved == 0 {
				t.Errorf("the provider saw %d calls of a request that reserved %d attempts: %s", seen[reply.ID()], reserved, reply)
			}
		})
	}
}
