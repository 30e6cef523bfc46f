package gateway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/network/networktest"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/domain/request"
)

// guarded is a gateway that may call nothing inside but what is left open: the route
// that serves.
func guarded(t *testing.T, names map[string][]string, baseURLs ...string) *gatewaytest.Bench {
	t.Helper()
	models := make([]string, len(baseURLs))
	for i := range models {
		models[i] = "fake-ok"
	}
	b := gatewaytest.New(t, models...)
	calls := provider.New(provider.Config{Outbound: registry.Outbound(), Resolver: networktest.Resolver(t, names)})
	t.Cleanup(calls.Close)
	b.Providers = calls
	port := b.Provider.URL()[strings.LastIndexByte(b.Provider.URL(), ':'):]
	for i, baseURL := range baseURLs {
		b.Objects.Providers[i].BaseURL = strings.ReplaceAll(baseURL, ":PORT", port)
	}
	return b
}

// A class or model whose links are all there and all turned down is refused without an
// attempt, and not as one that has no links.
//
// Rules: Z1, N11.
func TestRefusedBaseURLsAreNoRouteAllowed_Z1_N11(t *testing.T) {
	b := guarded(t, nil, "http://127.0.0.1:PORT/v1", "http://llm.internal:PORT/v1")
	out := b.Chat(t.Context(), gatewaytest.Whole)
	if out.Err == nil || out.Err.Code != apierror.NoRouteAllowed || out.Err.HTTPStatus() != 503 || out.Err.Retryable || out.Facts.Attempts != 0 {
		t.Fatalf("got %+v", out.Err)
	}
	refused, ok := b.Log.Events(t)[0].(request.RequestRefused)
	if !ok || refused.Code != string(request.CodeNoRouteAllowed) || len(refused.Skipped) != 2 {
		t.Fatalf("%+v", b.Log.Events(t))
	}
	for _, s := range refused.Skipped {
		if s.Reason != request.SkipBaseURLRefused {
			t.Errorf("skipped for %s", s.Reason)
		}
	}
	if n := b.Provider.Ledger().Total; n != 0 {
		t.Errorf("%d calls inside", n)
	}
}

// A name that resolves inside is found out by the dial: nothing is sent or billed, what
// was held is given back, and the trail says why. Nobody is asked twice.
//
// Rules: Z1, N11, W13, W15.
func TestNamesThatResolveInsideFailTheirAttempt_Z1_W13(t *testing.T) {
	for _, body := range []string{gatewaytest.Whole, gatewaytest.Stream} {
		b := guarded(t, map[string][]string{"provider.example": {"127.0.0.1"}, "other.example": {"169.254.169.254"}},
			"http://provider.example.:PORT/v1", "http://other.example.:PORT/v1", "http://127.0.0.1:PORT/v1")
		out := b.Chat(t.Context(), body)
		if out.Err == nil || out.Err.Code != apierror.NoRouteAllowed || out.Err.Retryable || len(out.Err.Attempts) != 2 {
			t.Fatalf("got %+v", out.Err)
		}
		want := []string{
			"request_admitted", "attempt_reserved first", "attempt_failed base_url_refused", "attempt_settled reported", "reservation_released",
			"attempt_reserved failover", "attempt_failed base_url_refused", "attempt_settled reported", "reservation_released",
			"route_skipped", "request_finalized failed",
		}
		if diff := cmp.Diff(want, b.Log.Moves(t)); diff != "" {
			t.Error(diff)
		}
		for _, e := range b.Log.Events(t) {
			switch e := e.(type) {
			case request.AttemptFailed:
				if e.PossiblyBilled || e.Status != 0 {
					t.Errorf("%+v", e)
				}
			case request.RouteSkipped:
				if e.Reason != request.SkipBaseURLRefused {
					t.Errorf("%+v", e)
				}
			}
		}
		b.Log.NothingHeld(t)
		if n := b.Provider.Ledger().Total; n != 0 {
			t.Errorf("%d calls inside", n)
		}
	}
}
