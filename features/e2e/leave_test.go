package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// leave makes a call, hangs up once the provider works on it, and returns the
// request's id. afterOutput waits until the first output has reached the caller.
func leave(t *testing.T, s *scene, model string, stream, afterOutput bool) string {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	firstByte := make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		body := harness.ChatBody(model, "hello", map[string]any{"stream": stream})
		response, err := s.client.Open(ctx, "POST", harness.ChatPath, strings.NewReader(body))
		if err != nil {
			firstByte <- err
			return
		}
		defer func() { _ = response.Body.Close() }()
		_, err = response.Body.Read(make([]byte, 1))
		firstByte <- err
		<-ctx.Done()
	}()
	if err := s.a.Await(t.Context(), func(calls []fakeprovider.Call) bool { return len(calls) > 0 }); err != nil {
		t.Fatal(err)
	}
	if afterOutput {
		if err := <-firstByte; err != nil {
			t.Fatalf("no output: %v", err)
		}
	}
	hangUp()
	<-ended
	// Nothing may have been answered: the provider's ledger knows the id all the same.
	return requestOf(s.a.Ledger().Calls[0])
}

// requestOf is the request that made a call: the upstream idempotency key begins
// with its id (I4).
func requestOf(call fakeprovider.Call) string {
	return call.IdempotencyKey[:min(len(call.IdempotencyKey), len("0193b1f0-0000-7000-8000-000000000000"))]
}
