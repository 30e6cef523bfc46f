package e2e_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestSameKeyIsAnsweredOnce_I1: the answer again, byte for byte, without a second
// call or charge; another body under the key is a conflict.
//
// Rules: I1.
func TestSameKeyIsAnsweredOnce_I1(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-words:6"}})
	for _, stream := range []bool{false, true} {
		key := map[bool]string{false: "whole", true: "stream"}[stream]
		t.Run(key, func(t *testing.T) {
			before := s.calls()
			body := harness.ChatBody("m", "hello", map[string]any{"stream": stream})
			first := s.client.Do(t, "POST", harness.ChatPath, body, "Idempotency-Key", key)
			again := s.client.Do(t, "POST", harness.ChatPath, body, "Idempotency-Key", key)
			if !first.IsWhole() || !bytes.Equal(first.Body, again.Body) || first.ID() != again.ID() {
				t.Errorf("first %s\nagain %s", first, again)
			}
			if first.Header.Get("Idempotent-Replayed") != "" || again.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("idempotent-replayed: %v, %v", first.Header, again.Header)
			}
			other := s.client.Chat(t, "m", "something else", "Idempotency-Key", key)
			checkError(t, other, 409, "idempotency_conflict")
			if n := s.calls() - before; n != 1 {
				t.Errorf("%d calls for one key", n)
			}
		})
	}
}

// TestKeyRunsOnOneWorkerOnly_I2_I3: eight callers at once, over two workers: one
// call, and nobody gets another answer than the one there is.
//
// Rules: I2, I3.
func TestKeyRunsOnOneWorkerOnly_I2_I3(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-words:6+delay:50ms"}})
	second := s.Serve(t).Client(s.client.Key)
	replies := make([]harness.Reply, 8)
	var callers sync.WaitGroup
	for i := range replies {
		callers.Go(func() {
			client := []harness.Client{s.client, second}[i%2]
			replies[i], _ = client.Try("POST", harness.ChatPath, harness.ChatBody("m", "hello", nil), "Idempotency-Key", "shared")
		})
	}
	callers.Wait()
	whole := 0
	var answer []byte
	for _, reply := range replies {
		if !reply.IsWhole() {
			checkError(t, reply, 409, "idempotency_replay_unavailable")
			continue
		}
		whole++
		if answer != nil && !bytes.Equal(answer, reply.Body) {
			t.Errorf("two answers:\n%s\n%s", answer, reply.Body)
		}
		answer = reply.Body
	}
	if whole != 4 {
		t.Errorf("%d whole answers: want those of the four callers on one worker", whole)
	}
	if n := s.calls(); n != 1 {
		t.Errorf("%d calls", n)
	}
}
