package idempotency_test

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/idempotency"
)

// Rules: I2, I3.
func TestAClaimIsTheSumOfItsEvents_I2_I3(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []any
		want   idempotency.State
	}{
		{"nothing was said", nil, idempotency.Free},
		{"claimed", []any{idempotency.KeyClaimed{Request: "r"}}, idempotency.Claimed},
		{"answered", []any{idempotency.KeyClaimed{}, idempotency.KeyCompleted{}}, idempotency.Completed},
		{"failed: closed for good", []any{idempotency.KeyClaimed{}, idempotency.KeyAbandoned{}}, idempotency.Abandoned},
		{"refused before anything ran: free again", []any{idempotency.KeyClaimed{}, idempotency.KeyReleased{}}, idempotency.Free},
		{"and claimed by the next", []any{idempotency.KeyClaimed{}, idempotency.KeyReleased{}, idempotency.KeyClaimed{Body: "b"}}, idempotency.Claimed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c idempotency.Claim
			for _, e := range tc.events {
				c.Apply(e)
			}
			if c.State != tc.want || c.Version != int64(len(tc.events)) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

// Rules: E10, I1.
func TestHashesTellNothingAndMixNothing_E10_I1(t *testing.T) {
	h := idempotency.NewHasher([]byte("secret"))
	stream := h.Stream("acme", "chat", "my-key")
	if strings.Contains(stream, "my-key") || !strings.HasPrefix(stream, "idempotency/acme/") {
		t.Errorf("stream %s", stream)
	}
	for name, other := range map[string]string{
		"another tenant":  h.Stream("acme2", "chat", "my-key"),
		"another surface": h.Stream("acme", "messages", "my-key"),
		"another key":     h.Stream("acme", "chat", "my-key2"),
		"shifted parts":   h.Stream("acme", "cha", "tmy-key"),
		"another secret":  idempotency.NewHasher([]byte("other")).Stream("acme", "chat", "my-key"),
	} {
		if other == stream {
			t.Errorf("%s has the same claim", name)
		}
	}
	a, again, b := h.Body("acme", []byte("a")), h.Body("acme", []byte("a")), h.Body("acme", []byte("b"))
	if a == b || a != again {
		t.Error("bodies are not told apart")
	}
}
